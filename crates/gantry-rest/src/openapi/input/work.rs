//! What the schemas of all operations may cost together.
//!
//! One operation is bounded by itself, but a document of a few kilobytes can refer to the same large schema from
//! thousands of them. What is counted is everything that is looked at and made, kept or not, and beside that the memory
//! that is kept. No clock is asked, so that a document has the same tools on every machine.

use crate::openapi::limits::OPERATIONS;
use crate::openapi::schema::{Attempt, LOOK_BYTES, Misfit};
use crate::openapi::spot::Spot;
use gantry_core::schema::SchemaText;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What all of them may take at least, as bytes of schema that are made.
const EFFORT: usize = 160 << 20;

/// The same for each operation, where there are many. It is enough for the largest public documents.
const EFFORT_EACH: usize = 16 << 10;

/// Bytes of text that may be kept of them. Tools with equal schemas share them, but each is listed with its own, so
/// each counts. The largest public document has some 105 MB of definitions.
const KEPT: usize = 160 << 20;

/// What to say of the operations that come after.
const SPENT: &str =
    "the operations of this specification are too large together; choose fewer by tags, methods or names";

/// What is left for further schemas.
#[derive(Debug)]
pub(crate) struct Work {
    effort: usize,
    kept: usize,
    /// How much detail of a body can be afforded, by the place of its schema.
    details: HashMap<usize, usize>,
    /// The schemas that are kept: many operations of an API take and give the same.
    texts: HashSet<Arc<str>>,
}

impl Work {
    /// For so many operations.
    pub(crate) fn new(operations: usize) -> Self {
        let effort = operations.min(OPERATIONS).saturating_mul(EFFORT_EACH).max(EFFORT);
        Self { effort, kept: KEPT, details: HashMap::new(), texts: HashSet::new() }
    }

    /// A schema as it is kept. What converting gives has known keywords only, each of its own type, so that it compiles.
    pub(crate) fn text(&mut self, schema: &Value) -> SchemaText {
        let text: Arc<str> = schema.to_string().into();
        let known = self.texts.get(&text).map(Arc::clone);
        SchemaText::trusted(known.unwrap_or_else(|| {
            self.texts.insert(Arc::clone(&text));
            text
        }))
    }

    /// What of the tries of `fitted` is the first that can be afforded for this body, if that is known.
    pub(crate) fn known_detail(&self, body: Spot<'_>) -> Option<usize> {
        self.details.get(&body.identity()).copied()
    }

    pub(crate) fn know_detail(&mut self, body: Spot<'_>, detail: usize) {
        self.details.insert(body.identity(), detail);
    }

    /// # Errors
    /// There is nothing left.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.effort == 0 || self.kept == 0 { Err(SPENT.to_owned()) } else { Ok(()) }
    }

    /// Counts values that were looked at.
    pub(crate) fn look(&mut self, looks: usize) {
        self.effort = self.effort.saturating_sub(looks.saturating_mul(LOOK_BYTES));
    }

    /// Counts what is kept in memory.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// Counts a try to make a schema.
    ///
    /// # Errors
    /// It failed, or there is nothing left.
    pub(crate) fn tried(&mut self, attempt: Attempt) -> Result<Value, Misfit> {
        self.effort = self.effort.saturating_sub(attempt.effort);
        self.check().map_err(Misfit::Broken)?;
        attempt.schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_tried_looked_at_and_kept_is_counted() {
        let attempt = |schema, effort| Attempt { schema, effort };
        let mut work = Work { effort: 1000, kept: 1000, ..Work::new(1) };
        assert_eq!(work.tried(attempt(Ok(json!({"type": "string"})), 300)), Ok(json!({"type": "string"})));
        assert_eq!(work.tried(attempt(Err(Misfit::TooLarge), 300)), Err(Misfit::TooLarge));
        work.look(300 / LOOK_BYTES);
        assert_eq!((work.check(), work.effort), (Ok(()), 104));
        assert_eq!(work.tried(attempt(Ok(json!({})), 200)), Err(Misfit::Broken(SPENT.to_owned())));

        let mut work = Work { effort: 10_000, kept: 1000, ..Work::new(1) };
        work.keep(999);
        assert_eq!(work.check(), Ok(()));
        work.keep(1);
        assert!(work.check().is_err());
    }

    #[test]
    fn there_is_more_for_many_operations_and_not_without_end() {
        let efforts = [1, 20_000, OPERATIONS, 1_000_000].map(|operations| Work::new(operations).effort);
        assert_eq!(
            efforts,
            [EFFORT, 20_000 * EFFORT_EACH, OPERATIONS * EFFORT_EACH, OPERATIONS * EFFORT_EACH]
        );
    }

    #[test]
    fn equal_schemas_are_kept_once() {
        let mut work = Work::new(1);
        let [a, b] = [json!({"type": "string"}), json!({"type": "string"})].map(|schema| work.text(&schema));
        assert!(std::ptr::eq(a.as_str(), b.as_str()) && a.value() == json!({"type": "string"}));
        assert_ne!(work.text(&json!({})), a);
    }
}
