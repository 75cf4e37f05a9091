//! Converts one schema: type, description, properties, items.

use super::keywords::{self, MAX_CHOICES};
use super::text::{self, add_sentence};
use super::{Converter, DetailLevel, Direction, composition, flatten};
use crate::Object;
use crate::openapi::document::NodeRef;
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

// Limit: schemas inside each other, so that no document can overflow the stack.
const DEPTH: usize = 64;
// Limit: values of an enumeration that are listed where details are left out, or at each place that refers to it.
pub(super) const FEW_CHOICES: usize = 20;
// Limit: characters of a list of values in a description.
const CHOICES_CHARS: usize = 160;
// Limit: characters of the description of a returned value, which helps a model less than that of an argument.
const OUTPUT_DESCRIPTION_CHARS: usize = 120;

/// Where in a tool's schema a schema goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaContext {
    /// Steps into child values.
    level: usize,
    /// Schemas around it.
    depth: usize,
    /// Whether it describes the whole returned value, which is never null.
    pub(super) whole: bool,
    /// Whether it applies to the same value as a definition that it is in.
    pub(super) in_definition: bool,
}

impl SchemaContext {
    pub(super) fn root(direction: Direction) -> Self {
        Self { level: 0, depth: 0, whole: direction == Direction::Output, in_definition: false }
    }

    pub(super) fn definition() -> Self {
        Self { level: 0, depth: 0, whole: false, in_definition: true }
    }

    fn child(self) -> Self {
        Self { level: self.level + 1, depth: self.depth + 1, whole: false, in_definition: false }
    }

    /// For the same value, as one of `n` schemas. Several count as a level; otherwise levels would bound nothing.
    pub(super) fn in_place(self, n: usize) -> Self {
        Self { level: self.level + usize::from(n > 1), depth: self.depth + 1, ..self }
    }
}

impl<'a> Converter<'a> {
    pub(super) fn convert(&mut self, node: NodeRef<'a>, at: SchemaContext) -> Result<Object, String> {
        self.spend(2);
        if at.depth > DEPTH {
            self.room = 0;
        }
        // `true` and `false` are laxer as `{}`.
        if self.room == 0 || !node.value.is_object() {
            return Ok(Object::new());
        }
        match node.reference() {
            Some(reference) => self.reference(node, reference, at),
            None if self.is_too_deep(at) => Ok(self.outline(node, at)),
            None => self.object(node, at),
        }
    }

    fn child(&mut self, node: NodeRef<'a>, at: SchemaContext) -> Result<Value, String> {
        let chain = std::mem::take(&mut self.chain);
        let schema = self.convert(node, at.child());
        self.chain = chain;
        schema.map(Value::Object)
    }

    pub(super) fn is_lax(&self) -> bool {
        self.direction == Direction::Output
    }

    pub(super) fn is_too_deep(&self, at: SchemaContext) -> bool {
        self.detail == DetailLevel::TwoLevels && at.level >= 2
    }

    /// Everything that a schema says beside a reference.
    pub(super) fn object(&mut self, node: NodeRef<'a>, at: SchemaContext) -> Result<Object, String> {
        let mut out = self.scalars(node, at);
        self.properties(node, at, &mut out)?;
        if let Some(items) = node.get("items").filter(|items| items.value.is_object()) {
            let schema = self.child(items, at)?;
            out.insert("items".to_owned(), schema);
        }
        let out = self.composition(node, at, out)?;
        let nullable = !self.is_lax() && keywords::is_nullable(node);
        Ok(if nullable { composition::or_null(out) } else { out })
    }

    /// Type, description and the other keywords that hold no schema.
    fn scalars(&mut self, node: NodeRef<'a>, at: SchemaContext) -> Object {
        let mut types = keywords::declared_types(node);
        if types.is_empty() && node.get("type").is_none() && keywords::choices(node).is_empty() {
            types = keywords::inferred_types(node);
        }
        let mut out = self.typed(&types, at);
        let description = self.description(node);
        insert_text(&mut out, description);
        if node.flag("deprecated") {
            out.insert("deprecated".to_owned(), Value::Bool(true));
        }
        if !self.is_lax() {
            self.insert_choices(node, &types, MAX_CHOICES, &mut out);
            keywords::insert_default(node, &types, &mut out);
            keywords::insert_formats(node, &mut out);
            keywords::insert_bounds(node, &mut out);
        }
        self.spend_all(&out);
        out
    }

    fn typed(&self, types: &[&'static str], at: SchemaContext) -> Object {
        let null = self.is_lax() && !at.whole && !types.is_empty() && !types.contains(&"null");
        let types: Vec<&str> = types.iter().copied().chain(null.then_some("null")).collect();
        let value = match types.as_slice() {
            [] => return Object::new(),
            [one] => Value::from(*one),
            many => Value::from(many),
        };
        Object::from_iter([("type".to_owned(), value)])
    }

    fn spend_all(&mut self, out: &Object) {
        for (keyword, value) in out {
            let bytes = match value {
                Value::String(text) => text.len(),
                Value::Array(values) => values.iter().map(|value| value.as_str().map_or(4, str::len)).sum(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => 4,
            };
            self.spend(keyword.len() + bytes);
        }
    }

    fn description(&self, node: NodeRef<'a>) -> String {
        let mut text = self.own_description(node);
        let choices = keywords::choices(node);
        if choices.len() > MAX_CHOICES {
            add_sentence(&mut text, &format!("One of {} values.", choices.len()));
        } else if self.is_lax()
            && let Some(listed) = text::listed(choices.iter().filter_map(keywords::as_text), CHOICES_CHARS)
        {
            add_sentence(&mut text, &format!("One of: {listed}."));
        }
        if let Some(note) = discriminator_note(node) {
            add_sentence(&mut text, &note);
        }
        text
    }

    fn own_description(&self, node: NodeRef<'a>) -> String {
        let chars = if self.is_lax() { OUTPUT_DESCRIPTION_CHARS } else { PROPERTY_DESCRIPTION_CHARS };
        text::collapse(node.text("description").unwrap_or_default(), chars)
    }

    /// Only the description, which every version allows beside a reference.
    pub(super) fn described(&mut self, node: NodeRef<'a>) -> Object {
        let mut out = Object::new();
        insert_text(&mut out, self.own_description(node));
        self.spend_all(&out);
        out
    }

    /// What is left of a schema below the last level that is shown.
    fn outline(&mut self, node: NodeRef<'a>, at: SchemaContext) -> Object {
        let mut types = keywords::inferred_types(node);
        if types.is_empty() {
            let parts = node.get("allOf").into_iter().flat_map(NodeRef::elements);
            let mut of_parts = parts.filter_map(|part| part.resolved().ok()).map(keywords::inferred_types);
            types = of_parts.find(|types| !types.is_empty()).unwrap_or_default();
        }
        let mut out = self.typed(&types, at);
        let description = node.text("description").unwrap_or_default();
        insert_text(&mut out, text::collapse(description, OUTPUT_DESCRIPTION_CHARS));
        if !self.is_lax() {
            self.insert_choices(node, &types, FEW_CHOICES, &mut out);
        }
        self.spend_all(&out);
        if !self.is_lax() && keywords::is_nullable(node) { composition::or_null(out) } else { out }
    }

    fn properties(&mut self, node: NodeRef<'a>, at: SchemaContext, out: &mut Object) -> Result<(), String> {
        let mut properties = Object::new();
        for (name, property) in node.get("properties").into_iter().flat_map(NodeRef::members) {
            if self.room == 0 {
                return Ok(());
            }
            if !flatten::is_hidden(property, self.direction) {
                self.spend(name.len() + 4);
                let schema = self.child(property, at)?;
                properties.insert(name.to_owned(), schema);
            }
        }
        if !self.is_lax() {
            self.required(node, &properties, out);
        }
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        // A nested object accepts further properties, even if the document closes it: other parts of a composition may
        // describe them.
        let further = node.get("additionalProperties").filter(|further| further.value.is_object());
        if let Some(further) = further.filter(|_| !self.is_lax()) {
            let schema = self.child(further, at)?;
            self.spend(24);
            out.insert("additionalProperties".to_owned(), schema);
        }
        Ok(())
    }

    /// Requires the properties that this schema describes itself. A caller could not know of others, and those that are
    /// not sent in this direction are not among them.
    fn required(&mut self, node: NodeRef<'a>, properties: &Object, out: &mut Object) {
        let names = node.get("required").into_iter().flat_map(NodeRef::elements);
        let names =
            names.filter_map(|name| name.value.as_str()).filter(|name| properties.contains_key(*name));
        let mut seen = HashSet::new();
        let required: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
        self.spend(required.iter().map(|name| name.len() + 3).sum());
        if !required.is_empty() {
            out.insert("required".to_owned(), required.into());
        }
    }
}

fn insert_text(out: &mut Object, description: String) {
    if !description.is_empty() {
        out.insert("description".to_owned(), Value::String(description));
    }
}

/// Names the property that tells alternatives apart, and its values if the document lists them.
fn discriminator_note(node: NodeRef<'_>) -> Option<String> {
    let found = node.get("discriminator")?;
    // Swagger 2.0 has the name itself here.
    let name = text::collapse(found.value.as_str().or_else(|| found.text("propertyName"))?, 80);
    let mapping = found.get("mapping").and_then(|mapping| mapping.value.as_object());
    let keys = mapping.into_iter().flatten().take(50).map(|(key, _)| Cow::Borrowed(key.as_str()));
    Some(match text::listed(keys, CHOICES_CHARS) {
        Some(values) => format!("`{name}` tells the kind: {values}."),
        None => format!("`{name}` tells the kind."),
    })
}
