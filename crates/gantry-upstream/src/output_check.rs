//! Checks a sample of results against the output schema of their tool.
//!
//! A result that violates the schema is passed on unchanged, because the client may cope with it. It becomes a warning
//! for the operator, once for each definition of a tool.

use gantry_core::digest::Digest;
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::{Tool, raw};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Results of one definition that are checked; a tool that was right so often is trusted.
const SAMPLE: u32 = 100;

/// The size of a structured result that is still checked: calls do not wait for longer ones to be parsed.
const CHECKED_BYTES: usize = 64 * 1024;

/// The checks of one server's tools.
#[derive(Debug, Default)]
pub(super) struct OutputChecks {
    // Limit: the tools that a provider can have.
    tools: Mutex<HashMap<Arc<str>, OutputCheck>>,
}

/// The checks of one definition of a tool.
#[derive(Debug)]
struct OutputCheck {
    fingerprint: Digest,
    /// None if there is nothing (more) to check.
    schema: Option<Arc<Schema>>,
    checked: u32,
    violation: Option<String>,
}

impl OutputChecks {
    /// Checks a result against the output schema of its tool. Returns a warning for the first violation.
    pub(super) fn check(&self, tool: &Tool, result: &str) -> Option<String> {
        let schema_text = tool.spec.output_schema.as_ref()?;
        let structured = raw::member(result, "structuredContent")?;
        if structured.len() > CHECKED_BYTES {
            return None;
        }
        let schema = {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            let check = tools
                .entry(Arc::clone(&tool.key.tool))
                .or_insert_with(|| OutputCheck::new(tool, schema_text));
            if check.fingerprint != tool.fingerprint {
                *check = OutputCheck::new(tool, schema_text);
            }
            check.checked += 1;
            check.schema.clone().filter(|_| check.checked <= SAMPLE)?
        };
        let value = serde_json::from_str(structured).ok()?;
        let violations = schema.check(&value).err()?;
        let fields: Vec<String> =
            violations.iter().take(5).map(|v| format!("{} {}", v.field, v.message)).collect();
        let warning = format!("{} answers what its output schema forbids: {}", tool.name, fields.join("; "));
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let check = tools.get_mut(&tool.key.tool)?;
        // Another call may have reported it in the meantime.
        check.schema.take()?;
        check.violation = Some(warning.clone());
        Some(warning)
    }

    /// The violations that were found of one tool, or of all.
    pub(super) fn violations(&self, tool: Option<&str>) -> Vec<String> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let selected = tools.iter().filter(|(name, _)| tool.is_none_or(|tool| *tool == ***name));
        let mut warnings: Vec<String> = selected.filter_map(|(_, check)| check.violation.clone()).collect();
        warnings.sort();
        warnings
    }
}

impl OutputCheck {
    fn new(tool: &Tool, schema_text: &SchemaText) -> Self {
        // Nothing can be checked by a schema that does not compile.
        let schema = Schema::compile(&schema_text.value()).ok().map(Arc::new);
        Self { fingerprint: tool.fingerprint, schema, checked: 0, violation: None }
    }
}
