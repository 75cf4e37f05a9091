//! Reads a document from JSON or YAML, and finds its version of OpenAPI.

use super::Version;
use super::yaml::{self, Read};
use crate::openapi::limits::DOCUMENT_BYTES;
use serde_json::Value;

/// Reads a document of at most `room` values.
pub(super) fn read(bytes: &[u8], room: usize) -> Result<Read, String> {
    if bytes.len() > DOCUMENT_BYTES {
        return Err(format!("it has more than {DOCUMENT_BYTES} bytes"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(syntax("it is UTF-16 text; save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| syntax(format!("it is not UTF-8 text, from byte {} on", error.valid_up_to())))?;
    match text.bytes().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err("it is empty".to_owned()),
        Some(b'<') => Err("it begins with \"<\", so it is a web page or other XML".to_owned()),
        Some(b'{' | b'[') => json(text, room),
        Some(_) => yaml::parse(text, room).map_err(syntax),
    }
}

/// Reads JSON, or YAML in flow style, which may have comments or a comma too many.
fn json(text: &str, room: usize) -> Result<Read, String> {
    let nodes = nodes(text);
    if nodes > room {
        return Err(syntax(format!("it has more than {room} values")));
    }
    match serde_json::from_str(text) {
        Ok(value) => Ok(Read { value, nodes, warnings: Vec::new() }),
        // If the text is not YAML either, the error of JSON says more.
        Err(error) => yaml::parse(text, room).ok().ok_or_else(|| syntax(error)),
    }
}

/// At least the number of values in a JSON text. A value takes far more memory than the bytes of `[],`, so they are
/// counted before any is made.
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

fn syntax(message: impl std::fmt::Display) -> String {
    format!("it cannot be read as JSON or YAML: {message}")
}

/// The version of OpenAPI that a document states.
pub(super) fn version(root: &Value) -> Result<Version, String> {
    let Some(members) = root.as_object() else {
        let found = if root.is_array() { "a list" } else { "plain text" };
        return Err(format!("it has {found} at its top, where an OpenAPI document has an object"));
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
    Err(match other_format(root) {
        Some(other) => format!("it is {other}, not an OpenAPI document"),
        None => {
            "it has neither \"openapi\" nor \"swagger\" at its top, so it is no OpenAPI document".to_owned()
        }
    })
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

fn unknown(name: &str, version: &str) -> String {
    let version: String = version.chars().take(20).filter(|character| !character.is_control()).collect();
    format!("its version is {name} {version}; 2.0, 3.0 and 3.1 are read")
}

/// A format that is often mistaken for OpenAPI.
fn other_format(root: &Value) -> Option<&'static str> {
    let text = |pointer: &str| root.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if root.pointer("/info/_postman_id").is_some() || text("/info/schema").contains("getpostman.com") {
        return Some("a Postman collection");
    }
    if root.get("asyncapi").is_some() {
        return Some("an AsyncAPI document");
    }
    if text("/kind").starts_with("discovery#") {
        return Some("a Google API Discovery document");
    }
    text("/$schema").contains("json-schema.org").then_some("a JSON Schema")
}
