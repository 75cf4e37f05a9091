//! Discriminators: the property that tells alternatives apart, and the values that it has for each.

use super::parts::listed;
use super::{Converter, kinds, text};
use crate::openapi::spot::Spot;
use serde_json::{Map, Value};

/// Values of a discriminator that are looked at.
const MAPPINGS: usize = 200;
/// Bytes of the name of a property, or of a value.
const WORD_BYTES: usize = 200;

impl<'a> Converter<'a> {
    /// Writes the value that stands for an alternative into it, where the document maps one to it.
    pub(super) fn mark(&mut self, schema: &mut Value, whole: Spot<'a>, part: Spot<'a>) {
        let Some(name) = discriminator(whole) else { return };
        let Some(mapping) = whole.get("discriminator").and_then(|found| found.get("mapping")) else { return };
        let Some(target) = part.reference() else { return };
        let mut mapped = Vec::new();
        for (n, (value, named)) in mapping.members().enumerate() {
            self.budget.look(1);
            if n == MAPPINGS {
                // Those that are not looked at may be for this one too.
                return;
            }
            if value.len() <= WORD_BYTES && named.value.as_str().is_some_and(|named| leads_to(named, target))
            {
                mapped.push(value);
            }
        }
        // A property that lists its values itself, here or where the reference leads, knows better.
        let mut looks = 0;
        let part = part.followed(&mut looks).ok();
        let can = part.is_none_or(|part| kinds::can_have(part, name, &mapped, &mut looks));
        self.budget.look(looks);
        if can {
            self.budget.spend(mapped.len(), mapped.iter().map(|value| value.len()).sum());
            state_values(schema, name, mapped.into_iter().map(Value::from).collect());
        }
    }
}

/// The property that tells alternatives apart.
pub(super) fn discriminator(spot: Spot<'_>) -> Option<&str> {
    let found = spot.get("discriminator")?;
    let name = found.value.as_str().or_else(|| found.text("propertyName"))?;
    (name.len() <= WORD_BYTES).then_some(name)
}

/// As much of a key as tells that it is too long to be listed.
fn shortened(key: &str) -> &str {
    key.get(..key.floor_char_boundary(4 * WORD_BYTES)).unwrap_or_default()
}

/// Says which property tells alternatives apart, and by which values.
pub(super) fn discriminator_note(spot: Spot<'_>, chars: usize) -> Option<String> {
    let name = text::folded(discriminator(spot)?, 80);
    let mapping = spot.get("discriminator").and_then(|found| found.get("mapping"));
    let keys: Vec<Value> = mapping
        .into_iter()
        .flat_map(Spot::members)
        .take(50)
        .map(|(key, _)| Value::from(shortened(key)))
        .collect();
    Some(match listed(&keys, chars) {
        Some(values) => format!("`{name}` tells the kind: {values}."),
        None => format!("`{name}` tells the kind."),
    })
}

/// Whether a mapping names what a reference leads to: by the reference, or by the last part of it.
fn leads_to(mapped: &str, reference: &str) -> bool {
    if mapped.len() > reference.len() {
        return false;
    }
    mapped == reference || (!mapped.contains(['/', '#']) && reference.rsplit('/').next() == Some(mapped))
}

/// Says of a schema that is made that a property has one of these values.
pub(super) fn state_values(schema: &mut Value, name: &str, mut values: Vec<Value>) {
    let Value::Object(schema) = schema else { return };
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else { return };
    let Value::Object(property) = properties.entry(name).or_insert_with(|| Value::Object(Map::new())) else {
        return;
    };
    match values.pop() {
        None => {}
        Some(value) if values.is_empty() => drop(property.insert("const".to_owned(), value)),
        Some(value) => {
            values.push(value);
            property.insert("enum".to_owned(), Value::Array(values));
        }
    }
}
