//! The checks that need not pass through Gantry, each with its reason.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::checks::Check;

/// One entry: in this cell, this check, for this reason.
#[derive(Debug, Deserialize)]
pub(super) struct Exception {
    pub(super) cell: String,
    #[serde(flatten)]
    pub(super) check: Check,
    pub(super) reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Exceptions {
    exception: Vec<Exception>,
}

impl Exceptions {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let exceptions: Self = toml::from_str(text)?;
        for exception in exceptions.iter() {
            ensure!(!exception.reason.trim().is_empty(), "an exception needs a `reason`: {exception:?}");
        }
        Ok(exceptions)
    }

    pub(super) fn excuses(&self, cell: &str, check: &Check) -> bool {
        self.iter().any(|exception| exception.cell == cell && exception.check == *check)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exception> {
        self.exception.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(reason: &str) -> Result<Exceptions> {
        let text = "[[exception]]\ncell = 'legacy/2026-07-28'\nscenario = 's'\ncheck = 'a'\n";
        Exceptions::parse(&format!("{text}{reason}"))
    }

    #[test]
    fn an_exception_names_cell_check_and_reason() {
        let exceptions = parse("reason = 'why'").unwrap();
        let check = Check { scenario: "s".to_owned(), id: "a".to_owned() };
        assert!(exceptions.excuses("legacy/2026-07-28", &check));
        assert!(!exceptions.excuses("modern/2026-07-28", &check));
        for reason in ["reason = ' '", ""] {
            assert!(parse(reason).unwrap_err().to_string().contains("`reason`"));
        }
    }
}
