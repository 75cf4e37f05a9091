//! What is known while files are read, and what was found out.

use crate::config::document::Node;
use crate::config::dotenv::Variables;
use crate::config::error::{Location, Problem, Problems};
use crate::config::key_path::KeyPath;
use crate::config::shapes::shapes;
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
    /// The addresses of values that are left out, because they are wrong.
    bad: HashSet<usize>,
    /// In an entry that is switched off alone: what the environment lacks for it. Elsewhere that is a problem.
    missing: Option<Vec<String>>,
}

/// What was found out about files.
#[derive(Default)]
pub(in crate::config) struct Findings {
    pub(in crate::config) problems: Problems,
    /// What the user should know although it stops nothing.
    pub(in crate::config) warnings: Vec<Problem>,
}

impl<'a> Context<'a> {
    pub(in crate::config) fn new(file: Arc<Path>, variables: Option<&'a Variables<'a>>) -> Self {
        Self { file, variables, verbatim_key: None, state: RefCell::default() }
    }

    pub(in crate::config) fn into_findings(self) -> Findings {
        self.state.into_inner().findings
    }

    pub(in crate::config) fn at(&self, line: usize) -> Location {
        Location { file: self.file.clone(), line }
    }

    pub(in crate::config) fn report(&self, line: usize, message: impl Into<String>) {
        let problem = Problem::at(&self.at(line), message);
        self.state.borrow_mut().findings.problems.push(problem);
    }

    pub(in crate::config) fn warn(&self, line: usize, message: impl Into<String>) {
        let warning = Problem::at(&self.at(line), message);
        let warnings = &mut self.state.borrow_mut().findings.warnings;
        // What is wrong elsewhere makes a value be read again.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Warns of something about the file as a whole.
    pub(in crate::config) fn warn_file(&self, message: &str) {
        self.state.borrow_mut().findings.warnings.push(Problem::in_file(&self.file, message));
    }

    /// Whether so much is wrong that no more is listed.
    pub(super) fn is_full(&self) -> bool {
        self.state.borrow().findings.problems.is_full()
    }

    pub(super) fn mark_bad(&self, node: &Node) {
        self.state.borrow_mut().bad.insert(std::ptr::from_ref(node).addr());
    }

    /// Whether a part of the value is left out.
    pub(super) fn has_bad_part(&self, node: &Node) -> bool {
        let parts = node.value.items().iter().chain(node.value.entries().iter().map(|entry| &entry.node));
        parts.into_iter().any(|part| self.is_bad(part) || self.has_bad_part(part))
    }

    pub(super) fn is_bad(&self, node: &Node) -> bool {
        self.state.borrow().bad.contains(&std::ptr::from_ref(node).addr())
    }

    /// Begins an entry that a missing variable switches off; whether this is the outermost one.
    pub(super) fn begin_entry(&self) -> bool {
        let missing = &mut self.state.borrow_mut().missing;
        let is_outermost = missing.is_none();
        missing.get_or_insert_default();
        is_outermost
    }

    /// Ends it, with what the environment lacks.
    pub(super) fn end_entry(&self) -> Vec<String> {
        self.state.borrow_mut().missing.take().unwrap_or_default()
    }

    pub(super) fn report_missing(&self, line: usize, message: String) {
        let at = self.at(line);
        if let Some(missing) = &mut self.state.borrow_mut().missing {
            // A server that is added over the API stands in no file.
            let place = if at.file.as_os_str().is_empty() { String::new() } else { format!("{at}: ") };
            return missing.push(format!("{place}{message}"));
        }
        self.report(line, message);
    }

    /// The description of a field, by the struct and the last key of the path.
    pub(super) fn description(&self, owner: &str, path: &KeyPath<'_>) -> String {
        path.last_key().and_then(|key| shapes().description(owner, key)).unwrap_or_default()
    }

    pub(super) fn warn_ignored(&self, owner: &str, path: &KeyPath<'_>, line: usize) {
        self.warn(line, format!("{path} has no effect; {}", self.description(owner, path)));
    }

    pub(super) fn required(&self, name: &str) -> Vec<String> {
        shapes().required(name)
    }
}
