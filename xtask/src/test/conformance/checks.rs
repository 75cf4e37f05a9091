//! What the suite found: for each check of each scenario, whether it passed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::test::packages;

/// The suite puts a time such as `-2026-11-15T12-35-30-208Z` behind the name of a scenario.
const TIME_BYTES: usize = "-2026-11-15T12-35-30-208Z".len();

const MAX_MESSAGE_CHARS: usize = 240;

/// A check, by the names that the suite gives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Check {
    pub(super) scenario: String,
    #[serde(rename = "check")]
    pub(super) id: String,
}

/// A check in the results of the suite.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeCheck {
    id: String,
    status: String,
    error_message: Option<String>,
    description: Option<String>,
}

/// The outcome of a check, from the best to the worst for a check that is made more than once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    /// It did not apply, and why.
    Skipped(String),
    Passed,
    Failed(String),
}

#[derive(Debug, Default)]
pub(super) struct Checks(BTreeMap<Check, Found>);

impl Checks {
    /// Reads the folder that the suite filled, one folder for each scenario.
    pub(super) fn read(results: &Path) -> Result<Self> {
        let mut checks = Self::default();
        let entries = fs::read_dir(results)
            .with_context(|| format!("the suite left no results in {}", results.display()))?;
        for entry in entries {
            let folder = entry.with_context(|| format!("cannot list {}", results.display()))?;
            let name = folder.file_name().to_string_lossy().into_owned();
            let Some((scenario, _)) = name.split_at_checked(name.len().saturating_sub(TIME_BYTES)) else {
                bail!("`{name}` in {} is not named like a scenario", results.display());
            };
            let path = folder.path().join("checks.json");
            // A scenario that broke off leaves an empty folder: none of its checks was made.
            if !path.exists() {
                continue;
            }
            let scenario = scenario.strip_prefix("server-").unwrap_or(scenario);
            let found = checks.add(scenario, &packages::read(&path)?);
            found.with_context(|| format!("cannot understand {}", path.display()))?;
        }
        Ok(checks)
    }

    fn add(&mut self, scenario: &str, json: &str) -> Result<()> {
        for made in serde_json::from_str::<Vec<MadeCheck>>(json)? {
            let why = made.error_message.or(made.description).unwrap_or_else(|| "no message".to_owned());
            let message = format!("{}: {}", made.status, shortened(&why));
            let found = match made.status.as_str() {
                "SUCCESS" => Found::Passed,
                "SKIPPED" => Found::Skipped(message),
                // Notes on what was seen.
                "INFO" => continue,
                _ => Found::Failed(message),
            };
            let key = Check { scenario: scenario.to_owned(), id: made.id };
            let worst = self.0.remove(&key).map_or(found.clone(), |known| known.max(found));
            self.0.insert(key, worst);
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn passed(&self) -> impl Iterator<Item = &Check> {
        self.0.iter().filter(|(_, found)| **found == Found::Passed).map(|(check, _)| check)
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = (&Check, &str)> {
        self.0.iter().filter_map(|(check, found)| match found {
            Found::Failed(why) => Some((check, why.as_str())),
            Found::Skipped(_) | Found::Passed => None,
        })
    }

    /// Why a check did not pass; `None` if it did.
    pub(super) fn failure(&self, check: &Check) -> Option<&str> {
        match self.0.get(check) {
            Some(Found::Passed) => None,
            Some(Found::Failed(why) | Found::Skipped(why)) => Some(why),
            None => Some("the suite did not make this check"),
        }
    }
}

/// One line that fits a terminal; the results have the whole message.
fn shortened(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", line.split_at(end).0),
        None => line,
    }
}

#[cfg(test)]
impl Checks {
    /// Checks of one scenario `s`: `a` passes, `a!` fails.
    pub(super) fn of(line: &str) -> Self {
        let check = |word: &str| {
            let id = word.trim_end_matches('!');
            let found = match word.ends_with('!') {
                true => Found::Failed("FAILURE: broken".to_owned()),
                false => Found::Passed,
            };
            (Check { scenario: "s".to_owned(), id: id.to_owned() }, found)
        };
        Self(line.split_whitespace().map(check).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Checks {
        let mut checks = Checks::default();
        checks.add("s", json).unwrap();
        checks
    }

    fn ids<'a>(checks: impl Iterator<Item = &'a Check>) -> Vec<&'a str> {
        checks.map(|check| check.id.as_str()).collect()
    }

    #[test]
    fn a_check_that_was_skipped_once_passes_if_it_passed_otherwise() {
        let checks = parse(r#"[{"id": "a", "status": "SUCCESS"}, {"id": "a", "status": "SKIPPED"}]"#);
        assert_eq!(ids(checks.passed()), ["a"]);
    }

    #[test]
    fn notes_and_what_was_skipped_neither_pass_nor_fail() {
        let checks = parse(
            r#"[{"id": "a", "status": "SUCCESS"}, {"id": "b", "status": "INFO"}, {"id": "c", "status": "SKIPPED"}]"#,
        );
        assert_eq!(ids(checks.passed()), ["a"]);
        assert_eq!(checks.failed().count(), 0);
    }

    #[test]
    fn warnings_are_failures() {
        let checks = parse(r#"[{"id": "a", "status": "WARNING", "errorMessage": "late"}]"#);
        assert_eq!(checks.failed().next().unwrap().1, "WARNING: late");
    }

    #[test]
    fn a_check_that_fails_once_fails() {
        let checks = parse(
            r#"[{"id": "a", "status": "SUCCESS"}, {"id": "a", "status": "FAILURE"}, {"id": "a", "status": "SUCCESS"}]"#,
        );
        assert_eq!(ids(checks.passed()), Vec::<&str>::new());
        assert_eq!(checks.failed().count(), 1);
    }

    #[test]
    fn a_check_that_was_not_made_is_trouble() {
        let checks = Checks::of("a b!");
        let trouble = |id: &str| checks.failure(&Check { scenario: "s".to_owned(), id: id.to_owned() });
        assert_eq!(trouble("a"), None);
        assert_eq!(trouble("b"), Some("FAILURE: broken"));
        assert_eq!(trouble("c"), Some("the suite did not make this check"));
    }

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(shortened("a\n  b"), "a b");
        assert_eq!(shortened(&"ä".repeat(1000)).chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn results_are_read_by_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("server-tools-list-2026-11-15T12-35-30-208Z");
        fs::create_dir(&scenario).unwrap();
        fs::write(scenario.join("checks.json"), r#"[{"id": "a", "status": "SUCCESS"}]"#).unwrap();
        fs::create_dir(folder.path().join("server-broken-off-2026-11-15T12-35-30-208Z")).unwrap();
        let checks = Checks::read(folder.path()).unwrap();
        assert_eq!(checks.passed().next().unwrap().scenario, "tools-list");
    }
}
