//! Held calls as MCP tasks: the client gets a task at once, and polls it until the call is over.
//!
//! A task is the call itself, so its id is the call's, and it survives a restart like the call does. Only the caller that
//! made the call can see it.

use super::result::{refused, result};
use gantry_core::approval::Approvers;
use gantry_core::id::CallId;
use gantry_core::{State, raw};
use gantry_mcp::error::code::INVALID_PARAMS;
use gantry_mcp::exchange::ClientChannel;
use gantry_mcp::{ErrorObject, ForwardMethod};
use gantry_provider::client::TASKS_EXTENSION;
use gantry_runtime::options::Delivery;
use gantry_runtime::{Reply, Runtime, Session, clock};
use serde_json::json;
use std::sync::Arc;

/// How often a client should ask, in milliseconds.
const POLL_MS: u64 = 1000;

/// Whether a held call of this client becomes a task.
pub(super) fn is_wanted(runtime: &Runtime, client: &dyn ClientChannel, modern: bool) -> bool {
    let wanted = matches!(runtime.delivery(), Delivery::Auto | Delivery::Tasks);
    modern && wanted && client.capabilities().has_extension(TASKS_EXTENSION)
}

/// The result of a held call: its task.
pub(super) fn begun(reply: &Reply) -> Arc<str> {
    raw::with(&describe(reply), "resultType", "\"task\"").into()
}

/// Handles a request about one of Gantry's own tasks.
pub(super) async fn request(
    runtime: &Arc<Runtime>,
    session: &Arc<Session>,
    method: ForwardMethod,
    call: CallId,
) -> Result<String, ErrorObject> {
    let unknown = || ErrorObject::new(INVALID_PARAMS, "there is no such task");
    let failed = |error: gantry_core::Refusal| refused(&error);
    let reply = runtime.held(session, call).await.map_err(failed)?.ok_or_else(unknown)?;
    if matches!(method, ForwardMethod::TaskCancel) {
        runtime.withdraw(session, call, "its client canceled it").await.map_err(failed)?;
    }
    if !matches!(method, ForwardMethod::TaskGet) {
        // A task asks for no input, so there is nothing to update.
        return Ok("{}".to_owned());
    }
    let task = described(&reply);
    runtime.collect(&reply).await;
    Ok(task)
}

/// The task with its outcome, if it is over.
fn described(reply: &Reply) -> String {
    let task = describe(reply);
    if reply.state.is_waiting() || matches!(reply.state, State::Executing | State::CancelledBySystem) {
        return task;
    }
    match result(reply) {
        Ok(result) if raw::member(&result, "resultType").is_some() => raw::with(&task, "result", &result),
        Ok(result) => raw::with(&task, "result", &raw::with(&result, "resultType", "\"complete\"")),
        Err(error) => {
            let error = json!({ "code": error.code, "message": error.message }).to_string();
            raw::with(&raw::with(&task, "status", "\"failed\""), "error", &error)
        }
    }
}

fn describe(reply: &Reply) -> String {
    let (status, message) = match reply.state {
        State::PendingApproval => ("working", waits(reply)),
        State::ScheduledForExecution => ("working", "waiting for its time".to_owned()),
        State::ApprovedReady | State::Executing => ("working", "approved and running".to_owned()),
        // The words that any other caller reads.
        State::CancelledBySystem => {
            let why = reply.outcome.as_ref().err().map(|error| error.message.clone());
            ("cancelled", why.unwrap_or_else(|| "canceled; nothing was run".to_owned()))
        }
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

fn waits(reply: &Reply) -> String {
    let Some(row) = reply.approval.as_ref() else { return "waiting for approval".to_owned() };
    let (who, id) = (Approvers::by(&row.details.approvers), row.id);
    match who {
        Approvers::Any => format!("waiting for approval ({id})"),
        Approvers::OneOf(_) => format!("waiting for approval by {who} ({id})"),
        Approvers::None(_) => format!("waiting for approval ({id}): {}", who.refusal()),
    }
}
