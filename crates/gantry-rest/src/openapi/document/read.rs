//! From bytes to a value, and which version of OpenAPI that is.

use super::yaml::{self, Read};
use super::{DocumentError, Version};
use crate::openapi::limits::DOCUMENT_BYTES;
use serde_json::Value;

/// What is in a document. It may have as many values as `room`.
pub(super) fn read(bytes: &[u8], room: usize) -> Result<Read, DocumentError> {
    if bytes.len() > DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge(DOCUMENT_BYTES));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(syntax("it is UTF-16 text; save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        syntax(format!("it is not UTF-8 text, from byte {place} on"))
    })?;
    match text.bytes().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(DocumentError::NotOpenApi("it is empty".to_owned())),
        Some(b'<') => Err(DocumentError::NotOpenApi(
            "it begins with \"<\", so it is a web page or other XML".to_owned(),
        )),
        Some(b'{' | b'[') => json(text, room),
        Some(_) => yaml::parse(text, room).map_err(syntax),
    }
}

/// JSON, or YAML that looks like it: with comments or a comma too many, say.
fn json(text: &str, room: usize) -> Result<Read, DocumentError> {
    let nodes = nodes(text);
    if nodes > room {
        return Err(syntax(format!("it has more than {room} values")));
    }
    let wrong: serde_json::Error = match serde_json::from_str(text) {
        Ok(value) => return Ok(Read { value, nodes, warnings: Vec::new() }),
        Err(error) => error,
    };
    // Where it is neither, what is wrong with it as JSON says more.
    yaml::parse(text, room).ok().ok_or_else(|| syntax(wrong.to_string()))
}

/// At least as many values as a JSON text has. A value takes far more memory than `[],` has bytes, so this is known
/// before any is made.
fn nodes(text: &str) -> usize {
    let mut nodes = 1;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => nodes += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    nodes
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

fn syntax(message: impl Into<String>) -> DocumentError {
    DocumentError::Syntax(message.into())
}

/// Which version of OpenAPI a document has.
pub(super) fn version(root: &Value) -> Result<Version, DocumentError> {
    let Some(members) = root.as_object() else {
        let found = match root {
            Value::Array(_) => "a list",
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                "plain text"
            }
        };
        let told = format!("it has {found} at its top, where an OpenAPI document has an object");
        return Err(DocumentError::NotOpenApi(told));
    };
    if let Some(version) = members.get("openapi").and_then(text) {
        return match series(&version).as_str() {
            "3" | "3.0" => Ok(Version::V3),
            "3.1" | "3.2" => Ok(Version::V31),
            _ => Err(unknown("OpenAPI", &version)),
        };
    }
    if let Some(version) = members.get("swagger").or_else(|| members.get("swaggerVersion")).and_then(text) {
        return match series(&version).as_str() {
            "2" | "2.0" => Ok(Version::V2),
            _ => Err(unknown("Swagger", &version)),
        };
    }
    Err(DocumentError::NotOpenApi(match other(root) {
        Some(other) => format!("it is {other}, not an OpenAPI document"),
        None => {
            "it has neither \"openapi\" nor \"swagger\" at its top, so it is no OpenAPI document".to_owned()
        }
    }))
}

/// A version as text; without quotes it is a number in YAML.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The first two parts of a version.
fn series(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn unknown(name: &str, version: &str) -> DocumentError {
    let version: String = version.chars().take(20).filter(|character| !character.is_control()).collect();
    DocumentError::NotOpenApi(format!("its version is {name} {version}; 2.0, 3.0 and 3.1 are read"))
}

/// What else it is, if it is something that people take for OpenAPI.
fn other(root: &Value) -> Option<&'static str> {
    let told = |pointer: &str| root.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if root.pointer("/info/_postman_id").is_some() || told("/info/schema").contains("getpostman.com") {
        return Some("a Postman collection");
    }
    if root.get("asyncapi").is_some() {
        return Some("an AsyncAPI document");
    }
    if told("/kind").starts_with("discovery#") {
        return Some("a Google API Discovery document");
    }
    told("/$schema").contains("json-schema.org").then_some("a JSON Schema")
}
