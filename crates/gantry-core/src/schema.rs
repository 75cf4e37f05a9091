//! JSON Schema: compiled once per tool, with every cost bounded before it can be paid.
//!
//! A schema comes from a tool's provider and is as untrusted as the rest of it. So: no remote references, patterns
//! only on the linear engine, a static cost check that follows `$ref`s (`cost.rs`), formats not enforced.
//! A schema that does not pass quarantines its own tool and nothing else.

mod cost;
mod patterns;
mod text;

pub use patterns::Patience;
pub use text::SchemaText;

use crate::limits;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use patterns::Relaxed;
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
    /// References are read from the nearest `$id`, which is not followed here.
    #[error(
        "a part of the schema has an $id of its own ({id:?}), which cannot be together with references; leave it out"
    )]
    EmbeddedId { id: String },
    /// An anchor that could mean two schemas.
    #[error("the anchor {anchor:?} stands twice in the schema; give each a name of its own")]
    DoubleAnchor { anchor: String },
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

/// Visits up to which it is told what does not fit: that takes more, and memory for each.
const EXPLAINED_VISITS: u64 = 50_000;

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
    graph: cost::Graph,
}

impl Schema {
    /// Checks the cost of a schema and compiles it.
    ///
    /// # Errors
    /// The schema is invalid, leaves the document, or could cost too much.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        // What it costs first: looking at patterns is work too.
        let graph = affordable(schema)?;
        Self::compile_with(schema, Relaxed::of(schema, &mut Patience::default()), graph)
    }

    fn compile_with(schema: &Value, relaxed: Relaxed, graph: cost::Graph) -> Result<Self, Error> {
        let (validator, unenforced) = validator(schema, relaxed)?;
        let compiled = OnceLock::from(Ok(Compiled { validator, graph }));
        Ok(Self { compiled, text: None, unenforced })
    }

    /// A schema of a tool: compiled now, unless somebody vouches for it and it is quick, and then when the first value
    /// comes. Whoever brings that value waits for it, and with him a worker that others need.
    ///
    /// # Errors
    /// The schema is compiled now, and is invalid, leaves the document, or could cost too much.
    pub fn of(text: &SchemaText, patience: &mut Patience) -> Result<Self, Error> {
        let mut unenforced = Vec::new();
        if !text.is_vouched() || text.as_str().contains("\"pattern") {
            let schema = text.value();
            let graph = affordable(&schema)?;
            let relaxed = Relaxed::of(&schema, patience);
            if !text.is_vouched() || !relaxed.is_quick() {
                return Self::compile_with(&schema, relaxed, graph);
            }
            unenforced = relaxed.unenforced;
        }
        Ok(Self { compiled: OnceLock::new(), text: Some(text.clone()), unenforced })
    }

    /// Keywords that are in the schema and not enforced, with the reason.
    #[must_use]
    pub fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// Checks what a schema costs, as [`Self::compile`] does first, without compiling it. Returns how deep the values
    /// may be that are held against it.
    ///
    /// # Errors
    /// The schema leaves the document, or could cost too much. Whether its keywords are valid only compiling tells.
    pub fn afford(schema: &Value) -> Result<usize, Error> {
        presentable(schema)?;
        cost::depth(schema)
    }

    /// Compiles it, if that has not been done yet.
    ///
    /// # Errors
    /// Whoever vouched for it was wrong: it is invalid, leaves the document, or could cost too much. No value fits it.
    pub fn ready(&self) -> Result<(), &Error> {
        self.compiled().as_ref().map(drop)
    }

    /// Checks a value, naming every field that does not fit.
    ///
    /// # Errors
    /// At most [`limits::VALIDATION_ERRORS`] violations; a last one says how many more there are.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        match self.compiled() {
            Ok(compiled) => compiled.check(value),
            // Nothing fits what cannot be understood.
            Err(error) => Err(whole(format!("this tool's input schema cannot be used: {error}"))),
        }
    }

    fn compiled(&self) -> &Result<Compiled, Error> {
        self.compiled.get_or_init(|| {
            let schema = self.text.as_ref().map(SchemaText::value).unwrap_or_default();
            let graph = affordable(&schema)?;
            // Its patterns have been looked at.
            let relaxed = match self.unenforced.as_slice() {
                [] => Relaxed::default(),
                _ => Relaxed::of(&schema, &mut Patience::default()),
            };
            let (validator, _) = validator(&schema, relaxed)?;
            Ok(Compiled { validator, graph })
        })
    }
}

impl Compiled {
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
            // Several ways through a schema find the same.
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

/// What is wrong with the value as a whole.
fn whole(message: String) -> Vec<Violation> {
    vec![Violation { field: String::new(), message }]
}

/// The schema compiled, and what of it is not enforced.
fn validator(schema: &Value, relaxed: Relaxed) -> Result<(Validator, Vec<String>), Error> {
    let Relaxed { schema: without, unenforced, is_cut, .. } = relaxed;
    let without = without.filter(|_| !unenforced.is_empty());
    match without {
        None => Ok((build(schema, limits::SCHEMA_REGEX_BYTES)?, Vec::new())),
        Some(without) => {
            // What looks like a pattern may be data, and then it hinders nothing.
            let whole = if is_cut { None } else { build(schema, limits::SCHEMA_REGEX_BYTES).ok() };
            match whole {
                Some(whole) => Ok((whole, Vec::new())),
                None => Ok((build(&without, limits::SCHEMA_REGEX_BYTES)?, unenforced)),
            }
        }
    }
}

fn affordable(schema: &Value) -> Result<cost::Graph, Error> {
    presentable(schema)?;
    cost::check(schema)
}

/// Looks at what can be told of a schema without going through it.
fn presentable(schema: &Value) -> Result<(), Error> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(Error::NotASchema);
    }
    let bytes = schema.to_string().len();
    if bytes > limits::SCHEMA_BYTES {
        return Err(Error::TooLarge { bytes });
    }
    known_dialect(schema)
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

/// Compiles a schema whose patterns each take no more memory than this.
fn build(schema: &Value, pattern_bytes: usize) -> Result<Validator, Error> {
    let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
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
