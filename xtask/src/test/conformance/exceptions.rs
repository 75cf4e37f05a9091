//! The checks that need not pass through Gantry, each with its reason.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::Table;

use super::checks::Check;
use crate::test::install;

/// One entry: in this cell, this check, for this reason.
#[derive(Debug)]
pub(super) struct Exception {
    pub(super) cell: String,
    pub(super) check: Check,
    pub(super) reason: String,
}

#[derive(Debug, Default)]
pub(super) struct Exceptions(Vec<Exception>);

impl Exceptions {
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(&install::read(path)?).with_context(|| format!("cannot understand {}", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse()?;
        let entries = match table.get("exception") {
            None => return Ok(Self::default()),
            Some(entries) => entries.as_array().context("`exception` must be a list: [[exception]]")?,
        };
        let exceptions = entries.iter().map(|entry| {
            let text = |name: &str| match entry.get(name).and_then(toml::Value::as_str) {
                Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
                _ => bail!("an exception needs `{name}`: {entry}"),
            };
            let check = Check { scenario: text("scenario")?, id: text("check")? };
            Ok(Exception { cell: text("cell")?, check, reason: text("reason")? })
        });
        exceptions.collect::<Result<_>>().map(Self)
    }

    pub(super) fn excuses(&self, cell: &str, check: &Check) -> bool {
        self.0.iter().any(|exception| exception.cell == cell && exception.check == *check)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exception> {
        self.0.iter()
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

    #[test]
    fn no_exceptions_are_fine() {
        assert_eq!(Exceptions::parse("# None.\n").unwrap().iter().count(), 0);
    }
}
