//! The arguments of a tool: their names and their schemas.

use crate::Object;
use crate::openapi::document::NodeRef;
use crate::openapi::import::input::parameters::ParameterDecl;
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use crate::openapi::request::parameters::Place;
use crate::openapi::schema::{Converter, collapse};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

// Limit: characters that model interfaces accept in the name of an argument.
const CHARS: usize = 64;

#[derive(Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) name: String,
    /// Its name in the request, where that is another one.
    pub(crate) original: Option<String>,
    pub(crate) required: bool,
    pub(crate) accepts: ArgumentType<'a>,
    /// Instead of the description in the schema.
    pub(crate) description: Option<Cow<'a, str>>,
}

#[derive(Debug)]
pub(crate) enum ArgumentType<'a> {
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
        let mut schema = self
            .accepts
            .schema(converter)
            .map_err(|error| format!("the argument {:?}: {error}", self.name))?;
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

impl<'a> ArgumentType<'a> {
    fn schema(&self, converter: &mut Converter<'a>) -> Result<Object, String> {
        let schema = match self {
            Self::Schema(node) => return converter.schema(*node),
            Self::Text => json!({"type": "string"}),
            Self::Anything => json!({}),
            Self::File => file(),
            Self::Files => json!({"type": "array", "items": file()}),
            Self::Object(all, required) => {
                let mut properties = Object::new();
                for (name, accepts) in all {
                    properties.insert(name.clone(), Value::Object(accepts.schema(converter)?));
                }
                json!({"type": "object", "properties": properties, "required": required})
            }
        };
        Ok(schema.as_object().cloned().unwrap_or_default())
    }
}

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

/// Whether the name of the argument does not show what it is sent as.
fn differs(original: &str, name: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let (sent, shown) = (letters(original).to_ascii_lowercase(), letters(name).to_ascii_lowercase());
    // A place that was appended explains itself; a number does not.
    match shown.strip_prefix(&sent) {
        Some(added) => sent.is_empty() || added.contains(|c: char| c.is_ascii_digit()),
        None => true,
    }
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// A name that model interfaces accept: `filter[name]` becomes `filter_name`, `$top` becomes `top`.
pub(crate) fn legal_name(name: &str) -> String {
    if (1..=CHARS).contains(&name.len()) && name.bytes().all(is_legal_byte) {
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

/// The name of the argument of each parameter. A parameter that is not alone with its name gets the place, and a number
/// if that is taken too. The arguments of the body keep their names.
pub(crate) fn parameter_names(parameters: &[ParameterDecl<'_>], body: &[Argument<'_>]) -> Vec<String> {
    let mut taken: HashSet<String> = body.iter().map(|argument| argument.name.clone()).collect();
    let legal: Vec<String> = parameters.iter().map(|parameter| legal_name(parameter.name)).collect();
    let is_alone = |(parameter, name): &(&ParameterDecl<'_>, &String)| {
        let same = parameters.iter().zip(&legal).filter(|(_, other)| other == name);
        // A name that is legal in the document is not changed for one that was made legal.
        let same = same.filter(|(other, _)| parameter.name != **name || other.name == parameter.name);
        !taken.contains(*name) && same.count() == 1
    };
    let alone: Vec<bool> = parameters.iter().zip(&legal).map(|pair| is_alone(&pair)).collect();
    taken.extend(legal.iter().zip(&alone).filter(|(_, alone)| **alone).map(|(name, _)| name.clone()));
    let mut out = Vec::with_capacity(legal.len());
    for ((parameter, name), alone) in parameters.iter().zip(legal).zip(alone) {
        out.push(if alone { name } else { with_place(&name, parameter.place, &mut taken) });
    }
    out
}

fn with_place(name: &str, place: Place, taken: &mut HashSet<String>) -> String {
    let place = match place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
    };
    let base = format!("{}_{place}", cut(name, CHARS - 12));
    let mut name = base.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{base}_{number}");
        number += 1;
    }
    name
}
