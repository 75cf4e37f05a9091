//! Request bodies: JSON, forms, multipart with files, text, binary.

#[cfg(test)]
mod tests;

use super::file::File;
use super::multipart::Parts;
use crate::Object;
use crate::openapi::limits::BODY_BYTES;
use crate::openapi::media;
use crate::openapi::request::parameters::{Pairs, Serialization, Style, TooLong, text};
use serde_json::Value;

/// The argument that is the body, where its properties are no arguments.
pub(crate) const BODY: &str = "body";

/// A media type and the bytes of it.
pub(crate) type Written = (String, Vec<u8>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// The media type that is sent; that of a multipart body has its boundary added.
    pub(crate) media: String,
    /// Whether one is sent even if no argument is given for it.
    pub(crate) required: bool,
    pub(crate) format: BodyFormat,
    pub(crate) source: Source,
    /// How single properties of a form or a multipart body are written, where that is not the usual way.
    pub(crate) encodings: Vec<(String, PropertyEncoding)>,
}

/// The formats of bodies, the preferred ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BodyFormat {
    Json,
    /// `application/x-www-form-urlencoded`. A property is written as `form`, exploded, and an object as JSON.
    Form,
    /// Multipart. A property is text, or JSON where it is an object.
    Multipart,
    Text,
    /// The argument is a file.
    Binary,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// [`BODY`].
    Whole,
    /// Each of these is a property: the argument, and the name of the property.
    Fields(Vec<(String, String)>),
}

/// How one property of a form or a multipart body is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PropertyEncoding {
    /// Whether the value is a file (or a list of files): an object with `content`, and, if wanted, `encoding` (`utf-8` or
    /// `base64`), `filename` and `contentType`.
    pub(crate) file: bool,
    /// The media type that the document demands.
    pub(crate) content_type: Option<String>,
    /// How it is written, where the document says so.
    pub(crate) serialization: Option<Serialization>,
}

impl Body {
    /// The body that these arguments make; nothing if none of them is for it and none has to be.
    pub(crate) fn write(&self, arguments: &Object) -> Result<Option<Written>, String> {
        let written = match self.format {
            BodyFormat::Json => self.json(arguments),
            BodyFormat::Form => self.form(arguments)?,
            BodyFormat::Multipart => self.multipart(arguments)?,
            BodyFormat::Text => self.text(arguments)?,
            BodyFormat::Binary => self.binary(arguments)?,
        };
        match written {
            Some((_, bytes)) if bytes.len() > BODY_BYTES => Err(too_large(TooLong)),
            Some(written) => Ok(Some(written)),
            None => Ok(None),
        }
    }

    /// An explicit null is a value here, other than in forms.
    fn json(&self, arguments: &Object) -> Option<Written> {
        let text = match &self.source {
            Source::Whole => arguments.get(BODY).map(Value::to_string),
            Source::Fields(fields) => {
                let given = fields.iter().filter_map(|(argument, property)| {
                    arguments.get(argument).map(|value| (property.clone(), value.clone()))
                });
                let object: Object = given.collect();
                (self.required || !object.is_empty()).then(|| Value::Object(object).to_string())
            }
        };
        text.map(|text| (self.media.clone(), text.into_bytes()))
    }

    fn form(&self, arguments: &Object) -> Result<Option<Written>, String> {
        let mut pairs = Pairs::encoded(BODY_BYTES);
        for field in self.fields(arguments)? {
            let style = if field.value.is_object() { Style::Json } else { Style::Exploded };
            let demanded = self.encoding(field.name).and_then(|encoding| encoding.serialization);
            let how = demanded.unwrap_or(Serialization::new(style));
            pairs.write(field.name, field.value, how).map_err(too_large)?;
        }
        // Forms have `+` for a space; `%20` stands for nothing else, as a `%` in a value is encoded.
        let sent = self.required || pairs.len() > 0;
        Ok(sent.then(|| (self.media.clone(), pairs.join().replace("%20", "+").into_bytes())))
    }

    fn multipart(&self, arguments: &Object) -> Result<Option<Written>, String> {
        let mut parts = Parts::default();
        for field in self.fields(arguments)? {
            parts.write(&field, self.encoding(field.name).unwrap_or(&PropertyEncoding::default()))?;
        }
        if parts.is_empty() && !self.required {
            return Ok(None);
        }
        let (boundary, bytes) = parts.finish();
        Ok(Some((format!("{}; boundary={boundary}", self.media), bytes)))
    }

    fn text(&self, arguments: &Object) -> Result<Option<Written>, String> {
        let Some(value) = arguments.get(BODY).filter(|value| !value.is_null()) else { return Ok(None) };
        if value.is_array() || value.is_object() {
            return Err(format!("the argument {BODY:?} is no text, and the body is text"));
        }
        let text = text(value);
        let media = match media::charset(&self.media) {
            None => format!("{}; charset=utf-8", self.media),
            // ASCII is the same in nearly all character sets.
            Some(charset) if !charset.eq_ignore_ascii_case("utf-8") && !text.is_ascii() => {
                return Err(format!(
                    "the argument {BODY:?} has characters beyond ASCII, and the API takes them as {charset:?}, \
                     which cannot be written; use ASCII only"
                ));
            }
            Some(_) => self.media.clone(),
        };
        Ok(Some((media, text.into_owned().into_bytes())))
    }

    fn binary(&self, arguments: &Object) -> Result<Option<Written>, String> {
        let Some(value) = arguments.get(BODY).filter(|value| !value.is_null()) else { return Ok(None) };
        let file = File::read(&format!("argument {BODY:?}"), value, Some(&self.media))?;
        Ok(Some((file.content_type, file.content)))
    }

    fn encoding(&self, property: &str) -> Option<&PropertyEncoding> {
        self.encodings.iter().find(|(name, _)| name == property).map(|(_, encoding)| encoding)
    }

    /// The properties of a form or multipart body, those that are null left out.
    fn fields<'a>(&'a self, arguments: &'a Object) -> Result<Vec<Field<'a>>, String> {
        let fields: Vec<Field<'_>> = match (&self.source, arguments.get(BODY)) {
            (Source::Fields(fields), _) => fields
                .iter()
                .filter_map(|(argument, name)| {
                    let value = arguments.get(argument)?;
                    Some(Field { whose: format!("argument {argument:?}"), name, value })
                })
                .collect(),
            (Source::Whole, None | Some(Value::Null)) => Vec::new(),
            (Source::Whole, Some(Value::Object(members))) => members
                .iter()
                .map(|(name, value)| Field {
                    whose: format!("property {name:?} of the argument {BODY:?}"),
                    name,
                    value,
                })
                .collect(),
            (Source::Whole, Some(_)) => {
                return Err(format!("the argument {BODY:?} is no object, and the body is a form"));
            }
        };
        Ok(fields.into_iter().filter(|field| !field.value.is_null()).collect())
    }
}

pub(super) struct Field<'a> {
    /// The argument that it comes from, for saying what is wrong with it.
    pub(super) whose: String,
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

/// The error for a body that is larger than may be sent.
pub(super) fn too_large(TooLong: TooLong) -> String {
    format!("the body would have more than {BODY_BYTES} bytes, which is the most that is sent; send less")
}
