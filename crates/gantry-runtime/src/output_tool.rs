//! The tool `tool_output`: reads an output that was stored because of its size, piece by piece.

mod json_path;
mod slice;

use crate::outputs::Outputs;
use gantry_core::Permit;
use gantry_core::error::{CallFailure, ErrorCode, ToolError};
use gantry_core::names::Style;
use gantry_core::tool::{Annotations, ApprovalRule, Origin, ToolKind, ToolSpec};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const NAME: &str = "tool_output";

/// The id and namespace of its provider.
pub(crate) const PROVIDER: &str = "outputs";

#[derive(Debug)]
pub(crate) struct OutputTool {
    origin: Origin,
    outputs: Outputs,
    limit: AtomicUsize,
}

impl OutputTool {
    pub(crate) fn new(outputs: Outputs) -> Self {
        let origin =
            Origin { provider: PROVIDER.into(), namespace: PROVIDER.into(), kind: ToolKind::Builtin };
        Self { origin, outputs, limit: AtomicUsize::default() }
    }

    /// From now on a result of this size is stored. An answer of this tool must never be stored itself, and escaping may
    /// double its size.
    pub(crate) fn answers_within(&self, response_max_bytes: usize) {
        self.limit.store((response_max_bytes / 3).max(256), Ordering::Relaxed);
    }
}

impl Provider for OutputTool {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        Style::Bare
    }

    fn tools(&self) -> Vec<ToolSpec> {
        vec![spec()]
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        Box::pin(async move {
            let (outputs, session, limit) =
                (self.outputs.clone(), cx.session, self.limit.load(Ordering::Relaxed));
            let arguments = permit.arguments().to_owned();
            let read = tokio::task::spawn_blocking(move || {
                let invalid = |message| ToolError::new(ErrorCode::InvalidArguments, message);
                let view: slice::View = serde_json::from_str(&arguments)
                    .map_err(|error| invalid(format!("the arguments do not fit: {error}")))?;
                let text = outputs.read(session, &view.handle).map_err(|_missing| {
                    let message = "there is no stored output with this handle; it may have expired. Call the tool again.";
                    ToolError::new(ErrorCode::FileNotFound, message)
                })?;
                slice::cut(&text, &view, limit).map_err(invalid)
            });
            let slice = read.await.unwrap_or_else(|error| {
                Err(ToolError::new(ErrorCode::InternalError, format!("reading the output failed: {error}")))
            });
            let slice = slice.map_err(CallFailure::without_effect)?;
            Ok(RawOutput::Json(json!(slice).to_string()))
        })
    }
}

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.into(),
        title: Some("Read a stored output".into()),
        description: "Reads a tool result that was too large to show and was stored under a handle. Use grep, lines or \
                      jsonPath to get at the part you need; page, head and tail to look around."
            .into(),
        input_schema: json!({
            "type": "object",
            "required": ["handle"],
            "additionalProperties": false,
            "properties": {
                "handle": { "type": "string", "description": "The handle from the tool_output message" },
                "mode": {
                    "type": "string", "enum": ["page", "lines", "grep", "jsonPath", "head", "tail"], "default": "page",
                    "description": "How to read it"
                },
                "page": { "type": "integer", "minimum": 1, "description": "page: which one, from 1" },
                "from": { "type": "integer", "minimum": 1, "description": "lines: the first line, from 1" },
                "to": { "type": "integer", "minimum": 1, "description": "lines: the last line" },
                "pattern": { "type": "string", "maxLength": 1000, "description": "grep: a regular expression" },
                "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "grep: lines around each match" },
                "path": { "type": "string", "maxLength": 1000, "description": "jsonPath: an RFC 9535 path such as $.items[0].name" },
                "count": { "type": "integer", "minimum": 1, "maximum": 10000, "description": "head and tail: how many lines" }
            }
        })
        .into(),
        output_schema: Some(json!({
            "type": "object",
            "required": ["handle", "content", "truncated", "totalBytes", "totalLines"],
            "properties": {
                "handle": { "type": "string" },
                "content": { "type": "string" },
                "truncated": { "type": "boolean", "description": "Whether more matched than is shown" },
                "totalBytes": { "type": "integer" },
                "totalLines": { "type": "integer" },
                "page": { "type": "integer" },
                "pages": { "type": "integer" },
                "matches": { "type": "integer" }
            }
        }).into()),
        annotations: Annotations {
            read_only_hint: Some(true),
            destructive_hint: Some(false),
            idempotent_hint: Some(true),
            open_world_hint: Some(false),
        },
        approval_rule: ApprovalRule::Never,
        raw: None,
        target: None,
    }
}
