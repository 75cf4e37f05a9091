//! The files that a configuration was read from, to say later where a key stands.

use super::document::{Document, Node, find, shown};
use super::error::Location;
use super::key_path::KeyPath;
use super::schema::MAIN_PROJECT;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of a configuration. Two configurations that say the same are the same wherever it stands, so documents are
/// all equal.
#[derive(Debug, Clone)]
pub(super) struct Documents {
    main: Arc<Document>,
    /// The text of the configuration itself.
    pub(super) text: String,
    /// Files that each define one agent or tool, by project, section and name.
    definitions: BTreeMap<(String, String, String), Arc<Document>>,
}

impl PartialEq for Documents {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Documents {
    pub(super) fn new(main: Document) -> Self {
        Self { main: Arc::new(main), text: String::new(), definitions: BTreeMap::new() }
    }

    pub(super) fn main(&self) -> &Document {
        &self.main
    }

    pub(super) fn define(&mut self, project: &str, section: &str, name: &str, document: Document) {
        let key = (project.to_owned(), section.to_owned(), name.to_owned());
        self.definitions.insert(key, Arc::new(document));
    }

    pub(super) fn definitions(&self, project: &str) -> impl Iterator<Item = (&str, &str, &Document)> {
        let of_project = self.definitions.iter().filter(move |((of, ..), _)| of == project);
        of_project.map(|((_, section, name), document)| (section.as_str(), name.as_str(), &**document))
    }

    /// The file that holds these keys of a project, the keys in it, and what the file is.
    fn find<'k>(&self, project: &'k str, keys: &[&'k str]) -> (&Document, Vec<&'k str>, KeyPath<'static>) {
        if let [section, name, rest @ ..] = keys {
            let key = (project.to_owned(), (*section).to_owned(), (*name).to_owned());
            if let Some(document) = self.definitions.get(&key) {
                let whole = if *section == "agents" { "this agent" } else { "this tool" };
                return (document, rest.to_vec(), KeyPath::Root(whole));
            }
        }
        let in_file = match project {
            MAIN_PROJECT => keys.to_vec(),
            other => [&["projects", other], keys].concat(),
        };
        (&self.main, in_file, KeyPath::CONFIGURATION)
    }

    /// Where the value at these keys of a project stands, and its path in that file.
    pub(super) fn locate(&self, project: &str, keys: &[&str]) -> (Location, String) {
        let (document, keys, root) = self.find(project, keys);
        (document.locate(&keys), path(&root, &keys))
    }

    /// Where the key itself stands that leads to a value.
    pub(super) fn key_location(&self, project: &str, keys: &[&str]) -> Location {
        let (at, _) = self.locate(project, keys);
        let group = keys.split_last().and_then(|(last, group)| find(self.value(project, group)?, last));
        Location { line: group.map_or(at.line, |entry| entry.place.line), ..at }
    }

    pub(super) fn has(&self, project: &str, keys: &[&str]) -> bool {
        self.value(project, keys).is_some()
    }

    /// The value at these keys of a project as it is written, quoted.
    pub(super) fn written(&self, project: &str, keys: &[&str]) -> String {
        self.value(project, keys).map(|node| shown(&node.value)).unwrap_or_default()
    }

    fn value(&self, project: &str, keys: &[&str]) -> Option<&Node> {
        let (document, keys, _) = self.find(project, keys);
        document.get(&keys).map(|(node, _)| node)
    }
}

pub(super) fn section_path(project: &str, section: &str) -> String {
    if project == MAIN_PROJECT { section.to_owned() } else { format!("projects.{project}.{section}") }
}

fn path(parent: &KeyPath<'_>, keys: &[&str]) -> String {
    match keys {
        [] => parent.to_string(),
        [key, rest @ ..] => match key.parse() {
            Ok(n) => path(&parent.item(n), rest),
            Err(_) => path(&parent.key(key), rest),
        },
    }
}
