//! Files in arguments.

use super::body::too_large;
use crate::Object;
use crate::openapi::limits::BODY_BYTES;
use crate::openapi::media;
use crate::openapi::request::parameters::TooLong;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

/// Accepts base64 with and without padding, which models forget.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) content: Vec<u8>,
    pub(super) filename: String,
    pub(super) content_type: String,
}

impl File {
    /// The file that a value stands for, with the media type that the document demands of it.
    ///
    /// # Errors
    /// Says what is wrong with it; `whose` names the argument.
    pub(super) fn read(whose: &str, value: &Value, demanded: Option<&str>) -> Result<Self, String> {
        let Some(members) = value.as_object() else {
            return Err(format!("the {whose} is no file: a file is an object with \"content\""));
        };
        let Some(text) = member(whose, members, "content")? else {
            return Err(format!("the {whose} is no file: it has no \"content\""));
        };
        let (content, usual) = match member(whose, members, "encoding")? {
            None | Some("utf-8" | "utf8" | "UTF-8") => (text.as_bytes().to_vec(), "text/plain"),
            Some("base64") => (decode(whose, text)?, "application/octet-stream"),
            Some(other) => {
                return Err(format!(
                    "the {whose} has the encoding {other:?}; there are \"utf-8\" and \"base64\""
                ));
            }
        };
        let content_type = match member(whose, members, "contentType")? {
            Some(given) if !media::is_valid(given) => {
                return Err(format!(
                    "the {whose} has the content type {given:?}, which is none; write it like \"image/png\""
                ));
            }
            Some(given) => given,
            None => demanded.unwrap_or(usual),
        };
        let filename = member(whose, members, "filename")?.filter(|name| !name.is_empty()).unwrap_or("file");
        Ok(Self { content, filename: filename.to_owned(), content_type: content_type.to_owned() })
    }
}

/// The text of a member, if there is one.
fn member<'a>(whose: &str, members: &'a Object, name: &str) -> Result<Option<&'a str>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(format!("the {whose} has a {name:?} that is no text"))
        }
    }
}

fn decode(whose: &str, text: &str) -> Result<Vec<u8>, String> {
    // Limit: base64 has four bytes for three; half as much again is for line breaks.
    if text.len() / 2 > BODY_BYTES {
        return Err(too_large(TooLong));
    }
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(digits).map_err(|error| format!("the {whose} has \"content\" that is not base64: {error}"))
}
