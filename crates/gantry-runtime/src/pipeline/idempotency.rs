//! Idempotency: a request under a key that was used before gets the first answer, and nothing runs.
//!
//! The key is looked up after the policies were applied and before a preflight runs: the first call may have changed what
//! the preflight reads.

use super::record::{Entry, Stage};
use super::{CallScope, not_looked_up, shape};
use crate::context::PipelineContext;
use crate::event::EventKind;
use crate::reply::{Body, Shaped};
use crate::runtime::Runtime;
use gantry_core::error::{CallFailure, EffectState, ErrorCode, Refusal, ToolError, Upstream};
use gantry_core::raw;
use gantry_core::{CallError, ResolvedCall};
use gantry_provider::{Content, RawOutput};
use gantry_store::{CallRow, State};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// The answer that the earlier call with this key got, if there was one.
pub(super) async fn earlier(
    CallScope { rt, cx, request, .. }: &CallScope<'_>,
    call: &ResolvedCall,
    entry: &Entry,
) -> Result<Option<Shaped>, CallError> {
    let Some(key) = request.idempotency_key.clone() else { return Ok(None) };
    if request.resumed.is_some() {
        // It is the call itself that goes on under its key.
        return Ok(None);
    }
    let caller = cx.caller();
    let found = rt.store.call_by_key(Arc::clone(&caller.project), Arc::clone(&caller.principal), key).await;
    let found = found.map_err(|error| not_looked_up("the idempotency key", &error))?;
    let Some(row) = found else { return Ok(None) };
    let is_same = is_same(cx, &row, call);
    // It has not begun; a repeated request waits for the same decision.
    if is_same && row.state.is_waiting() {
        return Ok(None);
    }
    entry.enter(Stage::Repeats(row.head.id));
    if !is_same {
        return Err(conflict("this idempotency key was used for another call; choose a new key"));
    }
    let body = answer(rt, cx, &row).await?;
    shape::charge(cx, &body)?;
    Ok(Some(Shaped { body, cached: true }))
}

fn is_same(cx: &PipelineContext, row: &CallRow, call: &ResolvedCall) -> bool {
    let (first, key) = (&row.head.tool, &call.tool().key);
    let same_tool = first.provider == key.provider && first.tool == key.tool;
    // The result of one agent is not for another one, also of the same principal.
    let same_agent = row.head.caller.agent == cx.caller().agent;
    // A person may have had it run with other arguments than those that the key came with.
    let sent = row.idempotency.as_ref().map(|key| key.arguments).or(row.head.arguments_digest);
    same_tool && same_agent && sent == Some(call.arguments_digest())
}

async fn answer(rt: &Runtime, cx: &PipelineContext, row: &CallRow) -> Result<Body, CallError> {
    let id = row.head.id;
    match row.state {
        State::Executing | State::PendingApproval | State::ScheduledForExecution | State::ApprovedReady => {
            Err(conflict(&format!("the first call with this key, {id}, still runs; ask for it later")))
        }
        State::OutcomeUnknown => {
            let message = format!(
                "whether {id}, the first call with this key, took effect is unknown. Check before you repeat it under a new key."
            );
            Err(CallFailure::with_possible_effect(ToolError::new(ErrorCode::OutcomeUnknown, message)).into())
        }
        State::RejectedByUser | State::RejectedByTimeout | State::CancelledBySystem => {
            Err(Refusal::from(ended(row)).into())
        }
        State::CompletedSuccess | State::CompletedFailure | State::Refused => {
            let kept = row.outcome.as_ref().and_then(|outcome| outcome.result.as_deref());
            let kept = kept.ok_or_else(|| {
                conflict("the result of the first call with this key is no longer kept; choose a new key")
            })?;
            replay(rt, cx, kept).await
        }
    }
}

/// How a call ended that never ran, in the words of the ledger.
pub(crate) fn ended(row: &CallRow) -> ToolError {
    let outcome = row.outcome.as_ref();
    let code = outcome.and_then(|outcome| outcome.code.as_deref()).and_then(ErrorCode::parse);
    let message = outcome.and_then(|outcome| outcome.message.clone());
    let message = message.unwrap_or_else(|| format!("the call ended as {}; nothing was run", row.state));
    ToolError::new(code.unwrap_or(ErrorCode::Canceled), message)
}

/// Reads a reply back that was kept.
pub(crate) async fn replay(rt: &Runtime, cx: &PipelineContext, kept: &str) -> Result<Body, CallError> {
    let unreadable = || conflict("the kept result of this key cannot be read; choose a new key");
    let members: HashMap<_, _> = raw::members(kept).ok_or_else(unreadable)?.into_iter().collect();
    let member = |key: &str| members.get(key).copied();
    let extras = member("extras").unwrap_or("{}");
    match (member("result"), member("error")) {
        (Some(handle), None) if raw::member(extras, "stored") == Some("true") => {
            adopt_output(rt, cx, handle).await
        }
        (Some(result), None) => Ok(Body::Inline(Arc::new(match (member("upstream"), raw::string(result)) {
            (Some(upstream), _) => RawOutput::Content(Content::new(upstream)),
            (None, Some(text)) => RawOutput::Text(text.into_owned()),
            (None, None) => RawOutput::Json(result.to_owned()),
        }))),
        (_, Some(error)) => {
            let text = |key| raw::string_member(error, key);
            let code = text("code").and_then(|code| ErrorCode::parse(&code)).ok_or_else(unreadable)?;
            let details = raw::member(error, "details").and_then(|text| serde_json::from_str(text).ok());
            let upstream = member("upstream").map(|words| Box::new(upstream_payload(words)));
            let message = text("message").unwrap_or_default();
            let effect = raw::string_member(extras, "effect").and_then(|effect| EffectState::parse(&effect));
            let error = ToolError { details, upstream, ..ToolError::new(code, message) };
            Err(CallFailure { error, effect: effect.unwrap_or(EffectState::Possible) }.into())
        }
        (None, None) => Err(unreadable()),
    }
}

/// A failed result has content, an error object has a code.
fn upstream_payload(text: &str) -> Upstream {
    if raw::member(text, "content").is_some() {
        Upstream::Result(text.into())
    } else {
        Upstream::Error(text.into())
    }
}

/// A stored output belongs to the session that made it, which is given the same handle again; the same caller's new
/// session gets one of its own, once.
async fn adopt_output(rt: &Runtime, cx: &PipelineContext, message: &str) -> Result<Body, CallError> {
    let gone = || conflict("the output of the first call with this key is no longer kept; choose a new key");
    let mut message: Value = serde_json::from_str(message).map_err(|_unreadable| gone())?;
    let named = message.pointer_mut("/tool_output/handle").ok_or_else(gone)?;
    let handle = named.as_str().ok_or_else(gone)?.to_owned();
    let (outputs, session) = (rt.outputs.clone(), cx.session.id());
    let adopted = tokio::task::spawn_blocking(move || outputs.adopt(session, &handle)).await;
    let (handle, added) = match adopted.map_err(Into::into).flatten() {
        Ok(adopted) => adopted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(gone()),
        Err(error) => return Err(shape::storing_failed(&error)),
    };
    *named = handle.as_str().into();
    cx.session.note_output();
    if let Some(bytes) = added {
        let stored = EventKind::OutputStored { call: cx.id, session, handle, bytes };
        rt.events.emit(Some(&cx.caller().principal), stored);
    }
    Ok(Body::Stored(message.to_string().into()))
}

fn conflict(message: &str) -> CallError {
    Refusal::new(ErrorCode::IdempotencyConflict, message).into()
}
