//! The callable tools of a toolset in the formats of MCP, OpenAI and Anthropic.
//!
//! Model interfaces refuse a whole request for one definition that they do not take. So the parts that they are known to
//! refuse are expressed differently here, without losing information. Calls are checked against the tool's own schema.

use crate::limits::FUNCTION_DESCRIPTION_BYTES;
use crate::names::is_legal;
use crate::raw;
use crate::tool::ToolSpec;
use crate::toolset::{Entry, array};
use crate::truncate::truncate;
use std::borrow::Cow;

words! {
    pub enum Format {
        /// MCP's `tools/list`.
        Mcp = "mcp",
        /// Functions of OpenAI's chat completions.
        OpenAi = "openai",
        /// Tools of Anthropic's messages.
        Anthropic = "anthropic",
    }
}

impl Format {
    /// One entry as JSON text. `None` if it cannot be called, or is an alias that models would not take: its tool has an
    /// entry of its own.
    pub fn definition<'a>(self, entry: &Entry<'a>) -> Option<Cow<'a, str>> {
        if !entry.is_ready() {
            return None;
        }
        match self {
            Self::Mcp => Some(entry.definition()),
            Self::OpenAi => {
                let name = raw::quoted(legal(entry)?);
                let (description, rest) = split(entry.description());
                let mut parameters = parameters(&entry.tool.spec);
                if !rest.is_empty() {
                    parameters = with_note(&parameters, &format!("The description goes on: {rest}"));
                }
                let function = raw::object([
                    ("name", &*name),
                    ("description", &raw::quoted(&description)),
                    ("parameters", &parameters),
                ]);
                Some(raw::object([("type", "\"function\""), ("function", &function)]).into())
            }
            Self::Anthropic => {
                let (name, description) = (raw::quoted(legal(entry)?), raw::quoted(&entry.description()));
                let schema = parameters(&entry.tool.spec);
                let members = [("name", &*name), ("description", &*description), ("input_schema", &*schema)];
                Some(raw::object(members).into())
            }
        }
    }
}

fn legal<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    if entry.alias { Some(entry.name).filter(|name| is_legal(name)) } else { Some(entry.tool.model_name()) }
}

/// The part of a description that a function may have, and the rest.
fn split(description: Cow<'_, str>) -> (Cow<'_, str>, String) {
    const MARK: &str = "…";
    if description.len() <= FUNCTION_DESCRIPTION_BYTES {
        return (description, String::new());
    }
    let start = truncate(&description, FUNCTION_DESCRIPTION_BYTES - MARK.len());
    let rest = description.get(start.len()..).unwrap_or_default().to_owned();
    (format!("{start}{MARK}").into(), rest)
}

/// The input schema as models take it: an object with properties and without alternatives at its top.
fn parameters(spec: &ToolSpec) -> String {
    let raw = spec.raw.as_deref().and_then(|raw| raw::member(raw, "inputSchema"));
    let schema = raw.unwrap_or_else(|| spec.input_schema.as_str());
    let schema = raw::without(schema, |key| key == "$schema");
    let schema = raw::with(&schema, "type", "\"object\"");
    let has_properties = raw::member(&schema, "properties").is_some_and(|text| text.starts_with('{'));
    let schema = if has_properties { schema } else { raw::with(&schema, "properties", "{}") };
    without_alternatives(schema)
}

/// Keywords that interfaces refuse at the top of a schema.
const REFUSED: [&str; 5] = ["oneOf", "anyOf", "allOf", "not", "enum"];

/// Moves the refused keywords into the description and adds the properties that only they mention.
fn without_alternatives(schema: String) -> String {
    let members = raw::members(&schema).unwrap_or_default();
    let refused: Vec<(&str, &str)> = members
        .iter()
        .map(|(key, value)| (&**key, *value))
        .filter(|(key, _)| REFUSED.contains(key))
        .collect();
    if refused.is_empty() {
        return schema;
    }
    let kept = raw::without(&schema, |key| REFUSED.contains(&key));
    let own = raw::member(&schema, "properties").unwrap_or("{}");
    let kept = raw::with(&kept, "properties", &all_properties(own, &refused));
    with_note(&kept, &format!("The arguments must also fit this JSON Schema: {}", raw::object(refused)))
}

/// The schema's own properties and those that only its alternatives have, the latter with the one schema that they have
/// there or an `anyOf` of all.
fn all_properties(own: &str, alternatives: &[(&str, &str)]) -> String {
    let own = raw::members(own).unwrap_or_default();
    // Limit: a schema that can be called has at most `limits::SCHEMA_EXPANDED_NODES` nodes.
    let mut added: Vec<(Cow<'_, str>, Vec<&str>)> = Vec::new();
    let branches = alternatives.iter().flat_map(|(_, value)| raw::elements(value).unwrap_or_default());
    let properties = branches.filter_map(|branch| raw::members(raw::member(branch, "properties")?));
    // The schema of an own property applies in every branch.
    for (key, value) in properties.flatten().filter(|(key, _)| own.iter().all(|(known, _)| known != key)) {
        match added.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => added.push((key, vec![value])),
        }
    }
    let added: Vec<(Cow<'_, str>, Cow<'_, str>)> = added
        .into_iter()
        .map(|(key, values)| match values.as_slice() {
            [one] => (key, Cow::Borrowed(*one)),
            several => (key, raw::object([("anyOf", &*array(several.iter()))]).into()),
        })
        .collect();
    let own = own.iter().map(|(key, value)| (&**key, *value));
    raw::object(own.chain(added.iter().map(|(key, value)| (&**key, &**value))))
}

/// The schema with a note at the end of its description.
fn with_note(schema: &str, note: &str) -> String {
    let description = match raw::string_member(schema, "description") {
        Some(own) => format!("{own}\n{note}"),
        None => note.to_owned(),
    };
    raw::with(schema, "description", &raw::quoted(&description))
}

#[cfg(test)]
mod tests;
