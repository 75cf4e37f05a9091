//! How a value is written into a path, a query, a header or a cookie: `style` and `explode`.
//!
//! By the table of OpenAPI 3.0.4 and 3.1.1, which is RFC 6570 where that has the style. What the table leaves open is
//! decided here:
//! - A style that the place does not have (a label in a query) is written as the usual one of the place.
//! - `spaceDelimited` and the like, exploded, are `form`, exploded, as OpenAPI 3.0.3 has it.
//! - `deepObject` is exploded whatever the document says. Objects in it go on in brackets (`a[b][c]`), and lists have
//!   their index there (`a[b][0]`): that alone keeps the members of an object in a list together, and the APIs which
//!   have the style in public documents read it.
//! - `spaceDelimited` and the like in a path or a header are what Swagger 2.0 has there by `collectionFormat`.
//! - A list in an object of `form`, exploded, repeats the name of its property, if all in it is plain.
//! - Any other list or object in a list, or in an object of another style, is JSON.
//! - Null is undefined: it is left out, like a list or an object without members.

mod text;

#[cfg(test)]
mod tests;

use crate::openapi::limits::ADDRESS_BYTES;
use crate::openapi::request::encode::{Script, encode, push};
use serde_json::Value;
use std::borrow::Cow;
pub(crate) use text::text;
use text::{Shape, ascii, items, shape};

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    /// `tsv` of Swagger 2.0.
    TabDelimited,
    DeepObject,
}

impl Style {
    /// What stands between the elements of a list that is not exploded.
    fn delimiter(self) -> &'static str {
        match self {
            Self::SpaceDelimited => " ",
            Self::PipeDelimited => "|",
            Self::TabDelimited => "\t",
            Self::Simple | Self::Label | Self::Matrix | Self::Form | Self::DeepObject => ",",
        }
    }
}

/// The way from a value to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// By style.
    Styled { style: Style, explode: bool, allow_reserved: bool },
    /// As JSON (`content: application/json`).
    Json,
}

impl Form {
    /// The properties of this value that become parameters under their own names.
    pub(crate) fn spread<'a>(&self, value: &'a Value) -> impl Iterator<Item = &'a str> {
        let spreads = match self {
            Self::Styled { style, explode, .. } => *explode && *style != Style::DeepObject,
            Self::Json => false,
        };
        let members = value.as_object().filter(|_| spreads).into_iter().flatten();
        members.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// Whether elements have tabs between them.
    pub(crate) fn has_tabs(&self) -> bool {
        matches!(self, Self::Styled { style: Style::TabDelimited, explode: false, .. })
    }
}

/// One parameter of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// The argument of the tool that holds its value.
    pub(crate) argument: String,
    /// Its name in the request.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) form: Form,
}

/// More text than may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// What a parameter is in a path; nothing if the value has nothing to write there.
pub(crate) fn in_path(parameter: &Parameter, value: &Value) -> Result<Option<String>, TooLong> {
    let (style, explode, script) = match &parameter.form {
        Form::Json if value.is_null() => return Ok(None),
        Form::Json => return Ok(Some(encode(&value.to_string(), Script::Strict))),
        Form::Styled { style, explode, allow_reserved: false } => (*style, *explode, Script::Strict),
        Form::Styled { style, explode, allow_reserved: true } => (*style, *explode, Script::ReservedInPath),
    };
    let shape = shape(value);
    if shape == Shape::Nothing {
        return Ok(None);
    }
    Ok(match style {
        Style::Matrix => Some(matrix(&parameter.name, shape, explode, script)?),
        Style::Label => {
            let delimiter = if explode { "." } else { "," };
            let text = items(shape, explode, script).join(delimiter);
            (!text.is_empty()).then(|| format!(".{text}"))
        }
        Style::SpaceDelimited | Style::PipeDelimited | Style::TabDelimited if !explode => {
            let delimiter = encode(style.delimiter(), Script::Strict);
            let text = items(shape, explode, script).join(&delimiter);
            (!text.is_empty()).then_some(text)
        }
        Style::Simple
        | Style::Form
        | Style::SpaceDelimited
        | Style::PipeDelimited
        | Style::TabDelimited
        | Style::DeepObject => {
            let text = items(shape, explode, script).join(",");
            (!text.is_empty()).then_some(text)
        }
    })
}

/// `;color=blue;color=black`. An empty value has no `=`.
fn matrix(name: &str, shape: Shape<'_>, explode: bool, script: Script) -> Result<String, TooLong> {
    let name = encode(name, Script::Strict);
    let pairs: Vec<(Cow<'_, str>, String)> = match shape {
        Shape::Many(texts) if explode => {
            texts.iter().map(|text| (Cow::Borrowed(name.as_str()), encode(text, script))).collect()
        }
        Shape::Named(members) if explode => members
            .iter()
            .map(|(name, text)| (Cow::Owned(encode(name, Script::Strict)), encode(text, script)))
            .collect(),
        other @ (Shape::Nothing | Shape::One(_) | Shape::Many(_) | Shape::Named(_)) => {
            vec![(Cow::Borrowed(name.as_str()), items(other, false, script).join(","))]
        }
    };
    let mut out = String::new();
    for (name, value) in pairs {
        let equals = if value.is_empty() { "" } else { "=" };
        out.extend([";", &*name, equals, value.as_str()]);
        // Limit: a long name that is repeated for each element grows faster than the arguments.
        if out.len() > ADDRESS_BYTES {
            return Err(TooLong);
        }
    }
    Ok(out)
}

/// What a parameter is in a header, where nothing is encoded; nothing if there is no value.
pub(crate) fn in_header(form: &Form, value: &Value) -> Option<String> {
    match form {
        Form::Json => (!value.is_null()).then(|| ascii(&value.to_string())),
        Form::Styled { style, explode, .. } => match shape(value) {
            Shape::Nothing => None,
            shape @ (Shape::One(_) | Shape::Many(_) | Shape::Named(_)) => {
                let delimiter = if *explode { "," } else { style.delimiter() };
                Some(items(shape, *explode, Script::Plain).join(delimiter))
            }
        },
    }
}

/// What names and values are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sheet {
    Query,
    Cookie,
    /// A body of `application/x-www-form-urlencoded`.
    Form,
    /// The parts of a multipart body, which are not encoded.
    Parts,
}

impl Sheet {
    fn names(self) -> Script {
        match self {
            Self::Query => Script::Strict,
            Self::Cookie => Script::CookieName,
            Self::Form => Script::Form,
            Self::Parts => Script::Plain,
        }
    }

    fn values(self, form: &Form) -> Script {
        let reserved = match form {
            Form::Styled { allow_reserved, .. } => *allow_reserved,
            Form::Json => false,
        };
        match self {
            Self::Query if reserved => Script::Reserved,
            Self::Query => Script::Strict,
            Self::Form if reserved => Script::FormReserved,
            Self::Form => Script::Form,
            Self::Cookie => Script::CookieValue,
            Self::Parts => Script::Plain,
        }
    }
}

/// Encoded names and values, up to a limit.
#[derive(Debug)]
pub(crate) struct Pairs {
    sheet: Sheet,
    pairs: Vec<(String, String)>,
    bytes: usize,
    limit: usize,
}

impl Pairs {
    pub(crate) fn new(sheet: Sheet, limit: usize) -> Self {
        Self { sheet, pairs: Vec::new(), bytes: 0, limit }
    }

    /// Writes a value under its name, or under those of its members.
    pub(crate) fn write(&mut self, name: &str, value: &Value, form: &Form) -> Result<(), TooLong> {
        let names = self.sheet.names();
        let script = self.sheet.values(form);
        let encoded = encode(name, names);
        let (style, explode) = match form {
            Form::Json if value.is_null() => return Ok(()),
            Form::Json => return self.add(&encoded, encode(&value.to_string(), script)),
            Form::Styled { style: Style::DeepObject, .. } => {
                return self.deep(&mut encoded.clone(), value, script);
            }
            Form::Styled { style, explode, .. } => (*style, *explode),
        };
        if let (Value::Object(members), true) = (value, explode) {
            return members.iter().try_for_each(|(name, value)| self.member(name, value, script));
        }
        match shape(value) {
            Shape::Nothing => Ok(()),
            Shape::One(text) => self.add(&encoded, encode(&text, script)),
            Shape::Many(texts) if explode => {
                texts.iter().try_for_each(|text| self.add(&encoded, encode(text, script)))
            }
            shape @ (Shape::Many(_) | Shape::Named(_)) => {
                let delimiter = match style.delimiter() {
                    "," => ",".to_owned(),
                    other => encode(other, script),
                };
                self.add(&encoded, items(shape, false, script).join(&delimiter))
            }
        }
    }

    /// Writes a property of an object that is spread: a list of plain values as often as it has some.
    fn member(&mut self, name: &str, value: &Value, script: Script) -> Result<(), TooLong> {
        let name = encode(name, self.sheet.names());
        match value {
            Value::Null => Ok(()),
            Value::Array(elements) if elements.iter().all(|one| !one.is_array() && !one.is_object()) => {
                elements
                    .iter()
                    .filter(|one| !one.is_null())
                    .try_for_each(|one| self.add(&name, encode(&text(one), script)))
            }
            one @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => self.add(&name, encode(&text(one), script)),
        }
    }

    /// Writes a value with the way to it in brackets. The name grows and shrinks in place, so that a long one with many
    /// members costs no more than what is written of it.
    fn deep(&mut self, name: &mut String, value: &Value, script: Script) -> Result<(), TooLong> {
        let length = name.len();
        let members: Box<dyn Iterator<Item = (Cow<'_, str>, &Value)>> = match value {
            Value::Null => return Ok(()),
            Value::Object(members) => {
                Box::new(members.iter().map(|(key, value)| (Cow::from(key.as_str()), value)))
            }
            Value::Array(elements) => {
                // Order: numbered without what is left out, for many readers take a gap for an object.
                let given = elements.iter().filter(|value| !value.is_null()).enumerate();
                Box::new(given.map(|(at, value)| (Cow::from(at.to_string()), value)))
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return self.add(name, encode(&text(value), script));
            }
        };
        let names = self.sheet.names();
        for (key, value) in members {
            push(name, "[", names);
            push(name, &key, names);
            push(name, "]", names);
            self.deep(name, value, script)?;
            name.truncate(length);
        }
        Ok(())
    }

    /// Adds what is encoded already.
    pub(crate) fn add(&mut self, name: &str, value: String) -> Result<(), TooLong> {
        // The `=` and the `&` count too.
        self.bytes = self.bytes.saturating_add(name.len()).saturating_add(value.len()).saturating_add(2);
        if self.bytes > self.limit {
            return Err(TooLong);
        }
        self.pairs.push((name.to_owned(), value));
        Ok(())
    }

    /// As one text, with this between the pairs.
    pub(crate) fn join(&self, between: &str) -> String {
        let mut out = String::with_capacity(self.bytes);
        for (name, value) in &self.pairs {
            let before = if out.is_empty() { "" } else { between };
            out.extend([before, name, "=", value]);
        }
        out
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.pairs
    }
}
