//! What is known while files are read, and what was found out.

use crate::config::document::{Document, Node, remove_duplicates};
use crate::config::dotenv::Variables;
use crate::config::error::{Error, Location, Problem};
use crate::config::key_path::KeyPath;
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// A file that is read.
pub(in crate::config) struct Context<'a> {
    pub(in crate::config) file: Arc<Path>,
    /// Where variables come from; none in a file whose texts stay as they are written.
    pub(in crate::config) variables: Option<&'a Variables<'a>>,
    /// A key at the top whose text stays as it is written.
    pub(in crate::config) verbatim_key: Option<&'static str>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    findings: Findings,
    /// The addresses of values that are left out, because they are wrong or lack a variable.
    bad: HashSet<usize>,
    /// The address of the entry that is read, if a missing variable switches off only that.
    entry: Option<usize>,
    /// What the environment lacks for entries, by their addresses.
    missing: Vec<(usize, String)>,
}

#[derive(Default)]
pub(in crate::config) struct Findings {
    pub(in crate::config) problems: Error,
    /// What the user should know although it stops nothing.
    pub(in crate::config) warnings: Vec<Problem>,
}

impl Findings {
    pub(in crate::config) fn extend(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
    }
}

impl<'a> Context<'a> {
    pub(in crate::config) fn new(file: Arc<Path>, variables: Option<&'a Variables<'a>>) -> Self {
        Self { file, variables, verbatim_key: None, state: RefCell::default() }
    }

    pub(in crate::config) fn into_findings(self) -> Findings {
        self.state.into_inner().findings
    }

    fn at(&self, line: usize) -> Location {
        Location { file: self.file.clone(), line }
    }

    pub(in crate::config) fn report(&self, line: usize, message: impl Into<String>) {
        let problem = Problem::at(&self.at(line), message);
        self.state.borrow_mut().findings.problems.push(problem);
    }

    /// Reports the keys that are twice in one group, and leaves them out.
    pub(in crate::config) fn report_duplicates(&self, document: &mut Document) {
        remove_duplicates(&mut document.root, &KeyPath::Root(""), &|line, message| {
            self.report(line, message)
        });
    }

    pub(in crate::config) fn warn(&self, line: usize, message: impl Into<String>) {
        let warning = Problem::at(&self.at(line), message);
        let warnings = &mut self.state.borrow_mut().findings.warnings;
        // What is wrong elsewhere makes a value be read again.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    pub(in crate::config) fn warn_file(&self, message: &str) {
        self.state.borrow_mut().findings.warnings.push(Problem::in_file(&self.file, message));
    }

    pub(in crate::config) fn has_problems(&self) -> bool {
        self.state.borrow().findings.problems.count() > 0
    }

    /// How many problems there are, and how many values are left out.
    pub(super) fn progress(&self) -> (usize, usize) {
        let state = self.state.borrow();
        (state.findings.problems.count(), state.bad.len())
    }

    /// Whether so much is wrong that no more is listed.
    pub(super) fn is_full(&self) -> bool {
        self.state.borrow().findings.problems.is_full()
    }

    pub(super) fn mark_bad(&self, node: &Node) {
        self.state.borrow_mut().bad.insert(address(node));
    }

    /// Whether a part of the value is left out.
    pub(super) fn has_bad_part(&self, node: &Node) -> bool {
        let parts = node.value.items().iter().chain(node.value.entries().iter().map(|entry| &entry.node));
        parts.into_iter().any(|part| self.is_bad(part) || self.has_bad_part(part))
    }

    pub(super) fn is_bad(&self, node: &Node) -> bool {
        self.state.borrow().bad.contains(&address(node))
    }

    /// Begins an entry that a missing variable switches off, or ends it.
    pub(super) fn enter(&self, entry: Option<&Node>) {
        self.state.borrow_mut().entry = entry.map(address);
    }

    /// Whether such an entry is read.
    pub(super) fn is_in_entry(&self) -> bool {
        self.state.borrow().entry.is_some()
    }

    /// What the environment lacks for an entry; something also if a part of it is wrong.
    pub(super) fn missing(&self, entry: &Node) -> String {
        let state = self.state.borrow();
        let missing = state.missing.iter().filter(|(of, _)| *of == address(entry));
        let missing: Vec<&str> = missing.map(|(_, message)| message.as_str()).collect();
        if missing.is_empty() && self.has_bad_part(entry) {
            return "a part of it is wrong".to_owned();
        }
        missing.join("; ")
    }

    /// Leaves out a value for which the environment lacks something: a problem, unless it only switches off an entry.
    pub(super) fn report_missing(&self, node: &Node, message: String) {
        self.mark_bad(node);
        let at = self.at(node.place.line);
        let mut state = self.state.borrow_mut();
        match state.entry {
            // A server that is added over the API stands in no file.
            Some(entry) if at.file.as_os_str().is_empty() => state.missing.push((entry, message)),
            Some(entry) => state.missing.push((entry, format!("{at}: {message}"))),
            None => state.findings.problems.push(Problem::at(&at, message)),
        }
    }
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}
