//! Which names are taken: agents and providers are defined once in a project, in any of its files.

use crate::config::document::quoted;
use crate::config::error::Location;
use gantry_core::names::sanitised;
use std::collections::BTreeMap;

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) enum NameKind {
    Agent,
    /// An MCP server or an entry of the catalogue.
    Provider,
}

/// The names that are taken, by kind and project, with the section and the place of each.
#[derive(Debug, Default)]
pub(in crate::config) struct NameRegistry(BTreeMap<(NameKind, String, String), (Location, String)>);

impl NameRegistry {
    /// Takes a name, or says what has it. Of two in one group, the duplicate key is reported.
    pub(in crate::config) fn claim(
        &mut self,
        kind: NameKind,
        project: &str,
        section: &str,
        name: &str,
        at: &Location,
    ) -> Result<(), String> {
        let key = (kind, project.to_owned(), name.to_owned());
        let Some((first, taken_in)) = self.0.get(&key) else {
            self.0.insert(key, (at.clone(), section.to_owned()));
            return Ok(());
        };
        if first.file == at.file && taken_in == section {
            return Ok(());
        }
        let name = quoted(name);
        Err(match kind {
            NameKind::Agent => format!("the agent {name} is already at {first}; keep one"),
            NameKind::Provider => {
                format!("the id {name} is already taken at {first}, in {taken_in}; choose another")
            }
        })
    }

    /// Whether the project has a provider under this id, or under one that becomes this namespace.
    pub(in crate::config) fn has_provider(&self, project: &str, id: &str) -> bool {
        let mut names = self.0.keys().filter(|(kind, of, _)| *kind == NameKind::Provider && of == project);
        names.any(|(_, _, known)| known == id || sanitised(known) == id)
    }
}
