//! The arguments of a tool that 2026-07-28 repeats in HTTP headers, and how a value is written there.
//!
//! A schema names an argument to be repeated with `x-mcp-header`; the header is then `Mcp-Param-<name>`. A value that a
//! header cannot hold is written as `=?base64?…?=`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;

pub const PARAM_PREFIX: &str = "Mcp-Param-";

const ANNOTATION: &str = "x-mcp-header";
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The whole name of the header, as the schema writes it.
    pub header: String,
    /// The names of the properties that lead to the argument.
    pub path: Vec<String>,
}

impl HeaderParam {
    /// The value of the header for these arguments (the text of an object), not yet encoded; `None` when the argument is
    /// absent.
    #[must_use]
    pub fn value<'a>(&self, arguments: &'a str) -> Option<Cow<'a, str>> {
        let text = self.find(arguments)?;
        match text.as_bytes().first()? {
            b'"' => crate::raw::string(text),
            b'n' | b'{' | b'[' => None,
            _ => Some(Cow::Borrowed(text)),
        }
    }

    /// Whether the argument is a text, which is compared letter by letter.
    pub(crate) fn is_text(&self, arguments: &str) -> bool {
        self.find(arguments).is_some_and(|text| text.starts_with('"'))
    }

    fn find<'a>(&self, arguments: &'a str) -> Option<&'a str> {
        self.path.iter().try_fold(arguments, |text, name| crate::raw::member(text, name))
    }
}

/// The arguments that a schema wants repeated in headers.
///
/// # Errors
/// Why the annotations of this schema cannot be followed; the tool must not be offered then.
pub fn header_params(input_schema: &Value) -> Result<Vec<HeaderParam>, String> {
    let mut found = Vec::new();
    walk(input_schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParam>) -> Result<(), String> {
    let Some(members) = schema.as_object() else { return Ok(()) };
    if let Some(name) = members.get(ANNOTATION) {
        let param = annotated(name, schema, path)?;
        if found.iter().any(|other| other.header.eq_ignore_ascii_case(&param.header)) {
            return Err(format!("{ANNOTATION} names {} twice", param.header));
        }
        found.push(param);
    }
    for (key, value) in members {
        match key.as_str() {
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    path.push(name.clone());
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            // These hold data, not schemas.
            ANNOTATION | "enum" | "const" | "default" | "examples" => {}
            _ if hides_annotation(value) => {
                return Err(format!("{ANNOTATION} stands under {key:?}; it may only stand under properties"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn annotated(name: &Value, schema: &Value, path: &[String]) -> Result<HeaderParam, String> {
    let place = path.join(".");
    let Some(name) = name.as_str().filter(|name| is_token(name)) else {
        return Err(format!("{ANNOTATION} of {place:?} is not the name of a header: {name}"));
    };
    let kinds: Vec<&Value> = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter(|kind| *kind != "null").collect(),
        Some(kind) => vec![kind],
        None => Vec::new(),
    };
    let repeatable = |kind: &&Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    if path.is_empty() || kinds.is_empty() || !kinds.iter().all(repeatable) {
        return Err(format!("{ANNOTATION} of {place:?} needs the type string, integer or boolean"));
    }
    Ok(HeaderParam { header: format!("{PARAM_PREFIX}{name}"), path: path.to_vec() })
}

/// Whether an annotation stands anywhere in a part of a schema that `properties` alone do not lead to.
fn hides_annotation(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| match key.as_str() {
            ANNOTATION => value.is_string(),
            "enum" | "const" | "default" | "examples" => false,
            _ => hides_annotation(value),
        }),
        Value::Array(items) => items.iter().any(hides_annotation),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Writes a value so that a header can hold it.
#[must_use]
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    if plain && !padded && encoded_part(value).is_none() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{ENCODED_START}{}{ENCODED_END}", STANDARD.encode(value)))
}

/// Undoes [`encode_value`].
///
/// # Errors
/// The value says that it is base64 and is not, or not of UTF-8 text.
pub fn decode_value(header: &str) -> Result<Cow<'_, str>, String> {
    let Some(encoded) = encoded_part(header) else { return Ok(Cow::Borrowed(header)) };
    let bytes = STANDARD.decode(encoded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Cow::Owned)
        .ok_or_else(|| "is not base64 of UTF-8 text".to_owned())
}

fn encoded_part(value: &str) -> Option<&str> {
    value.strip_prefix(ENCODED_START)?.strip_suffix(ENCODED_END)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(schema: &Value) -> Result<Vec<(String, String)>, String> {
        let params = header_params(schema)?;
        Ok(params.into_iter().map(|param| (param.header, param.path.join("."))).collect())
    }

    #[test]
    fn annotated_properties_are_found_at_any_depth() {
        let schema = json!({
            "type": "object",
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "x-mcp-header": { "type": "string" },
                "deep": { "type": "object", "default": { "x-mcp-header": "no" }, "properties": {
                    "n": { "type": ["integer", "null"], "x-mcp-header": "N" },
                } },
            },
        });
        let expected = [("Mcp-Param-Region", "region"), ("Mcp-Param-N", "deep.n")];
        assert_eq!(found(&schema).unwrap(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn annotations_that_cannot_be_followed_are_errors() {
        let property = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
        for name in ["", "My Region", "Region:1", "Région", "Region\t1"] {
            assert!(found(&property(json!({ "type": "string", "x-mcp-header": name }))).is_err(), "{name:?}");
        }
        for kind in ["object", "array", "null", "number"] {
            assert!(found(&property(json!({ "type": kind, "x-mcp-header": "A" }))).is_err(), "{kind}");
        }
        let annotated = json!({ "type": "string", "x-mcp-header": "A" });
        for hidden in [
            json!({ "x-mcp-header": "A", "type": "string" }),
            property(json!({ "items": annotated })),
            json!({ "anyOf": [{ "properties": { "a": annotated } }] }),
            json!({ "$defs": { "a": annotated } }),
            property(json!({ "x-mcp-header": "A" })),
            json!({ "properties": { "a": annotated, "b": { "type": "string", "x-mcp-header": "a" } } }),
        ] {
            assert!(found(&hidden).is_err(), "{hidden}");
        }
    }

    #[test]
    fn values_survive_a_header() {
        for value in [
            "",
            "us-west1",
            "us west 1",
            " padded ",
            "\tindented",
            "a\r\nb",
            "Hello, 世界",
            "=?base64?QQ==?=",
        ] {
            let header = encode_value(value);
            assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{header:?}");
            assert_eq!(header.trim(), header);
            assert_eq!(decode_value(&header).unwrap(), value);
        }
        assert_eq!(encode_value("us west 1"), "us west 1");
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8="] {
            assert_eq!(decode_value(literal).unwrap(), literal);
        }
        for wrong in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert!(decode_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_header_must_say_is_the_argument() {
        let param = |path: &[&str]| HeaderParam {
            header: String::new(),
            path: path.iter().map(|&name| name.to_owned()).collect(),
        };
        let arguments = r#"{"a":"\u0062","n":1.10,"t":true,"z":null,"o":{"p":7}}"#;
        for (path, value) in [
            (&["a"][..], Some("b")),
            (&["n"], Some("1.10")),
            (&["t"], Some("true")),
            (&["z"], None),
            (&["o"], None),
            (&["o", "p"], Some("7")),
            (&["x"], None),
        ] {
            assert_eq!(param(path).value(arguments).as_deref(), value, "{path:?}");
        }
    }
}
