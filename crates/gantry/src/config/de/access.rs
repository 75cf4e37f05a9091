//! The parts of a value in the shapes in which serde asks for them: the entries of a group, the items of a list.

use super::{Fault, Reader};
use crate::config::compose::{MISSING, PART};
use crate::config::document::{Entry, Node, Value, quoted};
use crate::config::expand::ExpandError;
use crate::config::key_path::KeyPath;
use crate::config::shapes::shapes;
use crate::config::suggest;
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess};
use std::cell::{Cell, RefCell};
use std::iter::Enumerate;
use std::slice::Iter;

/// A group of keys, and what is known there by the structs that are read from it.
#[derive(Default)]
pub(super) struct Group {
    /// The struct whose parts the others are; its schema has the keys of all.
    pub(super) owner: Cell<&'static str>,
    pub(super) fields: RefCell<Vec<&'static str>>,
    /// Whether every key was asked for, so that others are unknown.
    is_complete: Cell<bool>,
    /// Whether a part takes all other keys.
    is_open: Cell<bool>,
    /// The number of the entry whose key was read last.
    pub(super) last: Cell<usize>,
}

impl Group {
    /// Adds a struct; whether it is the one that has the others as parts.
    pub(super) fn add(&self, name: &'static str, fields: &'static [&'static str]) -> bool {
        self.fields.borrow_mut().extend(fields.iter().filter(|field| !field.starts_with(PART)));
        self.owner.get().is_empty() && {
            self.owner.set(name);
            true
        }
    }

    pub(super) fn report_unknown(&self, reader: &Reader<'_>) {
        let fields = self.fields.borrow();
        let is_closed = self.is_complete.get() && !self.is_open.get();
        let entries = reader.node.value.entries().iter().filter(|_| is_closed);
        for entry in entries.filter(|entry| !fields.contains(&entry.key.as_str())) {
            let advice = match suggest::nearest(&entry.key, fields.iter().copied()) {
                Some(name) => format!("did you mean {name:?}?"),
                None => format!("known keys are {}", suggest::list(shapes().offered(self.owner.get()))),
            };
            let (key, within) = (quoted(&entry.key), reader.path.within());
            reader.context.report(entry.place.line, format!("unknown key {key}{within}; {advice}"));
        }
    }
}

impl Reader<'_> {
    /// Whether a value is read; not if it was found wrong, or lacks a variable that only switches off its entry.
    fn takes(&self, node: &Node, path: KeyPath<'_>) -> bool {
        if self.context.is_bad(node) {
            return false;
        }
        if !self.context.is_in_entry() || !matches!(node.value, Value::Text(_)) {
            return true;
        }
        match (Reader { node, path, ..*self }).expanded() {
            Err(ExpandError::Missing(message)) => {
                self.context.report_missing(node, format!("{path}: {message}"));
                false
            }
            _ => true,
        }
    }
}

/// The entries of a group. Of a struct those that are its fields, then its parts.
pub(super) struct MapEntries<'a> {
    reader: Reader<'a>,
    entries: Enumerate<Iter<'a, Entry>>,
    fields: Option<&'static [&'static str]>,
    parts: Iter<'static, &'static str>,
    /// What was asked for last.
    asked: Option<Result<&'a Entry, &'static str>>,
    /// The group of which everything is asked for here.
    whole: Option<&'a Group>,
}

impl<'a> MapEntries<'a> {
    /// A map has no fields, and takes all keys that are left.
    pub(super) fn new(
        reader: Reader<'a>,
        fields: Option<&'static [&'static str]>,
        whole: Option<&'a Group>,
    ) -> Self {
        let open = reader.group.filter(|_| fields.is_none());
        open.into_iter().for_each(|group| group.is_open.set(true));
        let entries = reader.node.value.entries().iter().enumerate();
        Self { reader, entries, fields, parts: fields.unwrap_or_default().iter(), asked: None, whole }
    }

    fn is_mine(&self, entry: &Entry) -> bool {
        let is_field = match (self.fields, self.reader.group) {
            (Some(fields), _) => fields.contains(&entry.key.as_str()) && !entry.key.starts_with(PART),
            // A map that is part of a struct has the keys that are none of its fields.
            (None, Some(group)) => !group.fields.borrow().contains(&entry.key.as_str()),
            (None, None) => true,
        };
        // Nothing is put into the text of a key without effect.
        let is_ignored = self.fields.is_some() && shapes().is_ignored(self.reader.owner, &entry.key);
        is_field && (is_ignored || self.reader.takes(&entry.node, self.reader.path.key(&entry.key)))
    }
}

impl<'de> MapAccess<'de> for MapEntries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        while let Some((n, entry)) = self.entries.next() {
            if !self.is_mine(entry) {
                continue;
            }
            self.asked = Some(Ok(entry));
            self.reader.group.into_iter().for_each(|group| group.last.set(n));
            let key: StrDeserializer<'_, Fault> = entry.key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some).map_err(|fault| {
                let (context, key) = (self.reader.context, quoted(&entry.key));
                let message = match fault {
                    Fault::Expected(expected) => format!("{key} in {} must be {expected}", self.reader.path),
                    Fault::Custom(message) => format!("{key} in {}: {message}", self.reader.path),
                    Fault::Placed | Fault::Missing(_) | Fault::Duplicate(_) => return fault,
                };
                context.report(entry.place.line, message);
                context.mark_bad(&entry.node);
                Fault::Placed
            });
        }
        if let Some(part) = self.parts.find(|field| field.starts_with(PART)) {
            self.asked = Some(Err(part));
            let key: StrDeserializer<'_, Fault> = part.into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        self.whole.into_iter().for_each(|group| group.is_complete.set(true));
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Reader { context, node, path, .. } = self.reader;
        match self.asked.take() {
            Some(Ok(entry)) => {
                let at_top = matches!(path, KeyPath::Root(_));
                let is_verbatim =
                    self.reader.is_verbatim || (at_top && context.verbatim_key == Some(&entry.key));
                let path = path.key(&entry.key);
                let reader = Reader { node: &entry.node, path, group: None, is_verbatim, ..self.reader };
                seed.deserialize(reader).map_err(|fault| reader.place(fault))
            }
            Some(Err(MISSING)) => {
                let missing: StringDeserializer<Fault> = context.missing(node).into_deserializer();
                seed.deserialize(missing)
            }
            Some(Err(_)) => seed.deserialize(self.reader).map_err(|fault| self.reader.place(fault)),
            None => Err(Fault::custom("has no value")),
        }
    }
}

pub(super) struct ItemAccess<'a> {
    reader: Reader<'a>,
    items: &'a [Node],
    next: usize,
}

impl<'a> ItemAccess<'a> {
    pub(super) fn new(reader: Reader<'a>, items: &'a [Node]) -> Self {
        Self { reader, items, next: 0 }
    }
}

impl<'de> SeqAccess<'de> for ItemAccess<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        while let Some(node) = self.items.get(self.next) {
            let path = self.reader.path.item(self.next);
            self.next += 1;
            if self.reader.takes(node, path) {
                let reader = Reader { node, path, ..self.reader };
                return seed.deserialize(reader).map(Some).map_err(|fault| reader.place(fault));
            }
        }
        Ok(None)
    }
}
