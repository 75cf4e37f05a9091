//! The rows of calls that have to wait, and the errors that their callers get.

use crate::clock;
use crate::pipeline::CallScope;
use gantry_core::approval::{Question, Remember};
use gantry_core::digest::Digest;
use gantry_core::error::{ErrorCode, PendingApproval, Refusal};
use gantry_core::id::{ApprovalId, ProcessId};
use gantry_core::{CallRequest, Permit, State, Tool, ToolKind};
use gantry_store::{ApprovalDetails, ApprovalRow, CallHead, IdempotencyKey, NewApproval, WebhookSent};
use std::sync::Arc;
use std::time::Duration;

/// Limit: calls that may wait in all.
pub(crate) const TOTAL: u32 = 10_000;

/// What makes two requests the same one: which caller asks for which tool with which arguments, and under which idempotency
/// key. Preconditions, such as what a file holds, are no part of it: the first request may have changed them.
pub(crate) fn request_key(scope: &CallScope<'_>, tool: &Tool, arguments: Digest) -> Digest {
    let CallScope { cx, request, .. } = scope;
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
        request.idempotency_key.as_deref().unwrap_or_default().as_bytes(),
        parent.as_bytes(),
    ])
}

/// The row of a call that waits for a person. If the call had an approval already, this one supersedes it.
pub(crate) fn pending(scope: &CallScope<'_>, question: &Question, head: &CallHead) -> NewApproval {
    let (call, before) = (question.call(), scope.request.resumed.as_deref());
    let approvals = &scope.snapshot.options.approvals;
    let mut details = details(scope, call.tool());
    details.arguments = Arc::clone(call.arguments());
    details.binding = question.binding();
    details.policy = question.revision();
    let target = call.tool().spec.target.as_ref();
    let sends = target.map_or_else(String::new, |target| format!("; it sends {}", target.shown));
    let again = if before.is_some() { " (asked again: what was approved has changed)" } else { "" };
    details.reason = format!("{}{sends}{again}", question.reason()).into();
    details.rules = question.rules().cloned().collect();
    details.remember = question.remember();
    details.approvers = question.approvers().map(<[_]>::to_vec).collect();
    details.auto_reject = approvals.auto_reject;
    details.source = source(call.tool(), question.precondition());
    details.sent = before.filter(|before| before.edited).map(|before| before.sent);
    let wait = approvals.auto_reject.then(|| approvals.timeout());
    let sent = call.arguments_digest();
    let mut new = new(scope, head, (call.tool(), sent), details, (State::PendingApproval, wait));
    if let Some(before) = before {
        (new.row.supersedes, new.row.request_key) = (Some(before.approval), before.request_key);
    }
    new
}

/// The row of a call that waits for its time.
pub(crate) fn scheduled(
    scope: &CallScope<'_>,
    permit: &Permit,
    head: &CallHead,
    delay: Duration,
) -> NewApproval {
    let mut details = details(scope, permit.tool());
    details.arguments = permit.arguments().into();
    details.binding = permit.binding();
    details.reason = format!("{} runs after {} ms", permit.tool().name, delay.as_millis()).into();
    details.source = source(permit.tool(), permit.precondition().map(Arc::from).as_ref());
    let sent = permit.arguments_digest();
    new(scope, head, (permit.tool(), sent), details, (State::ScheduledForExecution, Some(delay)))
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

fn details(scope: &CallScope<'_>, tool: &Tool) -> ApprovalDetails {
    let CallScope { snapshot, cx, request, .. } = scope;
    let (caller, rules) = (cx.caller(), snapshot.options.policies.approval_rules());
    ApprovalDetails {
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
        remember: Remember::new(),
        approvers: Vec::new(),
        estimated_cost: rules.cost(tool),
        delay_ms: u64::try_from(rules.delay(tool).as_millis()).unwrap_or(u64::MAX),
        auto_reject: true,
        idempotency_key: request.idempotency_key.clone(),
        timeout_ms: request.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        priority: request.priority,
        turn: cx.turn,
        source: None,
        own_session: !cx.session.head.shared,
        sent: None,
    }
}

fn new(
    scope: &CallScope<'_>,
    head: &CallHead,
    (tool, sent): (&Tool, Digest),
    details: ApprovalDetails,
    (state, wait): (State, Option<Duration>),
) -> NewApproval {
    let CallScope { snapshot, cx, .. } = scope;
    let (caller, now) = (cx.caller(), clock::steady_us());
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2);
    let row = ApprovalRow {
        id: ApprovalId::generate(),
        call: cx.id,
        step: 0,
        session: cx.session.id(),
        parent: cx.parent,
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent: caller.agent.clone(),
        name: Arc::clone(&tool.name),
        request_key: request_key(scope, tool, sent),
        state,
        // The store sets it.
        process: ProcessId::from_bytes([0; 16]),
        created_us: now,
        deadline_us: wait.map(|wait| now.saturating_add(micros(wait))),
        ended_us: None,
        delivered: false,
        // Webhooks are sent what waits for a person, not what waits for its time.
        webhook_sent: match (&snapshot.options.approvals.webhook, state) {
            (Some(_), State::PendingApproval) => WebhookSent::Nothing,
            _ => WebhookSent::All,
        },
        attempts: 0,
        decision: None,
        message: None,
        supersedes: None,
        details,
        omitted: gantry_store::Omitted::default(),
    };
    NewApproval { head: head.clone(), idempotency: idempotency(scope.request, sent), row }
}

/// The error that the caller of a held call gets.
pub(crate) fn describe_held(row: &ApprovalRow) -> PendingApproval {
    let state = if row.state.is_over() { State::PendingApproval } else { row.state };
    PendingApproval {
        approval: row.id,
        state,
        reason: Arc::clone(&row.details.reason),
        rules: row.details.rules.clone(),
    }
}

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
