//! Turns a server's answer to a call into a result, or into a fault that says whether the call may have taken effect.

use crate::server::UpstreamServer;
use crate::task_token::Task;
use crate::uri_map::{MessageKind, with_string_member};
use gantry_core::error::{ErrorCode, Fault, ToolError, Upstream};
use gantry_core::{Caller, Effect, Tool, raw};
use gantry_mcp::ErrorObject;
use gantry_mcp::client::Failure;
use gantry_provider::{Content, RawOutput};
use serde_json::json;
use std::sync::Arc;

/// Where an answer came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// The replica.
    pub(super) replica: usize,
    /// The epoch that its tasks belong to.
    pub(super) epoch: u64,
}

/// A result of `tools/call` as clients see it.
pub(super) fn output(
    server: &UpstreamServer,
    at: At,
    caller: &Caller,
    tool: &Tool,
    result: &str,
) -> Result<RawOutput, Fault> {
    let shown = server.uri_map().rewrite(MessageKind::ToolResult, result);
    let shown = with_task_token(server, at, caller, &shown).map_or_else(|| shown.clone(), Into::into);
    let content = Content::new(&shown);
    if raw::member(&shown, "isError") == Some("true") {
        let message =
            if content.text().is_empty() { "the tool failed without a word" } else { content.text() };
        let error = ToolError::new(ErrorCode::ExecutionError, message)
            .with_upstream(Upstream::Result(Arc::clone(content.result())));
        return Err(after(tool, error));
    }
    if let Some(warning) = server.output_checks.check(tool, &shown) {
        tracing::warn!("{warning}");
    }
    Ok(RawOutput::Content(content))
}

/// A result that is a task, with the id that the client is to use; `None` for other results.
fn with_task_token(server: &UpstreamServer, at: At, caller: &Caller, result: &str) -> Option<String> {
    // Most results are no tasks; those are not parsed to find that out.
    if !result.contains("taskId") || raw::string_member(result, "resultType").as_deref() != Some("task") {
        return None;
    }
    let id = raw::string_member(result, "taskId")?.into_owned();
    let task = Task { server: server.id().to_string(), replica: at.replica, epoch: at.epoch, id };
    Some(with_string_member(result, "taskId", &server.context.task_signer.sign(&task, caller)).into_owned())
}

/// Nothing was sent.
pub(super) fn unavailable(reason: &str) -> Fault {
    Fault::without_effect(unsent(reason))
}

/// Nothing was sent, because the server is not there.
pub(super) fn absent(server: &UpstreamServer) -> Fault {
    Fault::without_effect(unsent(&server.why_unavailable()).with_details(server.unavailable_details()))
}

fn unsent(reason: &str) -> ToolError {
    ToolError::new(ErrorCode::UpstreamUnavailable, format!("{reason}. Nothing was sent."))
}

/// A failure as the caller is told.
pub(super) fn fault(server: &str, tool: &Tool, failure: Failure) -> Fault {
    match failure {
        Failure::Unavailable(why) => unavailable(&format!("server {server} is not available: {why}")),
        Failure::Lost(why) => {
            let message =
                format!("the connection to server {server} was lost while the call was under way: {why}");
            match tool.effect {
                Effect::Read => Fault::without_effect(ToolError::new(ErrorCode::ExecutionError, message)),
                Effect::Write | Effect::Destructive => {
                    let message =
                        format!("{message}. Whether it took effect is not known; look before you try again.");
                    Fault::with_possible_effect(ToolError::new(ErrorCode::OutcomeUnknown, message))
                }
            }
        }
        Failure::Answered(error) => {
            let said = ToolError::new(
                ErrorCode::ExecutionError,
                format!("server {server} answered: {}", error.message),
            )
            .with_details(details(&error))
            .with_upstream(Upstream::Error(text(&error).into()));
            after(tool, said)
        }
        Failure::Canceled => after(tool, ToolError::new(ErrorCode::Canceled, "canceled")),
    }
}

/// The fault of a call that the server got: if it can change something, it may have.
fn after(tool: &Tool, error: ToolError) -> Fault {
    match tool.effect {
        Effect::Read => Fault::without_effect(error),
        Effect::Write | Effect::Destructive => Fault::with_possible_effect(error),
    }
}

fn details(error: &ErrorObject) -> serde_json::Value {
    let data = error.data.as_deref().and_then(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    json!({ "code": error.code, "message": error.message, "data": data })
}

/// The error object as it came.
fn text(error: &ErrorObject) -> String {
    let (code, message) = (error.code.to_string(), raw::quoted(&error.message));
    let members = [("code", code.as_str()), ("message", message.as_str())];
    raw::object(members.into_iter().chain(error.data.as_deref().map(|data| ("data", data))))
}
