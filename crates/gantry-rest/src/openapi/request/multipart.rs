//! Multipart bodies (RFC 7578).

use super::body::{Field, PropertyEncoding, too_large};
use super::file::File;
use crate::openapi::limits::BODY_BYTES;
use crate::openapi::media;
use crate::openapi::request::parameters::{Pairs, TooLong, text};
use gantry_core::digest::Digest;
use serde_json::Value;
use std::fmt::Write as _;

/// Bytes of each part beside its headers and its content: the boundary and line breaks.
const FRAME_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The headers of each, and its content.
    parts: Vec<(String, Vec<u8>)>,
    bytes: usize,
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Writes a property, as one part or as several.
    ///
    /// # Errors
    /// It is no file although one is wanted, or it is too large.
    pub(super) fn write(&mut self, field: &Field<'_>, encoding: &PropertyEncoding) -> Result<(), String> {
        let content_type = encoding.content_type.as_deref();
        if encoding.file {
            // Several files are several parts of one name.
            return elements(field.value).try_for_each(|value| {
                let file = File::read(&field.whose, value, content_type)?;
                self.add(field.name, Some(&file.filename), Some(&file.content_type), file.content)
            });
        }
        let Some(how) = encoding.serialization else {
            return elements(field.value).try_for_each(|value| self.value(field.name, value, content_type));
        };
        let mut pairs = Pairs::plain(BODY_BYTES);
        pairs.write(field.name, field.value, how).map_err(too_large)?;
        let mut pairs = pairs.into_pairs().into_iter();
        pairs.try_for_each(|(name, text)| self.add(&name, None, content_type, text.into_bytes()))
    }

    /// A part that the document says no more of than, at most, its media type.
    fn value(&mut self, name: &str, value: &Value, content_type: Option<&str>) -> Result<(), String> {
        let is_json = content_type.is_some_and(media::is_only_json);
        match value {
            Value::Null => Ok(()),
            Value::Array(_) | Value::Object(_) => {
                let content_type = content_type.unwrap_or("application/json");
                self.add(name, None, Some(content_type), value.to_string().into_bytes())
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let text = if is_json { json(value) } else { text(value).into_owned() };
                self.add(name, None, content_type, text.into_bytes())
            }
        }
    }

    fn add(
        &mut self,
        name: &str,
        filename: Option<&str>,
        content_type: Option<&str>,
        content: Vec<u8>,
    ) -> Result<(), String> {
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"", escaped(name));
        if let Some(filename) = filename {
            write!(head, "; filename=\"{}\"", escaped(filename)).ok(); // A `String` takes everything.
        }
        if let Some(content_type) = content_type {
            head.extend(["\r\nContent-Type: ", content_type]);
        }
        let bytes = head.len().saturating_add(content.len()).saturating_add(FRAME_BYTES);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BODY_BYTES {
            return Err(too_large(TooLong));
        }
        self.parts.push((head, content));
        Ok(())
    }

    /// The boundary, and the body with it. The boundary is a digest of the parts, so it does not occur in them, and equal
    /// requests have equal ones.
    pub(super) fn finish(self) -> (String, Vec<u8>) {
        let contents: Vec<&[u8]> =
            self.parts.iter().flat_map(|(head, content)| [head.as_bytes(), content]).collect();
        let boundary = format!("gantry-{}", Digest::of_parts(&contents).short(40));
        let mut body = Vec::with_capacity(self.bytes.saturating_add(FRAME_BYTES));
        for (head, content) in &self.parts {
            for piece in ["--", &boundary, "\r\n", head, "\r\n\r\n"] {
                body.extend_from_slice(piece.as_bytes());
            }
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (boundary, body)
    }
}

/// The elements of a list, or the value itself.
fn elements(value: &Value) -> std::slice::Iter<'_, Value> {
    match value {
        Value::Array(elements) => elements.iter(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            std::slice::from_ref(value).iter()
        }
    }
}

/// A value as JSON. A text that is an object or a list in JSON already stays as it is: callers give it so where the
/// document has a text whose media type is JSON.
fn json(value: &Value) -> String {
    if let Value::String(text) = value {
        let is_json = || serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        if text.trim_start().starts_with(['{', '[']) && is_json() {
            return text.clone();
        }
    }
    value.to_string()
}

/// A name between quotes, escaped as browsers do it, and other control characters too.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if character == '"' || character.is_ascii_control() {
            write!(out, "%{:02X}", u32::from(character)).ok(); // A `String` takes everything.
        } else {
            out.push(character);
        }
    }
    out
}
