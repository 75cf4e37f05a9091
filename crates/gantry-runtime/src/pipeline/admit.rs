//! Queue: wait for a slot where the tool has a queue.

use super::CallScope;
use crate::context::PipelineContext;
use crate::queue::Slot;
use gantry_core::Permit;
use gantry_core::error::{ErrorCode, Refusal};
use std::time::Instant;

pub(super) async fn slot(
    CallScope { rt, cx, request, .. }: &CallScope<'_>,
    permit: &Permit,
    deadline: Option<Instant>,
) -> Result<Slot, Refusal> {
    if cx.cancel.is_cancelled() {
        return Err(canceled(cx, "before it began"));
    }
    let Some(name) = &permit.tool().settings.queue else { return Ok(Slot::default()) };
    // Names are checked when the configuration is loaded; if one is missing all the same, nothing is let through.
    let queues = rt.services.queues.load_full();
    let queue = queues.get(name).ok_or_else(|| {
        Refusal::new(ErrorCode::InternalError, format!("queue {name} is not configured; nothing was run"))
    })?;
    // Cancel-safety: `admit` gives its place back when it is dropped.
    let slot = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(canceled(cx, "while waiting")),
        () = sleep_until_opt(deadline) => Err(Refusal::new(ErrorCode::Timeout, "timeout while waiting for a turn; nothing was run")),
        slot = queue.admit(cx.session.id(), request.priority, &cx.held_slots) => slot,
    };
    // The slot may be that of a call that was just canceled because Gantry stops. An approval is not used up by that.
    if rt.canceling.is_cancelled() { Err(canceled(cx, "while waiting")) } else { slot }
}

/// The refusal of a call that is not wanted any more, or whose session has to leave.
fn canceled(cx: &PipelineContext, when: &str) -> Refusal {
    let why = eviction_suffix(cx);
    Refusal::new(ErrorCode::Canceled, format!("canceled {when}{why}; nothing was run"))
}

/// Why the session of a canceled call has to leave, if it has to, as the end of a message.
pub(super) fn eviction_suffix(cx: &PipelineContext) -> String {
    cx.session.eviction_reason().map_or_else(String::new, |why| format!(": {why}"))
}

pub(crate) async fn sleep_until_opt(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
