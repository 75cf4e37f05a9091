//! The checks that need not pass through Gantry, each with its reason.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::checks::Check;

/// One entry: in this cell, this check, for this reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    pub(super) cell: String,
    scenario: String,
    check: String,
    pub(super) reason: String,
}

impl Exception {
    pub(super) fn check(&self) -> Check {
        Check { scenario: self.scenario.clone(), id: self.check.clone() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exceptions {
    #[serde(default)]
    exception: Vec<Exception>,
}

impl Exceptions {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let exceptions: Self = toml::from_str(text)?;
        for exception in &exceptions.exception {
            ensure!(!exception.reason.trim().is_empty(), "an exception needs a `reason`: {exception:?}");
        }
        Ok(exceptions)
    }

    pub(super) fn excuses(&self, cell: &str, check: &Check) -> bool {
        self.exception.iter().any(|exception| exception.cell == cell && exception.check() == *check)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exception> {
        self.exception.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_names_cell_check_and_reason() {
        let text = "[[exception]]\ncell = 'legacy/2026-07-28'\nscenario = 's'\ncheck = 'a'\nreason = 'why'\n";
        let exceptions = Exceptions::parse(text).unwrap();
        let check = Check { scenario: "s".to_owned(), id: "a".to_owned() };
        assert!(exceptions.excuses("legacy/2026-07-28", &check));
        assert!(!exceptions.excuses("modern/2026-07-28", &check));
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        let text = "[[exception]]\ncell = 'dual/2026-07-28'\nscenario = 's'\ncheck = 'a'\nreason = ' '\n";
        assert!(Exceptions::parse(text).unwrap_err().to_string().contains("`reason`"));
    }
}
