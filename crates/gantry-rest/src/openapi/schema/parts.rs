//! `allOf`, `anyOf`, `oneOf`, `not` and null: schemas that are put together from others.

use super::convert::At;
use super::fields::is_hidden;
use super::{Converter, Direction, keywords, text};
use crate::openapi::spot::{Spot, reading};
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};

/// Keywords that apply further schemas to the same value.
const IN_PLACE: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];
/// Keywords that only tell something; the outer one holds.
const NOTES: [&str; 3] = ["description", "deprecated", "default"];
/// Schemas that are looked at for the names of properties.
const LOOKS: usize = 2000;
/// Compositions inside each other that are looked at.
const LOOK_DEPTH: usize = 8;
/// Schemas that are looked at for the type of something.
const KIND_LOOKS: usize = 100;
/// Schemas that are looked at to tell whether further properties are refused.
const CLOSED_LOOKS: usize = 8;
/// Patterns for names of properties.
const PATTERNS: usize = 20;
const PATTERN_BYTES: usize = 200;

impl<'a> Converter<'a> {
    /// Adds what a schema is put together from.
    pub(super) fn composition(
        &mut self,
        spot: Spot<'a>,
        at: At,
        mut out: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        if let Some(not) = spot.get("not").filter(|_| !self.is_lax()).and_then(simple_not) {
            self.budget.spend(2, not.to_string().len());
            out.insert("not".to_owned(), not);
        }
        for keyword in ["oneOf", "anyOf"] {
            let alternatives = self.alternatives(spot, keyword, at.open_if(shares(spot, keyword)))?;
            out = with_alternatives(out, alternatives);
        }
        let parts = self.list(spot, "allOf");
        let several = parts.len() > 1 || shares(spot, "allOf");
        let open = several || !parts.is_empty() && !self.is_lax() && self.has_kinds(spot);
        let mut at_part = at.part_of(parts.len()).open_if(open);
        // What a schema inherits from is not any of its kinds here, but this one.
        if several || spot.bundle.is_heir(spot) {
            at_part = at_part.base();
        }
        let mut distinct = Distinct::default();
        for part in &parts {
            if self.budget.is_spent() {
                break;
            }
            let schema = self.convert(*part, at_part)?;
            if parts.len() == 1 {
                out = with_part(out, schema);
            } else if !says_nothing(&schema) {
                self.budget.look(distinct.add(schema));
            }
        }
        distinct.found.into_iter().for_each(|part| push_all_of(&mut out, part));
        if at.is_whole() {
            state_object(&mut out);
        }
        Ok(out)
    }

    fn alternatives(&mut self, spot: Spot<'a>, keyword: &str, at: At) -> Result<Vec<Value>, String> {
        let mut distinct = Distinct::default();
        let parts = self.list(spot, keyword);
        for part in &parts {
            if self.budget.is_spent() {
                break;
            }
            let mut schema = self.convert(*part, at.part_of(parts.len()))?;
            if !self.is_lax() {
                self.mark(&mut schema, spot, *part);
            }
            self.budget.look(distinct.add(schema));
        }
        Ok(distinct.found)
    }

    fn list(&mut self, spot: Spot<'a>, keyword: &str) -> Vec<Spot<'a>> {
        self.budget.look(spot.get(keyword).into_iter().flat_map(Spot::elements).count());
        list(spot, keyword).collect()
    }
}

fn list<'a>(spot: Spot<'a>, keyword: &str) -> impl Iterator<Item = Spot<'a>> {
    let parts = spot.get(keyword).into_iter().flat_map(Spot::elements);
    parts.filter(|part| part.value.is_object() || part.value.is_boolean())
}

/// Whether properties may come from elsewhere in a schema than from the parts under this keyword.
fn shares(spot: Spot<'_>, keyword: &str) -> bool {
    let others = ["properties", "allOf", "anyOf", "oneOf"].into_iter().filter(|other| *other != keyword);
    others.into_iter().any(|other| spot.get(other).is_some())
}

/// Whether a schema, or one that it is put together from, refuses further properties. Counts what is looked at for it.
pub(super) fn is_closed(spot: Spot<'_>, looks: &mut usize) -> bool {
    let mut waiting = vec![spot];
    let mut seen = HashSet::new();
    while let Some(spot) = waiting.pop() {
        *looks += 2;
        let Ok(spot) = spot.followed(looks) else { continue };
        if seen.len() == CLOSED_LOOKS || !seen.insert(spot.identity()) {
            continue;
        }
        let further = spot.get("additionalProperties");
        if further.and_then(|further| keywords::flag_value(further.value)) == Some(false) {
            return true;
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| list(spot, keyword));
        waiting.extend(parts.take(CLOSED_LOOKS));
    }
    false
}

/// Whether a schema is put together from others.
pub(super) fn is_composed(spot: Spot<'_>) -> bool {
    ["allOf", "anyOf", "oneOf"].iter().any(|keyword| spot.get(keyword).is_some())
}

/// Two schemas for one value, as one. What is said outside holds where both only tell something.
pub(super) fn join(inner: Value, outer: Map<String, Value>) -> Value {
    if outer.is_empty() {
        return inner;
    }
    let inner = match inner {
        Value::Object(inner) => inner,
        // True demands nothing.
        Value::Bool(true) | Value::Null => return Value::Object(outer),
        inner @ (Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_)) => return inner,
    };
    if agree(&inner, &outer) {
        let mut both = inner;
        merge(&mut both, outer);
        return Value::Object(both);
    }
    let mut outer = outer;
    push_all_of(&mut outer, Value::Object(inner));
    Value::Object(outer)
}

/// Whether two schemas can be one with the keywords of both.
fn agree(inner: &Map<String, Value>, outer: &Map<String, Value>) -> bool {
    outer.iter().all(|(keyword, said)| match (keyword.as_str(), inner.get(keyword), said) {
        (_, None, _) | ("required", Some(Value::Array(_)), Value::Array(_)) => true,
        ("properties", Some(Value::Object(before)), Value::Object(said)) => {
            said.iter().all(|(name, said)| match (before.get(name), said) {
                (None, _) => true,
                (Some(Value::Object(before)), Value::Object(said)) => agree(before, said),
                (Some(before), said) => before == said,
            })
        }
        (keyword, Some(before), said) => NOTES.contains(&keyword) || before == said,
    })
}

/// Adds the keywords of a schema to those of another that agrees with it.
fn merge(both: &mut Map<String, Value>, outer: Map<String, Value>) {
    for (keyword, said) in outer {
        match (keyword.as_str(), both.get_mut(&keyword), said) {
            ("properties", Some(Value::Object(before)), Value::Object(said)) => {
                for (name, said) in said {
                    match (before.get_mut(&name), said) {
                        (Some(Value::Object(before)), Value::Object(said)) => merge(before, said),
                        (_, said) => drop(before.insert(name, said)),
                    }
                }
            }
            ("required", Some(Value::Array(before)), Value::Array(said)) => {
                let known: HashSet<Value> = before.iter().cloned().collect();
                before.extend(said.into_iter().filter(|name| !known.contains(name)));
            }
            (_, _, said) => drop(both.insert(keyword, said)),
        }
    }
}

/// Schemas, each of them once. Told apart by their text: comparing each with all others costs too much.
#[derive(Default)]
pub(super) struct Distinct {
    texts: HashSet<String>,
    pub(super) found: Vec<Value>,
}

impl Distinct {
    /// Adds a schema; says how much was looked at.
    pub(super) fn add(&mut self, schema: Value) -> usize {
        let text = schema.to_string();
        let looks = reading(text.len());
        if self.texts.insert(text) {
            self.found.push(schema);
        }
        looks
    }
}

pub(super) fn push_all_of(schema: &mut Map<String, Value>, part: Value) {
    match schema.get_mut("allOf") {
        Some(Value::Array(parts)) if !parts.contains(&part) => parts.push(part),
        Some(_) => {}
        None => drop(schema.insert("allOf".to_owned(), Value::Array(vec![part]))),
    }
}

fn says_nothing(part: &Value) -> bool {
    *part == Value::Bool(true) || matches!(part, Value::Object(members) if members.is_empty())
}

/// One part alone is what the schema is, with words of its own.
fn with_part(out: Map<String, Value>, part: Value) -> Map<String, Value> {
    if says_nothing(&part) {
        return out;
    }
    let mut out = out;
    if part.is_object() {
        return match join(part, out) {
            Value::Object(joined) => joined,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
    }
    push_all_of(&mut out, part);
    out
}

pub(super) fn with_alternatives(
    mut out: Map<String, Value>,
    mut alternatives: Vec<Value>,
) -> Map<String, Value> {
    if alternatives.len() <= 1 {
        return match alternatives.pop() {
            None => out,
            Some(only) => with_part(out, only),
        };
    }
    let alternatives = Value::Array(alternatives);
    if out.contains_key("anyOf") {
        push_all_of(&mut out, Value::Object(Map::from_iter([("anyOf".to_owned(), alternatives)])));
    } else {
        out.insert("anyOf".to_owned(), alternatives);
    }
    out
}

/// States that what comes back is an object where all its parts say so: clients ask for that at the root.
fn state_object(out: &mut Map<String, Value>) {
    let is_object = |part: &Value| part.get("type").is_some_and(|kind| kind == "object");
    let parts = |keyword: &str| out.get(keyword).and_then(Value::as_array);
    let all = parts("allOf").is_some_and(|parts| parts.iter().any(is_object));
    let any = parts("anyOf").is_some_and(|parts| parts.iter().all(is_object));
    if !out.contains_key("type") && (all || any) {
        out.insert("type".to_owned(), Value::from("object"));
    }
}

/// The schema, or null.
pub(super) fn or_null(mut out: Map<String, Value>) -> Map<String, Value> {
    let null = || Value::Object(Map::from_iter([("type".to_owned(), Value::from("null"))]));
    if !IN_PLACE.iter().any(|keyword| out.contains_key(*keyword)) {
        null_in_type(&mut out);
        return out;
    }
    let words: Map<String, Value> = NOTES
        .iter()
        .filter_map(|word| out.shift_remove(*word).map(|value| ((*word).to_owned(), value)))
        .collect();
    let alone = out.len() == 1;
    let alternatives = match out.shift_remove("anyOf") {
        Some(Value::Array(mut alternatives)) if alone => {
            alternatives.push(null());
            alternatives
        }
        found => {
            out.extend(found.map(|alternatives| ("anyOf".to_owned(), alternatives)));
            vec![Value::Object(out), null()]
        }
    };
    let mut either = words;
    either.insert("anyOf".to_owned(), Value::Array(alternatives));
    either
}

fn null_in_type(out: &mut Map<String, Value>) {
    match out.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => {
            kinds.push(Value::from("null"))
        }
        Some(kind @ Value::String(_)) if *kind != "null" => {
            *kind = Value::Array(vec![kind.clone(), Value::from("null")]);
        }
        Some(_) | None => {}
    }
    if let Some(only) = out.shift_remove("const") {
        out.insert("enum".to_owned(), Value::Array(vec![only]));
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// What must not be, if it is said so simply that nothing of it gets lost: a laxer schema inside `not` refuses more.
fn simple_not(not: Spot<'_>) -> Option<Value> {
    let mut out = Map::new();
    for (keyword, found) in not.members() {
        let value = match keyword {
            "type" => keywords::kinds_value(&keywords::kinds(not))?,
            "enum" | "const" => {
                let listed = || found.elements().take(PATTERNS + 1).collect();
                let values = if keyword == "const" { vec![found] } else { listed() };
                let plain = |value: &Spot<'_>| !value.value.is_array() && !value.value.is_object();
                if values.is_empty() || values.len() > PATTERNS || !values.iter().all(plain) {
                    return None;
                }
                let mut distinct: Vec<Value> = Vec::new();
                for value in values {
                    if !distinct.contains(value.value) {
                        distinct.push(value.value.clone());
                    }
                }
                if keyword == "const" { distinct.pop()? } else { Value::Array(distinct) }
            }
            "required" => {
                let names = found.elements().take(PATTERNS + 1);
                let names: Option<Vec<&str>> = names.map(|name| name.value.as_str()).collect();
                let mut names = names.filter(|names| !names.is_empty() && names.len() <= PATTERNS)?;
                names.sort_unstable();
                names.dedup();
                Value::from(names)
            }
            "description" | "title" => continue,
            _ => return None,
        };
        out.insert(keyword.to_owned(), value);
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// Whether all patterns for names run on every engine.
pub(super) fn are_simple_patterns(patterns: Spot<'_>) -> bool {
    let simple = |pattern: &str| {
        pattern.len() <= PATTERN_BYTES && !pattern.contains(['\\', '{']) && !pattern.contains("(?")
    };
    patterns.members().take(PATTERNS + 1).count() <= PATTERNS
        && patterns.members().all(|(pattern, _)| simple(pattern))
}

/// Values in a row, if that is short.
pub(super) fn listed(values: &[Value], chars: usize) -> Option<String> {
    if values.iter().map(|value| value.as_str().map_or(1, str::len)).sum::<usize>() > chars * 4 {
        return None;
    }
    let words: Vec<String> =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    let row = text::folded(&words.join(", "), chars);
    (!row.is_empty() && !row.ends_with('…')).then_some(row)
}

/// The type of something of which nothing else is told. Counts what is looked at for it.
pub(super) fn likely_kinds(spot: Spot<'_>, looks: &mut usize) -> Vec<&'static str> {
    let mut waiting = vec![(spot, 0)];
    let mut seen = HashSet::new();
    while let Some((spot, depth)) = waiting.pop() {
        *looks += 1;
        let Ok(spot) = spot.followed(looks) else { continue };
        if seen.len() == KIND_LOOKS || !seen.insert(spot.identity()) {
            continue;
        }
        let kinds = keywords::kinds(spot);
        if !kinds.is_empty() {
            return kinds;
        }
        if spot.get("properties").is_some() {
            return vec!["object"];
        }
        if spot.get("items").is_some() {
            return vec!["array"];
        }
        if depth <= LOOK_DEPTH {
            let parts: Vec<Spot<'_>> = list(spot, "allOf").take(KIND_LOOKS - seen.len()).collect();
            // The first one is to be looked at first.
            waiting.extend(parts.into_iter().rev().map(|part| (part, depth + 1)));
        }
    }
    Vec::new()
}

/// The names of the properties that a schema and its parts describe for this direction. Counts what is looked
/// at for it.
pub(super) fn visible_names<'a>(spot: Spot<'a>, direction: Direction, looks: &mut usize) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    let most = *looks + LOOKS;
    let mut waiting = VecDeque::from([(spot, 0)]);
    let mut seen = HashSet::new();
    while let Some((spot, depth)) = waiting.pop_front() {
        *looks += 1;
        let Ok(spot) = spot.followed(looks) else { continue };
        if !seen.insert(spot.identity()) {
            continue;
        }
        for (name, property) in spot.get("properties").into_iter().flat_map(Spot::members) {
            *looks += 1;
            if *looks > most {
                return names;
            }
            if !is_hidden(property, direction, looks) {
                names.insert(name);
            }
        }
        if *looks > most {
            return names;
        }
        if depth < LOOK_DEPTH {
            let parts = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| list(spot, keyword));
            let before = waiting.len();
            waiting.extend(parts.take(LOOKS.saturating_sub(before)).map(|part| (part, depth + 1)));
        }
    }
    names
}
