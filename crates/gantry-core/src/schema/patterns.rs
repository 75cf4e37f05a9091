//! The patterns of a schema: which of them are enforced, and what it may cost to find that out.
//!
//! A pattern of ten characters can take ten milliseconds to compile, and a schema has room for thousands of them. So
//! each is tried once in a schema, only so many are tried, and only so few of the large ones. What is beyond that, or
//! what the linear engine cannot run, is not enforced: matching it could be made to take minutes.

use crate::limits::SCHEMA_REGEX_BYTES;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What a pattern may take when it is compiled and still be light: it takes well under a millisecond then.
const LIGHT_BYTES: usize = 64 * 1024;
/// Different patterns of a schema that are tried.
const PATTERNS: usize = 512;
/// Those among them that are not light.
const HEAVY: usize = 32;
/// Bytes of a pattern, and of all different ones: reading `\p{L}` takes far longer than it is long.
const PATTERN_BYTES: usize = 2 * 1024;
const PATTERNS_BYTES: usize = 32 * 1024;

/// The same of all schemas of a provider.
const ALL_PATTERNS: usize = 20_000;
const ALL_HEAVY: usize = 256;

/// Patterns of a schema that can be compiled while somebody waits.
const QUICK_PATTERNS: usize = 32;
/// Those among them that are not light.
const QUICK_HEAVY: usize = 1;

/// How many patterns the schemas of a provider may still have. One provider must not keep all others waiting.
#[derive(Debug)]
pub struct Patience {
    patterns: usize,
    heavy: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self { patterns: ALL_PATTERNS, heavy: ALL_HEAVY }
    }
}

/// A schema without the patterns that are not enforced.
#[derive(Debug, Default)]
pub(super) struct Relaxed {
    /// The schema, if it has any patterns at all.
    pub(super) schema: Option<Value>,
    /// What was taken out of it, and why.
    pub(super) unenforced: Vec<String>,
    /// Whether there are so many patterns that the schema must not be compiled with all of them.
    pub(super) is_cut: bool,
    /// Which patterns were tried, each with why it is not enforced, if it is not.
    tried: HashMap<String, Option<&'static str>>,
    heavy: usize,
    bytes: usize,
    /// How many may be tried, and how many of those may be large.
    most: (usize, usize),
}

impl Relaxed {
    /// Looks at the patterns of a schema.
    pub(super) fn of(schema: &Value, patience: &mut Patience) -> Self {
        let most = (PATTERNS.min(patience.patterns), HEAVY.min(patience.heavy));
        let mut relaxed = Self { most, ..Self::default() };
        if has_patterns(schema) {
            let mut schema = schema.clone();
            relaxed.relax(&mut schema);
            relaxed.schema = Some(schema);
            patience.patterns -= relaxed.tried.len();
            patience.heavy -= relaxed.heavy;
        }
        relaxed
    }

    /// Whether all its patterns can be compiled while somebody waits.
    pub(super) fn is_quick(&self) -> bool {
        !self.is_cut && self.tried.len() <= QUICK_PATTERNS && self.heavy <= QUICK_HEAVY
    }

    fn relax(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                let pattern = members.get("pattern").and_then(Value::as_str).map(str::to_owned);
                if let Some((pattern, why)) = pattern.and_then(|it| self.fault(&it).map(|why| (it, why))) {
                    members.shift_remove("pattern");
                    self.unenforced.push(format!("pattern {pattern:?} ({why})"));
                }
                if let Some(Value::Object(properties)) = members.get_mut("patternProperties") {
                    let before = properties.len();
                    properties.retain(|pattern, _| match self.fault(pattern) {
                        Some(why) => {
                            self.unenforced.push(format!("patternProperties {pattern:?} ({why})"));
                            false
                        }
                        None => true,
                    });
                    if properties.len() < before {
                        // What those patterns allowed must not be refused as an additional property now.
                        members.shift_remove("additionalProperties");
                        members.shift_remove("unevaluatedProperties");
                    }
                }
                members.values_mut().for_each(|member| self.relax(member));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.relax(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Why a pattern is not enforced.
    fn fault(&mut self, pattern: &str) -> Option<&'static str> {
        if let Some(known) = self.tried.get(pattern) {
            return *known;
        }
        self.bytes += pattern.len();
        if pattern.len() > PATTERN_BYTES {
            self.is_cut = true;
            return Some("is too long");
        }
        if self.tried.len() >= self.most.0 || self.bytes > PATTERNS_BYTES {
            self.is_cut = true;
            return Some("there are too many patterns");
        }
        let fault = self.trial(pattern);
        self.tried.insert(pattern.to_owned(), fault);
        fault
    }

    fn trial(&mut self, pattern: &str) -> Option<&'static str> {
        let schema = json!({ "pattern": pattern });
        if super::build(&schema, LIGHT_BYTES).is_ok() {
            return None;
        }
        if self.heavy >= self.most.1 {
            self.is_cut = true;
            return Some("there are too many large patterns");
        }
        self.heavy += 1;
        let runs = super::build(&schema, SCHEMA_REGEX_BYTES).is_ok();
        (!runs).then_some("needs look-around or is too large")
    }
}

fn has_patterns(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("pattern")
                || members.contains_key("patternProperties")
                || members.values().any(has_patterns)
        }
        Value::Array(items) => items.iter().any(has_patterns),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
