//! A parsed file as a tree whose every node knows its line, the same for YAML, JSON and TOML.
//!
//! Typed deserialisers stop at the first problem and lose the lines of what they accept. The tree keeps both, so
//! that all problems are reported at once and later checks can still point into the file.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::Number;

use super::{json, toml, yaml};

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
    Text(Text),
    List(Vec<Node>),
    /// In file order; a key may appear twice until `check` has refused that.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) text: String,
    /// The text before variables were put in, if there were any. Messages quote this one: the other may be a secret.
    pub(super) written: Option<String>,
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
        Self::Text(Text { text: text.into(), written: None })
    }

    pub(super) fn as_text(&self) -> Option<&Text> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// The entries of a map; none for anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        if let Self::Map(entries) = self { entries } else { &[] }
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
            Self::Text(text) => text.quoted(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a group of keys".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Flag(flag) => serde_json::Value::Bool(*flag),
            Self::Number(number) => serde_json::Value::Number(number.clone()),
            Self::Text(text) => serde_json::Value::String(text.text.clone()),
            Self::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Self::Map(_) => serde_json::Value::Object(self.to_object()),
        }
    }

    /// A map as a JSON object; empty for anything else.
    pub(super) fn to_object(&self) -> serde_json::Map<String, serde_json::Value> {
        self.entries().iter().map(|entry| (entry.key.clone(), entry.node.value.to_json())).collect()
    }
}

impl Text {
    pub(super) fn quoted(&self) -> String {
        quoted(self.written.as_ref().unwrap_or(&self.text))
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
