//! Limits for all operations of a document together.
//!
//! Each operation is bounded by itself, but a document of a few kilobytes can refer to the same large schema from
//! thousands of operations. Steps and bytes are counted and no clock is read, so that a document has the same tools on
//! every machine.

use crate::openapi::document::Bundle;
use crate::openapi::limits::OPERATIONS;
use gantry_core::schema::SchemaText;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

// Limit: steps to read one operation. The largest public one takes about a fifth of them.
const OPERATION_STEPS: u64 = 500_000;
// Limit: steps to read all operations: this many for each, or `STEPS` if that is more. The largest public document, with
// 22,000 operations, takes about half of them.
const STEPS_EACH: u64 = 5_000;
const STEPS: u64 = 20_000_000;
// Limit: bytes of text that may be kept of all operations. Tools with equal schemas share them, but each tool is listed
// with its own, so each counts. The largest public document has some 105 MB of definitions.
const KEPT_BYTES: usize = 160 << 20;

const EXHAUSTED: &str =
    "the operations of this specification are too large together; choose fewer by tags, methods or names";

/// What is left for the operations that follow.
#[derive(Debug)]
pub(crate) struct ImportBudget {
    steps: u64,
    bytes: usize,
    /// The schemas that are kept: many operations of an API take and return the same.
    texts: HashSet<Arc<str>>,
}

impl ImportBudget {
    pub(crate) fn new(operations: usize) -> Self {
        let operations = u64::try_from(operations.min(OPERATIONS)).unwrap_or(u64::MAX);
        let steps = operations.saturating_mul(STEPS_EACH).max(STEPS);
        Self { steps, bytes: KEPT_BYTES, texts: HashSet::new() }
    }

    /// Makes one operation within its steps. An operation that runs out of them is refused.
    ///
    /// # Errors
    /// It failed, it took too many steps, or nothing is left for it.
    pub(crate) fn operation<T>(
        &mut self,
        bundle: &Bundle,
        make: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.steps == 0 || self.bytes == 0 {
            return Err(EXHAUSTED.to_owned());
        }
        let steps = self.steps.min(OPERATION_STEPS);
        bundle.set_steps(steps);
        let made = make(self);
        let exhausted = bundle.is_exhausted();
        self.steps -= steps - bundle.steps();
        bundle.set_steps(u64::MAX);
        if exhausted && self.steps > 0 {
            return Err(format!("its parameters and schemas take more than {OPERATION_STEPS} steps to read"));
        }
        if exhausted { Err(EXHAUSTED.to_owned()) } else { made }
    }

    /// The text of a schema, shared with equal ones. The converter writes known keywords only, each of its own type, so
    /// that the schema compiles.
    pub(crate) fn text(&mut self, schema: &Value) -> SchemaText {
        let text: Arc<str> = schema.to_string().into();
        let known = self.texts.get(&text).map(Arc::clone);
        SchemaText::trusted(known.unwrap_or_else(|| {
            self.texts.insert(Arc::clone(&text));
            text
        }))
    }

    /// Counts bytes that are kept in memory.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use url::Url;

    fn bundle() -> Bundle {
        let location = Url::parse("file:///api/root.json").unwrap();
        Bundle::open(location, br#"{"openapi": "3.0.0", "list": [1, 2, 3, 4]}"#).unwrap()
    }

    fn read(bundle: &Bundle) -> usize {
        bundle.root().unwrap().get("list").unwrap().elements().count()
    }

    #[test]
    fn an_operation_that_runs_out_of_steps_is_refused() {
        let bundle = bundle();
        let mut budget = ImportBudget { steps: u64::MAX, ..ImportBudget::new(1) };
        assert_eq!(budget.operation(&bundle, |_| Ok(read(&bundle))), Ok(4));
        let endless = budget.operation(&bundle, |_| {
            while !bundle.is_exhausted() {
                read(&bundle);
            }
            Ok(())
        });
        assert_eq!(endless, Err("its parameters and schemas take more than 500000 steps to read".to_owned()));
        // The next one has its own.
        assert_eq!(budget.operation(&bundle, |_| Ok(read(&bundle))), Ok(4));
    }

    #[test]
    fn all_operations_together_are_bounded() {
        let bundle = bundle();
        let mut budget = ImportBudget { steps: 7, ..ImportBudget::new(1) };
        assert_eq!(budget.operation(&bundle, |_| Ok(read(&bundle))), Ok(4));
        for _ in 0..2 {
            let refused = budget.operation(&bundle, |_| Ok(read(&bundle)));
            assert_eq!(refused, Err(EXHAUSTED.to_owned()));
        }
        let mut budget = ImportBudget { bytes: 1000, ..ImportBudget::new(1) };
        budget.keep(999);
        assert!(budget.operation(&bundle, |_| Ok(())).is_ok());
        budget.keep(1);
        assert_eq!(budget.operation(&bundle, |_| Ok(())), Err(EXHAUSTED.to_owned()));
    }

    #[test]
    fn there_is_more_for_many_operations_and_not_without_end() {
        let steps = [1, 20_000, OPERATIONS, 1_000_000].map(|operations| ImportBudget::new(operations).steps);
        assert_eq!(steps, [STEPS, 20_000 * STEPS_EACH, 25_000 * STEPS_EACH, 25_000 * STEPS_EACH]);
    }

    #[test]
    fn equal_schemas_are_kept_once() {
        let mut budget = ImportBudget::new(1);
        let [a, b] =
            [json!({"type": "string"}), json!({"type": "string"})].map(|schema| budget.text(&schema));
        assert!(std::ptr::eq(a.as_str(), b.as_str()) && a.value() == json!({"type": "string"}));
        assert_ne!(budget.text(&json!({})), a);
    }
}
