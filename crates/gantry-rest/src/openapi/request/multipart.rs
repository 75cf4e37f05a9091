//! Bodies of several parts, as RFC 7578 has them.

use super::body::{Field, Part, media, too_large};
use super::file::File;
use crate::openapi::limits::BODY_BYTES;
use crate::openapi::request::parameters::{Form, Pairs, Sheet, TooLong, text};
use gantry_core::digest::Digest;
use serde_json::Value;
use std::fmt::Write as _;

/// What each part has beside its headers and its content: the boundary and line breaks.
const FRAME_BYTES: usize = 64;
/// How often another boundary is tried. One that comes from the digest of a content does not occur in it.
const BOUNDARIES: usize = 8;

/// The parts of a body.
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
    pub(super) fn write(&mut self, field: &Field<'_>, part: Option<&Part>) -> Result<(), String> {
        let demanded = part.and_then(|part| part.content_type.as_deref());
        if part.is_some_and(|part| part.file) {
            // Several files are several parts of one name.
            return elements(field.value).try_for_each(|value| self.file(field, value, demanded));
        }
        let content_type = demanded.and_then(media::first);
        match part.and_then(|part| part.form.as_ref()) {
            Some(Form::Json) => {
                let content_type = content_type.unwrap_or("application/json");
                self.add(field.name, None, Some(content_type), json(field.value).into_bytes())
            }
            Some(form @ Form::Styled { .. }) => {
                let mut pairs = Pairs::new(Sheet::Parts, BODY_BYTES);
                pairs.write(field.name, field.value, form).map_err(too_large)?;
                let mut pairs = pairs.into_pairs().into_iter();
                pairs.try_for_each(|(name, text)| self.add(&name, None, content_type, text.into_bytes()))
            }
            None => elements(field.value).try_for_each(|value| self.value(field.name, value, content_type)),
        }
    }

    /// A part that the document says no more of than, at most, its media type.
    fn value(&mut self, name: &str, value: &Value, content_type: Option<&str>) -> Result<(), String> {
        let is_json = content_type.is_some_and(media::is_json);
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

    fn file(&mut self, field: &Field<'_>, value: &Value, demanded: Option<&str>) -> Result<(), String> {
        let file = File::read(field, value, demanded)?;
        self.add(field.name, Some(&file.filename), Some(&file.content_type), file.content)
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

    /// The boundary, and the body with it. The same parts have the same boundary, so that a request can be compared
    /// with another.
    ///
    /// # Errors
    /// There is no boundary, which does not happen.
    pub(super) fn finish(self) -> Result<(String, Vec<u8>), String> {
        let contents: Vec<&[u8]> =
            self.parts.iter().flat_map(|(head, content)| [head.as_bytes(), content]).collect();
        let boundary = boundary(&contents, Digest::of_parts(&contents))
            .ok_or("the parts hold every boundary that could stand between them")?;
        let mut body = Vec::with_capacity(self.bytes.saturating_add(FRAME_BYTES));
        for (head, content) in &self.parts {
            for piece in ["--", &boundary, "\r\n", head, "\r\n\r\n"] {
                body.extend_from_slice(piece.as_bytes());
            }
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok((boundary, body))
    }
}

/// A boundary that occurs in none of these.
pub(super) fn boundary(contents: &[&[u8]], seed: Digest) -> Option<String> {
    let digests = std::iter::successors(Some(seed), |digest| Some(Digest::of(digest.as_bytes())));
    let mut boundaries = digests.take(BOUNDARIES).map(|digest| format!("gantry-{}", digest.short(40)));
    boundaries.find(|boundary| !contents.iter().any(|content| occurs(boundary.as_bytes(), content)))
}

fn occurs(needle: &[u8], content: &[u8]) -> bool {
    let Some(first) = needle.first() else { return true };
    let mut rest = content;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(needle) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
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

/// A value as JSON. Where a document has a text whose media type is JSON, what is given is often the JSON itself; it is
/// not made a text of JSON again.
fn json(value: &Value) -> String {
    if let Value::String(text) = value {
        let is_json = || serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        if text.trim_start().starts_with(['{', '[']) && is_json() {
            return text.clone();
        }
    }
    value.to_string()
}

/// A name between quotes, as browsers write it. They leave other control characters as they are; nobody misses those.
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
