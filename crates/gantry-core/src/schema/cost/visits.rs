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

/// Limit: parts of a value, each with a schema, whose cost is remembered while a value is counted. It bounds the memory.
const REMEMBERED: usize = 1_000_000;

/// What a schema costs at one part of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    visits: u64,
    /// Schemas that are inside of each other there and below.
    levels: usize,
}

/// Which schemas each part of a schema applies to a value and to its children.
#[derive(Debug)]
pub(in crate::schema) struct Graph {
    /// The first is the whole schema.
    nodes: Vec<Node>,
    /// The cost of each on a value without children.
    flat: Vec<Cost>,
}

#[derive(Debug, Default)]
struct Node {
    in_place: Vec<usize>,
    properties: HashMap<Box<str>, usize>,
    patterns: Vec<usize>,
    /// For members that are no properties.
    others: Vec<usize>,
    names: Vec<usize>,
    /// For the items at the beginning, one each.
    first: Vec<usize>,
    items: Vec<usize>,
    contains: Vec<usize>,
    /// How often all of that is done: what has not been evaluated is found out by evaluating it again.
    times: u64,
}

impl Graph {
    pub(super) fn of(walk: &mut Walk<'_>) -> Result<Self, Error> {
        let root = walk.root;
        let mut builder = Builder { walk, indexes: HashMap::new(), found: Vec::new() };
        builder.index(root);
        let mut nodes = Vec::new();
        while let Some(schema) = builder.found.get(nodes.len()).copied() {
            nodes.push(builder.node(schema)?);
        }
        let mut flat = vec![Cost::default(); nodes.len()];
        for at in in_place_first(&nodes) {
            let in_place = nodes[at].in_place.iter().map(|other| flat[*other]);
            let below = in_place.clone().map(|cost| cost.levels).max().unwrap_or(0);
            let visits = in_place.fold(1, |sum: u64, cost| sum.saturating_add(cost.visits));
            if below > SCHEMA_DEPTH {
                return Err(Error::TooDeep);
            }
            let times = if nodes[at].times > 1 { below as u64 + 2 } else { 1 };
            flat[at] = Cost { visits: visits.saturating_mul(times), levels: below + 1 };
            nodes[at].times = times;
        }
        Ok(Self { flat, nodes })
    }

    /// How many visits it takes to check this value; `None` if they are too many.
    pub(in crate::schema) fn visits(&self, value: &Value) -> Option<u64> {
        let mut count = Count { graph: self, known: HashMap::new() };
        count.cost(0, value, 0).map(|cost| cost.visits)
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
    known: HashMap<(usize, *const Value), Cost>,
}

impl Count<'_> {
    /// The cost of a schema that is inside of `level` others; `None` if it is too high.
    fn cost(&mut self, at: usize, value: &Value, level: usize) -> Option<Cost> {
        let cost = if has_children(value) {
            let key = (at, std::ptr::from_ref(value));
            match self.known.get(&key) {
                Some(known) => *known,
                None => {
                    let cost = self.cost_with_children(at, value, level)?;
                    self.known.insert(key, cost);
                    cost
                }
            }
        } else {
            *self.graph.flat.get(at)?
        };
        (cost.visits <= VISITS && level + cost.levels <= LEVELS).then_some(cost)
    }

    fn cost_with_children(&mut self, at: usize, value: &Value, level: usize) -> Option<Cost> {
        if level >= LEVELS || self.known.len() >= REMEMBERED {
            return None;
        }
        let graph = self.graph;
        let node = graph.nodes.get(at)?;
        let mut all = Cost { visits: 1, levels: 1 };
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
        all.visits = all.visits.saturating_mul(node.times);
        Some(all)
    }

    fn add(&mut self, all: &mut Cost, nodes: &[usize], value: &Value, level: usize) -> Option<()> {
        for node in nodes {
            let cost = self.cost(*node, value, level + 1)?;
            all.visits = all.visits.saturating_add(cost.visits);
            all.levels = all.levels.max(cost.levels + 1);
        }
        (all.visits <= VISITS).then_some(())
    }
}

fn has_children(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
