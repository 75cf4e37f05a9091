//! Turns a server's answer to a call into a result, or into a fault that says whether the call may have taken effect.

use crate::server::UpstreamServer;
use crate::task_token::Task;
use crate::uri_map::{TOOL_RESULT, with_string_at};
use gantry_core::error::{CallFailure, ErrorCode, ToolError, Upstream};
use gantry_core::{Caller, Effect, Tool, raw};
use gantry_mcp::client::UpstreamError;
use gantry_provider::{CallResult, Content, RawOutput};
use serde_json::{Value, json};
use std::sync::Arc;

/// A result of `tools/call` as clients see it, from this replica; its tasks belong to this epoch ([`Task::epoch`]).
pub(super) fn to_output(
    server: &UpstreamServer,
    (replica, epoch): (usize, u64),
    caller: &Caller,
    tool: &Tool,
    result: &str,
) -> CallResult {
    let shown = server.uri_map.rewrite(TOOL_RESULT, result);
    let shown =
        with_task_token(server, (replica, epoch), caller, &shown).map_or_else(|| shown.clone(), Into::into);
    let content = Content::new(&shown);
    if raw::member(&shown, "isError") == Some("true") {
        let message =
            if content.text().is_empty() { "the tool failed and gave no reason" } else { content.text() };
        let error = ToolError::new(ErrorCode::ExecutionError, message)
            .with_upstream(Upstream::Result(Arc::clone(content.result())));
        return Err(fault_after_sending(tool, error));
    }
    if tool.spec.output_schema.is_some() {
        let listing = server.listing();
        let definition = listing.as_ref().and_then(|listing| listing.definition(tool));
        if let Some(warning) = definition.and_then(|definition| definition.output_check.check(tool, &shown)) {
            tracing::warn!("{warning}");
        }
    }
    Ok(RawOutput::Content(content))
}

/// A result that is a task, with the id that the client is to use; `None` for other results.
fn with_task_token(
    server: &UpstreamServer,
    (replica, epoch): (usize, u64),
    caller: &Caller,
    result: &str,
) -> Option<String> {
    // Most results are no tasks; those are not parsed to find that out.
    if !result.contains("taskId") || raw::string_member(result, "resultType").as_deref() != Some("task") {
        return None;
    }
    let id = raw::string_member(result, "taskId")?.into_owned();
    let task = Task { server: server.id().to_string(), replica, epoch, id };
    Some(with_string_at(result, &["taskId"], &server.context.task_signer.sign(&task, caller)))
}

pub(super) fn not_sent(reason: &str) -> CallFailure {
    let message = format!("{reason}. Nothing was sent.");
    CallFailure::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message))
}

/// Nothing was sent, because the server is not there.
pub(super) fn server_down(server: &UpstreamServer) -> CallFailure {
    let CallFailure { error, effect } = not_sent(&server.why_unavailable());
    CallFailure { error: error.with_details(server.unavailable_details()), effect }
}

pub(super) fn to_fault(server: &UpstreamServer, tool: &Tool, failure: UpstreamError) -> CallFailure {
    let id = server.id();
    match failure {
        UpstreamError::NotSent(why) => {
            not_sent(&format!("server {id} is not available: {}", server.secrets.mask(why)))
        }
        UpstreamError::OutcomeUnknown(why) => {
            let why = server.secrets.mask(why);
            let (code, advice) = match tool.effect {
                Effect::Read => (ErrorCode::ExecutionError, ""),
                Effect::Write | Effect::Destructive => (
                    ErrorCode::OutcomeUnknown,
                    ". Whether it took effect is not known; look before you try again.",
                ),
            };
            let what = format!("the connection to server {id} was lost while the call was under way: {why}");
            fault_after_sending(tool, ToolError::new(code, what + advice))
        }
        UpstreamError::Rpc(error) => {
            let mut text = String::new();
            error.write(&mut text);
            let message = format!("server {id} answered: {}", error.message);
            let data = error.data.and_then(|data| serde_json::from_str::<Value>(&data).ok());
            let said = ToolError::new(ErrorCode::ExecutionError, message)
                .with_details(json!({ "code": error.code, "message": error.message, "data": data }))
                .with_upstream(Upstream::Error(text.into()));
            fault_after_sending(tool, said)
        }
        UpstreamError::Canceled => fault_after_sending(tool, ToolError::new(ErrorCode::Canceled, "canceled")),
    }
}

/// The fault of a call that the server got: a tool that can change something may have done so.
fn fault_after_sending(tool: &Tool, error: ToolError) -> CallFailure {
    match tool.effect {
        Effect::Read => CallFailure::without_effect(error),
        Effect::Write | Effect::Destructive => CallFailure::with_possible_effect(error),
    }
}
