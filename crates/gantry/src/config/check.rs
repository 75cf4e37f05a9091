//! Judges trees by the key table: unknown keys, wrong types, bounds, references, and variables in texts.
//!
//! The walk changes a tree in place (variables are put in, texts from variables become the numbers they spell), so
//! that `build` finds plain values. It never stops at a problem, so that one run reports all of them.

mod catalogue;
mod claims;
mod files;
mod leaf;
mod projects;
mod servers;
mod services;

pub(super) use catalogue::{ProviderKind, kind_of};
pub(super) use services::service_id;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::env::Variables;
use super::error::{Location, Problem, Problems};
use super::expand::Dialect;
use super::model::MAIN_PROJECT;
use super::suggest;
use super::table::{Fallback, Key, Kind, ROOT};
use super::text::{self, Rule};
use super::trail::Trail;
use super::tree::{Entry, Node, Text, Value, find, quoted};
use claims::Claims;
use gantry_core::names::sanitised;

const LATER: &str = "is not available in this version of Gantry";

/// Judges the files of one configuration, and keeps what was found out.
pub(super) struct Judge<'a> {
    variables: &'a Variables<'a>,
    /// The folder of the configuration.
    folder: &'a Path,
    /// The queues that can be referred to.
    queues: BTreeSet<String>,
    claims: Claims,
    /// Whether a file beside the configuration that cannot be used is left out, and the rest holds.
    pub(super) is_lenient: bool,
    pub(super) problems: Problems,
    /// Why servers and REST services cannot be used, by project and id: the environment lacks a variable that they need.
    pub(super) unusable: Unusable,
    /// What a person should know although it stops nothing.
    pub(super) warnings: Vec<Problem>,
}

/// Why servers and REST services cannot be used, by project and id.
pub(super) type Unusable = BTreeMap<(String, String), String>;

impl<'a> Judge<'a> {
    pub(super) fn new(variables: &'a Variables<'a>, folder: &'a Path, queues: BTreeSet<String>) -> Self {
        Self {
            variables,
            folder,
            queues,
            claims: Claims::default(),
            is_lenient: false,
            problems: Problems::default(),
            unusable: Unusable::new(),
            warnings: Vec::new(),
        }
    }

    /// Judges the configuration itself.
    pub(super) fn configuration(&mut self, root: &mut Node, file: &Arc<Path>) {
        let mut walk = self.walk(file, MAIN_PROJECT);
        walk.duplicates(root, &Trail::CONFIGURATION);
        walk.section(root, &Trail::CONFIGURATION, ROOT);
        walk.settle(root);
        walk.uninherited(root);
    }

    /// Warns of something about a file as a whole.
    pub(super) fn warn(&mut self, file: &Path, text: &str) {
        self.warnings.push(Problem::in_file(file, text));
    }

    /// Whether a file is left out, of which a warning then says why. Otherwise its problems are those of all.
    pub(super) fn leaves_out(&mut self, file: &Path) -> bool {
        if !self.is_lenient {
            return false;
        }
        let Some(error) = std::mem::take(&mut self.problems).into_error() else { return false };
        self.warnings.extend(error.left_out());
        self.claims.forget(file);
        true
    }

    /// Whether the project has a provider under this id, or under one that becomes this namespace. Complete once the
    /// configuration and the tool files are judged.
    pub(super) fn has_provider(&self, project: &str, id: &str) -> bool {
        self.claims.of_providers(project).any(|known| known == id || sanitised(known) == id)
    }

    fn walk<'w>(&'w mut self, file: &'w Arc<Path>, project: &str) -> Walk<'w, 'a> {
        let variables = Some(self.variables);
        Walk {
            judge: self,
            file,
            variables,
            dialect: Dialect::Gantry,
            project: project.to_owned(),
            missing: None,
            inside: Vec::new(),
        }
    }
}

/// Checks the value of `example` in a file against one key.
#[cfg(test)]
pub(super) fn example(root: &mut Node, key: &'static Key) -> Option<super::Error> {
    let env = super::FixedEnv::default();
    let (file, variables) = (Arc::from(Path::new("example")), Variables::new(&env));
    let mut judge = Judge::new(&variables, Path::new("/"), queue_names(root));
    let mut walk = judge.walk(&file, MAIN_PROJECT);
    let Value::Map(entries) = &mut root.value else { return None };
    for entry in entries.iter_mut().filter(|entry| entry.key == "example") {
        walk.value(&mut entry.node, &Trail::CONFIGURATION.key(key.name), &key.kind, entry.line);
    }
    judge.problems.into_error()
}

/// The queues of a file.
pub(super) fn queue_names(root: &Node) -> BTreeSet<String> {
    let queues = find(root, "queues").into_iter().flat_map(|entry| entry.node.value.entries());
    queues.map(|queue| queue.key.clone()).collect()
}

/// A walk over one file.
struct Walk<'w, 'a> {
    judge: &'w mut Judge<'a>,
    file: &'w Arc<Path>,
    /// Where variables come from; none in a file whose texts stay as they are written.
    variables: Option<&'a Variables<'a>>,
    dialect: Dialect,
    /// The project that the walk is in.
    project: String,
    /// In the entry of an MCP server or a REST service: what the environment lacks for it. Elsewhere that is a problem.
    missing: Option<Vec<String>>,
    /// Paths that must lie in the workspace of the project, which is known when all of the project is read.
    inside: Vec<projects::Inside>,
}

impl Walk<'_, '_> {
    fn at(&self, line: usize) -> Location {
        Location { file: self.file.clone(), line }
    }

    fn report(&mut self, line: usize, message: impl Into<String>) {
        let at = self.at(line);
        self.judge.problems.push(Problem::at(&at, message));
    }

    fn warn(&mut self, line: usize, text: impl Into<String>) {
        let at = self.at(line);
        self.judge.warnings.push(Problem::at(&at, text));
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
            Kind::Services(rule, keys) => self.services(node, path, *rule, keys),
            Kind::Credentials(keys) => self.credentials(node, path, keys),
            Kind::Catalogue(keys) => self.catalogue(node, path, keys),
            Kind::Projects(keys) => self.projects(node, path, keys),
            Kind::AgentTools(_) => self.agent_tools(node, path, kind),
            Kind::Aliases => self.aliases(node, path),
            Kind::Items(keys) => self.items(node, path, keys),
            Kind::PerTool(kind) => self.per_tool(node, path, kind),
            Kind::PerOperation(kind) => self.per_operation(node, path, kind),
            Kind::Secrets(rule) => self.secrets(node, path, *rule),
            Kind::Object => self.object(node, path, &kind.noun()),
            Kind::Json => self.expand_all(node, path),
            Kind::Arguments => self.arguments(node, path),
            Kind::Texts(rule, min) => self.texts(node, path, *rule, *min),
            Kind::Choices(words) => self.choices(node, path, words, &kind.noun()),
            Kind::Gated => self.gated(node, path, &kind.noun()),
            Kind::Later => self.report(key_line, format!("\"{path}\" {LATER}; remove it")),
            Kind::Refused(why) => self.report(key_line, format!("\"{path}\" {why}")),
            Kind::Inert(words) => self.warn(key_line, format!("{path} {words}")),
            Kind::Granted(advice) => self.granted(node, path, advice),
            Kind::Verbatim => self.scalar(node, path, kind),
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
            self.name(entry, path);
            // A group without a value of its own stands on the line of its key.
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            self.section(&mut entry.node, &path.key(&entry.key), keys);
        }
    }

    /// A name of the user's choice.
    fn name(&mut self, entry: &Entry, path: &Trail<'_>) {
        if !text::is_name(&entry.key) {
            let noun = Rule::Name.noun();
            self.report(entry.line, format!("{} in {path} must be {noun}", quoted(&entry.key)));
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
    let name = &find(item, "name")?.node;
    Some((name.value.as_text()?, name.line))
}

fn available(keys: &'static [Key]) -> impl Iterator<Item = &'static str> {
    keys.iter().filter(|key| key.is_offered()).map(|key| key.name)
}
