//! How often schemas are held against the places of a value, counted before it is done.
//!
//! Choices of choices multiply, and so does recursion that passes through several of them. Counting is cheap where doing
//! is not: whatever one schema costs at one place is counted once, however many ways lead there.

use super::{IN_PLACE, Walk, branches};
use crate::limits::{JSON_DEPTH, SCHEMA_DEPTH};
use serde_json::Value;
use std::collections::HashMap;

/// Visits of one place that a schema may cause at some depth, whatever the value is.
const PLACE_VISITS: u64 = 100_000;
/// Visits of all places of a value. It takes some hundred milliseconds to do as many.
const VISITS: u64 = 4_000_000;
/// Schemas that may be inside of each other while a value is checked: each takes from the stack.
const LEVELS: usize = 400;

/// What the schemas of a schema apply to a value and to its children.
#[derive(Debug)]
pub(in crate::schema) struct Graph {
    /// The first is the whole schema.
    nodes: Vec<Node>,
    /// Each after all that it applies to the same value.
    order: Vec<usize>,
    /// What each costs on a value without children.
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
    /// Nothing if schemas are in each other too deep.
    pub(super) fn of(walk: &Walk<'_>) -> Option<Self> {
        let mut making = Making { walk, places: HashMap::new(), found: Vec::new() };
        making.place(walk.root);
        let mut nodes = Vec::new();
        while let Some(schema) = making.found.get(nodes.len()).copied() {
            nodes.push(making.node(schema));
        }
        let order = order(&nodes);
        let mut heights = vec![0usize; nodes.len()];
        for at in &order {
            let below = nodes[*at].in_place.iter().map(|other| heights[*other] + 1).max().unwrap_or(0);
            heights[*at] = below;
            if below > SCHEMA_DEPTH {
                return None;
            }
            nodes[*at].times = if nodes[*at].times > 1 { below as u64 + 2 } else { 1 };
        }
        let mut graph = Self { flat: vec![0; nodes.len()], nodes, order };
        graph.flat = graph.level(|_| 1);
        Some(graph)
    }

    /// How deep values may be, whatever else they are.
    pub(super) fn depth(&self) -> usize {
        let mut below = self.flat.clone();
        for depth in 1..=JSON_DEPTH {
            let here = self.level(|node| node.child(&below));
            if here.first().is_some_and(|visits| *visits > PLACE_VISITS) {
                return depth - 1;
            }
            if here == below {
                break;
            }
            below = here;
        }
        usize::MAX
    }

    /// Counts each node, given what it costs by itself.
    fn level(&self, own: impl Fn(&Node) -> u64) -> Vec<u64> {
        let mut counts = vec![0u64; self.nodes.len()];
        for at in &self.order {
            let node = &self.nodes[*at];
            let in_place = sum(node.in_place.iter().map(|other| counts[*other]));
            counts[*at] = own(node).saturating_add(in_place).saturating_mul(node.times);
        }
        counts
    }

    /// How many visits it takes to check this value; nothing if they are too many.
    pub(in crate::schema) fn visits(&self, value: &Value) -> Option<u64> {
        let mut count = Count { graph: self, known: HashMap::new() };
        count.visits(0, value, 0)
    }
}

impl Node {
    /// The most that is applied to one child of a value, given what each costs there.
    fn child(&self, counts: &[u64]) -> u64 {
        let all = |nodes: &[usize]| sum(nodes.iter().map(|node| counts[*node]));
        let most =
            |nodes: &mut dyn Iterator<Item = &usize>| nodes.map(|node| counts[*node]).max().unwrap_or(0);
        let member =
            most(&mut self.properties.values()).max(all(&self.others)).saturating_add(all(&self.patterns));
        let item = most(&mut self.first.iter()).max(all(&self.items)).saturating_add(all(&self.contains));
        member.max(item)
    }
}

struct Making<'w, 'a> {
    walk: &'w Walk<'a>,
    places: HashMap<*const Value, usize>,
    found: Vec<&'a Value>,
}

impl<'a> Making<'_, 'a> {
    fn place(&mut self, schema: &'a Value) -> usize {
        *self.places.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.found.push(schema);
            self.found.len() - 1
        })
    }

    fn places(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.place(schema)).collect()
    }

    fn node(&mut self, schema: &'a Value) -> Node {
        let mut node = Node { times: 1, ..Node::default() };
        for (keyword, member) in schema.as_object().into_iter().flatten() {
            match (&**keyword, member) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    // Whatever is no target was refused before.
                    let target = self.walk.target(reference).ok();
                    node.in_place.extend(self.places(target));
                }
                ("properties", Value::Object(schemas)) => {
                    let properties =
                        schemas.iter().map(|(name, schema)| (name.as_str().into(), self.place(schema)));
                    node.properties = properties.collect();
                }
                ("patternProperties", Value::Object(schemas)) => {
                    node.patterns = self.places(schemas.values())
                }
                ("additionalProperties", schema) => node.others.extend(self.places([schema])),
                ("propertyNames", schema) => node.names = self.places([schema]),
                ("prefixItems" | "items", Value::Array(schemas)) => node.first = self.places(schemas),
                ("items" | "additionalItems", schema) => node.items.extend(self.places([schema])),
                ("contains", schema) => node.contains = self.places([schema]),
                ("unevaluatedProperties", schema) => {
                    node.others.extend(self.places([schema]));
                    node.times = 2;
                }
                ("unevaluatedItems", schema) => {
                    node.items.extend(self.places([schema]));
                    node.times = 2;
                }
                (keyword, member) if IN_PLACE.contains(&keyword) => {
                    node.in_place.extend(self.places(branches(keyword, member)));
                }
                _ => {}
            }
        }
        node
    }
}

/// The nodes, each after all that it applies to the same value. Those never lead back, which was looked at before.
/// Without recursion: a row of references may be longer than a schema is deep.
fn order(nodes: &[Node]) -> Vec<usize> {
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
        // Each that is known is a visit.
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

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
