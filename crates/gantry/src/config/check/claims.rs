//! Who has which name: agents and providers are defined once in a project, in whichever file.

use super::Walk;
use crate::config::error::Location;
use crate::config::tree::quoted;
use std::collections::BTreeMap;
use std::path::Path;

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) enum Claim {
    Agent,
    /// An MCP server or an entry of the catalogue.
    Provider,
}

/// The names that are taken, by project.
#[derive(Debug, Default)]
pub(in crate::config) struct Claims(BTreeMap<(Claim, String, String), (Location, &'static str)>);

impl Claims {
    /// Gives back the names that a file has taken.
    pub(super) fn forget(&mut self, file: &Path) {
        self.0.retain(|_, (at, _)| &*at.file != file);
    }

    pub(super) fn of_providers(&self, project: &str) -> impl Iterator<Item = &str> {
        let keys = self.0.keys().filter(move |(claim, of, _)| *claim == Claim::Provider && of == project);
        keys.map(|(_, _, id)| id.as_str())
    }
}

impl Walk<'_, '_> {
    /// Takes a name, or reports who has it. `section` is the group that it stands in: of two in one group, the
    /// duplicate key is reported.
    pub(super) fn claim(&mut self, claim: Claim, name: &str, line: usize, section: &'static str) {
        let at = self.at(line);
        let key = (claim, self.project.clone(), name.to_owned());
        let Some((first, its_section)) = self.judge.claims.0.get(&key) else {
            self.judge.claims.0.insert(key, (at, section));
            return;
        };
        if first.file == at.file && *its_section == section {
            return;
        }
        let name = quoted(name);
        let message = match claim {
            Claim::Agent => format!("the agent {name} is already at {first}; keep one"),
            Claim::Provider => {
                format!("the id {name} is already taken at {first}, in {its_section}; choose another")
            }
        };
        self.report(line, message);
    }
}
