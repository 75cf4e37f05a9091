//! Execute: run the permitted call under its time limit, and stop it when its caller gives up.

use super::At;
use super::stopwatch::{Patient, Stopwatch};
use crate::context::CallCx;
use crate::event::EventKind;
use crate::provider::RawOutput;
use crate::queue::Slot;
use crate::runtime::State;
use gantry_core::error::{EffectState, ErrorCode, Fault, ToolError};
use gantry_core::shape::TIMEOUT_MESSAGE;
use gantry_core::tool::{Tool, ToolKind};
use gantry_core::{CallError, CallRequest, Effect, Permit};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Takes the slot so that it is held until the call has ended.
pub(super) async fn run(
    at: &At<'_>,
    request: &CallRequest,
    permit: &Permit,
    slot: Slot,
) -> Result<RawOutput, CallError> {
    let (At { rt, state, cx }, tool) = (at, permit.tool());
    let provider = rt.provider(state, &tool.key.provider)?;
    let watch = Stopwatch::start();
    let inner = inner(cx, tool, &watch);
    let started = EventKind::ToolStarted {
        call: cx.id,
        session: cx.session.id(),
        tool: Arc::clone(&tool.name),
        namespace: Arc::clone(&tool.namespace),
        parameters: Arc::clone(permit.recorded_arguments()),
    };
    rt.events.emit(Some(&cx.caller().principal), started);
    let limit = time_limit(state, request, permit);
    // Whatever the provider leaves running for this call is told to stop, however the call ends.
    let _stop = cx.cancel.clone().drop_guard();
    // Cancel-safety: a provider's future may be dropped anywhere; what it sent stays sent, and the fault says so.
    let result = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(stopped(permit, cut_off(cx))),
        result = provider.execute(inner.as_ref().unwrap_or(cx), permit) => result,
        () = watch.ran_for(limit) => {
            let error = ToolError::new(ErrorCode::Timeout, TIMEOUT_MESSAGE);
            Err(stopped(permit, error.with_details(json!({ "timeoutMs": limit.as_millis() }))))
        }
    };
    drop(slot);
    Ok(result?)
}

/// The context as the provider sees it, where it differs.
fn inner(cx: &CallCx, tool: &Tool, watch: &Arc<Stopwatch>) -> Option<CallCx> {
    let queue = tool.settings.queue.as_ref();
    // Only MCP servers ask; everybody else is spared the detour.
    let asks = tool.kind == ToolKind::Mcp;
    (queue.is_some() || asks).then(|| {
        let mut inner = cx.clone();
        if let Some(queue) = queue {
            inner.held = cx.held.with(queue);
        }
        if asks {
            inner.audience =
                Arc::new(Patient { audience: Arc::clone(&cx.audience), watch: Arc::clone(watch) });
        }
        inner
    })
}

/// The most specific configured limit; a call may shorten it.
pub(super) fn time_limit(state: &State, request: &CallRequest, permit: &Permit) -> Duration {
    let configured = permit.tool().settings.timeout.unwrap_or_else(|| state.setup.limits.tool_timeout);
    request.timeout.map_or(configured, |asked| asked.min(configured))
}

/// What is said to a call that is cut off.
fn cut_off(cx: &CallCx) -> ToolError {
    let message = match cx.session.leaves_because() {
        Some(why) => format!("canceled: {why}"),
        None => "canceled".to_owned(),
    };
    ToolError::new(ErrorCode::Canceled, message)
}

/// The fault of a call that was cut off: if it can change something, it may have.
fn stopped(permit: &Permit, error: ToolError) -> Fault {
    let effect = match permit.tool().effect {
        Effect::Read => EffectState::None,
        Effect::Write | Effect::Destructive => EffectState::Possible,
    };
    Fault { error, effect }
}
