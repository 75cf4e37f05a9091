//! Reads values out of a checked group of keys.

use crate::config::error::Location;
use crate::config::model::{Arguments, Located, PerPattern};
use crate::config::table::{Fallback, Key, Kind, Zero};
use crate::config::tree::{Entry, Node, Value, find};
use serde_json::Number;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A group of keys, which may be absent, and the keys it can have.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) node: Option<&'a Node>,
    pub(super) keys: &'static [Key],
    pub(super) file: &'a Arc<Path>,
}

impl<'a> View<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        find(self.node?, name).map(|entry| &entry.node)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        let key = self.keys.iter().find(|key| key.name == name);
        debug_assert!(key.is_some(), "{name} is not in the key table");
        key
    }

    pub(super) fn at(&self, line: usize) -> Location {
        Location { file: self.file.clone(), line }
    }

    pub(super) fn here(&self) -> Location {
        self.at(self.node.map_or(1, |node| node.line))
    }

    fn under(&self, node: Option<&'a Node>, name: &str) -> Self {
        let keys = match self.key(name).map(|key| &key.kind) {
            Some(
                Kind::Section(keys)
                | Kind::Named(keys)
                | Kind::Servers(keys)
                | Kind::Services(_, keys)
                | Kind::Credentials(keys)
                | Kind::Projects(keys)
                | Kind::AgentTools(keys)
                | Kind::Items(keys),
            ) => keys,
            _ => &[][..],
        };
        Self { node, keys, file: self.file }
    }

    pub(super) fn section(&self, name: &str) -> Self {
        self.under(self.get(name), name)
    }

    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = (&'a str, Self)> {
        entries(self.get(name))
            .iter()
            .map(move |entry| (entry.key.as_str(), self.under(Some(&entry.node), name)))
    }

    pub(super) fn items(&self, name: &str) -> impl Iterator<Item = Self> {
        items(self.get(name)).iter().map(move |item| self.under(Some(item), name))
    }

    /// Whether the group itself says what this is, and not with a 0 that stands for the default.
    pub(super) fn decides(&self, name: &str) -> bool {
        let Some(node) = self.get(name) else { return false };
        let is_zero = node.value.as_number().and_then(Number::as_u64) == Some(0);
        let kind = self.key(name).map(|key| &key.kind);
        !(is_zero && matches!(kind, Some(Kind::Number(bounds)) if bounds.zero == Zero::Default))
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        match (self.get(name).map(|node| &node.value), self.key(name).map(|key| key.default)) {
            (Some(Value::Flag(flag)), _) => *flag,
            (None, Some(Fallback::Flag(flag))) => flag,
            _ => false,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match (self.get(name), self.key(name)?.default) {
            (Some(node), _) => owned(&node.value),
            (None, Fallback::Text(text)) => Some(text.to_owned()),
            (None, _) => None,
        }
    }

    /// A number, its default in place of a 0 that means it.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let key = self.key(name)?;
        let default = match key.default {
            Fallback::Number(number) => Some(number),
            Fallback::Required | Fallback::Flag(_) | Fallback::Text(_) | Fallback::Absent(_) => None,
        };
        match (self.get(name).and_then(|node| node.value.as_number()?.as_u64()), &key.kind) {
            (None, _) => default,
            (Some(0), Kind::Number(bounds)) if bounds.zero == Zero::Default => default,
            (Some(number), _) => Some(number),
        }
    }

    pub(super) fn size(&self, name: &str) -> usize {
        self.number(name).and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    }

    /// A number of milliseconds; `None` when there is none, or when 0 switches it off.
    pub(super) fn duration(&self, name: &str) -> Option<Duration> {
        self.number(name).filter(|millis| *millis > 0).map(Duration::from_millis)
    }

    pub(super) fn texts(&self, name: &str) -> Option<Vec<Located<String>>> {
        let node = self.get(name).filter(|node| matches!(node.value, Value::List(_)))?;
        let text = |item: &Node| Some(Located { value: owned(&item.value)?, at: self.at(item.line) });
        Some(node.value.items().iter().filter_map(text).collect())
    }

    pub(super) fn arguments(&self, name: &str) -> Vec<Located<Arguments>> {
        let list = items(self.get(name)).iter();
        list.map(|item| Located { value: item.value.to_object(), at: self.at(item.line) }).collect()
    }

    /// The names and globs of a map for which `read` finds a value, in file order.
    pub(super) fn per_pattern<T>(&self, name: &str, read: impl Fn(&Node) -> Option<T>) -> PerPattern<T> {
        let one = |entry: &Entry| {
            let value = read(&entry.node)?;
            Some((Located { value: entry.key.clone(), at: self.at(entry.line) }, value))
        };
        entries(self.get(name)).iter().filter_map(one).collect()
    }

    /// The tools of a map for which `read` finds a value.
    pub(super) fn per_tool<T>(
        &self,
        name: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> BTreeMap<String, Located<T>> {
        let one = |entry: &Entry| {
            let value = read(&entry.node.value)?;
            Some((entry.key.clone(), Located { value, at: self.at(entry.line) }))
        };
        entries(self.get(name)).iter().filter_map(one).collect()
    }
}

pub(super) fn entries(node: Option<&Node>) -> &[Entry] {
    node.map_or(&[], |node| node.value.entries())
}

pub(super) fn items(node: Option<&Node>) -> &[Node] {
    node.map_or(&[], |node| node.value.items())
}

pub(super) fn owned(value: &Value) -> Option<String> {
    value.as_text().map(|text| text.text.clone())
}

pub(super) fn millis(value: &Value) -> Option<Duration> {
    value.as_number().and_then(Number::as_u64).filter(|millis| *millis > 0).map(Duration::from_millis)
}
