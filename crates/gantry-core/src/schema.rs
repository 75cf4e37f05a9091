//! JSON Schema: compiled once per tool, with every cost bounded before it can be paid.
//!
//! A schema comes from a tool's provider and is as untrusted as the rest of it. So: no remote references, patterns
//! only on the linear engine, a static cost check that follows `$ref`s (`cost.rs`), formats not enforced.
//! A schema that does not pass quarantines its own tool and nothing else.

mod cost;
mod text;

pub use text::SchemaText;

use crate::limits;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde::Serialize;
use serde_json::Value;
use std::sync::OnceLock;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Larger than [`limits::SCHEMA_BYTES`].
    #[error("the schema has {bytes} bytes, more than the {} that are read", limits::SCHEMA_BYTES)]
    TooLarge { bytes: usize },
    /// Neither an object nor a boolean.
    #[error("a schema must be a JSON object")]
    NotASchema,
    /// A reference that leaves the document.
    #[error("the reference {reference:?} leaves the schema; only references that start with # are followed")]
    RemoteReference { reference: String },
    /// A reference to nothing.
    #[error("the reference {reference:?} points at nothing")]
    DanglingReference { reference: String },
    /// A reference that comes back to itself without consuming anything.
    #[error("the reference {reference:?} leads back to itself without end")]
    EndlessReference { reference: String },
    /// Following all references gives more than [`limits::SCHEMA_EXPANDED_NODES`] nodes.
    #[error(
        "the schema is too costly: its references expand to more than {} nodes",
        limits::SCHEMA_EXPANDED_NODES
    )]
    TooCostly,
    /// Deeper than [`limits::SCHEMA_DEPTH`].
    #[error("the schema is nested deeper than {} levels", limits::SCHEMA_DEPTH)]
    TooDeep,
    /// `$schema` names a dialect that is not known.
    #[error("the dialect {dialect:?} is not known; use draft-07 or 2020-12")]
    UnknownDialect { dialect: String },
    /// The library refuses it.
    #[error("{message}")]
    Invalid { message: String },
}

/// A field of the arguments that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer of the field; empty for the arguments as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// A schema that values can be held against.
#[derive(Debug)]
pub struct Schema {
    /// Nothing until it is first needed.
    compiled: OnceLock<Result<Compiled, Error>>,
    /// What to compile then.
    text: Option<SchemaText>,
    unenforced: Vec<String>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    recursion: cost::Recursion,
}

impl Schema {
    /// Checks the cost of a schema and compiles it.
    ///
    /// # Errors
    /// The schema is invalid, leaves the document, or could cost too much.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        let (compiled, unenforced) = compiled(schema)?;
        Ok(Self { compiled: OnceLock::from(Ok(compiled)), text: None, unenforced })
    }

    /// A schema of a tool: compiled now, unless somebody vouches for it, and then when the first value comes.
    ///
    /// # Errors
    /// The schema is compiled now, and is invalid, leaves the document, or could cost too much.
    pub fn of(text: &SchemaText) -> Result<Self, Error> {
        if !text.is_vouched() {
            return Self::compile(&text.value());
        }
        let mut unenforced = Vec::new();
        if text.as_str().contains("\"pattern") {
            relax(&mut text.value(), &mut unenforced);
        }
        Ok(Self { compiled: OnceLock::new(), text: Some(text.clone()), unenforced })
    }

    /// Keywords that are in the schema and not enforced, with the reason.
    #[must_use]
    pub fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// Checks what a schema costs, as [`Self::compile`] does first, without compiling it.
    ///
    /// # Errors
    /// The schema leaves the document, or could cost too much. Whether its keywords are valid only compiling tells.
    pub fn afford(schema: &Value) -> Result<(), Error> {
        affordable(schema).map(drop)
    }

    /// Checks a value, naming every field that does not fit.
    ///
    /// # Errors
    /// At most [`limits::VALIDATION_ERRORS`] violations; a last one says how many more there are.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let later = || {
            let schema = self.text.as_ref().map(SchemaText::value).unwrap_or_default();
            compiled(&schema).map(|(compiled, _)| compiled)
        };
        match self.compiled.get_or_init(later) {
            Ok(compiled) => compiled.check(value),
            // Nothing fits what cannot be understood.
            Err(error) => Err(whole(format!("this tool's input schema cannot be used: {error}"))),
        }
    }
}

impl Compiled {
    fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if !self.recursion.affords(value) {
            let message = "nested too deep for this tool's recursive schema; send a flatter value".to_owned();
            return Err(whole(message));
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let mut violations = Vec::new();
        let mut more = 0usize;
        for found in self.validator.iter_errors(value).flat_map(|error| violation(&error)) {
            if violations.len() < limits::VALIDATION_ERRORS {
                violations.push(found);
            } else {
                more += 1;
            }
        }
        violations.sort_by(|a, b| a.field.cmp(&b.field));
        if more > 0 {
            violations.push(Violation { field: String::new(), message: format!("and {more} more") });
        }
        Err(violations)
    }
}

/// What is wrong with the value as a whole.
fn whole(message: String) -> Vec<Violation> {
    vec![Violation { field: String::new(), message }]
}

/// The schema compiled, and what of it is not enforced.
fn compiled(schema: &Value) -> Result<(Compiled, Vec<String>), Error> {
    let recursion = affordable(schema)?;
    let mut unenforced = Vec::new();
    let validator = build(schema).or_else(|first| {
        let mut relaxed = schema.clone();
        relax(&mut relaxed, &mut unenforced);
        if unenforced.is_empty() { Err(first) } else { build(&relaxed) }
    })?;
    Ok((Compiled { validator, recursion }, unenforced))
}

fn affordable(schema: &Value) -> Result<cost::Recursion, Error> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(Error::NotASchema);
    }
    let bytes = schema.to_string().len();
    if bytes > limits::SCHEMA_BYTES {
        return Err(Error::TooLarge { bytes });
    }
    known_dialect(schema)?;
    cost::check(schema)
}

fn known_dialect(schema: &Value) -> Result<(), Error> {
    let Some(dialect) = schema.get("$schema").and_then(Value::as_str) else { return Ok(()) };
    let known = ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"];
    let host = dialect.trim_start_matches("https://").trim_start_matches("http://");
    let name = host
        .strip_prefix("json-schema.org/")
        .map(|rest| rest.trim_end_matches('#').trim_end_matches("/schema"));
    if name.is_some_and(|name| known.contains(&name)) {
        return Ok(());
    }
    Err(Error::UnknownDialect { dialect: dialect.chars().take(100).collect() })
}

fn build(schema: &Value) -> Result<Validator, Error> {
    let patterns = PatternOptions::regex()
        .size_limit(limits::SCHEMA_REGEX_BYTES)
        .dfa_size_limit(limits::SCHEMA_REGEX_BYTES);
    jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| Error::Invalid { message: format!("{} at {}", error.masked(), place(&error)) })
}

/// Where in a schema the library found the mistake.
fn place(error: &jsonschema::ValidationError<'_>) -> String {
    match error.instance_path().as_str() {
        "" => "its root".to_owned(),
        pointer => pointer.to_owned(),
    }
}

/// Takes out the patterns that the linear engine cannot run. A provider's schema checker often writes look-around;
/// refusing the whole tool for it would help nobody, and matching it could be made to take minutes.
fn relax(schema: &mut Value, unenforced: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let bad = members.get("pattern").and_then(Value::as_str).filter(|p| !runs(p)).map(str::to_owned);
            if let Some(pattern) = bad {
                members.shift_remove("pattern");
                unenforced.push(format!("pattern {pattern:?} (needs look-around or is too large)"));
            }
            if let Some(Value::Object(properties)) = members.get_mut("patternProperties") {
                let bad: Vec<String> = properties.keys().filter(|p| !runs(p)).cloned().collect();
                for pattern in &bad {
                    properties.shift_remove(pattern);
                    unenforced
                        .push(format!("patternProperties {pattern:?} (needs look-around or is too large)"));
                }
                if !bad.is_empty() {
                    // What those patterns allowed must not be refused as an additional property now.
                    members.shift_remove("additionalProperties");
                    members.shift_remove("unevaluatedProperties");
                }
            }
            members.values_mut().for_each(|member| relax(member, unenforced));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relax(item, unenforced)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn runs(pattern: &str) -> bool {
    build(&serde_json::json!({ "pattern": pattern })).is_ok()
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's list of kinds is open; most need no special words"
)]
fn violation(error: &jsonschema::ValidationError<'_>) -> Vec<Violation> {
    let parent = error.instance_path().as_str();
    let member = |name: &str, message: &str| Violation {
        field: format!("{parent}/{}", escaped(name)),
        message: message.to_owned(),
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            vec![member(property.as_str().unwrap_or_default(), "is required")]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|name| member(name, "is not known to this tool")).collect()
        }
        _ => {
            vec![Violation { field: parent.to_owned(), message: error.masked_with("the value").to_string() }]
        }
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
