//! From the schemas of OpenAPI to JSON Schema 2020-12.
//!
//! Only known keywords are taken over, each only if its value has the right type: public documents have `required: true`
//! and `minimum: "1"`, and a tool must not be lost for that. Where a schema is stricter than the API may be, the result is
//! the laxer one, since the API decides anyway: `oneOf` becomes `anyOf` (formats are not enforced, so two alternatives
//! often fit), nested objects accept further properties, and `not` is left out.
//!
//! A returned value ([`Direction::Output`]) is described more laxly still: real APIs return null and values that they
//! never listed, and clients refuse a whole result for one mismatch.

mod composition;
mod convert;
mod flatten;
mod keywords;
mod references;
mod text;

pub(crate) use flatten::{Fields, fields, loose_fields};
pub(crate) use keywords::is_scalar;
pub(crate) use text::{collapse, without_comments};

use crate::Object;
use crate::openapi::document::NodeRef;
use crate::openapi::limits::{INPUT_BYTES, INPUT_NODES, OUTPUT_BYTES, OUTPUT_NODES};
use convert::SchemaContext;
use gantry_core::schema::Schema;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Which way a value goes. A `readOnly` property is not sent, a `writeOnly` one is not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Direction {
    /// How many nodes and bytes its schemas may have.
    fn limits(self) -> (usize, usize) {
        match self {
            Self::Input => (INPUT_NODES, INPUT_BYTES),
            Self::Output => (OUTPUT_NODES, OUTPUT_BYTES),
        }
    }
}

/// How much of a schema is shown, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// Everything in place. Fails if a schema is referred to twice or refers to itself.
    Inline,
    /// Everything; schemas that are referred to are under `$defs`.
    Definitions,
    /// In place and down to two levels; of deeper values only the type is shown.
    TwoLevels,
}

/// The schema of a tool, with all its details or, if that is too large, with two levels of them. `root` makes its root.
pub(crate) fn fit<'a>(
    direction: Direction,
    root: impl Fn(&mut Converter<'a>) -> Result<Object, String>,
) -> Result<Value, String> {
    for detail in [DetailLevel::Inline, DetailLevel::Definitions, DetailLevel::TwoLevels] {
        let mut converter = Converter::new(direction, detail);
        let root = root(&mut converter)?;
        if let Some(schema) = converter.complete(root)? {
            return Ok(schema);
        }
    }
    let (nodes, bytes) = direction.limits();
    Err(format!("its schema is too large even with two levels: more than {nodes} values or {bytes} bytes"))
}

/// Converts the schemas of one tool, which share their definitions.
#[derive(Debug)]
pub(crate) struct Converter<'a> {
    direction: Direction,
    detail: DetailLevel,
    /// Bytes of schema that may still be made, so that a schema that doubles at every level, or repeats a long name, is
    /// stopped before it takes memory. Zero: the schema is too large.
    room: usize,
    /// The schemas under `$defs` by name, in the order of first use.
    definitions: Vec<(String, NodeRef<'a>)>,
    /// The index of the definition of an address.
    defined: HashMap<usize, usize>,
    /// The names under `$defs`, each with the number that the next schema of that name gets.
    taken: HashMap<String, usize>,
    /// The addresses that are in place already ([`DetailLevel::Inline`]).
    inlined: HashSet<usize>,
    /// The addresses that references led to since the last step into a child value.
    chain: Vec<usize>,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(direction: Direction, detail: DetailLevel) -> Self {
        let (_, bytes) = direction.limits();
        Self {
            direction,
            detail,
            room: bytes,
            definitions: Vec::new(),
            defined: HashMap::new(),
            taken: HashMap::new(),
            inlined: HashSet::new(),
            chain: Vec::new(),
        }
    }

    /// One schema, with references into `$defs`. Past the limits it is `{}`, and [`Self::complete`] gives nothing.
    pub(crate) fn schema(&mut self, node: NodeRef<'a>) -> Result<Object, String> {
        self.convert(node, SchemaContext::root(self.direction))
    }

    /// The schema of the tool, with the `$defs` that it needs; nothing if it is too large.
    fn complete(&mut self, mut root: Object) -> Result<Option<Value>, String> {
        let mut definitions = Object::new();
        // Converting a definition may add further ones.
        while let Some((name, node)) = self.definitions.get(definitions.len()).cloned() {
            definitions.insert(name, Value::Object(self.convert(node, SchemaContext::definition())?));
        }
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
        let schema = Value::Object(root);
        let (most_nodes, bytes) = self.direction.limits();
        let fits = self.room > 0
            && nodes(&schema) <= most_nodes
            && schema.to_string().len() <= bytes
            && Schema::check_cost(&schema).is_ok();
        Ok(fits.then_some(schema))
    }

    fn spend(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(bytes);
    }
}

/// How many values a schema is made of.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests;
