//! The path of a request, from the template in the document.

use super::too_long;
use crate::Object;
use crate::openapi::limits::ADDRESS_BYTES;
use crate::openapi::request::encode::{EncodeSet, push};
use crate::openapi::request::parameters::{Parameter, Place, TooLong, in_path};
use percent_encoding::percent_decode_str;

/// A pair of the query that a document has in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixedQueryPair {
    /// Its name, decoded.
    pub(super) name: String,
    /// The pair as it is sent.
    pub(super) text: String,
}

/// The lists of parameters in a template that are left out, since these parameters are written with the others
/// (`{?page,size}`, `{&page}`) or not sent (`{#part}`).
const LISTS: [&str; 3] = ["{?", "{&", "{#"];

/// A template up to its lists or its fragment, which is not sent, and the rest.
fn sent(template: &str) -> (&str, &str) {
    let ends = LISTS.iter().chain(&["#"]).filter_map(|end| template.find(end));
    ends.min().and_then(|end| template.split_at_checked(end)).unwrap_or((template, ""))
}

pub(crate) fn split(template: &str) -> (&str, &str) {
    let (sent, _) = sent(template);
    sent.split_once('?').unwrap_or((sent, ""))
}

/// Whether nothing follows the lists of a template. It would not be sent, although approvers see it.
pub(crate) fn is_sent_whole(template: &str) -> bool {
    let is_list = |part: &str| part.ends_with('}') && LISTS.iter().any(|list| part.starts_with(list));
    let (_, rest) = sent(template);
    rest.starts_with('#') || rest.split_inclusive('}').all(is_list)
}

/// The names between `{` and `}`.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|after| after.split_once('}')).map(|(name, _)| name)
}

/// The path, and the pairs of its query.
pub(super) fn write(
    template: &str,
    parameters: &[Parameter],
    arguments: &Object,
) -> Result<(String, Vec<FixedQueryPair>), String> {
    let mut writer = Writer { parameters, arguments, written: Vec::new(), bytes: 0 };
    let (path, query) = split(template);
    let mut path = writer.expand(path)?;
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    writer.check(&path)?;
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let is_own =
            |name| writer.find(name, Place::Path).is_none() && writer.find(name, Place::Query).is_some();
        // The query parameter is written with the others.
        if placeholders(pair).any(is_own) {
            continue;
        }
        let text = writer.expand(pair)?;
        let name = text.split('=').next().unwrap_or_default();
        pairs.push(FixedQueryPair { name: percent_decode_str(name).decode_utf8_lossy().into_owned(), text });
    }
    Ok((path, pairs))
}

struct Writer<'a> {
    parameters: &'a [Parameter],
    arguments: &'a Object,
    /// Arguments and what they wrote, for saying which one is wrong.
    written: Vec<(&'a str, String)>,
    bytes: usize,
}

impl<'a> Writer<'a> {
    /// A part of the template with the values of its placeholders.
    fn expand(&mut self, template: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            push(&mut out, before, EncodeSet::Fixed);
            let parameter = self.find(name, Place::Path).ok_or_else(|| {
                format!("the path has {{{name}}}, and the document has no path parameter of that name")
            })?;
            let text = self.value(parameter)?;
            // Limit: a document may have the same name as often as it likes.
            self.bytes = self.bytes.saturating_add(before.len()).saturating_add(text.len());
            if self.bytes > ADDRESS_BYTES {
                return Err(too_long(parameter, TooLong));
            }
            out.push_str(&text);
            self.written.push((&parameter.argument, text));
            rest = after;
        }
        push(&mut out, rest, EncodeSet::Fixed);
        Ok(out)
    }

    fn find(&self, name: &str, place: Place) -> Option<&'a Parameter> {
        self.parameters.iter().find(|parameter| parameter.place == place && parameter.name == name)
    }

    /// The text of a parameter, which must not be empty: the path would be that of another operation.
    fn value(&self, parameter: &Parameter) -> Result<String, String> {
        let argument = &parameter.argument;
        let Some(value) = self.arguments.get(argument).filter(|value| !value.is_null()) else {
            return Err(format!("the argument {argument:?} is missing; a path needs a value"));
        };
        in_path(parameter.serialization.style, value)
            .ok_or_else(|| format!("the argument {argument:?} is empty; a path needs a value"))
    }

    /// Whether the path stays below where it begins, for all that may read it: parsers of URLs, which take `%2e` for a
    /// dot; servers that decode a `/` before they look for steps; servers that cut a segment at `;`.
    fn check(&self, path: &str) -> Result<(), String> {
        let is_step = |segment: &str| {
            let decoded = percent_decode_str(segment).decode_utf8_lossy();
            decoded == "." || decoded.split(['/', '\\']).any(|part| part == "..")
        };
        let before_semicolon = |segment: &str| segment.split(';').next().is_some_and(is_step);
        if !path.split('/').any(|segment| is_step(segment) || before_semicolon(segment)) {
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
