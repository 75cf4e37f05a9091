//! The choice of tests for `--quick`: every unit test, and one end-to-end test of each row of the requirements.
//!
//! It is made from the list of tests, so a new row is in it as soon as it has a test, and it is the same on every machine.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell::{EVERYTHING, Program};

/// What the help says about the choice.
pub(super) const RULE: &str = "every test in src/, and for each requirement the first test in tests/ whose name begins with its row, such \
as `cal_6_`; a `heavy_` test only where a row has no other";

/// The kind that nextest gives to what is compiled from a `tests` folder.
const END_TO_END: &str = "test";
const HEAVY: &str = "heavy_";
/// Rows are called like CAL-6.
const LETTERS: usize = 3;

/// The tests of a `tests` folder that were chosen, by the binary they are in.
type Chosen = BTreeMap<String, Vec<String>>;

/// The filter that makes nextest run the choice.
pub(super) fn filter(root: &Path) -> Result<String> {
    let list = Program::cargo(root)
        .args(["nextest", "list"])
        .args(EVERYTHING)
        .args(["--message-format", "json"])
        .output()?;
    let list: Value = serde_json::from_str(&list).context("the list of tests is no JSON")?;
    let chosen = choose(&list)?;
    eprintln!("quick: one end-to-end test for each of {} rows", chosen.values().map(Vec::len).sum::<usize>());
    Ok(expression(&chosen))
}

fn choose(list: &Value) -> Result<Chosen> {
    let suites = list["rust-suites"].as_object().context("the list of tests has no suites")?;
    // The key of a candidate sorts the better one first.
    let mut rows: BTreeMap<String, (bool, &str, &str)> = BTreeMap::new();
    for (binary, suite) in suites.iter().filter(|(_, suite)| suite["kind"] == END_TO_END) {
        for name in suite["testcases"].as_object().into_iter().flat_map(|tests| tests.keys()) {
            let Some(row) = row(name) else { continue };
            let candidate = (is_heavy(name), name.as_str(), binary.as_str());
            rows.entry(row.to_owned()).and_modify(|best| *best = candidate.min(*best)).or_insert(candidate);
        }
    }
    ensure!(!rows.is_empty(), "no test is named after a row of the requirements, such as `cal_6_…`");
    let mut chosen = Chosen::new();
    for (_, name, binary) in rows.into_values() {
        chosen.entry(binary.to_owned()).or_default().push(name.to_owned());
    }
    Ok(chosen)
}

fn expression(chosen: &Chosen) -> String {
    let mut text = format!("not kind({END_TO_END})");
    for (binary, tests) in chosen {
        let tests: Vec<String> = tests.iter().map(|name| format!("test(={name})")).collect();
        text.push_str(&format!(" | (binary_id(={binary}) & ({}))", tests.join(" | ")));
    }
    text
}

/// Such a name has the word at its beginning or after the row.
fn is_heavy(name: &str) -> bool {
    claim(name).contains(HEAVY)
}

/// The name of a test without the modules that it is in.
fn claim(name: &str) -> &str {
    name.rsplit_once("::").map_or(name, |(_, claim)| claim)
}

/// The row that a test proves: `cal_6` of `pipeline::cal_6_a_call_is_recorded`.
fn row(name: &str) -> Option<&str> {
    let claim = claim(name);
    let claim = claim.strip_prefix(HEAVY).unwrap_or(claim);
    let (letters, rest) = claim.split_once('_')?;
    let (number, _) = rest.split_once('_')?;
    let is_row = letters.len() == LETTERS
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    is_row.then(|| claim.get(..LETTERS + 1 + number.len())).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_row(name: &str, expected: Option<&str>) {
        assert_eq!(row(name), expected, "{name}");
    }

    #[test]
    fn the_row_is_the_beginning_of_the_name() {
        check_row("pipeline::order::cal_6_a_call_is_recorded", Some("cal_6"));
        check_row("cal_16_a_call_is_recorded", Some("cal_16"));
        check_row("specs::heavy_rst_3_documents_import", Some("rst_3"));
    }

    #[test]
    fn a_name_without_a_row_has_none() {
        for name in ["the_version_is_told", "all_2", "a_1_b", "four_1_b", "cal__b", "cal_x_b", "CAL_1_b", ""]
        {
            check_row(name, None);
        }
    }

    fn suite(kind: &str, tests: &[&str]) -> Value {
        let tests: serde_json::Map<String, Value> =
            tests.iter().map(|name| ((*name).to_owned(), json!({ "ignored": false }))).collect();
        json!({ "kind": kind, "testcases": tests })
    }

    #[test]
    fn one_light_test_of_each_row_is_chosen_and_every_unit_test() {
        let list = json!({ "rust-suites": {
            "gantry": suite("lib", &["cal_1_in_src", "cal_9_in_src"]),
            "gantry::it": suite("test", &[
                "b::cal_1_second",
                "a::cal_1_first",
                "a::heavy_cal_2_much",
                "b::cal_2_heavy_as_well",
                "z::cal_2_little",
                "a::heavy_cal_3_much",
                "a::no_row",
            ]),
            "gantry-store::it": suite("test", &["dur_1_kept", "c::cal_1_third"]),
        } });
        let expected = "not kind(test) | (binary_id(=gantry-store::it) & (test(=dur_1_kept))) | \
                        (binary_id(=gantry::it) & (test(=a::cal_1_first) | test(=z::cal_2_little) | \
                        test(=a::heavy_cal_3_much)))";
        assert_eq!(expression(&choose(&list).unwrap()), expected);
    }

    #[test]
    fn a_list_without_rows_is_an_error() {
        assert!(choose(&json!({ "rust-suites": {} })).unwrap_err().to_string().contains("cal_6_"));
        assert!(choose(&json!({})).unwrap_err().to_string().contains("suites"));
    }
}
