//! Judges a tree by the key table: unknown keys, wrong types, bounds, references, and variables in texts.
//!
//! The walk changes the tree in place (variables are put in, texts from variables become the numbers they spell), so
//! that `build` finds plain values. It never stops at a problem, so that one run reports all of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Number;

use super::env::Variables;
use super::error::{Location, Problem, Problems};
use super::expand::expand;
use super::table::{self, Fallback, Key, Kind, ROOT, Zero};
use super::text::{self, Judgement, Rule};
use super::tree::{Entry, Node, Value, quoted};
use super::{suggest, yaml};

const LATER: &str = "is not available in this version of Gantry";

/// Checks a whole file and reports into `problems`.
pub(super) fn check(root: &mut Node, file: &Arc<Path>, variables: &Variables<'_>, problems: &mut Problems) {
    let queues = queue_names(root);
    let mut walk = Walk { file, variables, queues, problems };
    walk.duplicates(root, "");
    walk.section(root, "", ROOT);
}

/// Checks the value of `example` in a file against one key.
#[cfg(test)]
pub(super) fn example(root: &mut Node, key: &'static Key) -> Option<super::Error> {
    let env = super::FixedEnv::default();
    let mut problems = Problems::default();
    let queues = queue_names(root);
    let file = Arc::from(Path::new("example"));
    let mut walk = Walk { file: &file, variables: &Variables::new(&env), queues, problems: &mut problems };
    let Value::Map(entries) = &mut root.value else { return None };
    for entry in entries.iter_mut().filter(|entry| entry.key == "example") {
        walk.value(&mut entry.node, key.name, &key.kind, entry.line);
    }
    problems.into_error()
}

fn queue_names(root: &Node) -> BTreeSet<String> {
    let queues = root.value.entries().iter().filter(|entry| entry.key == "queues");
    queues.flat_map(|entry| entry.node.value.entries()).map(|queue| queue.key.clone()).collect()
}

struct Walk<'a> {
    file: &'a Arc<Path>,
    variables: &'a Variables<'a>,
    queues: BTreeSet<String>,
    problems: &'a mut Problems,
}

impl Walk<'_> {
    fn report(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem::at(&Location { file: self.file.clone(), line }, message));
    }

    fn mismatch(&mut self, node: &Node, path: &str, expected: &str) {
        let subject = if path.is_empty() { "the configuration" } else { path };
        let found = node.value.quoted();
        self.report(node.line, format!("{subject} must be {expected}, found {found}"));
    }

    fn duplicates(&mut self, node: &Node, path: &str) {
        match &node.value {
            Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(_) => {}
            Value::List(items) => {
                items.iter().enumerate().for_each(|(n, item)| self.duplicates(item, &format!("{path}[{n}]")));
            }
            Value::Map(entries) => {
                let mut lines = std::collections::HashMap::new();
                for entry in entries {
                    if let Some(first) = lines.insert(entry.key.as_str(), entry.line) {
                        let (key, within) = (quoted(&entry.key), within(path));
                        self.report(
                            entry.line,
                            format!("key {key}{within} is already on line {first}; keep one"),
                        );
                    }
                    self.duplicates(&entry.node, &join(path, &entry.key));
                }
            }
        }
    }

    /// A group of known keys. Nothing at all counts as an empty group, as YAML writes one that way.
    fn section(&mut self, node: &mut Node, path: &str, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        let mut missing: Vec<&str> =
            keys.iter().filter(|key| matches!(key.default, Fallback::Required)).map(|key| key.name).collect();
        for entry in entries {
            missing.retain(|name| *name != entry.key);
            match keys.iter().find(|key| key.name == entry.key) {
                Some(key) => self.value(&mut entry.node, &join(path, key.name), &key.kind, entry.line),
                None => self.unknown(entry, path, keys),
            }
        }
        for name in missing {
            self.report(node.line, format!("{path} needs the key \"{name}\""));
        }
    }

    /// The entries of a group, or `None` after saying that it is none.
    fn entries<'n>(&mut self, node: &'n mut Node, path: &str) -> Option<&'n mut [Entry]> {
        if matches!(node.value, Value::Null) {
            return Some(&mut []);
        }
        if !matches!(node.value, Value::Map(_)) {
            self.mismatch(node, path, "a group of keys");
        }
        if let Value::Map(entries) = &mut node.value { Some(entries) } else { None }
    }

    fn unknown(&mut self, entry: &Entry, path: &str, keys: &'static [Key]) {
        let advice = match suggest::nearest(&entry.key, keys.iter().map(|key| key.name)) {
            Some(name) if keys.iter().any(|key| key.name == name && matches!(key.kind, Kind::Later)) => {
                format!("the nearest key, \"{name}\", {LATER}")
            }
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("known keys are {}", suggest::list(available(keys))),
        };
        self.report(entry.line, format!("unknown key {}{}; {advice}", quoted(&entry.key), within(path)));
    }

    fn value(&mut self, node: &mut Node, path: &str, kind: &'static Kind, key_line: usize) {
        match kind {
            Kind::Section(keys) => self.section(node, path, keys),
            Kind::Named(keys) => self.named(node, path, keys),
            Kind::Catalogue(keys) => self.catalogue(node, path, keys),
            Kind::Items(keys) => self.items(node, path, keys),
            Kind::PerTool(kind) => self.per_tool(node, path, kind),
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

    fn named(&mut self, node: &mut Node, path: &str, keys: &'static [Key]) {
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
            self.section(&mut entry.node, &join(path, &entry.key), keys);
        }
    }

    fn catalogue(&mut self, node: &mut Node, path: &str, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            let path = join(path, &entry.key);
            if let Some(key) = keys.iter().find(|key| key.name == entry.key) {
                self.value(&mut entry.node, &path, &key.kind, entry.line);
            } else {
                let ids = suggest::list(available(keys));
                self.report(entry.line, format!("\"{path}\" {LATER}; remove it (known here: {ids})"));
            }
        }
    }

    fn items(&mut self, node: &mut Node, path: &str, keys: &'static [Key]) {
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, "a list of groups of keys ([] for none)");
        };
        let mut names = std::collections::HashMap::new();
        for (n, item) in items.iter_mut().enumerate() {
            let path = format!("{path}[{n}]");
            if !matches!(item.value, Value::Map(_)) {
                self.mismatch(item, &path, "a group of keys");
                continue;
            }
            self.section(item, &path, keys);
            let Some((name, line)) = name_of(item) else { continue };
            if let Some(first) = names.insert(name.to_owned(), line) {
                let message = format!(
                    "{path}.name: {} is already used on line {first}; names are unique",
                    quoted(name)
                );
                self.report(line, message);
            }
        }
    }

    fn per_tool(&mut self, node: &mut Node, path: &str, kind: &'static Kind) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if !text::is_pattern(&entry.key) {
                self.report(
                    entry.line,
                    format!("{} in {path} must be the name of a tool", quoted(&entry.key)),
                );
            }
            self.value(&mut entry.node, &join(path, &entry.key), kind, entry.line);
        }
    }

    fn arguments(&mut self, node: &mut Node, path: &str) {
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, "a list of argument objects");
        };
        for (n, item) in items.iter_mut().enumerate() {
            let path = format!("{path}[{n}]");
            if matches!(item.value, Value::Map(_)) {
                self.expand_all(item, &path);
            } else {
                self.mismatch(item, &path, "an object of arguments");
            }
        }
    }

    fn texts(&mut self, node: &mut Node, path: &str, rule: Rule, min: usize) {
        let noun = Kind::Texts(rule, min).noun();
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, &noun);
        };
        if items.len() < min {
            let found = items.len();
            self.report(node.line, format!("{path} must be {noun}, found {found}"));
            return;
        }
        for (n, item) in items.iter_mut().enumerate() {
            let path = format!("{path}[{n}]");
            if self.expand(item, &path) {
                self.text(item, &path, rule);
            }
        }
    }

    fn gated(&mut self, node: &mut Node, path: &str, noun: &str) {
        if matches!(node.value, Value::List(_)) {
            return self.texts(node, path, Rule::Pattern, 0);
        }
        if !self.expand(node, path) {
            return;
        }
        if !node.value.as_text().is_some_and(|text| text.text == "all" || text.text == "none") {
            self.mismatch(node, path, noun);
        }
    }

    fn scalar(&mut self, node: &mut Node, path: &str, kind: &'static Kind) {
        let noun = kind.noun();
        match (kind, &node.value) {
            (Kind::Text(rule), _) => self.text(node, path, *rule),
            (Kind::Number(bounds), _) => self.number(node, path, *bounds, &noun),
            (Kind::QueueOrNone, Value::Null | Value::Flag(false)) | (Kind::Flag, Value::Flag(_)) => {}
            (Kind::Flag, Value::Text(text)) if text.written.is_some() => match text.text.as_str() {
                "true" => node.value = Value::Flag(true),
                "false" => node.value = Value::Flag(false),
                _ => self.mismatch(node, path, &noun),
            },
            (Kind::Queue | Kind::QueueOrNone, Value::Text(text)) => {
                if !self.queues.contains(&text.text) {
                    let message = self.unknown_queue(path, &text.text, &text.quoted());
                    self.report(node.line, message);
                }
            }
            (Kind::Choice(words, later), Value::Text(text)) => {
                let word = text.text.as_str();
                if later.contains(&word) {
                    self.report(node.line, format!("{path}: {} {LATER}; use {noun}", text.quoted()));
                } else if !words.contains(&word) {
                    self.mismatch(node, path, &noun);
                }
            }
            _ => self.mismatch(node, path, &noun),
        }
    }

    fn unknown_queue(&self, path: &str, name: &str, shown: &str) -> String {
        let names = self.queues.iter().map(String::as_str);
        let advice = match suggest::nearest(name, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if self.queues.is_empty() => "there are none; add it under \"queues\"".to_owned(),
            None => format!("queues are {}", suggest::list(names)),
        };
        format!("{path}: unknown queue {shown}; {advice}")
    }

    fn text(&mut self, node: &Node, path: &str, rule: Rule) {
        match node.value.as_text().map_or(Judgement::Bad, |text| rule.judge(&text.text)) {
            Judgement::Good => {}
            Judgement::Bad => self.mismatch(node, path, rule.noun()),
            Judgement::Later => {
                let (found, noun) = (node.value.quoted(), rule.noun());
                self.report(node.line, format!("{path}: {found} {LATER}; use {noun}"));
            }
        }
    }

    fn number(&mut self, node: &mut Node, path: &str, bounds: table::Number, noun: &str) {
        let spelled = node.value.as_text().filter(|text| text.written.is_some());
        let spelled = spelled.and_then(|text| yaml::number(&text.text));
        match node.value.as_number().or(spelled.as_ref()).and_then(Number::as_u64) {
            None => self.mismatch(node, path, noun),
            Some(0) if bounds.zero == Zero::Refused => {
                self.mismatch(node, path, &format!("{noun}, at least 1"))
            }
            Some(n) if n > bounds.max => {
                self.mismatch(node, path, &format!("{noun}, at most {}", bounds.max))
            }
            Some(n) => node.value = Value::Number(n.into()),
        }
    }

    /// Puts variables into a text. False when that failed and was reported.
    fn expand(&mut self, node: &mut Node, path: &str) -> bool {
        let Value::Text(text) = &mut node.value else { return true };
        match expand(&text.text, self.variables) {
            Ok(None) => true,
            Ok(Some(expanded)) => {
                text.written = Some(std::mem::replace(&mut text.text, expanded));
                true
            }
            Err(message) => {
                self.report(node.line, format!("{path}: {message}"));
                false
            }
        }
    }

    fn expand_all(&mut self, node: &mut Node, path: &str) {
        match &mut node.value {
            Value::Null | Value::Flag(_) | Value::Number(_) => {}
            Value::Text(_) => {
                self.expand(node, path);
            }
            Value::List(items) => {
                items
                    .iter_mut()
                    .enumerate()
                    .for_each(|(n, item)| self.expand_all(item, &format!("{path}[{n}]")));
            }
            Value::Map(entries) => {
                entries
                    .iter_mut()
                    .for_each(|entry| self.expand_all(&mut entry.node, &join(path, &entry.key)));
            }
        }
    }
}

fn name_of(item: &Node) -> Option<(&str, usize)> {
    let name = &item.value.entries().iter().find(|entry| entry.key == "name")?.node;
    Some((&name.value.as_text()?.text, name.line))
}

fn available(keys: &'static [Key]) -> impl Iterator<Item = &'static str> {
    keys.iter().filter(|key| !matches!(key.kind, Kind::Later)).map(|key| key.name)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn within(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in {path}") }
}
