//! Whether tools answer what their output schemas promise.
//!
//! A result that breaks its own schema passes all the same: it is what the tool said, and its client may know better.
//! But a person is told, once for each definition of a tool.

use gantry_core::digest::Digest;
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::{Tool, raw};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Results of one definition that are looked at; whoever keeps a promise so often is believed.
const LOOKS: u32 = 100;

/// Bytes of a structured result that is looked at: calls do not wait for longer ones to be taken apart.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// What was seen of the tools of one server.
#[derive(Debug, Default)]
pub(super) struct Promises {
    // Limit: the tools that a provider can have.
    tools: Mutex<HashMap<Arc<str>, Promise>>,
}

/// What was seen of one tool.
#[derive(Debug)]
struct Promise {
    fingerprint: Digest,
    /// None if there is nothing (more) to look for.
    schema: Option<Arc<Schema>>,
    looks: u32,
    broken: Option<String>,
}

impl Promises {
    /// Holds a result against the output schema of its tool, and returns what is to be told, the first time.
    pub(super) fn check(&self, tool: &Tool, result: &str) -> Option<String> {
        let promised = tool.spec.output_schema.as_ref()?;
        let structured = raw::member(result, "structuredContent")?;
        if structured.len() > LOOKED_AT_BYTES {
            return None;
        }
        let schema = {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            let promise =
                tools.entry(Arc::clone(&tool.key.tool)).or_insert_with(|| Promise::new(tool, promised));
            if promise.fingerprint != tool.fingerprint {
                *promise = Promise::new(tool, promised);
            }
            promise.looks += 1;
            promise.schema.clone().filter(|_| promise.looks <= LOOKS)?
        };
        let value = serde_json::from_str(structured).ok()?;
        let violations = schema.check(&value).err()?;
        let fields: Vec<String> =
            violations.iter().take(5).map(|v| format!("{} {}", v.field, v.message)).collect();
        let told = format!("{} answers what its output schema forbids: {}", tool.name, fields.join("; "));
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let promise = tools.get_mut(&tool.key.tool)?;
        // Another call may have told it in the meantime.
        promise.schema.take()?;
        promise.broken = Some(told.clone());
        Some(told)
    }

    /// What was told of one tool, or of all.
    pub(super) fn broken(&self, tool: Option<&str>) -> Vec<String> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = tools.iter().filter(|(name, _)| tool.is_none_or(|tool| *tool == ***name));
        let mut told: Vec<String> = meant.filter_map(|(_, promise)| promise.broken.clone()).collect();
        told.sort();
        told
    }
}

impl Promise {
    fn new(tool: &Tool, promised: &SchemaText) -> Self {
        // A schema that cannot be used promises nothing.
        let schema = Schema::compile(&promised.value()).ok().map(Arc::new);
        Self { fingerprint: tool.fingerprint, schema, looks: 0, broken: None }
    }
}
