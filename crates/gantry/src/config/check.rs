//! Judges a tree by the key table: unknown keys, wrong types, bounds, references, and variables in texts.
//!
//! The walk changes the tree in place (variables are put in, texts from variables become the numbers they spell), so
//! that `build` finds plain values. It never stops at a problem, so that one run reports all of them.

mod leaf;
mod servers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::env::Variables;
use super::error::{Location, Problem, Problems};
use super::suggest;
use super::table::{Fallback, Key, Kind, ROOT};
use super::text::{self, Rule};
use super::trail::Trail;
use super::tree::{Entry, Node, Text, Value, quoted};

const LATER: &str = "is not available in this version of Gantry";

/// What a check finds out that is no problem.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Why servers cannot be started, by id: the environment lacks a variable that they need.
    pub(super) unusable: BTreeMap<String, String>,
    /// What has no effect, and the line of it.
    pub(super) warnings: Vec<(usize, String)>,
}

/// Checks a whole file, in which these queues can be referred to, and reports into `problems`.
pub(super) fn check(
    root: &mut Node,
    file: &Arc<Path>,
    variables: &Variables<'_>,
    queues: BTreeSet<String>,
    problems: &mut Problems,
) -> Findings {
    let mut walk = Walk { file, variables, queues, problems, missing: None, findings: Findings::default() };
    walk.duplicates(root, &Trail::Root);
    walk.section(root, &Trail::Root, ROOT);
    walk.findings
}

/// Checks the value of `example` in a file against one key.
#[cfg(test)]
pub(super) fn example(root: &mut Node, key: &'static Key) -> Option<super::Error> {
    let env = super::FixedEnv::default();
    let mut problems = Problems::default();
    let queues = queue_names(root);
    let file = Arc::from(Path::new("example"));
    let (variables, findings) = (Variables::new(&env), Findings::default());
    let mut walk =
        Walk { file: &file, variables: &variables, queues, problems: &mut problems, missing: None, findings };
    let Value::Map(entries) = &mut root.value else { return None };
    for entry in entries.iter_mut().filter(|entry| entry.key == "example") {
        walk.value(&mut entry.node, &Trail::Root.key(key.name), &key.kind, entry.line);
    }
    problems.into_error()
}

/// The queues of a file.
pub(super) fn queue_names(root: &Node) -> BTreeSet<String> {
    let queues = root.value.entries().iter().filter(|entry| entry.key == "queues");
    queues.flat_map(|entry| entry.node.value.entries()).map(|queue| queue.key.clone()).collect()
}

struct Walk<'a> {
    file: &'a Arc<Path>,
    variables: &'a Variables<'a>,
    queues: BTreeSet<String>,
    problems: &'a mut Problems,
    /// In the entry of an MCP server: what the environment lacks for it. Elsewhere that is a problem.
    missing: Option<Vec<String>>,
    findings: Findings,
}

impl Walk<'_> {
    fn report(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem::at(&Location { file: self.file.clone(), line }, message));
    }

    fn mismatch(&mut self, node: &Node, path: &Trail<'_>, expected: &str) {
        let found = node.value.quoted();
        self.report(node.line, format!("{path} must be {expected}, found {found}"));
    }

    fn duplicates(&mut self, node: &Node, path: &Trail<'_>) {
        match &node.value {
            Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(_) => {}
            Value::List(items) => {
                items.iter().enumerate().for_each(|(n, item)| self.duplicates(item, &path.item(n)));
            }
            Value::Map(entries) => {
                let mut lines = HashMap::new();
                for entry in entries {
                    if let Some(first) = lines.insert(entry.key.as_str(), entry.line) {
                        let (key, within) = (quoted(&entry.key), path.within());
                        self.report(
                            entry.line,
                            format!("key {key}{within} is already on line {first}; keep one"),
                        );
                    }
                    self.duplicates(&entry.node, &path.key(&entry.key));
                }
            }
        }
    }

    /// A group of known keys. Nothing at all counts as an empty group, as YAML writes one that way.
    fn section(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        let mut missing: Vec<&str> =
            keys.iter().filter(|key| matches!(key.default, Fallback::Required)).map(|key| key.name).collect();
        for entry in entries {
            missing.retain(|name| *name != entry.key);
            match keys.iter().find(|key| key.name == entry.key) {
                Some(key) => self.value(&mut entry.node, &path.key(key.name), &key.kind, entry.line),
                None => self.unknown(entry, path, keys),
            }
        }
        for name in missing {
            self.report(node.line, format!("{path} needs the key \"{name}\""));
        }
    }

    /// The entries of a group, or `None` after saying that it is none.
    fn entries<'n>(&mut self, node: &'n mut Node, path: &Trail<'_>) -> Option<&'n mut [Entry]> {
        if matches!(node.value, Value::Null) {
            return Some(&mut []);
        }
        if !matches!(node.value, Value::Map(_)) {
            self.mismatch(node, path, "a group of keys");
        }
        if let Value::Map(entries) = &mut node.value { Some(entries) } else { None }
    }

    fn unknown(&mut self, entry: &Entry, path: &Trail<'_>, keys: &'static [Key]) {
        let advice = match suggest::nearest(&entry.key, keys.iter().map(|key| key.name)) {
            Some(name) if keys.iter().any(|key| key.name == name && matches!(key.kind, Kind::Later)) => {
                format!("the nearest key, \"{name}\", {LATER}")
            }
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("known keys are {}", suggest::list(available(keys))),
        };
        self.report(entry.line, format!("unknown key {}{}; {advice}", quoted(&entry.key), path.within()));
    }

    fn value(&mut self, node: &mut Node, path: &Trail<'_>, kind: &'static Kind, key_line: usize) {
        match kind {
            Kind::Section(keys) => self.section(node, path, keys),
            Kind::Named(keys) => self.named(node, path, keys),
            Kind::Servers(keys) => self.servers(node, path, keys),
            Kind::Catalogue(keys) => self.catalogue(node, path, keys),
            Kind::Items(keys) => self.items(node, path, keys),
            Kind::PerTool(kind) => self.per_tool(node, path, kind),
            Kind::Secrets(rule) => self.secrets(node, path, *rule),
            Kind::Arguments => self.arguments(node, path),
            Kind::Texts(rule, min) => self.texts(node, path, *rule, *min),
            Kind::Gated => self.gated(node, path, &kind.noun()),
            Kind::Later => self.report(key_line, format!("\"{path}\" {LATER}; remove it")),
            Kind::Flag
            | Kind::Number(_)
            | Kind::Text(_)
            | Kind::Queue
            | Kind::QueueOrNone
            | Kind::Choice(..) => {
                if self.expand(node, path) {
                    self.scalar(node, path, kind);
                }
            }
        }
    }

    fn named(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if !text::is_name(&entry.key) {
                let noun = Rule::Name.noun();
                self.report(entry.line, format!("{} in {path} must be {noun}", quoted(&entry.key)));
            }
            // A group without a value of its own stands on the line of its key.
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            self.section(&mut entry.node, &path.key(&entry.key), keys);
        }
    }

    fn catalogue(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            let path = path.key(&entry.key);
            if let Some(key) = keys.iter().find(|key| key.name == entry.key) {
                self.value(&mut entry.node, &path, &key.kind, entry.line);
            } else {
                let ids = suggest::list(available(keys));
                self.report(entry.line, format!("\"{path}\" {LATER}; remove it (known here: {ids})"));
            }
        }
    }

    fn items(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, "a list of groups of keys ([] for none)");
        };
        let mut names = HashMap::new();
        for (n, item) in items.iter_mut().enumerate() {
            let path = path.item(n);
            if !matches!(item.value, Value::Map(_)) {
                self.mismatch(item, &path, "a group of keys");
                continue;
            }
            self.section(item, &path, keys);
            let Some((name, line)) = name_of(item) else { continue };
            if let Some(first) = names.insert(name.text.clone(), line) {
                let name = name.quoted();
                self.report(
                    line,
                    format!("{path}.name: {name} is already used on line {first}; names are unique"),
                );
            }
        }
    }

    fn per_tool(&mut self, node: &mut Node, path: &Trail<'_>, kind: &'static Kind) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if !text::is_pattern(&entry.key) {
                self.report(
                    entry.line,
                    format!("{} in {path} must be the name of a tool", quoted(&entry.key)),
                );
            }
            self.value(&mut entry.node, &path.key(&entry.key), kind, entry.line);
        }
    }

    fn arguments(&mut self, node: &mut Node, path: &Trail<'_>) {
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, "a list of argument objects");
        };
        for (n, item) in items.iter_mut().enumerate() {
            let path = path.item(n);
            if matches!(item.value, Value::Map(_)) {
                self.expand_all(item, &path);
            } else {
                self.mismatch(item, &path, "an object of arguments");
            }
        }
    }
}

fn name_of(item: &Node) -> Option<(&Text, usize)> {
    let name = &item.value.entries().iter().find(|entry| entry.key == "name")?.node;
    Some((name.value.as_text()?, name.line))
}

fn available(keys: &'static [Key]) -> impl Iterator<Item = &'static str> {
    keys.iter().filter(|key| !matches!(key.kind, Kind::Later)).map(|key| key.name)
}
