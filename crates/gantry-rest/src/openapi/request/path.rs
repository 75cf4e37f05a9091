//! The path of a request, from the template that a document has for it.

use super::too_long;
use crate::openapi::limits::ADDRESS_BYTES;
use crate::openapi::request::encode::{Script, push};
use crate::openapi::request::parameters::{Parameter, Place, TooLong, in_path};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// A pair of the query that a document has in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fixed {
    /// Its name, decoded.
    pub(super) name: String,
    /// The pair as it is sent.
    pub(super) text: String,
}

/// The path, and what belongs into the query. A fragment is not sent, whatever stands there.
pub(super) fn write(
    template: &str,
    parameters: &[Parameter],
    arguments: &Map<String, Value>,
) -> Result<(String, Vec<Fixed>), String> {
    let mut writer = Writer { parameters, arguments, path: String::new(), written: Vec::new() };
    if !template.starts_with('/') {
        writer.path.push('/');
    }
    let mut query: Option<Query> = None;
    for piece in pieces(template) {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Slot(name) => {
                match &mut query {
                    Some(query) => writer.slot_in_query(name, query)?,
                    None => writer.slot(name)?,
                }
                continue;
            }
        };
        let (text, ends) = match text.split_once('#') {
            Some((text, _)) => (text, true),
            None => (text, false),
        };
        match &mut query {
            Some(query) => query.text(text),
            None => query = writer.text(text),
        }
        if ends {
            break;
        }
    }
    writer.check()?;
    Ok((writer.path, query.map(Query::finish).unwrap_or_default()))
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// What stands between `{` and `}`.
    Slot(&'a str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        // A bracket that nobody closes is a character like others.
        let Some((name, after)) = after.split_once('}') else { break };
        pieces.extend([Piece::Text(before), Piece::Slot(name)]);
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

struct Writer<'a> {
    parameters: &'a [Parameter],
    arguments: &'a Map<String, Value>,
    path: String,
    /// What came from arguments, for saying which one is wrong.
    written: Vec<(&'a str, String)>,
}

impl<'a> Writer<'a> {
    /// A fixed part. Gives back the query if one begins in it.
    fn text(&mut self, text: &str) -> Option<Query> {
        let (text, query) = match text.split_once('?') {
            Some((text, query)) => (text, Some(query)),
            None => (text, None),
        };
        push(&mut self.path, text, Script::FixedPath);
        query.map(|text| {
            let mut query = Query::default();
            query.text(text);
            query
        })
    }

    fn slot(&mut self, name: &str) -> Result<(), String> {
        if names_query(name) {
            return Ok(());
        }
        let Some(parameter) = self.find(name, Place::Path) else { return Err(unknown(name)) };
        let text = self.value(parameter)?;
        self.path.push_str(&text);
        // Limit: a document may have the same name as often as it likes.
        if self.path.len() > ADDRESS_BYTES {
            return Err(too_long(parameter, TooLong));
        }
        self.written.push((&parameter.argument, text));
        Ok(())
    }

    /// A template in the query of a path. If there is a parameter of the query for it, that writes itself.
    fn slot_in_query(&self, name: &str, query: &mut Query) -> Result<(), String> {
        if let Some(parameter) = self.find(name, Place::Path) {
            query.pair.push_str(&self.value(parameter)?);
            query.bytes = query.bytes.saturating_add(query.pair.len());
            if query.bytes > ADDRESS_BYTES {
                return Err(too_long(parameter, TooLong));
            }
        } else if self.find(name, Place::Query).is_some() {
            query.dropped = true;
        } else if !names_query(name) {
            return Err(unknown(name));
        }
        Ok(())
    }

    fn find(&self, name: &str, place: Place) -> Option<&'a Parameter> {
        self.parameters.iter().find(|parameter| parameter.place == place && parameter.name == name)
    }

    /// What the parameter writes, which must be something: without it, the path is that of another operation.
    fn value(&self, parameter: &Parameter) -> Result<String, String> {
        let argument = &parameter.argument;
        let Some(value) = self.arguments.get(argument).filter(|value| !value.is_null()) else {
            return Err(format!("the argument {argument:?} is missing; a path needs a value"));
        };
        let text = in_path(parameter, value).map_err(|error| too_long(parameter, error))?;
        text.ok_or_else(|| format!("the argument {argument:?} is empty; a path needs a value"))
    }

    /// Whether the path stays below where it begins, for all who may read it: parsers of URLs, which take `%2e` for a
    /// dot; servers that decode a `/` before they look for steps; servers that cut a segment at `;`.
    fn check(&self) -> Result<(), String> {
        let is_step = |segment: &str| {
            let decoded = percent_decode_str(segment).decode_utf8_lossy();
            decoded == "." || decoded.split(['/', '\\']).any(|part| part == "..")
        };
        let before_semicolon = |segment: &str| segment.split(';').next().is_some_and(is_step);
        if !self.path.split('/').any(|segment| is_step(segment) || before_semicolon(segment)) {
            return Ok(());
        }
        let has_dot = |text: &str| text.contains('.') || text.to_ascii_lowercase().contains("%2e");
        Err(match self.written.iter().find(|(_, text)| has_dot(text)) {
            Some((argument, _)) => {
                format!(
                    "the argument {argument:?} makes a step `.` or `..` in the path, which leads elsewhere"
                )
            }
            None => "the path of the document has a step `.` or `..`, which leads elsewhere".to_owned(),
        })
    }
}

/// The query of a path, as far as it is read.
#[derive(Debug, Default)]
struct Query {
    pairs: Vec<Fixed>,
    /// The pair that is being read.
    pair: String,
    /// Whether that one is left out.
    dropped: bool,
    /// At least as many as arguments have written.
    bytes: usize,
}

impl Query {
    fn text(&mut self, text: &str) {
        let mut parts = text.split('&');
        push(&mut self.pair, parts.next().unwrap_or_default(), Script::FixedQuery);
        for part in parts {
            self.end();
            push(&mut self.pair, part, Script::FixedQuery);
        }
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.pair);
        let dropped = std::mem::take(&mut self.dropped);
        if !text.is_empty() && !dropped {
            let name = text.split('=').next().unwrap_or_default();
            let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
            self.pairs.push(Fixed { name, text });
        }
    }

    fn finish(mut self) -> Vec<Fixed> {
        self.end();
        self.pairs
    }
}

/// Whether it is an expansion of RFC 6570 that lists parameters of the query, which write themselves.
fn names_query(slot: &str) -> bool {
    slot.starts_with(['?', '&', '#'])
}

fn unknown(name: &str) -> String {
    format!("the path has {{{name}}}, and the document has no path parameter of that name")
}
