//! How often a check applies schemas to the parts of a value, counted before the check.
//!
//! Choices of choices multiply, and so does recursion that passes through several of them. Counting is cheap where
//! checking is not: the cost of one schema at one part of the value is counted once, however many ways lead there. The
//! validator remembers some of its results too, but which ones depends on the order in which it compiles references, so
//! the count does not rely on that.

use super::{IN_PLACE, Walk, branches};
use crate::limits::SCHEMA_DEPTH;
use crate::schema::Error;
use serde_json::Value;
use std::collections::HashMap;

/// Limit: visits of all parts of a value. A check of so many takes some hundred milliseconds.
const VISITS: u64 = 4_000_000;
/// Limit: schemas that may be inside of each other while a value is checked. Each takes from the stack.
const LEVELS: usize = 400;

/// Which schemas each part of a schema applies to a value and to its children.
#[derive(Debug)]
pub(in crate::schema) struct Graph {
    /// The first is the whole schema.
    nodes: Vec<Node>,
    /// The visits of each on a value without children.
    flat: Vec<u64>,
}

#[derive(Debug, Default)]
struct Node {
    in_place: Vec<usize>,
    properties: HashMap<Box<str>, usize>,
    patterns: Vec<usize>,
    /// For members that are no properties.
    others: Vec<usize>,
    /// For the names of members.
    names: Vec<usize>,
    /// For the items at the beginning, one each.
    first: Vec<usize>,
    /// For the other items.
    items: Vec<usize>,
    /// For all items.
    contains: Vec<usize>,
    /// How often all of that is done: what has not been evaluated is found out by evaluating it again.
    times: u64,
}

impl Graph {
    /// # Errors
    /// Too many schemas apply to the same value inside of each other.
    pub(super) fn of(walk: &mut Walk<'_>) -> Result<Self, Error> {
        let root = walk.root;
        let mut builder = Builder { walk, indexes: HashMap::new(), found: Vec::new() };
        builder.index(root);
        let mut nodes = Vec::new();
        while let Some(schema) = builder.found.get(nodes.len()).copied() {
            nodes.push(builder.node(schema)?);
        }
        let mut heights = vec![0usize; nodes.len()];
        let mut flat = vec![0u64; nodes.len()];
        for at in in_place_first(&nodes) {
            let in_place = std::mem::take(&mut nodes[at].in_place);
            let below = in_place.iter().map(|other| heights[*other] + 1).max().unwrap_or(0);
            if below > SCHEMA_DEPTH {
                return Err(Error::TooDeep);
            }
            heights[at] = below;
            nodes[at].times = if nodes[at].times > 1 { below as u64 + 2 } else { 1 };
            let applied = in_place.iter().fold(1, |sum: u64, other| sum.saturating_add(flat[*other]));
            flat[at] = applied.saturating_mul(nodes[at].times);
            nodes[at].in_place = in_place;
        }
        Ok(Self { flat, nodes })
    }

    /// How many visits it takes to check this value; `None` if they are too many.
    pub(in crate::schema) fn visits(&self, value: &Value) -> Option<u64> {
        let mut count = Count { graph: self, known: HashMap::new() };
        count.visits(0, value, 0)
    }
}

struct Builder<'w, 'a> {
    walk: &'w mut Walk<'a>,
    indexes: HashMap<*const Value, usize>,
    found: Vec<&'a Value>,
}

impl<'a> Builder<'_, 'a> {
    fn index(&mut self, schema: &'a Value) -> usize {
        *self.indexes.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.found.push(schema);
            self.found.len() - 1
        })
    }

    fn indexes(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.index(schema)).collect()
    }

    fn node(&mut self, schema: &'a Value) -> Result<Node, Error> {
        let mut node = Node { times: 1, ..Node::default() };
        for (keyword, member) in schema.as_object().into_iter().flatten() {
            match (&**keyword, member) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let target = self.walk.target(reference)?;
                    node.in_place.push(self.index(target));
                }
                ("properties", Value::Object(schemas)) => {
                    let properties =
                        schemas.iter().map(|(name, schema)| (name.as_str().into(), self.index(schema)));
                    node.properties = properties.collect();
                }
                ("patternProperties", Value::Object(schemas)) => {
                    node.patterns = self.indexes(schemas.values())
                }
                ("additionalProperties", schema) => node.others.extend(self.indexes([schema])),
                ("propertyNames", schema) => node.names = self.indexes([schema]),
                ("prefixItems" | "items", Value::Array(schemas)) => node.first = self.indexes(schemas),
                ("items" | "additionalItems", schema) => node.items.extend(self.indexes([schema])),
                ("contains", schema) => node.contains = self.indexes([schema]),
                ("unevaluatedProperties", schema) => {
                    node.others.extend(self.indexes([schema]));
                    node.times = 2;
                }
                ("unevaluatedItems", schema) => {
                    node.items.extend(self.indexes([schema]));
                    node.times = 2;
                }
                (keyword, member) if IN_PLACE.contains(&keyword) => {
                    node.in_place.extend(self.indexes(branches(keyword, member)));
                }
                _ => {}
            }
        }
        Ok(node)
    }
}

/// The nodes, each after those that it applies to the same value. They never lead back: the walk refuses that. This does not
/// recurse, because a row of references may be longer than a schema is deep.
fn in_place_first(nodes: &[Node]) -> Vec<usize> {
    let mut seen = vec![false; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for start in 0..nodes.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut path = vec![(start, nodes[start].in_place.iter())];
        while let Some((at, rest)) = path.last_mut() {
            match rest.find(|other| !seen[**other]) {
                Some(other) => {
                    seen[*other] = true;
                    path.push((*other, nodes[*other].in_place.iter()));
                }
                None => {
                    order.push(*at);
                    path.pop();
                }
            }
        }
    }
    order
}

struct Count<'g> {
    graph: &'g Graph,
    known: HashMap<(usize, *const Value), u64>,
}

impl Count<'_> {
    fn visits(&mut self, at: usize, value: &Value, level: usize) -> Option<u64> {
        if !(value.is_object() || value.is_array()) {
            return self.graph.flat.get(at).copied().filter(|visits| *visits <= VISITS);
        }
        let key = (at, std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if level >= LEVELS || self.known.len() as u64 >= VISITS {
            return None;
        }
        let graph = self.graph;
        let node = graph.nodes.get(at)?;
        let mut all = 1;
        self.add(&mut all, &node.in_place, value, level)?;
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match node.properties.get(&**name) {
                        Some(property) => self.add(&mut all, &[*property], member, level)?,
                        None => self.add(&mut all, &node.others, member, level)?,
                    }
                    self.add(&mut all, &node.patterns, member, level)?;
                    self.add(&mut all, &node.names, &Value::Null, level)?;
                }
            }
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    match node.first.get(n) {
                        Some(first) => self.add(&mut all, &[*first], item, level)?,
                        None => self.add(&mut all, &node.items, item, level)?,
                    }
                    self.add(&mut all, &node.contains, item, level)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        let all = all.checked_mul(node.times).filter(|all| *all <= VISITS)?;
        self.known.insert(key, all);
        Some(all)
    }

    fn add(&mut self, all: &mut u64, nodes: &[usize], value: &Value, level: usize) -> Option<()> {
        for node in nodes {
            *all = all.saturating_add(self.visits(*node, value, level + 1)?);
        }
        (*all <= VISITS).then_some(())
    }
}
