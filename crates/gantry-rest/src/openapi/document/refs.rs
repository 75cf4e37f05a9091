//! One walk through a document: which others it refers to, and which of its parts have names of their own.

use super::Version;
use super::scope::{Scope, Scopes};
use crate::openapi::limits::{ADDRESSES, ANCHORS};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use url::Url;

/// Bytes of a name and the path to what it names.
const NAME_BYTES: usize = 8 * 1024;
/// Bytes of all those of a bundle: each `$id` of one letter makes a whole address.
pub(super) const NAMES_BYTES: usize = 32 << 20;

/// Keywords with plain data in them, whatever it looks like. So are those that begin with `x-`.
const DATA: [&str; 5] = ["example", "examples", "default", "const", "enum"];
/// Keywords with things by name, which may be any of those words: `default` is a response, `x-limit` a header.
const BY_NAME: [&str; 20] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
    "schemas",
    "responses",
    "parameters",
    "requestBodies",
    "headers",
    "callbacks",
    "links",
    "pathItems",
    "webhooks",
    "securitySchemes",
    "securityDefinitions",
    "encoding",
    "content",
    "variables",
    "mapping",
];

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// What stands before the `#` of references to elsewhere, in the order of the document, each once for the schema with
    /// an `$id` that it is in.
    pub(super) addresses: Vec<(&'a str, Option<usize>)>,
    /// JSON Pointers by `$anchor`, and by the whole address that an `$id` makes, with or without an anchor in there.
    pub(super) names: HashMap<String, String>,
    /// Where references start from somewhere else than from the document.
    pub(super) scopes: Scopes,
}

/// Walks through a document. It is no deeper than its reader allows, so this may call itself. Only from 3.1 on does an
/// `$id` change where references start from. Takes what the names need from `room`.
pub(super) fn scan<'a>(version: Version, location: &Url, root: &'a Value, room: &mut usize) -> Scan<'a> {
    let mut walk = Walk {
        location,
        scoped: version == Version::V31,
        room,
        scope: None,
        keys: Keys::Words,
        seen: HashSet::new(),
        path: Vec::new(),
        inner: Vec::new(),
        data: Vec::new(),
        found: Scan::default(),
    };
    walk.value(root);
    let Walk { inner, data, mut found, .. } = walk;
    // By its name alone, an anchor of the document itself goes before one that is in a schema with an `$id`; and whatever
    // is a schema for sure goes before what may be an example of something.
    for (name, pointer) in inner.into_iter().chain(data) {
        found.names.entry(name).or_insert(pointer);
    }
    found
}

struct Walk<'a, 'b> {
    location: &'b Url,
    scoped: bool,
    room: &'b mut usize,
    /// The schema with an `$id` that this is in.
    scope: Option<usize>,
    keys: Keys,
    seen: HashSet<(&'a str, Option<usize>)>,
    path: Vec<Step<'a>>,
    /// Anchors inside of schemas with an `$id`.
    inner: Vec<(String, String)>,
    /// Names inside of what looks like plain data.
    data: Vec<(String, String)>,
    found: Scan<'a>,
}

/// What the keys of an object are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Words that OpenAPI or JSON Schema has.
    Words,
    /// Names of what is there.
    Names,
    /// Plain data, down to its end, or what somebody keeps there.
    Data,
}

impl Keys {
    /// What those of a member are.
    fn below(self, key: &str, value: &Value) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Names => Self::Words,
            Self::Words if DATA.contains(&key) || key.starts_with("x-") => Self::Data,
            Self::Words if value.is_object() && BY_NAME.contains(&key) => Self::Names,
            Self::Words => Self::Words,
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Walk<'a, '_> {
    fn value(&mut self, value: &'a Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.step(Step::Index(index), item);
                }
            }
            Value::Object(members) => {
                let outer = self.scope;
                if self.scoped
                    && let Some(Value::String(id)) = members.get("$id")
                {
                    self.enter(id);
                }
                for (key, value) in members {
                    self.member(key, value);
                }
                self.scope = outer;
            }
        }
    }

    fn step(&mut self, step: Step<'a>, value: &'a Value) {
        if value.is_object() || value.is_array() {
            self.path.push(step);
            self.value(value);
            self.path.pop();
        }
    }

    fn member(&mut self, key: &'a str, value: &'a Value) {
        match (key, value) {
            ("$ref", Value::String(reference)) => self.reference(reference),
            ("$anchor" | "$dynamicAnchor", Value::String(name)) => self.anchor(name),
            ("$id", Value::String(_)) if self.scoped => {}
            ("$id", Value::String(id)) => {
                if let Ok(address) = self.location.join(id) {
                    self.name(address.into());
                }
            }
            (_, value) => {
                if key == "discriminator" {
                    value.as_object().into_iter().for_each(|discriminator| self.mapping(discriminator));
                }
                let outer = self.keys;
                self.keys = outer.below(key, value);
                self.step(Step::Key(key), value);
                self.keys = outer;
            }
        }
    }

    /// A discriminator names schemas, or says where they are.
    fn mapping(&mut self, discriminator: &'a Map<String, Value>) {
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let texts = mapping.into_iter().flatten().filter_map(|(_, value)| value.as_str());
        for text in texts.filter(|text| text.contains(['/', '#'])) {
            self.reference(text);
        }
    }

    fn reference(&mut self, reference: &'a str) {
        let address = reference.split('#').next().unwrap_or_default();
        self.found.scopes.note(reference, self.scope);
        if !address.is_empty() && self.seen.len() < ADDRESSES && self.seen.insert((address, self.scope)) {
            self.found.addresses.push((address, self.scope));
        }
    }

    /// A schema with an address of its own.
    fn enter(&mut self, id: &str) {
        if let Some(anchor) = id.strip_prefix('#') {
            // How earlier drafts wrote anchors.
            return self.anchor(anchor);
        }
        let Ok(mut base) = self.base().join(id) else { return };
        base.set_fragment(None);
        let Some(pointer) = self.name(base.as_str().to_owned()) else { return };
        // Here, and among those of all documents.
        let bytes = base.as_str().len() * 2;
        if bytes <= *self.room {
            *self.room -= bytes;
            self.scope = Some(self.found.scopes.add(Scope { base, pointer }));
        }
    }

    fn base(&self) -> &Url {
        let scope = self.scope.and_then(|scope| self.found.scopes.get(scope));
        scope.map_or(self.location, |scope| &scope.base)
    }

    fn anchor(&mut self, name: &str) {
        if name.is_empty() {
            return;
        }
        match self.scope {
            None => drop(self.name(name.to_owned())),
            Some(_) => {
                let whole = format!("{}#{name}", self.base());
                if let Some(pointer) = self.name(whole) {
                    let names = if self.keys == Keys::Data { &mut self.data } else { &mut self.inner };
                    names.push((name.to_owned(), pointer));
                }
            }
        }
    }

    /// Gives a name to this place, unless something else has it, and says where that is.
    fn name(&mut self, name: String) -> Option<String> {
        // Every name costs its whole path, and keys may be long.
        let bytes = name.len() + length(&self.path);
        if self.found.names.len() + self.data.len() >= ANCHORS || bytes > NAME_BYTES.min(*self.room) {
            return None;
        }
        *self.room -= bytes;
        let pointer = pointer(&self.path);
        match self.keys {
            Keys::Data => self.data.push((name, pointer.clone())),
            Keys::Words | Keys::Names => {
                self.found.names.entry(name).or_insert_with(|| pointer.clone());
            }
        }
        Some(pointer)
    }
}

fn length(path: &[Step<'_>]) -> usize {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => key.len() + 1,
        Step::Index(_) => 10,
    });
    steps.sum()
}

fn pointer(path: &[Step<'_>]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Step::Index(index) => format!("/{index}"),
    });
    steps.collect()
}
