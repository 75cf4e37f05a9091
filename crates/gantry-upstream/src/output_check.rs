//! Checks a sample of results against the output schema of their tool.
//!
//! A result that violates the schema is passed on unchanged, because the client may cope with it. It becomes a warning
//! for the operator, once for each definition of a tool.

use gantry_core::schema::Schema;
use gantry_core::{Tool, raw};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Results of one definition that are checked; a tool that was right so often is trusted.
const SAMPLE: u32 = 100;

/// The size of a structured result that is still checked: calls do not wait for longer ones to be parsed.
const CHECKED_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct OutputCheck {
    /// Compiled for the first result; none if it does not compile.
    schema: OnceLock<Option<Schema>>,
    checked: AtomicU32,
    violation: OnceLock<String>,
}

impl OutputCheck {
    /// Checks a result against the output schema of its tool. Returns a warning for the first violation.
    pub(super) fn check(&self, tool: &Tool, result: &str) -> Option<&str> {
        let schema_text = tool.spec.output_schema.as_ref()?;
        if self.violation.get().is_some() || self.checked.load(Ordering::Relaxed) >= SAMPLE {
            return None;
        }
        let structured = raw::member(result, "structuredContent")?;
        if structured.len() > CHECKED_BYTES {
            return None;
        }
        self.checked.fetch_add(1, Ordering::Relaxed);
        let schema = self.schema.get_or_init(|| Schema::compile(&schema_text.value()).ok()).as_ref()?;
        let violations = schema.check(&serde_json::from_str(structured).ok()?).err()?;
        let fields: Vec<String> =
            violations.iter().take(5).map(|v| format!("{} {}", v.field, v.message)).collect();
        let warning = format!("{} answers what its output schema forbids: {}", tool.name, fields.join("; "));
        // Another call may have reported it in the meantime.
        self.violation.set(warning).ok()?;
        self.violation()
    }

    pub(super) fn violation(&self) -> Option<&str> {
        self.violation.get().map(String::as_str)
    }
}
