//! Approve: a question becomes a permit by a person's yes or a grant; otherwise the call is held.
//!
//! A held call is durable before it is announced. Nothing waits here: the entry point that brought the
//! call decides how its caller waits, and when a person has decided, the same stages run again with the decision to redeem.

use super::record::{Entry, Stage};
use super::{CallScope, not_looked_up};
use crate::approvals::{grants, hold};
use crate::clock;
use gantry_core::approval::{Decision, Grant, Question, RedeemError, redeem, redeem_grant};
use gantry_core::error::{ErrorCode, PendingApproval, Refusal};
use gantry_core::policy::Evaluated;
use gantry_core::tool::ApprovalRule;
use gantry_core::{CallError, Permit};
use gantry_store::{GrantKey, HoldLimits, HoldOutcome};
use std::sync::Arc;

/// What grants and held calls are, in a message.
const BEFORE: &str = "what was decided before";

/// A person's yes to this call, or to calls like it.
pub(super) async fn approve(
    scope: &CallScope<'_>,
    question: Question,
    entry: &Entry,
) -> Result<Permit, CallError> {
    // An inline approver counts only if every asking rule lists them, or lists no approvers.
    let is_listed = |person: &&Arc<str>| question.approvers().all(|names| names.contains(*person));
    let inline = scope.request.approver.as_ref().filter(is_listed).map(|person| Decision {
        binding: question.binding(),
        approved: true,
        by: Arc::clone(person),
    });
    let before = scope.request.resumed.as_ref().and_then(|resumed| resumed.decision.as_ref());
    let Some(decision) = inline.as_ref().or(before) else { return ask(scope, question, entry).await };
    match redeem(question, decision) {
        Ok(permit) => Ok(permit),
        Err(RedeemError::Denied(refusal)) => Err(refusal.into()),
        Err(RedeemError::Changed(question)) => ask(scope, *question, entry).await,
    }
}

/// A question that no decision answers: a grant may, or the call is held.
async fn ask(scope: &CallScope<'_>, question: Question, entry: &Entry) -> Result<Permit, CallError> {
    let question = match granted(scope, question).await? {
        Ok(permit) => return apply_delay(scope, permit, entry).await,
        Err(question) => question,
    };
    let new = hold::pending(scope, &question, &entry.head);
    Err(Box::pin(hold_call(scope, new, entry)).await?.into())
}

/// The permit that a grant makes of a question, or the question.
async fn granted(scope: &CallScope<'_>, mut question: Question) -> Result<Result<Permit, Question>, Refusal> {
    let (caller, tool) = (scope.cx.caller(), question.call().tool());
    let key = GrantKey {
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent_path: caller.path_text().into(),
        provider: Arc::clone(&tool.key.provider),
        tool: Arc::clone(&tool.key.tool),
    };
    let source = hold::source(tool, question.precondition());
    let held_under = grants::grant_scope_digest(question.revision(), source.as_ref());
    let (what, session, now) = ((tool.fingerprint, held_under), scope.cx.session.id(), clock::latest_us());
    let found = scope.rt.store.grants_for(key, what, session, now).await;
    for row in found.map_err(|error| not_looked_up(BEFORE, &error))? {
        let scope = row.scope();
        let grant = Grant { id: row.id, fingerprint: row.fingerprint, rules: row.rules, scope, by: row.by };
        match redeem_grant(question, &grant) {
            Ok(permit) => return Ok(Ok(permit)),
            Err(same) => question = *same,
        }
    }
    Ok(Err(question))
}

/// The call that is the same request and waits, runs, or has ended and whose outcome no caller was given. It is looked up
/// before any precondition is read, which that call may have changed; and only for calls that may have to wait.
pub(super) async fn join_duplicate(
    scope: &CallScope<'_>,
    judged: &Evaluated,
    entry: &Entry,
) -> Result<(), CallError> {
    let (call, gates) = (judged.call(), scope.snapshot.options.policies.approval_rules());
    let tool = call.tool();
    let may_wait = judged.asks()
        || tool.spec.approval_rule != ApprovalRule::Never
        || gates.effect_ask(tool).is_some()
        || !gates.delay(tool).is_zero();
    if !may_wait || scope.request.resumed.is_some() || scope.request.approver.is_some() {
        return Ok(());
    }
    let request_key = hold::request_key(scope, tool, call.arguments_digest());
    let found = scope.rt.store.same_as(request_key, clock::steady_us()).await;
    let Some(row) = found.map_err(|error| not_looked_up(BEFORE, &error))? else { return Ok(()) };
    // From now on it is not only its maker's to withdraw.
    scope.rt.services.approvals.mark_reported(row.call);
    let held = hold::describe_held(&row);
    entry.enter(Stage::Held(Arc::new(row)));
    Err(held.into())
}

/// The permit of a call that needs no person. One whose tool has a delay is held until its time.
pub(super) async fn apply_delay(
    scope: &CallScope<'_>,
    permit: Permit,
    entry: &Entry,
) -> Result<Permit, CallError> {
    if let Some(resumed) = &scope.request.resumed {
        let tool = permit.tool();
        let source = hold::source(tool, permit.precondition().map(Arc::from).as_ref());
        let is_same = resumed.provider == tool.key.provider && resumed.source == source;
        if is_same && resumed.fingerprint == tool.fingerprint {
            return Ok(permit);
        }
        let message = format!("{} has changed while this call waited; nothing was run", permit.tool().name);
        return Err(Refusal::new(ErrorCode::ToolQuarantined, message).into());
    }
    let delay = scope.snapshot.options.policies.approval_rules().delay(permit.tool());
    // A person who says yes at the keyboard wants it now.
    if delay.is_zero() || scope.request.approver.is_some() {
        return Ok(permit);
    }
    let new = hold::scheduled(scope, &permit, &entry.head, delay);
    Err(Box::pin(hold_call(scope, new, entry)).await?.into())
}

/// Holds the call, durably, or joins the one that is the same request. Callers box it, so that calls that are not held do not
/// carry its state.
async fn hold_call(
    scope: &CallScope<'_>,
    new: gantry_store::NewApproval,
    entry: &Entry,
) -> Result<PendingApproval, Refusal> {
    let CallScope { rt, snapshot, .. } = scope;
    let limits = HoldLimits { per_caller: snapshot.options.approvals.max_pending.into(), total: hold::TOTAL };
    let held = rt.store.hold(new, limits).await.map_err(|error| hold::refused(&error))?;
    let row = match held {
        HoldOutcome::Held(row) => {
            rt.services.announce(&row);
            row
        }
        HoldOutcome::Joined(row) => {
            // From now on it is not only its maker's to withdraw.
            rt.services.approvals.mark_reported(row.call);
            row
        }
    };
    let held = hold::describe_held(&row);
    entry.enter(Stage::Held(row.into()));
    Ok(held)
}
