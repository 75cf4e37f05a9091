//! Shape: cap the size, then check the budget.

use super::CallScope;
use crate::cache::Answer;
use crate::context::PipelineContext;
use crate::event::EventKind;
use crate::reply::{Body, Shaped};
use crate::runtime::Runtime;
use gantry_core::CallError;
use gantry_core::error::{CallFailure, EffectState, ErrorCode, ToolError};
use gantry_core::truncate::{BUDGET_MESSAGE, Measure, handle_message, tokens};
use gantry_provider::RawOutput;
use serde_json::json;
use std::io;
use std::sync::Arc;

/// Faults of shaping come after the effect: a result was made and cannot be given.
fn after_effect(error: ToolError) -> CallError {
    CallFailure { error, effect: EffectState::Done }.into()
}

pub(super) async fn apply(scope: &CallScope<'_>, answer: Answer) -> Result<Shaped, CallError> {
    let (CallScope { rt, snapshot, cx, .. }, Answer { output, cached }) = (scope, answer);
    let body = if output.readable_size() > snapshot.options.limits.tool_response_max_bytes.size() {
        store_output(rt, cx, output).await?
    } else {
        Body::Inline(output)
    };
    charge(cx, &body)?;
    Ok(Shaped { body, cached })
}

/// Takes what a result costs from the session's budget.
pub(super) fn charge(cx: &PipelineContext, body: &Body) -> Result<(), CallError> {
    let Some(budget) = cx.session.budget() else { return Ok(()) };
    let cost = tokens(body.text());
    budget.charge(cost).map_err(|exceeded| {
        let details = json!({
            "neededTokens": exceeded.wanted, "leftTokens": exceeded.left, "limitTokens": exceeded.limit
        });
        after_effect(ToolError::new(ErrorCode::BudgetExceeded, BUDGET_MESSAGE).with_details(details))
    })
}

/// Stores an output whole, and has a handle stand for it.
async fn store_output(rt: &Runtime, cx: &PipelineContext, output: Arc<RawOutput>) -> Result<Body, CallError> {
    let (outputs, session) = (rt.outputs.clone(), cx.session.id());
    let written = tokio::task::spawn_blocking(move || {
        let whole = output.whole();
        let measure = Measure::of(&whole);
        outputs.store(session, &whole).map(|handle| (handle, measure))
    });
    let written = written.await.map_err(Into::into).flatten();
    let (handle, measure) = written.map_err(|error| storing_failed(&error))?;
    cx.session.note_output();
    let message = Arc::from(handle_message(&handle, measure).to_string());
    let stored = EventKind::OutputStored { call: cx.id, session, handle, bytes: measure.bytes };
    rt.events.emit(Some(&cx.caller().principal), stored);
    Ok(Body::Stored(message))
}

pub(super) fn storing_failed(error: &io::Error) -> CallError {
    let message = format!(
        "the result is too large to show and could not be stored: {error}. Free disk space, or ask for less."
    );
    after_effect(ToolError::new(ErrorCode::InternalError, message))
}
