//! JSON Schema: compiled once per tool, with bounded cost.
//!
//! A tool's provider writes the schema, so it is untrusted: no remote references, patterns only on the linear engine, a
//! cost check before it is compiled (`cost.rs`), formats not enforced. A schema that fails quarantines its own tool and
//! nothing else.

mod cost;
mod patterns;
mod text;

pub use text::SchemaText;

use crate::limits;
use crate::truncate::truncate;
use cost::Graph;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use patterns::Patterns;
use serde::Serialize;
use serde_json::Value;
use std::sync::OnceLock;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the schema has {bytes} bytes, more than the {} that are read", limits::SCHEMA_BYTES)]
    TooLarge { bytes: usize },
    #[error("a schema must be a JSON object")]
    NotASchema,
    #[error("the reference {reference:?} leaves the schema; only references that start with # are followed")]
    RemoteReference { reference: String },
    #[error("the reference {reference:?} points at nothing")]
    DanglingReference { reference: String },
    /// A reference that leads back to itself on the same value.
    #[error("the reference {reference:?} leads back to itself without end")]
    EndlessReference { reference: String },
    /// References are relative to the nearest `$id`, which the cost check does not follow.
    #[error(
        "a part of the schema has an $id of its own ({id:?}), which cannot be together with references; leave it out"
    )]
    EmbeddedId { id: String },
    #[error("the anchor {anchor:?} stands twice in the schema; give each a name of its own")]
    DoubleAnchor { anchor: String },
    #[error(
        "the schema is too costly: its references expand to more than {} nodes",
        limits::SCHEMA_EXPANDED_NODES
    )]
    TooCostly,
    #[error("the schema is nested deeper than {} levels", limits::SCHEMA_DEPTH)]
    TooDeep,
    #[error("the dialect {dialect:?} is not known; use draft-07 or 2020-12")]
    UnknownDialect { dialect: String },
    /// The validator refuses it.
    #[error("{message}")]
    Invalid { message: String },
}

/// Limit: visits up to which a check lists what does not fit. Each error takes time and memory.
const EXPLAINED_VISITS: u64 = 50_000;

/// Patterns of a trusted schema that its first caller may wait for.
const QUICK_PATTERNS: usize = 32;

/// A field of the arguments that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer of the field; empty for the arguments as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// A schema that checks values.
#[derive(Debug)]
pub struct Schema {
    compiled: OnceLock<Result<Compiled, Error>>,
    /// The schema that is compiled on first use.
    text: Option<SchemaText>,
    unenforced: Vec<String>,
    most_patterns: usize,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    graph: Graph,
}

impl Schema {
    /// Checks the cost of a schema and compiles it.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        Self::compile_with(schema.clone(), &mut Patterns::at_most(limits::SCHEMA_PATTERNS))
    }

    fn compile_with(schema: Value, patterns: &mut Patterns) -> Result<Self, Error> {
        let compiled = OnceLock::from(Ok(Compiled::new(schema, patterns)?));
        let unenforced = std::mem::take(&mut patterns.unenforced);
        Ok(Self { compiled, text: None, unenforced, most_patterns: patterns.most })
    }

    /// Compiles the schema of a tool now. Trusted schemas with few patterns are compiled on first use; that blocks the
    /// worker thread of the first call. `budget` is how many patterns the schemas of its provider may still have; patterns
    /// beyond it are not enforced.
    pub(crate) fn of(text: &SchemaText, budget: &mut usize) -> Result<Self, Error> {
        let mut patterns = Patterns::at_most(limits::SCHEMA_PATTERNS.min(*budget));
        let schema = if text.is_trusted() {
            Self::defer(text, &mut patterns)
        } else {
            Self::compile_with(text.value(), &mut patterns)
        };
        *budget = budget.saturating_sub(patterns.count());
        schema
    }

    fn defer(text: &SchemaText, patterns: &mut Patterns) -> Result<Self, Error> {
        if text.as_str().contains("\"pattern") {
            let mut schema = text.value();
            Self::check_cost(&schema)?;
            patterns.relax(&mut schema);
            if patterns.count() > QUICK_PATTERNS {
                return Self::compile_with(schema, patterns);
            }
        }
        let unenforced = std::mem::take(&mut patterns.unenforced);
        Ok(Self {
            compiled: OnceLock::new(),
            text: Some(text.clone()),
            unenforced,
            most_patterns: patterns.most,
        })
    }

    /// Keywords that are in the schema and not enforced, with the reason.
    pub fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// Checks the cost of a schema without compiling it.
    ///
    /// # Errors
    /// The schema leaves the document or could cost too much. Invalid keywords are found by compiling only.
    pub fn check_cost(schema: &Value) -> Result<(), Error> {
        check_cost(schema).map(drop)
    }

    /// Compiles the schema, if that has not been done yet.
    ///
    /// # Errors
    /// The schema was trusted and yet is invalid, leaves the document, or could cost too much. No value fits it.
    pub fn ensure_compiled(&self) -> Result<(), &Error> {
        self.compiled().as_ref().map(drop)
    }

    /// Checks a value, naming every field that does not fit.
    ///
    /// # Errors
    /// At most [`limits::VALIDATION_ERRORS`] violations; a last one says how many more there are.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        match self.compiled() {
            Ok(compiled) => compiled.check(value),
            Err(error) => Err(whole(format!("this tool's input schema cannot be used: {error}"))),
        }
    }

    fn compiled(&self) -> &Result<Compiled, Error> {
        self.compiled.get_or_init(|| {
            let schema = self.text.as_ref().map(SchemaText::value).unwrap_or_default();
            Compiled::new(schema, &mut Patterns::at_most(self.most_patterns))
        })
    }
}

impl Compiled {
    fn new(mut schema: Value, patterns: &mut Patterns) -> Result<Self, Error> {
        // The cost first: trying patterns is work too.
        let graph = check_cost(&schema)?;
        patterns.relax(&mut schema);
        Ok(Self { validator: build(&schema)?, graph })
    }

    fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(visits) = self.graph.visits(value) else {
            let message = "too large or nested too deep for the alternatives and the recursion of this tool's schema; send a \
                           smaller or flatter value";
            return Err(whole(message.to_owned()));
        };
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if visits > EXPLAINED_VISITS {
            let message = "does not fit this tool's schema, which has too many alternatives to say where";
            return Err(whole(message.to_owned()));
        }
        Err(self.violations(value))
    }

    fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut more = 0usize;
        for found in self.validator.iter_errors(value).flat_map(|error| violation(&error)) {
            // Several branches of a schema can report the same.
            if violations.contains(&found) {
                continue;
            }
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
        violations
    }
}

fn whole(message: String) -> Vec<Violation> {
    vec![Violation { field: String::new(), message }]
}

fn check_cost(schema: &Value) -> Result<Graph, Error> {
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
    Err(Error::UnknownDialect { dialect: truncate(dialect, 100).to_owned() })
}

fn build(schema: &Value) -> Result<Validator, Error> {
    let limit = limits::SCHEMA_REGEX_BYTES;
    let patterns = PatternOptions::regex().size_limit(limit).dfa_size_limit(limit);
    jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| Error::Invalid { message: format!("{} at {}", error.masked(), place(&error)) })
}

/// Where in a schema the validator found the mistake.
fn place(error: &jsonschema::ValidationError<'_>) -> String {
    match error.instance_path().as_str() {
        "" => "its root".to_owned(),
        pointer => pointer.to_owned(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the validator's list of kinds is open; most need no special words"
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
