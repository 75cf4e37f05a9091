//! The patterns of a schema that are enforced.
//!
//! A pattern of ten characters can take milliseconds to compile, and a schema has room for thousands of them. So a
//! schema has a number of patterns, each with a size. The other ones are not enforced, and neither are those that the linear
//! engine cannot run: matching them could take minutes.

use super::cost::{DATA, NAMED};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Limit: bytes of one pattern and of all different ones of a schema. Parsing `\p{L}` takes far longer than its length.
const PATTERN_BYTES: usize = 2 * 1024;
const PATTERNS_BYTES: usize = 32 * 1024;

#[derive(Debug)]
pub(super) struct Patterns {
    /// Limit: different patterns that are enforced.
    pub(super) most: usize,
    /// The patterns that [`Self::relax`] removed, with the reason.
    pub(super) unenforced: Vec<String>,
    /// Which patterns were tried, each with the reason why it is not enforced.
    tried: HashMap<String, Option<&'static str>>,
    bytes: usize,
}

impl Patterns {
    pub(super) fn at_most(most: usize) -> Self {
        Self { most, unenforced: Vec::new(), tried: HashMap::new(), bytes: 0 }
    }

    /// Removes the patterns that are not enforced from a schema.
    pub(super) fn relax(&mut self, schema: &mut Value) {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(|item| self.relax(item));
        }
        let Value::Object(members) = schema else { return };
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
                // Members that those patterns allowed must not be refused as additional ones now.
                members.shift_remove("additionalProperties");
                members.shift_remove("unevaluatedProperties");
            }
        }
        for (keyword, member) in members.iter_mut() {
            match (&**keyword, member) {
                (keyword, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                    schemas.values_mut().for_each(|schema| self.relax(schema));
                }
                (keyword, _) if DATA.contains(&keyword) => {}
                (_, member) => self.relax(member),
            }
        }
    }

    /// How many different patterns were compiled.
    pub(super) fn count(&self) -> usize {
        self.tried.len()
    }

    fn fault(&mut self, pattern: &str) -> Option<&'static str> {
        if let Some(known) = self.tried.get(pattern) {
            return *known;
        }
        if pattern.len() > PATTERN_BYTES {
            return Some("is too long");
        }
        self.bytes += pattern.len();
        if self.tried.len() >= self.most || self.bytes > PATTERNS_BYTES {
            return Some("there are too many patterns");
        }
        let runs = super::build(&json!({ "pattern": pattern })).is_ok();
        let fault = (!runs).then_some("needs look-around or is too large");
        self.tried.insert(pattern.to_owned(), fault);
        fault
    }
}
