//! A parsed file as a tree whose every node knows its line, the same for YAML, JSON and TOML.
//!
//! Typed deserialisers stop at the first problem and lose the lines of what they accept. The tree keeps the lines, so
//! that all problems are reported at once (`de`) and later checks can still point into the file.

mod json;
mod toml;
mod yaml;

pub(super) use yaml::number;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Number;

use super::error::Location;
use super::key_path::KeyPath;

/// Nesting beyond this is refused in every format; the walks over a tree recurse, so it bounds the stack too.
pub(super) const MAX_DEPTH: usize = 64;
pub(super) const TOO_DEEP: &str = "nested too deeply; at most 64 levels are read";

/// Longest part of a value that a message quotes.
const MAX_QUOTED_CHARS: usize = 60;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Number(Number),
    /// As it is written: variables are put in where a value is read.
    Text(String),
    List(Vec<Node>),
    /// In file order; a key may appear twice; that is refused before values are read.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) node: Node,
}

/// The entry of a map under this key.
pub(super) fn find<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    node.value.entries().iter().find(|entry| entry.key == key)
}

/// Where and why a file could not be read as its format; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

/// The formats a configuration can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Yaml,
    Json,
    Toml,
}

impl Format {
    pub(super) fn of(file: &Path) -> Option<Self> {
        match file.extension().and_then(OsStr::to_str)? {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<Node, Syntax> {
        match self {
            Self::Yaml => yaml::parse(text),
            Self::Json => json::parse(text),
            Self::Toml => toml::parse(text),
        }
    }
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The entries of a map; none for anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        if let Self::Map(entries) = self { entries } else { &mut [] }
    }

    /// The items of a list; none for anything else.
    pub(super) fn items(&self) -> &[Node] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// The value as a message shows it.
    pub(super) fn quoted(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quoted(text),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a group of keys".to_owned(),
        }
    }

    /// What kind of value it is, for messages that must not quote it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a group of keys",
        }
    }
}

/// A file that was read.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// As messages name it.
    pub(super) file: Arc<Path>,
    pub(super) root: Node,
}

impl Document {
    pub(super) fn new(file: Arc<Path>, mut root: Node) -> Self {
        settle_lines(&mut root);
        Self { file, root }
    }

    /// The place of the value at these keys, or of the innermost group around it that is there. An item of a list is
    /// addressed by its number.
    pub(super) fn locate(&self, keys: &[&str]) -> Location {
        let mut node = &self.root;
        let mut line = node.line;
        for key in keys {
            if let Value::List(items) = &node.value {
                let Some(item) = key.parse().ok().and_then(|n: usize| items.get(n)) else { break };
                (node, line) = (item, item.line);
            } else {
                let Some(entry) = find(node, key) else { break };
                // A group or a list begins on the line of its key, or below it.
                (node, line) = (&entry.node, entry.node.line.max(entry.line));
            }
        }
        Location { file: self.file.clone(), line }
    }

    /// The value at these keys. An item of a list is addressed by its number.
    pub(super) fn get(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(&self.root, |node, key| match find(node, key) {
            Some(entry) => Some(&entry.node),
            None => node.value.items().get(key.parse::<usize>().ok()?),
        })
    }

    /// The keys that are twice in one group: the line and what is wrong.
    pub(super) fn duplicates(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        duplicates(&self.root, &KeyPath::Root(""), &mut found);
        found
    }
}

/// A key without a value stands on its own line.
fn settle_lines(node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(settle_lines),
        Value::Map(entries) => {
            for entry in entries {
                if matches!(entry.node.value, Value::Null) {
                    entry.node.line = entry.line;
                }
                settle_lines(&mut entry.node);
            }
        }
        Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(_) => {}
    }
}

fn duplicates(node: &Node, path: &KeyPath<'_>, found: &mut Vec<(usize, String)>) {
    for (n, item) in node.value.items().iter().enumerate() {
        duplicates(item, &path.item(n), found);
    }
    let mut lines = HashMap::new();
    for entry in node.value.entries() {
        if let Some(first) = lines.insert(entry.key.as_str(), entry.line) {
            let (key, within) = (quoted(&entry.key), path.within());
            found.push((entry.line, format!("key {key}{within} is already on line {first}; keep one")));
        }
        duplicates(&entry.node, &path.key(&entry.key), found);
    }
}

/// Text in double quotes, shortened when it is long and with control characters made visible.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Turns byte offsets of a text into lines and columns.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    pub(super) fn syntax(&self, offset: usize, message: impl Into<String>) -> Syntax {
        let line = self.line(offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Syntax { line, column, message: message.into() }
    }
}
