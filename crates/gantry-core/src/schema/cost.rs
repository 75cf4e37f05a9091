//! What a schema may cost, computed before it is compiled.
//!
//! Small schemas can be expensive: references that double at every level, recursion that applies several schemas to the
//! same child, references that lead back to themselves on the same value. The first are counted by following every
//! reference once and remembering the size of its target, the last are refused. What recursion costs depends on the value
//! and is counted for each one ([`Graph::visits`]).

mod visits;

pub(super) use visits::Graph;

use super::Error;
use crate::limits::{SCHEMA_DEPTH, SCHEMA_EXPANDED_NODES};
use crate::truncate::truncate;
use serde_json::Value;
use std::collections::HashMap;

/// Keywords whose schemas apply to the same value as the schema that has them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords whose content is data, not schemas.
pub(super) const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// Keywords with schemas by name.
pub(super) const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Checks the size of a schema, and returns what it takes to count the cost of values.
pub(super) fn check(schema: &Value) -> Result<Graph, Error> {
    let is_draft_4 =
        schema.get("$schema").and_then(Value::as_str).is_some_and(|dialect| dialect.contains("draft-04"));
    let mut walk = Walk {
        root: schema,
        id_keyword: if is_draft_4 { "id" } else { "$id" },
        anchors: HashMap::new(),
        embedded_id: None,
        has_followed: false,
        sizes: HashMap::new(),
        open: Vec::new(),
        heights: HashMap::new(),
    };
    walk.find_anchors(schema, false, 0)?;
    walk.size(schema, 0)?;
    Graph::of(&mut walk)
}

struct Walk<'a> {
    root: &'a Value,
    id_keyword: &'static str,
    anchors: HashMap<&'a str, &'a Value>,
    /// The id of a part. References in that part are relative to it, so they cannot be followed here.
    embedded_id: Option<&'a str>,
    has_followed: bool,
    /// The sizes of the targets of references.
    sizes: HashMap<&'a str, u64>,
    /// References whose targets are being sized.
    open: Vec<&'a str>,
    /// The heights of the targets of references; `None` while one is computed.
    heights: HashMap<&'a str, Option<usize>>,
}

impl<'a> Walk<'a> {
    /// Finds anchors and ids. `named`: the keys of this object are names and not keywords.
    fn find_anchors(&mut self, node: &'a Value, named: bool, depth: usize) -> Result<(), Error> {
        check_depth(depth)?;
        if let Value::Array(items) = node {
            return items.iter().try_for_each(|item| self.find_anchors(item, false, depth + 1));
        }
        if !named {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = node.get(keyword).and_then(Value::as_str)
                    && self.anchors.insert(name, node).is_some_and(|other| !std::ptr::eq(other, node))
                {
                    return Err(Error::DoubleAnchor { anchor: shortened(name) });
                }
            }
            self.check_id(node)?;
        }
        for (key, member) in node.as_object().into_iter().flatten() {
            if named || !DATA.contains(&&**key) {
                self.find_anchors(member, !named && NAMED.contains(&&**key), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Refuses a part with an id of its own in a schema with references.
    fn check_id(&mut self, node: &'a Value) -> Result<(), Error> {
        let id = node.get(self.id_keyword).and_then(Value::as_str).filter(|id| !id.starts_with('#'));
        if let Some(id) = id.filter(|_| !std::ptr::eq(node, self.root)) {
            self.embedded_id = Some(id);
            if self.has_followed {
                return Err(Error::EmbeddedId { id: shortened(id) });
            }
        }
        Ok(())
    }

    /// Nodes with every reference replaced by its target.
    fn size(&mut self, node: &'a Value, depth: usize) -> Result<u64, Error> {
        check_depth(depth)?;
        let mut nodes: u64 = 1;
        match node {
            Value::Object(members) => {
                // A reference may lead into data, which `find_anchors` left out.
                self.check_id(node)?;
                self.height(node, 0)?;
                for (keyword, member) in members {
                    nodes = nodes.saturating_add(self.keyword_size(keyword, member, depth)?);
                }
            }
            Value::Array(items) => nodes = nodes.saturating_add(self.sum(items, depth)?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(nodes) }
    }

    fn keyword_size(&mut self, keyword: &str, member: &'a Value, depth: usize) -> Result<u64, Error> {
        // Definitions are counted where they are used.
        if DATA.contains(&keyword) || matches!(keyword, "$defs" | "definitions") {
            return Ok(0);
        }
        match (keyword, member) {
            (_, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                self.target_size(reference, depth)
            }
            // Here the keys are names, `enum` and `default` perhaps among them.
            (_, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                Ok(self.sum(schemas.values(), depth)?.saturating_add(1))
            }
            (_, Value::Array(schemas)) => Ok(self.sum(schemas, depth)?.saturating_add(1)),
            _ => self.size(member, depth + 1),
        }
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'a Value>, depth: usize) -> Result<u64, Error> {
        schemas
            .into_iter()
            .try_fold(0, |sum: u64, schema| Ok(sum.saturating_add(self.size(schema, depth + 1)?)))
    }

    fn target_size(&mut self, reference: &'a str, depth: usize) -> Result<u64, Error> {
        if self.open.contains(&reference) {
            return Ok(1);
        }
        if let Some(size) = self.sizes.get(reference) {
            return Ok(*size);
        }
        let target = self.target(reference)?;
        self.open.push(reference);
        let size = self.size(target, depth + 1)?;
        self.open.pop();
        self.sizes.insert(reference, size);
        Ok(size)
    }

    /// How many schemas apply to the same value inside of each other, below this one.
    fn height(&mut self, schema: &'a Value, depth: usize) -> Result<usize, Error> {
        check_depth(depth)?;
        let mut height = 0;
        for (keyword, member) in schema.as_object().into_iter().flatten() {
            match (&**keyword, member) {
                (keyword, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                    height = height.max(1 + self.target_height(reference, depth)?);
                }
                (keyword, _) if IN_PLACE.contains(&keyword) => {
                    for branch in branches(keyword, member) {
                        height = height.max(1 + self.height(branch, depth + 1)?);
                    }
                }
                _ => {}
            }
        }
        check_depth(height)?;
        Ok(height)
    }

    fn target_height(&mut self, reference: &'a str, depth: usize) -> Result<usize, Error> {
        match self.heights.get(reference) {
            Some(Some(height)) => Ok(*height),
            Some(None) => Err(Error::EndlessReference { reference: shortened(reference) }),
            None => {
                let target = self.target(reference)?;
                self.heights.insert(reference, None);
                let height = self.height(target, depth + 1)?;
                self.heights.insert(reference, Some(height));
                Ok(height)
            }
        }
    }

    fn target(&mut self, reference: &'a str) -> Result<&'a Value, Error> {
        self.has_followed = true;
        if let Some(id) = self.embedded_id {
            return Err(Error::EmbeddedId { id: shortened(id) });
        }
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let local =
            own.filter(|id| !id.is_empty()).and_then(|id| reference.strip_prefix(id)).unwrap_or(reference);
        let found = match local.strip_prefix('#') {
            None => return Err(Error::RemoteReference { reference: shortened(reference) }),
            Some("") => Some(self.root),
            Some(pointer) if pointer.starts_with('/') => self.root.pointer(&percent_decoded(pointer)),
            Some(anchor) => self.anchors.get(anchor).copied(),
        };
        found.ok_or_else(|| Error::DanglingReference { reference: shortened(reference) })
    }
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > SCHEMA_DEPTH { Err(Error::TooDeep) } else { Ok(()) }
}

/// The schemas of a keyword that applies them in place.
fn branches<'a>(keyword: &str, member: &'a Value) -> Vec<&'a Value> {
    match (keyword, member) {
        ("dependentSchemas" | "dependencies", Value::Object(schemas)) => schemas.values().collect(),
        (_, Value::Array(items)) => items.iter().collect(),
        (_, other) => vec![other],
    }
}

/// The start of a text, for a message.
fn shortened(text: &str) -> String {
    truncate(text, 200).to_owned()
}

/// Decodes `%XX` in the fragment of a reference.
fn percent_decoded(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part.bytes().skip(2));
            }
            None => {
                bytes.push(b'%');
                bytes.extend(part.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
