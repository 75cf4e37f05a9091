//! What a tool's schema refers to: endless references cut, what is used once put in place, the rest under `$defs`.

use super::parts::join;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const PREFIX: &str = "#/$defs/";
/// References in place that lead to references in place. The core does not follow more either.
const CHAIN: usize = 60;
/// How deep the text of a schema may get by putting definitions in place.
const TEXT_DEPTH: usize = 40;
/// Keywords whose schemas apply to the same value as the schema that holds them.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// A reference to the definition of this name.
pub(super) fn refer(name: &str) -> Value {
    let reference = Value::String(format!("{PREFIX}{name}"));
    Value::Object(Map::from_iter([("$ref".to_owned(), reference)]))
}

/// How many values a schema is made of.
pub(super) fn nodes(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The root with what it needs of the definitions. Nothing if references lead on and on.
pub(super) fn assemble(root: Map<String, Value>, definitions: Vec<(String, Value)>) -> Option<Value> {
    let mut root = Value::Object(root);
    let (names, mut bodies): (Vec<String>, Vec<Value>) = definitions.into_iter().unzip();
    let index: HashMap<&str, usize> =
        names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    cut_endless(&mut bodies, &index)?;
    let uses = uses(&root, &bodies, &index);
    let once = uses.iter().filter(|(_, n)| **n == 1).map(|(place, _)| *place).collect();
    let mut inliner = Inliner { index: &index, once, bodies: bodies.into_iter().map(Some).collect() };
    inliner.put(&mut root, 0);
    let mut kept = Map::new();
    for (place, name) in names.iter().enumerate().filter(|(place, _)| uses.contains_key(place)) {
        // What was put in place is gone: whoever uses it comes earlier in this order.
        let Some(mut body) = inliner.bodies.get_mut(place).and_then(Option::take) else { continue };
        inliner.put(&mut body, 2);
        kept.insert(name.clone(), body);
    }
    if let (Value::Object(members), false) = (&mut root, kept.is_empty()) {
        members.insert("$defs".to_owned(), Value::Object(kept));
    }
    Some(root)
}

/// The definition that a schema refers to itself.
fn referred(schema: &Value, index: &HashMap<&str, usize>) -> Option<usize> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)?;
    index.get(name).copied()
}

/// Takes out the references by which a definition comes back to itself without a step into a child value: they demand
/// nothing, and following them never ends.
fn cut_endless(bodies: &mut [Value], index: &HashMap<&str, usize>) -> Option<()> {
    let edges: Vec<Vec<usize>> = bodies
        .iter()
        .map(|body| {
            let mut found = Vec::new();
            in_place(body, index, &mut found);
            found
        })
        .collect();
    let mut search = Search { edges: &edges, states: vec![State::New; edges.len()], back: BTreeSet::new() };
    for place in 0..edges.len() {
        search.visit(place, 0)?;
    }
    for (from, to) in search.back {
        if let Some(body) = bodies.get_mut(from) {
            forget(body, to, index);
        }
    }
    Some(())
}

fn in_place(schema: &Value, index: &HashMap<&str, usize>, found: &mut Vec<usize>) {
    found.extend(referred(schema, index));
    for keyword in IN_PLACE {
        let parts = schema.get(keyword).and_then(Value::as_array);
        parts.into_iter().flatten().for_each(|part| in_place(part, index, found));
    }
}

fn forget(schema: &mut Value, to: usize, index: &HashMap<&str, usize>) {
    let is_it = referred(schema, index) == Some(to);
    let Value::Object(members) = schema else { return };
    if is_it {
        members.shift_remove("$ref");
    }
    for keyword in IN_PLACE {
        let parts = members.get_mut(keyword).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(|part| forget(part, to, index));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

struct Search<'e> {
    edges: &'e [Vec<usize>],
    states: Vec<State>,
    back: BTreeSet<(usize, usize)>,
}

impl Search<'_> {
    fn visit(&mut self, place: usize, depth: usize) -> Option<()> {
        let edges = self.edges;
        let (Some(state), Some(targets)) = (self.states.get_mut(place), edges.get(place)) else {
            return Some(());
        };
        if *state != State::New {
            return Some(());
        }
        if depth > CHAIN {
            return None;
        }
        *state = State::Open;
        for target in targets {
            if self.states.get(*target) == Some(&State::Open) {
                self.back.insert((place, *target));
            } else {
                self.visit(*target, depth + 1)?;
            }
        }
        if let Some(state) = self.states.get_mut(place) {
            *state = State::Done;
        }
        Some(())
    }
}

/// How often each definition is referred to, among those that the root leads to.
fn uses(root: &Value, bodies: &[Value], index: &HashMap<&str, usize>) -> BTreeMap<usize, usize> {
    let mut uses = BTreeMap::new();
    let mut waiting = vec![root];
    while let Some(schema) = waiting.pop() {
        let mut found = Vec::new();
        references(schema, index, &mut found);
        for place in found {
            let count = uses.entry(place).or_insert(0);
            *count += 1;
            if *count == 1 {
                waiting.extend(bodies.get(place));
            }
        }
    }
    uses
}

fn references(schema: &Value, index: &HashMap<&str, usize>, found: &mut Vec<usize>) {
    // Enumerations and defaults are plain values here, so whatever looks like a reference is one.
    found.extend(referred(schema, index));
    match schema {
        Value::Object(members) => members.values().for_each(|member| references(member, index, found)),
        Value::Array(items) => items.iter().for_each(|item| references(item, index, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

struct Inliner<'n> {
    index: &'n HashMap<&'n str, usize>,
    once: BTreeSet<usize>,
    bodies: Vec<Option<Value>>,
}

impl Inliner<'_> {
    /// Replaces the references to what is used only once by that.
    fn put(&mut self, schema: &mut Value, depth: usize) {
        if let Some(body) = self.body(schema, depth) {
            let outer = match std::mem::take(schema) {
                Value::Object(mut members) => {
                    members.shift_remove("$ref");
                    members
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    Map::new()
                }
            };
            *schema = join(body, outer);
            // It may itself refer to such a one, in place.
            return self.put(schema, depth);
        }
        match schema {
            Value::Object(members) => members.values_mut().for_each(|member| self.put(member, depth + 1)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.put(item, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn body(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let place = referred(schema, self.index).filter(|place| self.once.contains(place))?;
        let body = self.bodies.get_mut(place)?;
        let deep = body.as_ref().is_some_and(|body| depth + text_depth(body) > TEXT_DEPTH);
        if deep { None } else { body.take() }
    }
}

fn text_depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(text_depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(text_depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
