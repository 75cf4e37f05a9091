//! Request bodies: JSON, forms, multipart with files, text, binary.

pub(super) mod media;

#[cfg(test)]
mod tests;

use super::file::File;
use super::multipart::Parts;
use crate::openapi::limits::BODY_BYTES;
use crate::openapi::request::parameters::{Form, Pairs, Sheet, Style, TooLong, text};
use serde_json::{Map, Value};
use std::fmt;

/// A media type and the bytes of it.
pub(crate) type Written = (String, Vec<u8>);

/// How the body of an operation is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// The media type that is sent, without parameters that are made with the body (a boundary).
    pub(crate) media: String,
    /// Whether one is sent even if no argument is given for it.
    pub(crate) required: bool,
    pub(crate) source: Source,
    pub(crate) kind: BodyKind,
}

impl Body {
    /// The body that these arguments make; nothing if none of them is for it and none has to be.
    ///
    /// # Errors
    /// Says which argument cannot be sent, and why.
    pub(crate) fn write(&self, arguments: &Map<String, Value>) -> Result<Option<Written>, String> {
        let written = match &self.kind {
            BodyKind::Json => self.json(arguments)?,
            BodyKind::Form(forms) => self.form(forms, arguments)?,
            BodyKind::Multipart(parts) => self.multipart(parts, arguments)?,
            BodyKind::Text => self.text(arguments)?,
            BodyKind::Binary => self.binary(arguments)?,
        };
        match written {
            Some((_, bytes)) if bytes.len() > BODY_BYTES => Err(too_large(TooLong)),
            Some(written) => Ok(Some(written)),
            None => Ok(None),
        }
    }

    /// An explicit null is a value here, other than in forms.
    fn json(&self, arguments: &Map<String, Value>) -> Result<Option<Written>, String> {
        let text = match &self.source {
            Source::Whole(argument) => arguments.get(argument).map(Value::to_string),
            Source::Fields(fields) => {
                let given = fields.iter().filter_map(|(argument, property)| {
                    arguments.get(argument).map(|value| (property.clone(), value.clone()))
                });
                let object: Map<String, Value> = given.collect();
                (self.required || !object.is_empty()).then(|| Value::Object(object).to_string())
            }
        };
        let Some(text) = text else { return Ok(None) };
        Ok(Some((media::sent(&self.media, "application/json")?, text.into_bytes())))
    }

    fn form(
        &self,
        forms: &[(String, Form)],
        arguments: &Map<String, Value>,
    ) -> Result<Option<Written>, String> {
        let Some(fields) = self.fields(arguments)? else { return Ok(None) };
        let mut pairs = Pairs::new(Sheet::Form, BODY_BYTES);
        for field in fields {
            let usual = usual_form(field.value);
            let form = forms.iter().find(|(name, _)| name == field.name).map_or(&usual, |(_, form)| form);
            pairs.write(field.name, field.value, form).map_err(too_large)?;
        }
        if pairs.is_empty() && !self.required {
            return Ok(None);
        }
        let media = media::sent(&self.media, "application/x-www-form-urlencoded")?;
        Ok(Some((media, pairs.join("&").into_bytes())))
    }

    fn multipart(
        &self,
        known: &[(String, Part)],
        arguments: &Map<String, Value>,
    ) -> Result<Option<Written>, String> {
        let Some(fields) = self.fields(arguments)? else { return Ok(None) };
        let mut parts = Parts::default();
        for field in fields {
            let part = known.iter().find(|(name, _)| name == field.name).map(|(_, part)| part);
            parts.write(&field, part)?;
        }
        if parts.is_empty() && !self.required {
            return Ok(None);
        }
        let (boundary, bytes) = parts.finish()?;
        let media = media::sent(media::essence(&self.media), "multipart/form-data")?;
        Ok(Some((format!("{media}; boundary={boundary}"), bytes)))
    }

    fn text(&self, arguments: &Map<String, Value>) -> Result<Option<Written>, String> {
        let Some((argument, value)) = self.whole(arguments)? else { return Ok(None) };
        if value.is_array() || value.is_object() {
            return Err(format!("the argument {argument:?} is no text, and the body is text"));
        }
        let text = text(value);
        let media = media::sent(&self.media, "text/plain")?;
        let media = match media::charset(&media) {
            None => format!("{media}; charset=utf-8"),
            // What has only ASCII is the same in nearly all of them.
            Some(charset) if !charset.eq_ignore_ascii_case("utf-8") && !text.is_ascii() => {
                return Err(format!(
                    "the argument {argument:?} has characters beyond ASCII, and the API takes them as {charset:?}, \
                     which cannot be written; use ASCII only"
                ));
            }
            Some(_) => media,
        };
        Ok(Some((media, text.into_owned().into_bytes())))
    }

    fn binary(&self, arguments: &Map<String, Value>) -> Result<Option<Written>, String> {
        let Some((argument, value)) = self.whole(arguments)? else { return Ok(None) };
        let file = File::read(&format_args!("argument {argument:?}"), value, Some(&self.media))?;
        Ok(Some((file.content_type, file.content)))
    }

    /// The one argument that is the body.
    fn whole<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> Result<Option<(&'a str, &'a Value)>, String> {
        let argument = match &self.source {
            Source::Whole(argument) => argument,
            Source::Fields(_) => {
                return Err(format!("a body of {:?} cannot be made of several arguments", self.media));
            }
        };
        let value = arguments.get(argument).filter(|value| !value.is_null());
        Ok(value.map(|value| (argument.as_str(), value)))
    }

    /// The properties of a body that is a form, those that are null left out; nothing if nothing is sent.
    fn fields<'a>(&'a self, arguments: &'a Map<String, Value>) -> Result<Option<Vec<Field<'a>>>, String> {
        let fields: Vec<Field<'_>> = match &self.source {
            Source::Whole(argument) => match arguments.get(argument) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Object(members)) => {
                    let owner = Some(argument.as_str());
                    members.iter().map(|(name, value)| Field { owner, argument: name, name, value }).collect()
                }
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                    return Err(format!("the argument {argument:?} is no object, and the body is a form"));
                }
            },
            Source::Fields(fields) => fields
                .iter()
                .filter_map(|(argument, name)| {
                    let value = arguments.get(argument)?;
                    Some(Field { owner: None, argument, name, value })
                })
                .collect(),
        };
        let fields: Vec<Field<'_>> = fields.into_iter().filter(|field| !field.value.is_null()).collect();
        Ok((self.required || !fields.is_empty()).then_some(fields))
    }
}

/// How a property of a form is written if the document does not say.
fn usual_form(value: &Value) -> Form {
    if value.is_object() {
        return Form::Json;
    }
    Form::Styled { style: Style::Form, explode: true, allow_reserved: false }
}

/// A property of a form. Shown, it says where its value came from.
pub(super) struct Field<'a> {
    /// The argument that it is a property of, if the body is one.
    pub(super) owner: Option<&'a str>,
    pub(super) argument: &'a str,
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.owner {
            Some(owner) => write!(f, "property {:?} of the argument {owner:?}", self.name),
            None => write!(f, "argument {:?}", self.argument),
        }
    }
}

/// Which arguments become the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This one is the body.
    Whole(String),
    /// Each of these is a property of it: the argument, and the name of the property.
    Fields(Vec<(String, String)>),
}

/// How it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    /// `application/x-www-form-urlencoded`; what is not listed is written as `form`, exploded.
    Form(Vec<(String, Form)>),
    /// `multipart/form-data`; what is not listed is text, or JSON where it is an object.
    Multipart(Vec<(String, Part)>),
    /// The argument is text.
    Text,
    /// The argument is a file.
    Binary,
}

/// How one part of a multipart body is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether the argument is a file (or a list of files): an object with `content`, and, if wanted, `encoding`
    /// (`utf-8` or `base64`), `filename` and `contentType`.
    pub(crate) file: bool,
    /// The media type that the document demands.
    pub(crate) content_type: Option<String>,
    /// How it is written, where the document says so.
    pub(crate) form: Option<Form>,
}

/// The words for a body that is larger than may be sent.
pub(super) fn too_large(TooLong: TooLong) -> String {
    format!("the body would have more than {BODY_BYTES} bytes, which is the most that is sent; send less")
}
