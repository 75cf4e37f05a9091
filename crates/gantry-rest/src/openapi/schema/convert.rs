//! One schema at a time: references, types, properties, items.

use super::definitions;
use super::discriminator;
use super::fields::{self, is_hidden};
use super::keywords::{self, Choices};
use super::parts;
use super::text::{self, add_sentence};
use super::{Converter, Detail, Direction};
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use crate::openapi::spot::{Spot, reading};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Schemas inside each other, so that no document can overflow the stack.
const DEPTH: usize = 64;
/// Values of an enumeration that are listed.
const CHOICES: usize = 200;
/// The same where every place that refers to it gets a copy, or where details are left out.
pub(super) const FEW_CHOICES: usize = 20;
/// Characters of a list of values in a description.
const CHOICES_CHARS: usize = 160;
/// Characters of a description of what comes back: it helps less and costs the same.
const OUTPUT_DESCRIPTION_CHARS: usize = 120;

/// Where in a tool's schema something goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// Steps into child values.
    level: usize,
    /// Schemas around it.
    depth: usize,
    /// Whether it describes the whole of what comes back, which is never null.
    whole: bool,
    /// Whether schemas around it describe further properties of the same value, so that it cannot refuse them.
    open: bool,
    role: Role,
}

/// What a schema is to those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An argument, as far as one can tell.
    Argument,
    /// A value in an argument.
    Inner,
    /// What the schema around it inherits from, and so none of its own kinds.
    Base,
}

impl At {
    pub(super) fn top(direction: Direction) -> Self {
        Self { whole: direction == Direction::Output, ..Self::definition() }
    }

    pub(super) fn definition() -> Self {
        Self { level: 0, depth: 0, whole: false, open: false, role: Role::Argument }
    }

    fn child(self) -> Self {
        Self { level: self.level + 1, depth: self.depth + 1, role: Role::Inner, ..Self::definition() }
    }

    /// For the same value.
    pub(super) fn beside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// For the same value, but one of several: without counting these, levels would bound nothing.
    pub(super) fn one_of_many(self) -> Self {
        Self { level: self.level + 1, ..self.beside() }
    }

    pub(super) fn is_open(self) -> bool {
        self.open
    }

    pub(super) fn role(self) -> Role {
        self.role
    }

    pub(super) fn is_whole(self) -> bool {
        self.whole
    }

    pub(super) fn open_if(self, open: bool) -> Self {
        Self { open: self.open || open, ..self }
    }

    pub(super) fn base(self) -> Self {
        Self { role: Role::Base, ..self }
    }

    /// For the same value, as one of so many.
    pub(super) fn part_of(self, n: usize) -> Self {
        if n > 1 { self.one_of_many() } else { self.beside() }
    }
}

impl<'a> Converter<'a> {
    pub(super) fn convert(&mut self, spot: Spot<'a>, at: At) -> Result<Value, String> {
        self.budget.spend(1, 2);
        if at.depth > DEPTH {
            self.budget.exhaust();
        }
        if self.budget.is_spent() {
            return Ok(anything());
        }
        match spot.value {
            // What comes back is never refused.
            Value::Bool(flag) if *flag || !self.is_lax() => return Ok(Value::Bool(*flag)),
            Value::Bool(_) => return Ok(anything()),
            Value::Object(_) => {}
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return Ok(anything()),
        }
        if let Some(reference) = spot.reference() {
            return self.reference(spot, reference, at);
        }
        if self.is_too_deep(at) {
            return Ok(Value::Object(self.bare(spot, at)));
        }
        self.object(spot, at).map(Value::Object)
    }

    /// A schema of a child value: what leads there is behind us.
    pub(super) fn child(&mut self, spot: Spot<'a>, at: At) -> Result<Value, String> {
        let chain = std::mem::take(&mut self.chain);
        let known = std::mem::take(&mut self.known);
        let schema = self.convert(spot, at.child());
        self.chain = chain;
        self.known = known;
        schema
    }

    pub(super) fn is_lax(&self) -> bool {
        self.direction == Direction::Output
    }

    pub(super) fn is_too_deep(&self, at: At) -> bool {
        match self.detail {
            Detail::Full | Detail::Top | Detail::Open => false,
            Detail::Levels(levels) => at.level >= levels,
        }
    }

    pub(super) fn object(&mut self, spot: Spot<'a>, at: At) -> Result<Map<String, Value>, String> {
        if let Some(kinds) = self.told_kinds(spot, at) {
            return self.alternative_kinds(spot, &kinds, at);
        }
        let outer = self.known.len();
        // Of what comes back nothing is required.
        if parts::is_composed(spot) && !self.is_lax() {
            let names = self.visible_names(spot);
            self.known.push(names);
        }
        let mut out = self.scalars(spot, at);
        let merged = match self.detail {
            Detail::Levels(_) if spot.get("allOf").is_some() => self.merged(spot, at, &mut out)?,
            Detail::Full | Detail::Top | Detail::Open | Detail::Levels(_) => false,
        };
        if !merged {
            self.properties(spot, at, &mut out)?;
            self.items(spot, at, &mut out)?;
            out = self.composition(spot, at, out)?;
        }
        self.known.truncate(outer);
        if !self.is_lax() && keywords::is_nullable(spot) {
            out = parts::or_null(out);
        }
        Ok(out)
    }

    /// What holds for all kinds of a schema, and need not be said of each.
    pub(super) fn heading(&mut self, spot: Spot<'a>, at: At) -> Map<String, Value> {
        let mut kinds = own_kinds(spot);
        if keywords::is_nullable(spot) && !kinds.is_empty() && !kinds.contains(&"null") {
            kinds.push("null");
        }
        let mut out = self.typed(&kinds, at);
        out.extend(self.described(spot));
        if spot.flag("deprecated") {
            out.insert("deprecated".to_owned(), Value::Bool(true));
        }
        out
    }

    /// Type, description and what else is no schema itself.
    fn scalars(&mut self, spot: Spot<'a>, at: At) -> Map<String, Value> {
        let kinds = own_kinds(spot);
        let choices = self.choices(spot, &kinds, CHOICES);
        let mut out = self.typed(&kinds, at);
        let description = self.description(spot, Some(&choices));
        self.insert_text(&mut out, "description", description);
        if spot.flag("deprecated") {
            out.insert("deprecated".to_owned(), Value::Bool(true));
        }
        if self.is_lax() {
            return out;
        }
        if let Choices::Listed(values) = choices {
            self.insert_choices(&mut out, values, spot.get("const").is_some());
        }
        let told = out.len();
        if let Some(value) = keywords::default_value(spot, &kinds) {
            out.insert("default".to_owned(), value);
        }
        keywords::words(spot, &mut out);
        keywords::bounds(spot, &mut out);
        for (keyword, value) in out.iter().skip(told) {
            self.budget.spend(1, keyword.len() + value.as_str().map_or(4, str::len));
        }
        out
    }

    fn typed(&mut self, kinds: &[&'static str], at: At) -> Map<String, Value> {
        let mut kinds = kinds.to_vec();
        if self.is_lax() && !at.whole && !kinds.is_empty() && !kinds.contains(&"null") {
            kinds.push("null");
        }
        let kinds = keywords::kinds_value(&kinds);
        let nodes = kinds.as_ref().map_or(0, definitions::nodes);
        self.budget.spend(nodes, 10 * nodes);
        kinds.into_iter().map(|value| ("type".to_owned(), value)).collect()
    }

    fn insert_choices(&mut self, out: &mut Map<String, Value>, mut values: Vec<Value>, only: bool) {
        let bytes = values.iter().map(|value| value.as_str().map_or(4, str::len)).sum();
        self.budget.spend(values.len(), bytes);
        match values.pop() {
            None => {}
            Some(value) if only => drop(out.insert("const".to_owned(), value)),
            Some(value) => {
                values.push(value);
                out.insert("enum".to_owned(), Value::Array(values));
            }
        }
    }

    fn insert_text(&mut self, out: &mut Map<String, Value>, keyword: &str, text: String) {
        if !text.is_empty() {
            self.budget.spend(1, keyword.len() + text.len());
            out.insert(keyword.to_owned(), Value::String(text));
        }
    }

    fn choices(&mut self, spot: Spot<'a>, kinds: &[&'static str], most: usize) -> Choices {
        self.budget.look(keywords::choices_looks(spot, most));
        if self.budget.is_spent() {
            return Choices::Listed(Vec::new());
        }
        keywords::choices(spot, kinds, most)
    }

    fn description(&mut self, spot: Spot<'a>, choices: Option<&Choices>) -> String {
        let chars = if self.is_lax() { OUTPUT_DESCRIPTION_CHARS } else { PROPERTY_DESCRIPTION_CHARS };
        let mut text = self.folded(spot, chars);
        match choices {
            Some(Choices::TooMany(n)) => add_sentence(&mut text, &format!("One of {n} values.")),
            Some(Choices::Listed(values)) if self.is_lax() => {
                let listed = parts::listed(values, CHOICES_CHARS);
                listed.into_iter().for_each(|listed| add_sentence(&mut text, &format!("One of: {listed}.")));
            }
            Some(Choices::Listed(_)) | None => {}
        }
        if let Some(note) = discriminator::discriminator_note(spot, CHOICES_CHARS) {
            add_sentence(&mut text, &note);
        }
        text
    }

    fn folded(&mut self, spot: Spot<'a>, chars: usize) -> String {
        let text = spot.text("description").unwrap_or_default();
        self.budget.look(reading(text.len().min(chars * text::READ_PER_CHAR)));
        text::folded(text, chars)
    }

    /// Only what a reference may have beside it in every version.
    pub(super) fn described(&mut self, spot: Spot<'a>) -> Map<String, Value> {
        let mut out = Map::new();
        let description = self.description(spot, None);
        self.insert_text(&mut out, "description", description);
        out
    }

    /// What is left of a schema below the last level that is told.
    fn bare(&mut self, spot: Spot<'a>, at: At) -> Map<String, Value> {
        let mut looks = 0;
        let kinds = parts::likely_kinds(spot, &mut looks);
        self.budget.look(looks);
        let mut out = self.typed(&kinds, at);
        let description = self.folded(spot, OUTPUT_DESCRIPTION_CHARS);
        self.insert_text(&mut out, "description", description);
        if self.is_lax() {
            return out;
        }
        if let Choices::Listed(values) = self.choices(spot, &kinds, FEW_CHOICES) {
            self.insert_choices(&mut out, values, spot.get("const").is_some());
        }
        if keywords::is_nullable(spot) { parts::or_null(out) } else { out }
    }

    /// An object and its `allOf` as one object, where they are nothing but properties. Levels copy everything anyway, so
    /// nothing that is shared is lost by it, and one object is easier to read.
    fn merged(&mut self, spot: Spot<'a>, at: At, out: &mut Map<String, Value>) -> Result<bool, String> {
        let mut looks = 0;
        let found = fields::all_fields(spot, self.direction, &mut looks);
        self.budget.look(looks);
        let Ok(Some(found)) = found else { return Ok(false) };
        let mut properties = Map::new();
        for (name, property) in found.properties {
            self.budget.spend(1, name.len() + 4);
            let schema = self.child(property, at)?;
            properties.insert(name, schema);
        }
        if out.get("type").is_none() {
            *out = std::mem::take(out).into_iter().chain(self.typed(&["object"], at)).collect();
        }
        out.insert("properties".to_owned(), Value::Object(properties));
        if !self.is_lax() && !found.required.is_empty() {
            out.insert("required".to_owned(), found.required.into());
        }
        Ok(true)
    }

    fn properties(&mut self, spot: Spot<'a>, at: At, out: &mut Map<String, Value>) -> Result<(), String> {
        let mut properties = Map::new();
        for (name, property) in spot.get("properties").into_iter().flat_map(Spot::members) {
            self.budget.look(1);
            if self.budget.is_spent() {
                return Ok(());
            }
            let mut looks = 0;
            let hidden = is_hidden(property, self.direction, &mut looks);
            self.budget.look(looks);
            if !hidden {
                self.budget.spend(1, name.len() + 4);
                let schema = self.child(property, at)?;
                properties.insert(name.to_owned(), schema);
            }
        }
        let required = if self.is_lax() { Vec::new() } else { self.required(spot, &properties) };
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        if !required.is_empty() {
            out.insert("required".to_owned(), Value::Array(required));
        }
        if self.is_lax() { Ok(()) } else { self.further_properties(spot, at, out) }
    }

    /// The names that are required and known here: a demand for what the document does not describe, or what is not sent
    /// this way, could not be met.
    fn required(&mut self, spot: Spot<'a>, properties: &Map<String, Value>) -> Vec<Value> {
        let mut seen = HashSet::new();
        let mut required = Vec::new();
        for name in spot.get("required").into_iter().flat_map(Spot::elements) {
            self.budget.look(1 + self.known.len());
            if self.budget.is_spent() {
                break;
            }
            let Some(name) = name.value.as_str() else { continue };
            let known = properties.contains_key(name) || self.known.iter().any(|known| known.contains(name));
            if known && seen.insert(name) {
                self.budget.spend(1, name.len() + 3);
                required.push(Value::from(name));
            }
        }
        required
    }

    fn further_properties(
        &mut self,
        spot: Spot<'a>,
        at: At,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let patterns = spot.get("patternProperties").filter(|patterns| patterns.members().next().is_some());
        let simple = patterns.is_none_or(parts::are_simple_patterns);
        if let Some(patterns) = patterns.filter(|_| simple) {
            let mut kept = Map::new();
            for (pattern, schema) in patterns.members() {
                self.budget.spend(1, pattern.len() + 4);
                kept.insert(pattern.to_owned(), self.child(schema, at)?);
            }
            out.insert("patternProperties".to_owned(), Value::Object(kept));
        }
        // What a pattern that is left out allows must not be refused now.
        let Some(further) = spot.get("additionalProperties").filter(|_| simple) else { return Ok(()) };
        if keywords::flag_value(further.value) == Some(false) && self.has_further(spot, at) {
            return Ok(());
        }
        let schema = match (keywords::flag_value(further.value), further.value) {
            (Some(flag), _) => Value::Bool(flag),
            (None, Value::Object(members)) if members.is_empty() => Value::Bool(true),
            (None, Value::Object(_)) => self.child(further, at)?,
            (None, _) => return Ok(()),
        };
        self.budget.spend(1, 24);
        out.insert("additionalProperties".to_owned(), schema);
        Ok(())
    }

    /// Whether a value has properties that this schema itself does not list: those of schemas around it, of its parts, or
    /// of the kinds that a property tells apart. Refusing these would refuse every call.
    fn has_further(&mut self, spot: Spot<'a>, at: At) -> bool {
        if at.open || self.has_kinds(spot) {
            return true;
        }
        if !parts::is_composed(spot) {
            return false;
        }
        let mut looks = 0;
        let names = parts::visible_names(spot, self.direction, &mut looks);
        self.budget.look(looks);
        let own = spot.get("properties");
        names.iter().any(|name| own.is_none_or(|own| own.get(name).is_none()))
    }

    fn items(&mut self, spot: Spot<'a>, at: At, out: &mut Map<String, Value>) -> Result<(), String> {
        let items = spot.get("items");
        let listed = items.filter(|items| items.value.is_array());
        let first = spot.get("prefixItems").filter(|first| first.value.is_array()).or(listed);
        let mut prefix = Vec::new();
        for item in first.into_iter().flat_map(Spot::elements) {
            if self.budget.is_spent() {
                return Ok(());
            }
            prefix.push(self.child(item, at)?);
        }
        if !prefix.is_empty() {
            out.insert("prefixItems".to_owned(), Value::Array(prefix));
        }
        if let Some(items) = items.filter(|items| items.value.is_object() || items.value.is_boolean()) {
            self.budget.spend(1, 8);
            let schema = self.child(items, at)?;
            out.insert("items".to_owned(), schema);
        }
        Ok(())
    }

    /// The properties that a composition describes in any of its parts.
    fn visible_names(&mut self, spot: Spot<'a>) -> HashSet<&'a str> {
        let mut looks = 0;
        let names = parts::visible_names(spot, self.direction, &mut looks);
        self.budget.look(looks);
        names
    }
}

pub(super) fn anything() -> Value {
    Value::Object(Map::new())
}

/// The types that a schema states, or plainly means.
pub(super) fn own_kinds(spot: Spot<'_>) -> Vec<&'static str> {
    let kinds = keywords::kinds(spot);
    if !kinds.is_empty()
        || spot.get("type").is_some()
        || spot.get("enum").is_some()
        || spot.get("const").is_some()
    {
        return kinds;
    }
    let has = |keyword: &str| spot.get(keyword).is_some_and(|found| found.members().next().is_some());
    match (has("properties"), has("items")) {
        (true, _) => vec!["object"],
        (false, true) => vec!["array"],
        (false, false) => kinds,
    }
}
