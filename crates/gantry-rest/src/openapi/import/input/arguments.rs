//! Arguments: what they are called, and what may be in them.

use crate::openapi::document::NodeRef;
use crate::openapi::import::input::parameters::Declared;
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use crate::openapi::request::parameters::Place;
use crate::openapi::schema::{Converter, collapse};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

/// Characters that models take for the name of an argument.
const CHARS: usize = 64;

/// One argument of a tool.
#[derive(Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) name: String,
    /// What it is called in the request, where that is something else.
    pub(crate) original: Option<String>,
    pub(crate) required: bool,
    pub(crate) what: What<'a>,
    /// Instead of what the schema says.
    pub(crate) description: Option<Cow<'a, str>>,
}

/// What may be in an argument.
#[derive(Debug)]
pub(crate) enum What<'a> {
    Schema(NodeRef<'a>),
    Text,
    Anything,
    File,
    Files,
    /// An object of these properties, and which of them are required.
    Object(Vec<(String, Self)>, Vec<String>),
}

impl<'a> Argument<'a> {
    pub(crate) fn schema(&self, converter: &mut Converter<'a>) -> Result<Value, String> {
        let mut schema =
            self.what.schema(converter).map_err(|error| format!("the argument {:?}: {error}", self.name))?;
        let text = self.description.as_deref().map(|text| collapse(text, PROPERTY_DESCRIPTION_CHARS));
        let own = || schema.get("description").and_then(Value::as_str).map(str::to_owned);
        let text = text.filter(|text| !text.is_empty()).or_else(own).unwrap_or_default();
        let text = match self.original.as_deref().filter(|original| differs(original, &self.name)) {
            Some(original) if text.is_empty() => format!("Sent as {original:?}."),
            Some(original) => format!("{text} (sent as {original:?})"),
            None => text,
        };
        if !text.is_empty() {
            schema.insert("description".to_owned(), Value::String(text));
        }
        Ok(Value::Object(schema))
    }
}

impl<'a> What<'a> {
    fn schema(&self, converter: &mut Converter<'a>) -> Result<Map<String, Value>, String> {
        let schema = match self {
            Self::Schema(node) => return converter.schema(*node),
            Self::Text => json!({"type": "string"}),
            Self::Anything => json!({}),
            Self::File => file(),
            Self::Files => json!({"type": "array", "items": file()}),
            Self::Object(all, required) => {
                let mut properties = Map::new();
                for (name, what) in all {
                    properties.insert(name.clone(), Value::Object(what.schema(converter)?));
                }
                json!({"type": "object", "properties": properties, "required": required})
            }
        };
        Ok(schema.as_object().cloned().unwrap_or_default())
    }
}

/// The schema of a file.
fn file() -> Value {
    json!({
        "type": "object",
        "properties": {
            "content": { "type": "string", "description": "What is in the file." },
            "encoding": {
                "type": "string",
                "enum": ["utf-8", "base64"],
                "default": "utf-8",
                "description": "How content is written."
            },
            "filename": { "type": "string" },
            "contentType": { "type": "string", "description": "The media type of the file." },
        },
        "required": ["content"],
        "additionalProperties": false,
    })
}

/// Whether a name says something else than the name that the argument has.
fn differs(original: &str, name: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let (said, shown) = (letters(original).to_ascii_lowercase(), letters(name).to_ascii_lowercase());
    // What was added to tell two names apart follows the name itself. The place explains itself; a number does not.
    match shown.strip_prefix(&said) {
        Some(added) => said.is_empty() || added.contains(|c: char| c.is_ascii_digit()),
        None => true,
    }
}

/// Whether models take it for the name of an argument.
fn is_legal(name: &str) -> bool {
    (1..=CHARS).contains(&name.len()) && name.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The name that an argument may have: `filter[name]` is `filter_name`, `$top` is `top`.
pub(crate) fn cleaned(name: &str) -> String {
    if is_legal(name) {
        return name.to_owned();
    }
    let mut out = String::new();
    for c in name.chars() {
        let legal = u8::try_from(c).is_ok_and(is_legal_byte);
        if legal {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let out = cut(out.trim_matches('_'), CHARS);
    if out.is_empty() { "value".to_owned() } else { out.to_owned() }
}

/// The beginning of a name; names are ASCII here.
fn cut(name: &str, chars: usize) -> &str {
    name.get(..chars).map_or(name, |start| start.trim_end_matches(['_', '-', '.']))
}

/// The names that are given out.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Keeps these for the body, whose properties have the names that they have.
    pub(crate) fn reserve<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.taken.extend(names.map(str::to_owned));
    }

    /// The name of each parameter. One that is not alone with its name gets the place.
    pub(crate) fn of_parameters(&mut self, declared: &[Declared<'_>]) -> Vec<String> {
        let wishes: Vec<String> = declared.iter().map(|parameter| cleaned(parameter.name)).collect();
        let alone = |wish: &String, name: &str| {
            let same = declared.iter().zip(&wishes).filter(|(_, other)| *other == wish);
            // A name that is legal as it stands is not renamed for one that had to be cleaned.
            same.filter(|(other, _)| name != wish || other.name == name).count() == 1
        };
        let alone: Vec<bool> = declared
            .iter()
            .zip(&wishes)
            .map(|(parameter, wish)| !self.taken.contains(wish) && alone(wish, parameter.name))
            .collect();
        self.taken
            .extend(wishes.iter().zip(&alone).filter(|(_, alone)| **alone).map(|(wish, _)| wish.clone()));
        let each = declared.iter().zip(wishes).zip(alone);
        each.map(|((parameter, wish), alone)| if alone { wish } else { self.placed(&wish, parameter.place) })
            .collect()
    }

    /// The name with its place, and with a number if that is taken too.
    fn placed(&mut self, wish: &str, place: Place) -> String {
        let place = match place {
            Place::Path => "_path",
            Place::Query => "_query",
            Place::Header => "_header",
            Place::Cookie => "_cookie",
        };
        let base = cut(wish, CHARS - 12);
        let mut name = format!("{base}{place}");
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}{place}_{number}");
            number += 1;
        }
        name
    }
}
