//! What a schema may cost, counted before it is compiled.
//!
//! Two shapes make a small schema expensive: references that double at every level (a "billion laughs"), and
//! recursion that applies itself more than once to the same value. The first is counted here by following every
//! reference with the count of each target remembered; the second is bounded per value by its nesting. A third never
//! ends: references that come back to themselves on the same value. Those are looked for among all references that lead
//! to each other in place, since a target that is remembered is not followed again.

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
    /// Recursive branches that apply to the same value; one or none is harmless.
    fan: u64,
}

impl Recursion {
    /// Whether validating this value is affordable.
    pub(super) fn affords(self, value: &Value) -> bool {
        self.fan <= 1
            || u32::try_from(depth(value))
                .ok()
                .and_then(|depth| self.fan.checked_pow(depth))
                .is_some_and(|n| n <= RECURSIVE_VISITS)
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
        fan: 0,
    };
    walk.find_anchors(schema, 0)?;
    let cost = walk.visit(schema, 0)?;
    if let Some(reference) = endless(&walk.in_place) {
        return Err(Error::EndlessReference { reference: reference.chars().take(200).collect() });
    }
    if cost.nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(Recursion { fan: walk.fan }) }
}

#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: u64,
    recursive: bool,
}

struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    known: HashMap<&'a str, Cost>,
    /// References being followed, each with whether a step into a child value was made since.
    open: Vec<(&'a str, bool)>,
    /// Which references the target of a reference applies to the same value.
    in_place: BTreeMap<&'a str, Vec<&'a str>>,
    fan: u64,
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

    fn visit(&mut self, node: &'a Value, depth: usize) -> Result<Cost, Error> {
        if depth > SCHEMA_DEPTH {
            return Err(Error::TooDeep);
        }
        let mut cost = Cost { nodes: 1, recursive: false };
        match node {
            Value::Object(members) => {
                let mut same_place = 0;
                for (keyword, member) in members {
                    let part = self.keyword(keyword, member, depth, &mut same_place)?;
                    cost.nodes = cost.nodes.saturating_add(part.nodes);
                    cost.recursive |= part.recursive;
                }
                self.fan = self.fan.max(same_place);
            }
            Value::Array(items) => cost = self.sum(items.iter(), depth)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if cost.nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(cost) }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        member: &'a Value,
        depth: usize,
        same_place: &mut u64,
    ) -> Result<Cost, Error> {
        if DATA.contains(&keyword) {
            return Ok(Cost::default());
        }
        if let ("$ref" | "$dynamicRef" | "$recursiveRef", Some(reference)) = (keyword, member.as_str()) {
            let cost = self.follow(reference, depth)?;
            *same_place += u64::from(cost.recursive);
            return Ok(cost);
        }
        if IN_PLACE.contains(&keyword) {
            return self.in_place(keyword, member, depth, same_place);
        }
        // `$defs` are counted where they are used, and must not count as a step into a child value either.
        if matches!(keyword, "$defs" | "definitions") {
            return Ok(Cost::default());
        }
        let before: Vec<bool> = self.open.iter().map(|(_, moved)| *moved).collect();
        self.open.iter_mut().for_each(|(_, moved)| *moved = true);
        let cost = match (keyword, member) {
            // Here the keys are names that anybody chose, `enum` and `default` among them.
            ("properties" | "patternProperties", Value::Object(schemas)) => self.sum(schemas.values(), depth),
            _ => self.visit(member, depth + 1),
        };
        self.open.iter_mut().zip(before).for_each(|((_, moved), was)| *moved = was);
        cost
    }

    fn sum(&mut self, schemas: impl Iterator<Item = &'a Value>, depth: usize) -> Result<Cost, Error> {
        let mut sum = Cost { nodes: 1, recursive: false };
        for schema in schemas {
            let part = self.visit(schema, depth + 1)?;
            sum.nodes = sum.nodes.saturating_add(part.nodes);
            sum.recursive |= part.recursive;
        }
        Ok(sum)
    }

    fn in_place(
        &mut self,
        keyword: &str,
        member: &'a Value,
        depth: usize,
        same_place: &mut u64,
    ) -> Result<Cost, Error> {
        let branches: Vec<&Value> = match (keyword, member) {
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => schemas.values().collect(),
            (_, Value::Array(items)) => items.iter().collect(),
            (_, other) => vec![other],
        };
        let mut sum = Cost::default();
        for branch in branches {
            let part = self.visit(branch, depth + 1)?;
            *same_place += u64::from(part.recursive);
            sum.nodes = sum.nodes.saturating_add(part.nodes);
            sum.recursive |= part.recursive;
        }
        Ok(sum)
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Result<Cost, Error> {
        if let Some((from, false)) = self.open.last() {
            self.in_place.entry(from).or_default().push(reference);
        }
        if let Some((_, moved)) = self.open.iter().find(|(open, _)| *open == reference) {
            return match moved {
                true => Ok(Cost { nodes: 1, recursive: true }),
                false => Err(Error::EndlessReference { reference: reference.chars().take(200).collect() }),
            };
        }
        if let Some(cost) = self.known.get(reference) {
            return Ok(*cost);
        }
        let target = self.target(reference)?;
        self.open.push((reference, false));
        let cost = self.visit(target, depth + 1);
        self.open.pop();
        let cost = cost?;
        self.known.insert(reference, cost);
        Ok(cost)
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
