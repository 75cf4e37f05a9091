//! Execute: run the permitted call under its time limit, and stop it when its caller gives up.

use super::CallScope;
use super::record::OnRecord;
use super::timer::{PausableTimer, PausingClient};
use crate::context::PipelineContext;
use crate::event::EventKind;
use crate::queue::Slot;
use gantry_core::error::{CallFailure, EffectState, ErrorCode, ToolError};
use gantry_core::tool::{Tool, ToolKind};
use gantry_core::truncate::TIMEOUT_MESSAGE;
use gantry_core::{CallError, Effect, Permit};
use gantry_provider::{CallContext, RawOutput};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How often a call that a person approved is tried, and how long after, where trying again cannot do anything twice.
const PAUSES: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// Runs the call, which needs a permit, a slot of its queue, and its intent on record. A held call is tried again where
/// nothing was sent, or where its tool says that the same call again changes nothing more; other callers can decide that
/// themselves.
pub(super) async fn run(
    scope: &CallScope<'_>,
    permit: &Permit,
    // Held until the call has ended.
    _slot: &Slot,
    on_record: OnRecord<'_>,
) -> Result<RawOutput, CallError> {
    // What the provider leaves running for this call is canceled when the call ends, in any way.
    let _stop = scope.cx.cancel.clone().drop_guard();
    let mut pauses = PAUSES.iter().filter(|_| scope.request.resumed.is_some());
    loop {
        on_record.count_attempt();
        let fault = match run_once(scope, permit).await {
            Err(CallError::Failed(fault)) if is_harmless(&fault, permit) => fault,
            ended => return ended,
        };
        let Some(pause) = pauses.next() else { return Err(fault.into()) };
        tokio::select! {
            biased;
            () = scope.cx.cancel.cancelled() => return Err(fault.into()),
            () = super::sleep_until_opt(on_record.deadline()) => return Err(fault.into()),
            () = tokio::time::sleep(*pause) => {}
        }
    }
}

/// Whether trying the call again cannot do anything twice.
fn is_harmless(fault: &CallFailure, permit: &Permit) -> bool {
    let tool = permit.tool();
    // What a method promises is not what every service keeps: a request that was sent is never sent again.
    let idempotent = tool.kind != ToolKind::Rest && tool.spec.annotations.idempotent_hint == Some(true);
    let lost = fault.error.code == ErrorCode::OutcomeUnknown;
    let unsent = fault.error.code == ErrorCode::UpstreamUnavailable;
    (unsent && fault.effect == EffectState::None) || (idempotent && (lost || unsent))
}

async fn run_once(scope: &CallScope<'_>, permit: &Permit) -> Result<RawOutput, CallError> {
    let (CallScope { rt, snapshot, cx, .. }, tool) = (scope, permit.tool());
    let provider = rt.provider(snapshot, &tool.key.provider)?;
    let watch = Arc::<PausableTimer>::default();
    let limit = time_limit(scope, permit);
    let inner = provider_context(cx, tool, (&watch, limit));
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
        () = cx.cancel.cancelled() => {
            let message = format!("canceled{}", super::eviction_suffix(cx));
            Err(interrupted(permit, ToolError::new(ErrorCode::Canceled, message)))
        }
        result = provider.execute(&inner, permit) => result,
        () = watch.expired_after(limit) => {
            let error = ToolError::new(ErrorCode::Timeout, TIMEOUT_MESSAGE);
            Err(interrupted(permit, error.with_details(json!({ "timeoutMs": limit.as_millis() }))))
        }
    };
    Ok(result?)
}

fn provider_context(
    cx: &PipelineContext,
    tool: &Tool,
    (watch, limit): (&Arc<PausableTimer>, Duration),
) -> CallContext {
    let mut inner = cx.clone();
    inner.timers = cx.timers.with(watch);
    if let Some(queue) = &tool.settings.queue {
        inner.held_slots = cx.held_slots.with(queue);
    }
    // MCP servers ask, and Gantry's own tools may call others, which may have to wait for a person.
    if tool.kind == ToolKind::Mcp {
        inner.client = Arc::new(PausingClient { audience: Arc::clone(&cx.client), watch: Arc::clone(watch) });
    }
    inner.for_provider(limit)
}

/// The most specific configured limit; a call may shorten it.
pub(super) fn time_limit(scope: &CallScope<'_>, permit: &Permit) -> Duration {
    let configured =
        permit.tool().settings.timeout.unwrap_or_else(|| scope.snapshot.options.limits.tool_timeout.get());
    scope.request.timeout.map_or(configured, |asked| asked.min(configured))
}

/// The fault of a call that was cut off: if it can change something, it may have.
fn interrupted(permit: &Permit, error: ToolError) -> CallFailure {
    let effect = match permit.tool().effect {
        Effect::Read => EffectState::None,
        Effect::Write | Effect::Destructive => EffectState::Possible,
    };
    CallFailure { error, effect }
}
