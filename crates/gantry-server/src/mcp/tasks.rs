//! Held calls as MCP tasks: the client is told at once that its call waits, and asks for it until it is over.
//!
//! A task is the call itself, so its id is the call's, and it is there after a restart like the call is. Everything that
//! is asked about it is for the caller that made it alone.

use super::answer::answer;
use gantry_core::approval::Approvers;
use gantry_core::id::CallId;
use gantry_core::{State, raw};
use gantry_mcp::error::code::INVALID_PARAMS;
use gantry_mcp::exchange::ClientChannel;
use gantry_mcp::{Answer, ErrorObject, ForwardMethod};
use gantry_runtime::options::Delivery;
use gantry_runtime::{Reply, Runtime, Session, clock};
use serde_json::json;
use std::sync::Arc;

/// The extension that a client declares which takes tasks.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How often a client should ask, in milliseconds.
const POLL_MS: u64 = 1000;

/// Whether a held call of this client becomes a task.
pub(super) fn takes(runtime: &Runtime, audience: &dyn ClientChannel, modern: bool) -> bool {
    let wanted = matches!(runtime.delivery(), Delivery::Auto | Delivery::Tasks);
    modern && wanted && audience.capabilities().has_extension(EXTENSION)
}

/// The answer to a call that is held: its task.
pub(super) fn begun(reply: &Reply) -> Answer {
    let task = raw::with(&describe(reply), "resultType", "\"task\"");
    Answer::Raw { result: task.into() }
}

/// The call that a task id names, if it is one of Gantry's own.
pub(super) fn own(params: &str) -> Option<CallId> {
    raw::string_member(params, "taskId")?.parse().ok()
}

/// Answers a request about one of Gantry's own tasks.
pub(super) async fn ask(
    runtime: &Arc<Runtime>,
    session: &Arc<Session>,
    method: ForwardMethod,
    call: CallId,
) -> Result<Answer, ErrorObject> {
    let unknown = || ErrorObject::new(INVALID_PARAMS, "there is no such task");
    let failed = |error: gantry_core::Refusal| super::answer::refused(&error);
    let reply = runtime.held(session, call).await.map_err(failed)?.ok_or_else(unknown)?;
    let result = match method {
        ForwardMethod::TaskCancel => {
            runtime.withdraw(session, call, "its client canceled it").await.map_err(failed)?;
            "{}".to_owned()
        }
        ForwardMethod::TaskGet => {
            let task = described(&reply);
            runtime.collect(&reply).await;
            task
        }
        // Nothing is asked through a task, so there is nothing to answer.
        ForwardMethod::TaskUpdate
        | ForwardMethod::ReadResource
        | ForwardMethod::GetPrompt
        | ForwardMethod::Complete
        | ForwardMethod::Subscribe
        | ForwardMethod::Unsubscribe
        | ForwardMethod::SetLevel => "{}".to_owned(),
    };
    Ok(Answer::Raw { result: result.into() })
}

/// The task with its outcome, if it is over.
fn described(reply: &Reply) -> String {
    let task = describe(reply);
    if reply.state.is_waiting() || matches!(reply.state, State::Executing | State::CancelledBySystem) {
        return task;
    }
    match answer(reply) {
        Ok(Answer::Raw { result }) => raw::with(&task, "result", &completed(&result)),
        Ok(Answer::Own(own)) => {
            let mut members = vec![("content", own.content.as_str())];
            members.extend(own.structured.as_deref().map(|structured| ("structuredContent", structured)));
            members.push(("isError", if own.is_error { "true" } else { "false" }));
            members.extend(own.meta.as_deref().map(|meta| ("_meta", meta)));
            raw::with(&task, "result", &completed(&raw::object(members)))
        }
        Err(error) => {
            let error = json!({ "code": error.code, "message": error.message }).to_string();
            raw::with(&raw::with(&task, "status", "\"failed\""), "error", &error)
        }
    }
}

fn completed(result: &str) -> String {
    if raw::member(result, "resultType").is_some() {
        return result.to_owned();
    }
    raw::with(result, "resultType", "\"complete\"")
}

fn describe(reply: &Reply) -> String {
    let (status, message) = match reply.state {
        State::PendingApproval => ("working", waits(reply)),
        State::ScheduledForExecution => ("working", "waiting for its time".to_owned()),
        State::ApprovedReady | State::Executing => ("working", "approved and running".to_owned()),
        State::CancelledBySystem => ("cancelled", canceled(reply)),
        State::CompletedSuccess => ("completed", "done".to_owned()),
        State::CompletedFailure | State::OutcomeUnknown | State::Refused => {
            ("completed", "failed".to_owned())
        }
        State::RejectedByUser => ("completed", "denied; nothing was run".to_owned()),
        State::RejectedByTimeout => ("completed", "expired; nothing was run".to_owned()),
    };
    let row = reply.approval.as_ref();
    // A request that joined another one is that one's task.
    let call = row.map_or(reply.id, |row| row.call);
    let created = row.map_or_else(clock::now_us, |row| row.created_us);
    let decided = row.and_then(|row| row.decision.as_ref()).map(|decision| decision.at_us);
    let updated = row.and_then(|row| row.ended_us).or(decided).unwrap_or(created);
    json!({
        "taskId": call, "status": status, "statusMessage": message, "createdAt": clock::iso(created),
        "lastUpdatedAt": clock::iso(updated), "ttlMs": null, "pollIntervalMs": POLL_MS,
    })
    .to_string()
}

/// Why it will not run, in the words that any other caller reads.
fn canceled(reply: &Reply) -> String {
    let why = reply.outcome.as_ref().err().map(|error| error.message.clone());
    why.unwrap_or_else(|| "canceled; nothing was run".to_owned())
}

fn waits(reply: &Reply) -> String {
    let Some(row) = reply.approval.as_ref() else { return "waiting for approval".to_owned() };
    let (who, id) = (Approvers::by(&row.asked.approvers), row.id);
    match who {
        Approvers::Any => format!("waiting for approval ({id})"),
        Approvers::OneOf(_) => format!("waiting for approval by {who} ({id})"),
        Approvers::None(_) => format!("waiting for approval ({id}): {}", who.refusal()),
    }
}
