//! YAML documents as plain values.

use crate::Object;
use crate::openapi::limits::{COPIED_MIB, DEPTH};
use gantry_core::yaml::{self, Dialect, Error, Node, Options, Place};
use serde_json::Value;

/// How many duplicate keys one document is warned about.
const DUPLICATE_KEYS: usize = 10;
/// Characters of such a key that a warning shows.
const KEY_CHARS: usize = 60;

#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) nodes: usize,
    /// Shown to the user with the imported operations.
    pub(crate) warnings: Vec<String>,
}

/// Reads a document of at most `room` values.
///
/// # Errors
/// The text is not YAML or exceeds a limit; the message has the position.
pub(crate) fn parse(text: &str, room: usize) -> Result<Read, String> {
    let options = Options { dialect: Dialect::Extended, depth: DEPTH, values: room, copied_mib: COPIED_MIB };
    let (root, nodes) = yaml::parse(text, options).map_err(|error| error.to_string())?;
    let mut warnings = Vec::new();
    let value = value(root, &mut warnings).map_err(|error| error.to_string())?;
    Ok(Read { value, nodes, warnings })
}

fn value(node: Node, warnings: &mut Vec<String>) -> Result<Value, Error> {
    Ok(match node.value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Bool(flag) => Value::Bool(flag),
        yaml::Value::Number(number) => Value::Number(number),
        yaml::Value::Text(text) => Value::String(text),
        yaml::Value::List(items) => {
            Value::Array(items.into_iter().map(|item| value(item, warnings)).collect::<Result<_, _>>()?)
        }
        yaml::Value::Map(entries) => object(entries, warnings)?,
    })
}

fn object(entries: Vec<yaml::Entry>, warnings: &mut Vec<String>) -> Result<Value, Error> {
    let mut members = Object::new();
    let mut merged = Vec::new();
    for entry in entries {
        let place = entry.node.place;
        if entry.is_merge {
            merged.extend(mappings(value(entry.node, warnings)?, place)?);
            continue;
        }
        if warnings.len() < DUPLICATE_KEYS && members.contains_key(&entry.key) {
            let key: String = entry.key.chars().take(KEY_CHARS).collect();
            let Place { line, column } = entry.place;
            warnings.push(format!(
                "the last {key:?} counts, as there is another before it, at line {line} column {column}"
            ));
        }
        members.insert(entry.key, value(entry.node, warnings)?);
    }
    // Written keys win over merged ones, and the first merged mapping over later ones.
    for (key, value) in merged.into_iter().flatten() {
        members.entry(key).or_insert(value);
    }
    Ok(Value::Object(members))
}

/// The value of a merge key: a mapping, or several of them.
fn mappings(value: Value, place: Place) -> Result<Vec<Object>, Error> {
    let items = if let Value::Array(items) = value { items } else { vec![value] };
    let mapping = |item| if let Value::Object(map) = item { Some(map) } else { None };
    let message = "under a merge key (<<) there must be a mapping or a list of mappings".to_owned();
    items.into_iter().map(mapping).collect::<Option<_>>().ok_or(Error { place, message })
}

#[cfg(test)]
mod tests;
