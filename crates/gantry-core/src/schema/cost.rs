//! What a schema may cost, counted before it is compiled.
//!
//! Two shapes make a small schema expensive: references that double at every level (a "billion laughs"), and
//! recursion that applies itself more than once to the same value. The first is counted here by following every
//! reference with the count of each target remembered; the second is counted for each value ([`Graph`]). A third never
//! ends: references that come back to themselves on the same value. Those are looked for among all references that lead
//! to each other in place, since a target that is remembered is not followed again.

mod visits;

pub(super) use visits::Graph;

use super::Error;
use crate::limits::{SCHEMA_DEPTH, SCHEMA_EXPANDED_NODES};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Keywords whose schemas apply to the same value as the schema that holds them.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords whose content is data, not schemas.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// Keywords with schemas by name.
const NAMES: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Counts a schema. Returns what it takes to count what values cost.
pub(super) fn check(schema: &Value) -> Result<Graph, Error> {
    Graph::of(&walked(schema)?).ok_or(Error::TooDeep)
}

/// Counts a schema. Returns how deep the values may be that are held against it, whatever else they are.
pub(super) fn depth(schema: &Value) -> Result<usize, Error> {
    let walk = walked(schema)?;
    if walk.recurs { Ok(Graph::of(&walk).ok_or(Error::TooDeep)?.depth()) } else { Ok(usize::MAX) }
}

fn walked(schema: &Value) -> Result<Walk<'_>, Error> {
    let mut walk = Walk {
        root: schema,
        anchors: HashMap::new(),
        is_old: schema.get("$schema").and_then(Value::as_str).is_some_and(|it| it.contains("draft-04")),
        embedded: None,
        known: HashMap::new(),
        open: Vec::new(),
        in_place: BTreeMap::new(),
        recurs: false,
    };
    walk.find_anchors(schema, false, 0)?;
    let nodes = walk.visit(schema, 0)?;
    if let Some(reference) = endless(&walk.in_place) {
        return Err(Error::EndlessReference { reference: reference.chars().take(200).collect() });
    }
    if nodes > SCHEMA_EXPANDED_NODES { Err(Error::TooCostly) } else { Ok(walk) }
}

struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// Whether it is `id` that `$id` is otherwise.
    is_old: bool,
    /// An `$id` of a part. References in that part, and perhaps others, are not what they look like.
    embedded: Option<&'a str>,
    /// What the targets of references come to.
    known: HashMap<&'a str, u64>,
    /// References being followed, each with whether a step into a child value was made since.
    open: Vec<(&'a str, bool)>,
    /// Which references the target of a reference applies to the same value.
    in_place: BTreeMap<&'a str, Vec<&'a str>>,
    /// Whether any reference leads back to itself.
    recurs: bool,
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
    /// Finds what references can name. `names`: the keys are names that anybody chose, and not keywords.
    fn find_anchors(&mut self, node: &'a Value, names: bool, depth: usize) -> Result<(), Error> {
        if depth > SCHEMA_DEPTH {
            return Err(Error::TooDeep);
        }
        match node {
            Value::Object(members) => {
                if !names {
                    self.anchor(node)?;
                    self.embed(node)?;
                }
                for (key, member) in members {
                    if names || !DATA.contains(&&**key) {
                        self.find_anchors(member, !names && NAMES.contains(&&**key), depth + 1)?;
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.find_anchors(item, false, depth + 1))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn anchor(&mut self, node: &'a Value) -> Result<(), Error> {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = node.get(keyword).and_then(Value::as_str)
                && self.anchors.insert(name, node).is_some_and(|other| !std::ptr::eq(other, node))
            {
                return Err(Error::DoubleAnchor { anchor: name.chars().take(200).collect() });
            }
        }
        Ok(())
    }

    /// Looks whether a part has an `$id`. That and references do not go together.
    fn embed(&mut self, node: &'a Value) -> Result<(), Error> {
        let keyword = if self.is_old { "id" } else { "$id" };
        let id = node.get(keyword).and_then(Value::as_str).filter(|id| !id.starts_with('#'));
        if let Some(id) = id.filter(|_| !std::ptr::eq(node, self.root)) {
            self.embedded = Some(id);
            if !self.open.is_empty() || !self.known.is_empty() {
                return Err(Error::EmbeddedId { id: id.chars().take(200).collect() });
            }
        }
        Ok(())
    }

    /// How many nodes there are if every reference is put in.
    fn visit(&mut self, node: &'a Value, depth: usize) -> Result<u64, Error> {
        if depth > SCHEMA_DEPTH {
            return Err(Error::TooDeep);
        }
        let mut nodes: u64 = 1;
        match node {
            Value::Object(members) => {
                // A reference may lead to what did not look like a schema.
                self.embed(node)?;
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
        if let (true, Some(reference)) = (REFERENCES.contains(&keyword), member.as_str()) {
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
        if let Some(id) = self.embedded {
            return Err(Error::EmbeddedId { id: id.chars().take(200).collect() });
        }
        if let Some((from, false)) = self.open.last() {
            self.in_place.entry(from).or_default().push(reference);
        }
        if let Some((_, moved)) = self.open.iter().find(|(open, _)| *open == reference) {
            self.recurs = true;
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
