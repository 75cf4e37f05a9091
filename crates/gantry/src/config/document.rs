//! A parsed file as a tree whose every node knows its line, the same for YAML, JSON and TOML.
//!
//! Typed deserialisers stop at the first problem and lose the lines of what they accept. The tree keeps the lines, so
//! that all problems are reported at once (`de`) and later checks can still point into the file.

mod json;
mod toml;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use super::error::Location;
use super::key_path::KeyPath;
use gantry_core::yaml::{self, Dialect, Options, Place};

/// The tree is that of YAML, in every format. A key may appear twice until the document is checked. Texts are as they
/// are written: variables are put in where a value is read.
pub(super) use gantry_core::yaml::{Entry, Error as Syntax, Node, Value, number};

/// Nesting beyond this is refused in every format; the walks over a tree recurse, so it bounds the stack too.
pub(super) const MAX_DEPTH: usize = 64;
pub(super) const TOO_DEEP: &str = "nested too deeply; at most 64 levels are read";

/// Longest part of a value that a message quotes.
const MAX_QUOTED_CHARS: usize = 60;

pub(super) fn find<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    node.value.entries().iter().find(|entry| entry.key == key)
}

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
            // The size of a configuration file bounds its values; copies are bounded here.
            Self::Yaml => {
                let (dialect, values) = (Dialect::Strict, usize::MAX);
                let options = Options { dialect, depth: MAX_DEPTH, values, copied_mib: 1 };
                yaml::parse(text, options).map(|(root, _)| root)
            }
            Self::Json => json::parse(text),
            Self::Toml => toml::parse(text),
        }
    }
}

/// The value as a message shows it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => quoted(text),
        Value::Null | Value::List(_) | Value::Map(_) => kind(value).to_owned(),
    }
}

/// What kind of value it is, for messages that must not quote it.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a group of keys",
    }
}

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

    /// The value at these keys and its line, if it is there. An item of a list is addressed by its number.
    pub(super) fn get(&self, keys: &[&str]) -> Option<(&Node, usize)> {
        keys.iter().try_fold((&self.root, self.root.place.line), |(node, _), key| match find(node, key) {
            // A group or a list begins on the line of its key, or below it.
            Some(entry) => Some((&entry.node, entry.node.place.line.max(entry.place.line))),
            None => node.value.items().get(key.parse::<usize>().ok()?).map(|item| (item, item.place.line)),
        })
    }

    /// The place of the value at these keys, or of the innermost group around it that is there.
    pub(super) fn locate(&self, keys: &[&str]) -> Location {
        let mut levels = (0..=keys.len()).rev().filter_map(|n| self.get(keys.get(..n)?));
        let line = levels.next().map_or(self.root.place.line, |(_, line)| line);
        Location { file: self.file.clone(), line }
    }
}

/// A key without a value stands on its own line.
fn settle_lines(node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(settle_lines),
        Value::Map(entries) => {
            for entry in entries {
                if matches!(entry.node.value, Value::Null) {
                    entry.node.place = entry.place;
                }
                settle_lines(&mut entry.node);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
    }
}

/// Removes the keys that are twice in one group, and reports them with their lines.
pub(super) fn remove_duplicates(node: &mut Node, path: &KeyPath<'_>, report: &dyn Fn(usize, String)) {
    match &mut node.value {
        Value::List(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                remove_duplicates(item, &path.item(n), report);
            }
        }
        Value::Map(entries) => {
            let mut lines = HashMap::new();
            entries.retain_mut(|entry| {
                remove_duplicates(&mut entry.node, &path.key(&entry.key), report);
                let Some(first) = lines.get(&entry.key) else {
                    lines.insert(entry.key.clone(), entry.place.line);
                    return true;
                };
                let (key, within) = (quoted(&entry.key), path.within());
                report(entry.place.line, format!("key {key}{within} is already on line {first}; keep one"));
                false
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
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

    pub(super) fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Place { line, column }
    }

    pub(super) fn syntax(&self, offset: usize, message: impl Into<String>) -> Syntax {
        Syntax { place: self.place(offset), message: message.into() }
    }
}
