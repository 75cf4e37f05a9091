//! Whether tools answer what their output schemas check.
//!
//! A result that breaks its own schema passes all the same: it is what the tool said, and its client may know better.
//! But a person is told, once for each definition of a tool.

use gantry_core::digest::Digest;
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::{Tool, raw};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Results of one definition that are looked at; whoever keeps a check so often is believed.
const LOOKS: u32 = 100;

/// Bytes of a structured result that is looked at: calls do not wait for longer ones to be taken apart.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// What was seen of the tools of one server.
#[derive(Debug, Default)]
pub(super) struct OutputChecks {
    // Limit: the tools that a provider can have.
    tools: Mutex<HashMap<Arc<str>, OutputCheck>>,
}

/// What was seen of one tool.
#[derive(Debug)]
struct OutputCheck {
    fingerprint: Digest,
    /// None if there is nothing (more) to look for.
    schema: Option<Arc<Schema>>,
    looks: u32,
    violation: Option<String>,
}

impl OutputChecks {
    /// Holds a result against the output schema of its tool, and returns what is to be told, the first time.
    pub(super) fn check(&self, tool: &Tool, result: &str) -> Option<String> {
        let promised = tool.spec.output_schema.as_ref()?;
        let structured = raw::member(result, "structuredContent")?;
        if structured.len() > LOOKED_AT_BYTES {
            return None;
        }
        let schema = {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            let check =
                tools.entry(Arc::clone(&tool.key.tool)).or_insert_with(|| OutputCheck::new(tool, promised));
            if check.fingerprint != tool.fingerprint {
                *check = OutputCheck::new(tool, promised);
            }
            check.looks += 1;
            check.schema.clone().filter(|_| check.looks <= LOOKS)?
        };
        let value = serde_json::from_str(structured).ok()?;
        let violations = schema.check(&value).err()?;
        let fields: Vec<String> =
            violations.iter().take(5).map(|v| format!("{} {}", v.field, v.message)).collect();
        let warning = format!("{} answers what its output schema forbids: {}", tool.name, fields.join("; "));
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let check = tools.get_mut(&tool.key.tool)?;
        // Another call may have told it in the meantime.
        check.schema.take()?;
        check.violation = Some(warning.clone());
        Some(warning)
    }

    /// What was told of one tool, or of all.
    pub(super) fn violations(&self, tool: Option<&str>) -> Vec<String> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let selected = tools.iter().filter(|(name, _)| tool.is_none_or(|tool| *tool == ***name));
        let mut warnings: Vec<String> = selected.filter_map(|(_, check)| check.violation.clone()).collect();
        warnings.sort();
        warnings
    }
}

impl OutputCheck {
    fn new(tool: &Tool, promised: &SchemaText) -> Self {
        // A schema that cannot be used promises nothing.
        let schema = Schema::compile(&promised.value()).ok().map(Arc::new);
        Self { fingerprint: tool.fingerprint, schema, looks: 0, violation: None }
    }
}
