//! What a schema may cost, computed before it is compiled.
//!
//! Small schemas can be expensive: references that double at every level, recursion that applies several schemas to the
//! same child, references that lead back to themselves on the same value. The first are counted by following every
//! reference once and remembering the cost of its target, the last are refused. Recursion costs nothing extra while the
//! validator only decides (it remembers its results per schema and value), but it does when the validator lists errors.

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

/// Schema nodes times value nodes that one check may take: at most a few seconds, for schemas made for that.
const CHECKED: u64 = 50_000_000;
/// The same for a check that lists errors. Each error takes memory.
const EXPLAINED: u64 = 500_000;
/// Schemas that may be inside of each other while a value is checked: each takes from the stack.
const LEVELS: usize = 400;

/// What it takes to check a value with a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    size: Size,
    /// The longest chain of schemas that apply to the same value.
    height: usize,
    has_unevaluated: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Nodes with every reference replaced by its target.
    nodes: u64,
    /// References that lead back to an enclosing schema for the same part of a value.
    returns: u64,
}

impl Cost {
    /// # Errors
    /// The schema leaves the document or could cost too much.
    pub(super) fn of(schema: &Value) -> Result<Self, Error> {
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
            height: 0,
            has_unevaluated: false,
        };
        walk.find_anchors(schema, false, 0)?;
        let size = walk.size(schema, 0)?;
        Ok(Self { size, height: walk.height, has_unevaluated: walk.has_unevaluated })
    }

    /// Whether the value can be checked in the time and on the stack that a check may take.
    pub(super) fn allows(&self, value: Extent) -> bool {
        // The validator does not remember the results of `unevaluated…`.
        let checked = if self.has_unevaluated { self.repeated(value) } else { self.once(value) };
        checked <= CHECKED && (self.height + 1) * value.depth <= LEVELS
    }

    /// Whether a check may list the errors of the value.
    pub(super) fn explains(&self, value: Extent) -> bool {
        self.repeated(value) <= EXPLAINED
    }

    fn once(&self, value: Extent) -> u64 {
        self.size.nodes.saturating_mul(value.nodes)
    }

    /// As [`Self::once`], where recursion checks a part of a value once for every way that leads to it.
    fn repeated(&self, value: Extent) -> u64 {
        let depth = u32::try_from(value.depth).unwrap_or(u32::MAX);
        self.once(value).saturating_mul(self.size.returns.max(1).saturating_pow(depth.saturating_sub(1)))
    }
}

/// How large a value is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    nodes: u64,
    /// Arrays and objects inside of each other.
    depth: usize,
}

impl Extent {
    pub(super) fn of(value: &Value) -> Self {
        let around = |children: &mut dyn Iterator<Item = &Value>| {
            let none = Self { nodes: 1, depth: 1 };
            children.map(Self::of).fold(none, |all, child| Self {
                nodes: all.nodes + child.nodes,
                depth: all.depth.max(child.depth + 1),
            })
        };
        match value {
            Value::Array(items) => around(&mut items.iter()),
            Value::Object(members) => around(&mut members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self { nodes: 1, depth: 0 },
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    id_keyword: &'static str,
    anchors: HashMap<&'a str, &'a Value>,
    /// The id of a part. References in that part are relative to it, so they cannot be followed here.
    embedded_id: Option<&'a str>,
    has_followed: bool,
    /// The sizes of the targets of references.
    sizes: HashMap<&'a str, Size>,
    /// References whose targets are being sized.
    open: Vec<&'a str>,
    /// The heights of the targets of references; `None` while one is computed.
    heights: HashMap<&'a str, Option<usize>>,
    height: usize,
    has_unevaluated: bool,
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

    fn size(&mut self, node: &'a Value, depth: usize) -> Result<Size, Error> {
        check_depth(depth)?;
        let mut size = Size { nodes: 1, returns: 0 };
        match node {
            Value::Object(members) => {
                // A reference may lead into data, which `find_anchors` left out.
                self.check_id(node)?;
                let height = self.height(node, 0)?;
                self.height = self.height.max(height);
                for (keyword, member) in members {
                    size = size.and(self.keyword_size(keyword, member, depth)?);
                }
                let has_unevaluated = ["unevaluatedProperties", "unevaluatedItems"]
                    .iter()
                    .any(|keyword| members.contains_key(*keyword));
                if has_unevaluated && height > 0 {
                    // The validator evaluates the schemas in place again to find what they evaluated.
                    self.has_unevaluated = true;
                    size.nodes = size.nodes.saturating_mul(height as u64 + 2);
                }
            }
            Value::Array(items) => {
                for item in items {
                    size = size.and(self.size(item, depth + 1)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if size.nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(size) }
    }

    fn keyword_size(&mut self, keyword: &str, member: &'a Value, depth: usize) -> Result<Size, Error> {
        // Definitions are counted where they are used.
        if DATA.contains(&keyword) || matches!(keyword, "$defs" | "definitions") {
            return Ok(Size::default());
        }
        match (keyword, member) {
            (_, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                self.target_size(reference, depth)
            }
            (_, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                let mut sum = Size { nodes: 1, returns: 0 };
                let mut most = 0;
                for schema in schemas.values() {
                    let size = self.size(schema, depth + 1)?;
                    sum = sum.and(size);
                    most = most.max(size.returns);
                }
                // A member has one name, so it meets one of the properties.
                Ok(if keyword == "properties" { Size { returns: most, ..sum } } else { sum })
            }
            (_, Value::Array(schemas)) => {
                let mut sizes = schemas.iter().map(|schema| self.size(schema, depth + 1));
                sizes.try_fold(Size { nodes: 1, returns: 0 }, |sum, size| Ok(sum.and(size?)))
            }
            _ => self.size(member, depth + 1),
        }
    }

    fn target_size(&mut self, reference: &'a str, depth: usize) -> Result<Size, Error> {
        if self.open.contains(&reference) {
            return Ok(Size { nodes: 1, returns: 1 });
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

impl Size {
    fn and(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            returns: self.returns.saturating_add(other.returns),
        }
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
