//! What the schemas of all operations may cost together.
//!
//! One operation is bounded by itself, but a document of a few kilobytes can refer to the same large schema from
//! thousands of them. What is counted is everything that is looked at and made, kept or not, and beside that the memory
//! that is kept. No clock is asked, so that a document has the same tools on every machine.

use crate::schema::{Attempt, LOOK_BYTES, Misfit};
use serde_json::Value;
use std::collections::HashMap;

/// What all of them may take, as bytes of schema that are made. The largest public document
/// needs three quarters of it.
const EFFORT: usize = 160 << 20;

/// Bytes of memory that may be kept of them, about. The largest public document needs nine tenths of it.
const KEPT: usize = 320 << 20;

/// What to say of the operations that come after.
const SPENT: &str =
    "the operations of this specification are too large together; choose fewer by tags, methods or names";

/// What is left for further schemas.
#[derive(Debug)]
pub(crate) struct Work {
    effort: usize,
    kept: usize,
    /// How much detail of a body could be afforded, by the place of its schema: the next operation with that body need
    /// not find it out again.
    details: HashMap<usize, usize>,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { effort: EFFORT, kept: KEPT, details: HashMap::new() }
    }

    /// What of `DETAILS` to try first for a tool with the body at this place.
    pub(crate) fn known_detail(&self, place: Option<usize>) -> usize {
        place.and_then(|place| self.details.get(&place)).copied().unwrap_or(0)
    }

    pub(crate) fn know_detail(&mut self, place: Option<usize>, detail: usize) {
        self.details.extend(place.filter(|_| detail > 0).map(|place| (place, detail)));
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

/// About how much memory a value takes.
pub(crate) fn bytes(value: &Value) -> usize {
    // What the heap adds to each piece, and what an object has besides its members: a table to find them.
    const PIECE: usize = 16;
    const OBJECT: usize = 128;
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() + PIECE,
        Value::Array(all) => all.iter().map(bytes).sum::<usize>() + PIECE,
        Value::Object(all) => {
            let member = |(key, value): (&String, &Value)| key.len() + 3 * PIECE + bytes(value);
            all.iter().map(member).sum::<usize>() + OBJECT
        }
    };
    inside + size_of::<Value>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_tried_looked_at_and_kept_is_counted() {
        let attempt = |schema, effort| Attempt { schema, effort };
        let mut work = Work { effort: 1000, kept: 1000, ..Work::new() };
        assert_eq!(work.tried(attempt(Ok(json!({"type": "string"})), 300)), Ok(json!({"type": "string"})));
        assert_eq!(work.tried(attempt(Err(Misfit::TooLarge), 300)), Err(Misfit::TooLarge));
        work.look(300 / LOOK_BYTES);
        assert_eq!((work.check(), work.effort), (Ok(()), 104));
        assert_eq!(work.tried(attempt(Ok(json!({})), 200)), Err(Misfit::Broken(SPENT.to_owned())));

        let mut work = Work { effort: 10_000, kept: 1000, ..Work::new() };
        work.keep(bytes(&json!({"enum": ["x".repeat(50), 1, null, true]})));
        assert_eq!(work.check(), Ok(()));
        work.keep(600);
        assert!(work.check().is_err());
    }
}
