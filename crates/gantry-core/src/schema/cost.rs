//! What a schema may cost, counted before it is compiled.
//!
//! Two shapes make a small schema expensive: references that double at every level (a "billion laughs"), and
//! recursion that applies itself more than once to the same value. The first is counted here by following every
//! reference with the count of each target remembered; the second is bounded per value by its nesting. A third never
//! ends: references that come back to themselves on the same value. Those are looked for among all references that lead
//! to each other in place, since a target that is remembered is not followed again.

mod fan;

use super::Error;
use crate::limits::{SCHEMA_DEPTH, SCHEMA_EXPANDED_NODES};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Validations of one value that a recursive schema may cause.
const RECURSIVE_VISITS: u64 = 100_000;

/// Keywords whose schemas apply to the same value as the schema that holds them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords whose content is data, not schemas.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// How often a recursive schema may visit one place of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recursion {
    /// Schemas that lead back and apply to the same child of a value; one or none is harmless.
    fan: u64,
}

impl Recursion {
    /// Whether validating this value is affordable.
    pub(super) fn affords(self, value: &Value) -> bool {
        self.fan <= 1 || depth(value) <= self.depth()
    }

    /// How deep a value may be to be affordable.
    pub(super) fn depth(self) -> usize {
        match self.fan {
            0 | 1 => usize::MAX,
            fan => RECURSIVE_VISITS.ilog(fan) as usize,
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts a schema.
pub(super) fn check(schema: &Value) -> Result<Recursion, Error> {
    let mut walk = Walk {
        root: schema,
        anchors: HashMap::new(),
        known: HashMap::new(),
        open: Vec::new(),
        in_place: BTreeMap::new(),
        edges: BTreeMap::new(),
    };
    walk.find_anchors(schema, 0)?;
    let nodes = walk.visit(schema, 0)?;
    if let Some(reference) = endless(&walk.in_place) {
        return Err(Error::EndlessReference { reference: reference.chars().take(200).collect() });
    }
    if nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(Recursion { fan: fan::of(&walk) }) }
}

struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// What the targets of references come to.
    known: HashMap<&'a str, u64>,
    /// References being followed, each with whether a step into a child value was made since.
    open: Vec<(&'a str, bool)>,
    /// Which references the target of a reference applies to the same value.
    in_place: fan::Edges<'a>,
    /// Which references are in the target of a reference, wherever.
    edges: fan::Edges<'a>,
}

/// A reference that leads back to itself, if there is one. Without recursion: a row of references that are remembered
/// may be longer than a schema is deep.
fn endless<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<&'a str> {
    let targets = |from: &str| edges.get(from).into_iter().flatten().copied();
    // Whether all that a reference leads to has been looked at.
    let mut done: HashMap<&str, bool> = HashMap::new();
    for start in edges.keys().copied() {
        if done.contains_key(start) {
            continue;
        }
        done.insert(start, false);
        let mut path = vec![(start, targets(start))];
        while let Some((from, rest)) = path.last_mut() {
            let Some(to) = rest.next() else {
                done.insert(*from, true);
                path.pop();
                continue;
            };
            match done.get(to) {
                Some(true) => {}
                Some(false) => return Some(to),
                None => {
                    done.insert(to, false);
                    path.push((to, targets(to)));
                }
            }
        }
    }
    None
}

impl<'a> Walk<'a> {
    fn find_anchors(&mut self, node: &'a Value, depth: usize) -> Result<(), Error> {
        if depth > SCHEMA_DEPTH {
            return Err(Error::TooDeep);
        }
        match node {
            Value::Object(members) => {
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                        self.anchors.insert(name, node);
                    }
                }
                members.values().try_for_each(|member| self.find_anchors(member, depth + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.find_anchors(item, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// How many nodes there are if every reference is put in.
    fn visit(&mut self, node: &'a Value, depth: usize) -> Result<u64, Error> {
        if depth > SCHEMA_DEPTH {
            return Err(Error::TooDeep);
        }
        let mut nodes: u64 = 1;
        match node {
            Value::Object(members) => {
                for (keyword, member) in members {
                    nodes = nodes.saturating_add(self.keyword(keyword, member, depth)?);
                }
            }
            Value::Array(items) => nodes = self.sum(items.iter(), depth)?.saturating_add(1),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(nodes) }
    }

    fn keyword(&mut self, keyword: &str, member: &'a Value, depth: usize) -> Result<u64, Error> {
        // `$defs` are counted where they are used, and must not count as a step into a child value either.
        if DATA.contains(&keyword) || matches!(keyword, "$defs" | "definitions") {
            return Ok(0);
        }
        if let ("$ref" | "$dynamicRef" | "$recursiveRef", Some(reference)) = (keyword, member.as_str()) {
            return self.follow(reference, depth);
        }
        if IN_PLACE.contains(&keyword) {
            return self.sum(branches(keyword, member).into_iter(), depth);
        }
        let before: Vec<bool> = self.open.iter().map(|(_, moved)| *moved).collect();
        self.open.iter_mut().for_each(|(_, moved)| *moved = true);
        let nodes = match (keyword, member) {
            // Here the keys are names that anybody chose, `enum` and `default` among them.
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                self.sum(schemas.values(), depth).map(|nodes| nodes.saturating_add(1))
            }
            _ => self.visit(member, depth + 1),
        };
        self.open.iter_mut().zip(before).for_each(|((_, moved), was)| *moved = was);
        nodes
    }

    fn sum(&mut self, schemas: impl Iterator<Item = &'a Value>, depth: usize) -> Result<u64, Error> {
        let mut sum: u64 = 0;
        for schema in schemas {
            sum = sum.saturating_add(self.visit(schema, depth + 1)?);
        }
        Ok(sum)
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Result<u64, Error> {
        if let Some((from, moved)) = self.open.last() {
            self.edges.entry(from).or_default().push(reference);
            if !moved {
                self.in_place.entry(from).or_default().push(reference);
            }
        }
        if let Some((_, moved)) = self.open.iter().find(|(open, _)| *open == reference) {
            return match moved {
                true => Ok(1),
                false => Err(Error::EndlessReference { reference: reference.chars().take(200).collect() }),
            };
        }
        if let Some(nodes) = self.known.get(reference) {
            return Ok(*nodes);
        }
        let target = self.target(reference)?;
        self.open.push((reference, false));
        let nodes = self.visit(target, depth + 1);
        self.open.pop();
        let nodes = nodes?;
        self.known.insert(reference, nodes);
        Ok(nodes)
    }

    fn target(&self, reference: &'a str) -> Result<&'a Value, Error> {
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let local =
            own.filter(|id| !id.is_empty()).and_then(|id| reference.strip_prefix(id)).unwrap_or(reference);
        let Some(fragment) = local.strip_prefix('#') else {
            return Err(Error::RemoteReference { reference: reference.chars().take(200).collect() });
        };
        let found = if fragment.is_empty() {
            Some(self.root)
        } else if fragment.starts_with('/') {
            self.root.pointer(&percent_decoded(fragment))
        } else {
            self.anchors.get(fragment).copied()
        };
        found.ok_or_else(|| Error::DanglingReference { reference: reference.chars().take(200).collect() })
    }
}

/// The schemas that a keyword applies to the same value.
fn branches<'a>(keyword: &str, member: &'a Value) -> Vec<&'a Value> {
    match (keyword, member) {
        ("dependentSchemas" | "dependencies", Value::Object(schemas)) => schemas.values().collect(),
        (_, Value::Array(items)) => items.iter().collect(),
        (_, other) => vec![other],
    }
}

/// Decodes `%XX` in the fragment of a reference.
fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        match code
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
