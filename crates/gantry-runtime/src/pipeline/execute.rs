//! Execute: run the permitted call under its time limit, and stop it when its caller gives up.

use super::At;
use super::record::OnRecord;
use super::timer::{PausableTimer, PausingClient};
use crate::context::CallCx;
use crate::event::EventKind;
use crate::queue::Slot;
use crate::runtime::State;
use gantry_core::error::{EffectState, ErrorCode, Fault, ToolError};
use gantry_core::shape::TIMEOUT_MESSAGE;
use gantry_core::tool::{Tool, ToolKind};
use gantry_core::{CallError, CallRequest, Effect, Permit};
use gantry_provider::{CallContext, RawOutput};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How often a call that a person approved is tried, and how long after, where trying again cannot do anything twice.
const PAUSES: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// Runs the call, which needs a permit, a slot of its queue, and its intent on record. One that was held is worth another try where nothing was sent, or where its tool says that the same
/// call again changes nothing more; other callers can decide that themselves.
pub(super) async fn run(
    at: &At<'_>,
    request: &CallRequest,
    permit: &Permit,
    // Held until the call has ended.
    _slot: &Slot,
    on_record: OnRecord<'_>,
) -> Result<RawOutput, CallError> {
    // What the provider leaves running for this call is told to stop when the call ends, in any way.
    let _stop = at.cx.cancel.clone().drop_guard();
    let mut pauses = PAUSES.iter().filter(|_| request.resumed.is_some());
    loop {
        on_record.count_attempt();
        let fault = match once(at, request, permit).await {
            Err(CallError::Failed(fault)) if is_harmless(&fault, permit) => fault,
            ended => return ended,
        };
        let Some(pause) = pauses.next() else { return Err(fault.into()) };
        tokio::select! {
            biased;
            () = at.cx.cancel.cancelled() => return Err(fault.into()),
            () = super::until(on_record.deadline()) => return Err(fault.into()),
            () = tokio::time::sleep(*pause) => {}
        }
    }
}

/// Whether trying the call again cannot do anything twice.
fn is_harmless(fault: &Fault, permit: &Permit) -> bool {
    let tool = permit.tool();
    // What a method promises is not what every service keeps: a request that was sent is never sent again.
    let idempotent = tool.kind != ToolKind::Rest && tool.spec.annotations.idempotent_hint == Some(true);
    let lost = fault.error.code == ErrorCode::OutcomeUnknown;
    let unsent = fault.error.code == ErrorCode::UpstreamUnavailable;
    (unsent && fault.effect == EffectState::None) || (idempotent && (lost || unsent))
}

/// Runs the call once.
async fn once(at: &At<'_>, request: &CallRequest, permit: &Permit) -> Result<RawOutput, CallError> {
    let (At { rt, state, cx }, tool) = (at, permit.tool());
    let provider = rt.provider(state, &tool.key.provider)?;
    let watch = PausableTimer::start();
    let limit = time_limit(state, request, permit);
    let inner = inner(cx, tool, (&watch, limit));
    let started = EventKind::ToolStarted {
        call: cx.id,
        session: cx.session.id(),
        tool: Arc::clone(&tool.name),
        namespace: Arc::clone(&tool.namespace),
        parameters: Arc::clone(permit.recorded_arguments()),
    };
    rt.events.emit(Some(&cx.caller().principal), started);
    // Cancel-safety: a provider's future may be dropped anywhere; what it sent stays sent, and the fault says so.
    let result = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(stopped(permit, cut_off(cx))),
        result = provider.execute(&inner, permit) => result,
        () = watch.expired_after(limit) => {
            let error = ToolError::new(ErrorCode::Timeout, TIMEOUT_MESSAGE);
            Err(stopped(permit, error.with_details(json!({ "timeoutMs": limit.as_millis() }))))
        }
    };
    Ok(result?)
}

/// The context as the provider sees it.
fn inner(cx: &CallCx, tool: &Tool, (watch, limit): (&Arc<PausableTimer>, Duration)) -> CallContext {
    let mut inner = cx.clone();
    inner.watches = cx.watches.with(watch);
    if let Some(queue) = &tool.settings.queue {
        inner.held = cx.held.with(queue);
    }
    // MCP servers ask, and Gantry's own tools may call others, which may have to wait for a person.
    if tool.kind == ToolKind::Mcp {
        inner.audience =
            Arc::new(PausingClient { audience: Arc::clone(&cx.audience), watch: Arc::clone(watch) });
    }
    inner.for_provider(limit)
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
