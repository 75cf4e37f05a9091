//! The choice of tests for `--quick`: every unit test, and one end-to-end test of each row of the requirements.
//!
//! It is made from the list of tests, so a new row is in it as soon as it has a test, and it is the same on every machine.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell::{EVERYTHING, Program};

/// What the help says about the choice.
pub(super) const RULE: &str = "every test in src/, and for each requirement the first test in tests/ whose name \
                               begins with its row, such as `cal_6_`; a `heavy_` test only where a row has no other";

const HEAVY: &str = "heavy_";

/// The filter that makes nextest run the choice.
pub(super) fn filter(root: &Path) -> Result<String> {
    let list = Program::cargo(root).args(["nextest", "list"]).args(EVERYTHING);
    let list = list.args(["--message-format", "json"]).output()?;
    choose(&serde_json::from_str(&list).context("the list of tests is no JSON")?)
}

/// Of each row, the first test by name is taken, a light one if there is one.
fn choose(list: &Value) -> Result<String> {
    let suites = list["rust-suites"].as_object().context("the list of tests has no suites")?;
    let mut rows: BTreeMap<String, (bool, &str)> = BTreeMap::new();
    // `test` is the kind of what is compiled from a `tests` folder.
    for suite in suites.values().filter(|suite| suite["kind"] == "test") {
        for name in suite["testcases"].as_object().into_iter().flat_map(|tests| tests.keys()) {
            let claim = name.rsplit("::").next().unwrap_or_default();
            let Some(row) = row(claim) else { continue };
            let candidate = (claim.contains(HEAVY), name.as_str());
            rows.entry(row).and_modify(|best| *best = candidate.min(*best)).or_insert(candidate);
        }
    }
    ensure!(!rows.is_empty(), "no test is named after a row of the requirements, such as `cal_6_…`");
    eprintln!("quick: one end-to-end test for each of {} rows", rows.len());
    let tests = rows.values().map(|(_, name)| format!(" | test(={name})"));
    Ok(format!("not kind(test){}", tests.collect::<String>()))
}

/// The row that a test proves: `cal_6` of `cal_6_a_call_is_recorded`.
fn row(claim: &str) -> Option<String> {
    let mut words = claim.strip_prefix(HEAVY).unwrap_or(claim).split('_');
    let (letters, number, _) = (words.next()?, words.next()?, words.next()?);
    let is_row = letters.len() == 3
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    is_row.then(|| format!("{letters}_{number}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_row(name: &str, expected: Option<&str>) {
        assert_eq!(row(name).as_deref(), expected, "{name}");
    }

    #[test]
    fn the_row_is_the_beginning_of_the_name() {
        check_row("cal_6_a_call_is_recorded", Some("cal_6"));
        check_row("cal_16_a_call_is_recorded", Some("cal_16"));
        check_row("heavy_rst_3_documents_import", Some("rst_3"));
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
        let expected = "not kind(test) | test(=a::cal_1_first) | test(=z::cal_2_little) | \
                        test(=a::heavy_cal_3_much) | test(=dur_1_kept)";
        assert_eq!(choose(&list).unwrap(), expected);
    }

    #[test]
    fn a_list_without_rows_is_an_error() {
        assert!(choose(&json!({ "rust-suites": {} })).unwrap_err().to_string().contains("cal_6_"));
        assert!(choose(&json!({})).unwrap_err().to_string().contains("suites"));
    }
}
