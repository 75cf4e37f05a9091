//! The rows of calls that have to wait, and what their callers are told.

use crate::clock;
use crate::context::CallCx;
use crate::runtime::Setup;
use gantry_core::approval::Question;
use gantry_core::digest::Digest;
use gantry_core::error::{ErrorCode, Held, Refusal};
use gantry_core::id::{ApprovalId, NodeId};
use gantry_core::{CallRequest, Permit, State, Tool, ToolKind};
use gantry_store::{Announced, ApprovalRow, Asked, CallHead, HoldLimits, IdempotencyKey, NewApproval};
use std::sync::Arc;
use std::time::Duration;

/// Calls that may wait in all.
const TOTAL: u32 = 100_000;

/// What makes two requests the same one: which caller asks for which tool with which arguments, and under which idempotency
/// key. Preconditions, such as what a file holds, are no part of it: the first request may have changed them.
pub(crate) fn dedup_key(cx: &CallCx, tool: &Tool, arguments: Digest, key: Option<&str>) -> Digest {
    let caller = cx.caller();
    // A call below another belongs to that one: equal calls of two parents are two.
    let parent = cx.parent.map(|parent| parent.to_string()).unwrap_or_default();
    Digest::of_parts(&[
        caller.project.as_bytes(),
        caller.principal.as_bytes(),
        caller.path_text().as_bytes(),
        tool.key.provider.as_bytes(),
        tool.key.tool.as_bytes(),
        arguments.as_bytes(),
        key.unwrap_or_default().as_bytes(),
        parent.as_bytes(),
    ])
}

/// The row of a call that waits for a person. If the call had an approval already, this one supersedes it.
pub(crate) fn pending(
    cx: &CallCx,
    setup: &Setup,
    request: &CallRequest,
    question: &Question,
    head: &CallHead,
) -> NewApproval {
    let (call, options, before) = (question.call(), &setup.approvals, request.resumed.as_deref());
    let mut asked = asked(cx, setup, request, call.tool());
    asked.arguments = Arc::clone(call.arguments());
    asked.binding = question.binding();
    asked.policy = question.revision();
    let reason = sending(question.reason(), call.tool());
    asked.reason = match before {
        None => reason.into(),
        Some(_) => format!("{reason} (asked again: what was approved has changed)").into(),
    };
    asked.rules = question.rules().cloned().collect();
    asked.approvers = question.approvers().map(<[_]>::to_vec).collect();
    asked.auto_reject = options.auto_reject;
    asked.source = source(call.tool(), question.precondition());
    asked.sent = before.filter(|before| before.edited).map(|before| before.sent);
    let wait = options.auto_reject.then_some(options.timeout);
    let sent = call.arguments_digest();
    let mut row = row(cx, setup, call.tool(), asked, (State::PendingApproval, wait, sent));
    if let Some(before) = before {
        (row.supersedes, row.dedup_key) = (Some(before.approval), before.dedup_key);
    }
    NewApproval { head: head.clone(), idempotency: idempotency(request, sent), row }
}

/// Why a person is asked, and where the call would go.
fn sending(reason: String, tool: &Tool) -> String {
    match &tool.spec.target {
        Some(target) => format!("{reason}; it sends {}", target.shown),
        None => reason,
    }
}

/// The row of a call that waits for its time.
pub(crate) fn scheduled(
    cx: &CallCx,
    setup: &Setup,
    request: &CallRequest,
    permit: &Permit,
    head: &CallHead,
    delay: Duration,
) -> NewApproval {
    let mut asked = asked(cx, setup, request, permit.tool());
    asked.arguments = permit.arguments().into();
    asked.binding = permit.binding();
    asked.reason = format!("{} runs after {} ms", permit.tool().name, delay.as_millis()).into();
    asked.source = source(permit.tool(), permit.precondition().map(Arc::from).as_ref());
    let sent = permit.arguments_digest();
    NewApproval {
        head: head.clone(),
        idempotency: idempotency(request, sent),
        row: row(cx, setup, permit.tool(), asked, (State::ScheduledForExecution, Some(delay), sent)),
    }
}

/// Which server it is exactly, for calls to other servers. What a built-in tool has read may well change while it waits.
pub(crate) fn source(tool: &Tool, precondition: Option<&Arc<str>>) -> Option<Arc<str>> {
    precondition.filter(|_| tool.kind != ToolKind::Builtin).cloned()
}

/// The key of a request, with the arguments that it was first used with.
pub(crate) fn idempotency(request: &CallRequest, arguments: Digest) -> Option<IdempotencyKey> {
    let key = request.idempotency_key.clone()?;
    let arguments = request.resumed.as_ref().map_or(arguments, |resumed| resumed.sent);
    Some(IdempotencyKey { key, arguments })
}

fn asked(cx: &CallCx, setup: &Setup, request: &CallRequest, tool: &Tool) -> Asked {
    let (caller, gates) = (cx.caller(), setup.policies.gates());
    Asked {
        role: caller.role,
        door: cx.session.door().as_str().into(),
        agent_path: caller.path().cloned().collect(),
        provider: Arc::clone(&tool.key.provider),
        tool: Arc::clone(&tool.key.tool),
        effect: tool.effect.as_str().into(),
        fingerprint: tool.fingerprint,
        arguments: "{}".into(),
        binding: Digest::from_bytes([0; 32]),
        policy: Digest::from_bytes([0; 32]),
        reason: "".into(),
        rules: Vec::new(),
        approvers: Vec::new(),
        estimated_cost: gates.cost(tool),
        delay_ms: u64::try_from(gates.delay(tool).as_millis()).unwrap_or(u64::MAX),
        auto_reject: true,
        idempotency_key: request.idempotency_key.clone(),
        timeout_ms: request.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        priority: request.priority,
        turn: cx.turn,
        source: None,
        own_session: !cx.session.is_standing(),
        sent: None,
    }
}

fn row(
    cx: &CallCx,
    setup: &Setup,
    tool: &Tool,
    asked: Asked,
    (state, wait, sent): (State, Option<Duration>, Digest),
) -> ApprovalRow {
    let (caller, now) = (cx.caller(), clock::steady_us());
    let dedup_key = dedup_key(cx, tool, sent, asked.idempotency_key.as_deref());
    ApprovalRow {
        seq: 0,
        id: ApprovalId::mint(),
        call: cx.id,
        session: cx.session.id(),
        parent: cx.parent,
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent: caller.agent.clone(),
        name: Arc::clone(&tool.name),
        dedup_key,
        state,
        // The store writes its own.
        node: NodeId::from_bytes([0; 16]),
        created_us: now,
        deadline_us: wait.map(|wait| now.saturating_add(micros(wait))),
        ended_us: None,
        collected: false,
        // A webhook hears of what waits for a person, not of what waits for its time.
        announced: match (&setup.approvals.webhook, state) {
            (Some(_), State::PendingApproval) => Announced::Nothing,
            _ => Announced::All,
        },
        attempts: 0,
        decision: None,
        message: None,
        supersedes: None,
        asked,
        omitted: gantry_store::Omitted::default(),
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}

/// How many calls may wait.
pub(crate) fn limits(setup: &Setup) -> HoldLimits {
    HoldLimits { per_caller: setup.approvals.max_pending, total: TOTAL }
}

/// What the caller of a held call is told.
pub(crate) fn describe_held(row: &ApprovalRow) -> Held {
    let state = if row.state.is_over() { State::PendingApproval } else { row.state };
    Held { approval: row.id, state, reason: Arc::clone(&row.asked.reason), rules: row.asked.rules.clone() }
}

/// What the caller is told of a call that could not be held.
pub(crate) fn refused(error: &gantry_store::Error) -> Refusal {
    if matches!(error, gantry_store::Error::TooManyHeld { .. }) {
        let message = format!("{error}. Nothing was run; try again when some are decided.");
        return Refusal::new(ErrorCode::QueueFull, message);
    }
    if let gantry_store::Error::Taken { call, state } = error {
        let message =
            format!("{call} has this idempotency key and is {state}; choose a new key, or ask for that call");
        return Refusal::new(ErrorCode::IdempotencyConflict, message);
    }
    tracing::error!("a call could not be held: {error}");
    let message = format!("the call could not be held for a person, so it was not run: {error}");
    Refusal::new(ErrorCode::InternalError, message)
}
