//! A body with placeholders.

use super::text::Path;
use super::{Arguments, Text};
use crate::encode;
use serde_json::{Map, Value};

/// What a body is sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// Nothing is said: JSON, or text.
    Unsaid,
    /// JSON.
    Json,
    /// A JSON value in each line.
    Ndjson,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// XML of whatever kind.
    Xml,
    /// Something else, which the headers say.
    Other,
}

/// A body. It may hold secrets, and shows nothing of itself.
#[derive(Clone)]
pub(crate) enum BodyTemplate {
    /// A JSON value.
    Json(Node),
    /// JSON values, one in each line.
    Lines(Vec<Node>),
    /// A text.
    Text(Text),
}

impl std::fmt::Debug for BodyTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyTemplate").finish_non_exhaustive()
    }
}

/// A JSON value whose texts may have placeholders.
#[derive(Clone)]
pub(crate) enum Node {
    Text(Text),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
    Plain(Value),
}

/// A body that is made: its type, where the headers do not say it, and its bytes.
pub(crate) type Made = (Option<&'static str>, Vec<u8>);

impl BodyTemplate {
    /// Reads a body. A text that would be JSON with its placeholders filled in is taken for that JSON, so that what is
    /// filled in cannot change its form.
    ///
    /// # Errors
    /// It has a placeholder that stands for nothing, or it is no JSON where it should be.
    pub(crate) fn parse(body: &Value, media: Media) -> Result<Self, String> {
        let text = match body {
            Value::String(text) => text,
            Value::Array(items) if media == Media::Ndjson => {
                return Ok(Self::Lines(items.iter().map(Node::parse).collect::<Result<_, _>>()?));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Ok(Self::Json(Node::parse(body)?));
            }
        };
        let read = Text::parse(text)?;
        if read.sole().is_some() {
            return Ok(Self::Json(Node::Text(read)));
        }
        if media == Media::Ndjson {
            return lines(text).map(Self::Lines);
        }
        match (json(text), media) {
            (Ok(value @ (Value::Object(_) | Value::Array(_))), _) | (Ok(value), Media::Json) => {
                Ok(Self::Json(Node::parse(&value)?))
            }
            (Err(error), Media::Json) => Err(no_json("bodyTemplate", &error)),
            // Sent as text it would be understood by nobody, or as something that an argument has a say in.
            (Err(error), Media::Unsaid) if looks_like_json(text) => Err(no_json("bodyTemplate", &error)),
            (Ok(_) | Err(_), Media::Unsaid | Media::Ndjson | Media::Form | Media::Xml | Media::Other) => {
                Ok(Self::Text(read))
            }
        }
    }

    /// Its placeholders.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        let mut all = Vec::new();
        self.each_text(&mut |_, text| all.extend(text.paths()));
        all
    }

    /// Looks at each text, with the name of the member that it is.
    pub(crate) fn each_text<'a>(&'a self, look: &mut impl FnMut(&'a str, &'a Text)) {
        match self {
            Self::Json(node) => node.each_text("", look),
            Self::Lines(nodes) => nodes.iter().for_each(|node| node.each_text("", look)),
            Self::Text(text) => look("", text),
        }
    }

    /// The body for these arguments; none if it is one argument that is not given.
    ///
    /// # Errors
    /// It cannot be written as it should be sent.
    pub(crate) fn fill(&self, arguments: &Arguments, media: Media) -> Result<Option<Made>, String> {
        let node = match self {
            Self::Text(text) => {
                let said = (media == Media::Unsaid).then_some("text/plain; charset=utf-8");
                let filled = match media {
                    // What is filled in must not become another pair.
                    Media::Form => {
                        text.fill_with(arguments, str::to_owned, |value| encode::component(&value))
                    }
                    Media::Xml => text.fill_with(arguments, str::to_owned, |value| encode::xml(&value)),
                    Media::Unsaid | Media::Json | Media::Ndjson | Media::Other => text.fill(arguments),
                };
                return Ok(Some((said, filled.into_bytes())));
            }
            Self::Lines(nodes) => {
                let values = nodes.iter().filter_map(|node| node.fill(arguments));
                return Ok(Some((None, in_lines(values).into_bytes())));
            }
            Self::Json(node) => node,
        };
        let Some(value) = node.fill(arguments) else { return Ok(None) };
        let made = match (media, &value) {
            (Media::Json | Media::Unsaid, _) => (Some("application/json"), value.to_string()),
            (Media::Form, Value::Object(members)) => (None, encode::form(members)),
            (Media::Form, Value::String(text)) => (None, text.clone()),
            (Media::Form, _) => return Err("a form is made from an object".to_owned()),
            (Media::Ndjson, Value::Array(items)) => (None, in_lines(items.iter().cloned())),
            (Media::Ndjson | Media::Xml | Media::Other, Value::String(text)) => (None, text.clone()),
            (Media::Ndjson | Media::Xml | Media::Other, _) => (None, value.to_string()),
        };
        Ok(Some((made.0, made.1.into_bytes())))
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

    fn each_text<'a>(&'a self, name: &'a str, look: &mut impl FnMut(&'a str, &'a Text)) {
        match self {
            Self::Text(text) => look(name, text),
            Self::List(items) => items.iter().for_each(|item| item.each_text(name, look)),
            Self::Object(members) => members.iter().for_each(|(name, node)| node.each_text(name, look)),
            Self::Plain(_) => {}
        }
    }

    /// The value; nothing for an argument that is not given.
    fn fill(&self, arguments: &Arguments) -> Option<Value> {
        Some(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => match text.sole() {
                Some(path) => encode::whole(path.find(arguments)?),
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

/// A text that is JSON once its placeholders are filled in.
fn json(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&quoted_placeholders(text)))
}

/// Each line of a text, as the JSON that it is.
fn lines(text: &str) -> Result<Vec<Node>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let node = |(n, line): (usize, &str)| {
        Node::parse(&json(line).map_err(|error| no_json(&format!("line {} of bodyTemplate", n + 1), &error))?)
    };
    lines.map(node).collect()
}

fn in_lines(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}

fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    let within = |open, close| text.starts_with(open) && text.ends_with(close);
    within('{', '}') || within('[', ']')
}

fn no_json(what: &str, error: &serde_json::Error) -> String {
    format!("{what} is no JSON; mend it, or set the Content-Type that it is of ({error})")
}

/// A JSON text whose placeholders for whole values are texts: `{"n": ${parameters.n}}` as `{"n": "${parameters.n}"}`.
fn quoted_placeholders(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut quoted, mut escaped, mut inside, mut before) = (false, false, false, ' ');
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if !inside => quoted = !quoted,
            '{' if before == '$' && !quoted => {
                // The `$` is there already; the quote belongs before it.
                out.pop();
                out.push_str("\"$");
                inside = true;
            }
            _ => {}
        }
        out.push(c);
        if c == '}' && inside {
            out.push('"');
            inside = false;
        }
        before = c;
    }
    out
}
