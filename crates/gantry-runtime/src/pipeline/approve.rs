//! Approve: a question becomes a permit by a person's yes or a grant; otherwise the call is held.
//!
//! A held call is durable before a client or an approver hears of it. Nothing waits here: the entry point that brought the
//! call decides how its caller waits, and when a person has decided, the same stages run again with the decision to redeem.

use super::At;
use super::record::Entry;
use crate::approvals::{grants, hold};
use crate::clock;
use gantry_core::approval::{Decision, Grant, Question, Void, redeem, redeem_grant};
use gantry_core::error::{ErrorCode, Held, Refusal};
use gantry_core::policy::Judged;
use gantry_core::tool::OwnRule;
use gantry_core::{CallError, CallRequest, Permit};
use gantry_store::{GrantKey, HeldAs};
use std::sync::Arc;

/// A person's yes to this call, or to calls like it.
pub(super) async fn obtain(
    at: &At<'_>,
    request: &CallRequest,
    question: Question,
    entry: &mut Entry,
) -> Result<Permit, CallError> {
    // An inline approver counts only if every asking rule lists them, or lists no approvers.
    let is_listed = |person: &Arc<str>| question.approvers().all(|names| names.contains(person));
    if let Some(person) = request.approver.as_ref().filter(|person| is_listed(person)) {
        let decision = Decision { binding: question.binding(), approved: true, by: Arc::clone(person) };
        return redeemed(redeem(question, &decision));
    }
    let Some(decision) = request.resumed.as_ref().and_then(|resumed| resumed.decision.as_ref()) else {
        return ask(at, request, question, entry).await;
    };
    match redeem(question, decision) {
        Ok(permit) => Ok(permit),
        Err(Void::Denied(refusal)) => Err(refusal.into()),
        Err(Void::Changed(question)) => ask(at, request, *question, entry).await,
    }
}

/// A question that no decision answers: a grant may, or the call is held.
async fn ask(
    at: &At<'_>,
    request: &CallRequest,
    question: Question,
    entry: &mut Entry,
) -> Result<Permit, CallError> {
    let question = match granted(at, question).await? {
        Ok(permit) => return in_time(at, request, permit, entry).await,
        Err(question) => question,
    };
    let new = hold::pending(at.cx, &at.state.setup, request, &question, entry.head());
    Err(hold_back(at, new, entry).await?.into())
}

fn redeemed(redeemed: Result<Permit, Void>) -> Result<Permit, CallError> {
    redeemed.map_err(|void| match void {
        Void::Denied(refusal) => refusal.into(),
        // The decision was made from the question a moment ago.
        Void::Changed(_) => {
            Refusal::new(ErrorCode::ApprovalRequired, "the call has changed while it was approved; ask again")
                .into()
        }
    })
}

/// The permit that a grant makes of a question, or the question.
async fn granted(at: &At<'_>, mut question: Question) -> Result<Result<Permit, Question>, Refusal> {
    let (caller, tool) = (at.cx.caller(), question.call().tool());
    let key = GrantKey {
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent_path: caller.path_text().into(),
        provider: Arc::clone(&tool.key.provider),
        tool: Arc::clone(&tool.key.tool),
    };
    let source = hold::source(tool, question.precondition());
    let scope = grants::grant_scope_digest(question.revision(), source.as_ref());
    let (what, session, now) = ((tool.fingerprint, scope), at.cx.session.id(), clock::latest_us());
    let found = at.rt.store.grants_for(key, what, session, now).await;
    let found = found.map_err(|error| unreadable(&error))?;
    for row in found {
        let grant = Grant { id: row.id, fingerprint: row.fingerprint, rules: row.rules, by: row.by };
        match redeem_grant(question, &grant) {
            Ok(permit) => return Ok(Ok(permit)),
            Err(same) => question = *same,
        }
    }
    Ok(Err(question))
}

fn unreadable(error: &gantry_store::Error) -> Refusal {
    let message = format!("what was decided before could not be looked up, so nothing was run: {error}");
    Refusal::new(ErrorCode::InternalError, message)
}

/// The call that is the same request and waits, runs, or has ended and whose outcome no caller was given. It is looked up
/// before any precondition is read, which that call may have changed; and only for calls that may have to wait.
pub(super) async fn joined(
    at: &At<'_>,
    request: &CallRequest,
    judged: &Judged,
    entry: &mut Entry,
) -> Result<(), CallError> {
    let (call, gates) = (judged.call(), at.state.setup.policies.gates());
    let tool = call.tool();
    let may_wait = judged.asks()
        || tool.spec.own_rule != OwnRule::Never
        || gates.effect_ask(tool).is_some()
        || !gates.delay(tool).is_zero();
    if !may_wait || request.resumed.is_some() || request.approver.is_some() {
        return Ok(());
    }
    let key = request.idempotency_key.as_deref();
    let dedup_key = hold::dedup_key(at.cx, tool, call.arguments_digest(), key);
    let found = at.rt.store.same_as(dedup_key, clock::steady_us()).await;
    let Some(row) = found.map_err(|error| unreadable(&error))? else { return Ok(()) };
    // From now on it is not only its maker's to withdraw.
    at.rt.services.approvals.mark_reported(row.id);
    let held = hold::describe_held(&row);
    entry.held(Arc::new(row));
    Err(held.into())
}

/// A call that needs no person, at its time: one whose tool has a delay is held until then.
pub(super) async fn in_time(
    at: &At<'_>,
    request: &CallRequest,
    permit: Permit,
    entry: &mut Entry,
) -> Result<Permit, CallError> {
    if let Some(resumed) = &request.resumed {
        let tool = permit.tool();
        let source = hold::source(tool, permit.precondition().map(Arc::from).as_ref());
        let is_same = resumed.provider == tool.key.provider && resumed.source == source;
        if is_same && resumed.fingerprint == tool.fingerprint {
            return Ok(permit);
        }
        let message = format!("{} has changed while this call waited; nothing was run", permit.tool().name);
        return Err(Refusal::new(ErrorCode::ToolQuarantined, message).into());
    }
    let delay = at.state.setup.policies.gates().delay(permit.tool());
    // A person who says yes at the keyboard wants it now.
    if delay.is_zero() || request.approver.is_some() {
        return Ok(permit);
    }
    let new = hold::scheduled(at.cx, &at.state.setup, request, &permit, entry.head(), delay);
    Err(hold_back(at, new, entry).await?.into())
}

/// Holds the call, durably, or joins the one that is the same request.
async fn hold_back(at: &At<'_>, new: gantry_store::NewApproval, entry: &mut Entry) -> Result<Held, Refusal> {
    let At { rt, state, .. } = at;
    let limits = hold::limits(&state.setup);
    let held = rt.store.hold(new, limits).await.map_err(|error| hold::refused(&error))?;
    let row = match held {
        HeldAs::Fresh(row) => {
            rt.services.tell(&row);
            row
        }
        HeldAs::Joined(row) => {
            // From now on it is not only its maker's to withdraw.
            rt.services.approvals.mark_reported(row.id);
            row
        }
    };
    let held = hold::describe_held(&row);
    entry.held(Arc::new(*row));
    Ok(held)
}
