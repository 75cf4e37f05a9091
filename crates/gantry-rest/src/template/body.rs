//! Request bodies with placeholders: a JSON tree, or a text.

use super::text::find;
use super::{Arguments, Text};
use crate::encode;
use serde_json::{Map, Value};

/// What a body is sent as, by the `Content-Type` of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// There is no `Content-Type`: JSON, or text.
    Unsaid,
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// XML or JSON lines, where a value would need escapes that templates do not have.
    Unescaped,
    /// Another type, sent as text.
    Other,
}

/// A body. It may hold secrets, so it has no `Debug`.
pub(crate) struct BodyTemplate {
    /// A value whose texts may have placeholders.
    template: Value,
    /// It is one text, which is sent as it is.
    is_text: bool,
    media: Media,
}

/// A filled body: its type, where the headers do not name it, and its bytes.
pub(crate) type FilledBody = (Option<&'static str>, Vec<u8>);

impl BodyTemplate {
    /// Parses a body. A text that is JSON becomes a JSON value, so that an argument cannot change its structure.
    ///
    /// # Errors
    /// A placeholder is malformed, the text is no JSON where it should be, or arguments would need escapes.
    pub(crate) fn parse(body: &Value, media: Media) -> Result<Self, String> {
        let (template, is_text) = match body.as_str() {
            Some(text) => read_text(text, media)?,
            None if media == Media::Unescaped => return Err(unescaped()),
            None => (body.clone(), false),
        };
        let parsed = Self { template, is_text, media };
        parsed.texts()?;
        Ok(parsed)
    }

    /// Its texts, each with the name of the member that holds it.
    pub(crate) fn texts(&self) -> Result<Vec<(&str, Text)>, String> {
        let mut all = Vec::new();
        collect("", &self.template, &mut all)?;
        Ok(all)
    }

    /// The body for these arguments; none if it is one argument that is missing.
    pub(crate) fn fill(&self, arguments: &Arguments) -> Result<Option<FilledBody>, String> {
        let Some(value) = filled(&self.template, arguments)? else { return Ok(None) };
        let (kind, text) = match (self.media, value) {
            (Media::Unsaid, Value::String(text)) if self.is_text => (Some("text/plain; charset=utf-8"), text),
            (Media::Json | Media::Unsaid, value) => (Some("application/json"), value.to_string()),
            (Media::Form, Value::Object(members)) => (None, encode::form(&members)),
            (Media::Form | Media::Unescaped | Media::Other, Value::String(text)) => (None, text),
            (Media::Form, _) => return Err("a form is made from an object".to_owned()),
            (Media::Unescaped, _) => return Err("the body has to be a text".to_owned()),
            (Media::Other, value) => (None, value.to_string()),
        };
        Ok(Some((kind, text.into_bytes())))
    }
}

/// The template that a text stands for, and whether it is sent as text.
fn read_text(text: &str, media: Media) -> Result<(Value, bool), String> {
    let template = Text::parse(text)?;
    let is_literal = template.literal().is_some();
    if template.sole().is_some() {
        return Ok((text.into(), false));
    }
    let parsed = serde_json::from_str(text);
    let is_object = matches!(parsed, Ok(Value::Object(_)));
    if media == Media::Unescaped || (media == Media::Form && !is_object) {
        return if is_literal { Ok((text.into(), true)) } else { Err(unescaped()) };
    }
    match parsed {
        Ok(value) if media == Media::Json || value.is_object() || value.is_array() => Ok((value, false)),
        // Sent as text, an argument could change its structure.
        Err(error) if media == Media::Json => Err(no_json(&error)),
        Err(error) if looks_like_json(text) && (media == Media::Unsaid || !is_literal) => {
            Err(no_json(&error))
        }
        Ok(_) | Err(_) => Ok((text.into(), true)),
    }
}

fn collect<'a>(name: &'a str, value: &'a Value, all: &mut Vec<(&'a str, Text)>) -> Result<(), String> {
    match value {
        Value::String(text) => all.push((name, Text::parse(text)?)),
        Value::Array(items) => items.iter().try_for_each(|item| collect(name, item, all))?,
        Value::Object(members) => members.iter().try_for_each(|(name, value)| collect(name, value, all))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// A value for these arguments; none if it is one argument that is missing.
fn filled(template: &Value, arguments: &Arguments) -> Result<Option<Value>, String> {
    Ok(Some(match template {
        Value::String(text) => {
            let text = Text::parse(text)?;
            match text.sole() {
                Some(path) => return Ok(find(path, arguments).map(encode::with_whole_numbers)),
                None => text.fill(arguments).into(),
            }
        }
        Value::Array(items) => {
            let item = |item| Ok(filled(item, arguments)?.unwrap_or_default());
            items.iter().map(item).collect::<Result<_, String>>()?
        }
        Value::Object(members) => {
            let mut all = Map::new();
            for (key, value) in members {
                all.extend(filled(value, arguments)?.map(|value| (key.clone(), value)));
            }
            all.into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }))
}

fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    let within = |open, close| text.starts_with(open) && text.ends_with(close);
    within('{', '}') || within('[', ']')
}

fn no_json(error: &serde_json::Error) -> String {
    format!(
        "bodyTemplate is no JSON; write placeholders in quotes (their values keep their types), or set the Content-Type \
         that it is of ({error})"
    )
}

fn unescaped() -> String {
    "bodyTemplate has this Content-Type, for which arguments are not escaped; write a form as an object, and XML or JSON \
     lines as one argument that is the whole body: \"${parameters.body}\""
        .to_owned()
}
