//! Request bodies with placeholders: a JSON tree, or a text.

use super::text::Path;
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

/// A body.
pub(crate) enum BodyTemplate {
    Json(Node),
    Text(Text),
}

/// A JSON value whose texts may have placeholders.
pub(crate) enum Node {
    Text(Text),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
    Plain(Value),
}

/// A filled body: its type, where the headers do not name it, and its bytes.
pub(crate) type FilledBody = (Option<&'static str>, Vec<u8>);

impl BodyTemplate {
    /// Parses a body. A text that is JSON becomes a JSON tree, so that an argument cannot change its structure.
    ///
    /// # Errors
    /// A placeholder is malformed, the text is no JSON where it should be, or arguments would need escapes.
    pub(crate) fn parse(body: &Value, media: Media) -> Result<Self, String> {
        let Value::String(text) = body else {
            return if media == Media::Unescaped {
                Err(unescaped())
            } else {
                Ok(Self::Json(Node::parse(body)?))
            };
        };
        let template = Text::parse(text)?;
        if template.sole().is_some() {
            return Ok(Self::Json(Node::Text(template)));
        }
        let parsed = serde_json::from_str(text);
        let is_object = matches!(parsed, Ok(Value::Object(_)));
        if media == Media::Unescaped || (media == Media::Form && !is_object) {
            return if template.literal().is_some() { Ok(Self::Text(template)) } else { Err(unescaped()) };
        }
        match parsed {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(Self::Json(Node::parse(&value)?)),
            Ok(value) if media == Media::Json => Ok(Self::Json(Node::parse(&value)?)),
            // Sent as text, an argument could change its structure.
            Err(error) if media == Media::Json => Err(no_json(&error)),
            Err(error) if looks_like_json(text) && template.literal().is_none() => Err(no_json(&error)),
            Err(error) if media == Media::Unsaid && looks_like_json(text) => Err(no_json(&error)),
            Ok(_) | Err(_) => Ok(Self::Text(template)),
        }
    }

    /// Its placeholders.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        let mut all = Vec::new();
        self.each_text(&mut |_, text| all.extend(text.paths()));
        all
    }

    /// Calls a function with each text and the name of the member that holds it.
    pub(crate) fn each_text<'a>(&'a self, visit: &mut impl FnMut(&'a str, &'a Text)) {
        match self {
            Self::Json(node) => node.each_text("", visit),
            Self::Text(text) => visit("", text),
        }
    }

    /// The body for these arguments; none if it is one argument that is missing.
    ///
    /// # Errors
    /// The value cannot be written as the type that it is sent as.
    pub(crate) fn fill(&self, arguments: &Arguments, media: Media) -> Result<Option<FilledBody>, String> {
        let node = match self {
            Self::Text(text) => {
                let kind = (media == Media::Unsaid).then_some("text/plain; charset=utf-8");
                return Ok(Some((kind, text.fill(arguments).into_bytes())));
            }
            Self::Json(node) => node,
        };
        let Some(value) = node.fill(arguments) else { return Ok(None) };
        let (kind, text) = match (media, value) {
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

impl Node {
    fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Text::parse(text)?),
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| Ok((key.clone(), Self::parse(value)?));
                Self::Object(members.iter().map(member).collect::<Result<_, String>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Plain(value.clone()),
        })
    }

    fn each_text<'a>(&'a self, name: &'a str, visit: &mut impl FnMut(&'a str, &'a Text)) {
        match self {
            Self::Text(text) => visit(name, text),
            Self::List(items) => items.iter().for_each(|item| item.each_text(name, visit)),
            Self::Object(members) => members.iter().for_each(|(name, node)| node.each_text(name, visit)),
            Self::Plain(_) => {}
        }
    }

    /// The value for these arguments; none if it is one argument that is missing.
    fn fill(&self, arguments: &Arguments) -> Option<Value> {
        Some(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => match text.sole() {
                Some(path) => encode::with_whole_numbers(path.find(arguments)?),
                None => text.fill(arguments).into(),
            },
            Self::List(items) => items.iter().map(|item| item.fill(arguments).unwrap_or_default()).collect(),
            Self::Object(members) => {
                let member = |(key, node): &(String, Node)| Some((key.clone(), node.fill(arguments)?));
                Value::Object(members.iter().filter_map(member).collect::<Map<_, _>>())
            }
        })
    }
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
