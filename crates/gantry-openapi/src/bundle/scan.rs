//! One walk through a document: which others it refers to, and which of its parts have names of their own.

use crate::limits::{ADDRESSES, ANCHORS};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use url::Url;

/// Bytes of a name and the path to what it names.
const NAME_BYTES: usize = 8 * 1024;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// What stands before the `#` of references to elsewhere, in the order of the document, each once.
    pub(super) addresses: Vec<&'a str>,
    /// JSON Pointers by `$anchor`, and by the whole address that an `$id` makes.
    pub(super) names: HashMap<String, String>,
}

/// Walks through a document. It is no deeper than its reader allows, so this may call itself.
pub(super) fn scan<'a>(location: &Url, root: &'a Value) -> Scan<'a> {
    let mut walk = Walk { location, seen: HashSet::new(), path: Vec::new(), found: Scan::default() };
    walk.value(root);
    walk.found
}

struct Walk<'a, 'b> {
    location: &'b Url,
    seen: HashSet<&'a str>,
    path: Vec<Step<'a>>,
    found: Scan<'a>,
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
                for (key, value) in members {
                    self.member(key, value);
                }
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
            ("$anchor" | "$dynamicAnchor", Value::String(name)) => self.name(name.clone()),
            ("$id", Value::String(id)) => {
                if let Ok(address) = self.location.join(id) {
                    self.name(address.into());
                }
            }
            (_, value) => {
                if let ("discriminator", Value::Object(discriminator)) = (key, value) {
                    self.mapping(discriminator);
                }
                self.step(Step::Key(key), value);
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
        if !address.is_empty() && self.seen.len() < ADDRESSES && self.seen.insert(address) {
            self.found.addresses.push(address);
        }
    }

    fn name(&mut self, name: String) {
        // Every name costs its whole path, and keys may be long.
        if self.found.names.len() < ANCHORS && name.len() + length(&self.path) <= NAME_BYTES {
            let pointer = pointer(&self.path);
            self.found.names.entry(name).or_insert(pointer);
        }
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
