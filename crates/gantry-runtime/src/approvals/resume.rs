//! Resuming a held call: the same pipeline runs again, under the rules of now, with the decision to redeem.

use super::RunningGuard;
use super::decide::{Decider, DecisionError, DecisionInput};
use super::grants;
use crate::context::PipelineContext;
use crate::pipeline;
use crate::projects::{Context, Projects};
use crate::runtime::Runtime;
use crate::session::Session;
use gantry_core::approval::{Decision, Resumed};
use gantry_core::digest::Digest;
use gantry_core::error::{ErrorCode, Refusal, ToolError};
use gantry_core::id::ApprovalId;
use gantry_core::{CallRequest, Caller, State, Verdict as CallVerdict};
use gantry_store::{ApprovalDetails, ApprovalRow, Scope, Verdict};
use std::sync::Arc;
use std::time::Duration;

/// Where a held call goes on: the runtime, the context, and the session if it was brought back for it.
type Place = (Arc<Runtime>, PipelineContext, Revived);

impl Projects {
    /// Decides about a held call, and sees to it that it goes on.
    pub async fn decide(
        self: &Arc<Self>,
        id: ApprovalId,
        by: &Decider,
        input: DecisionInput,
    ) -> Result<ApprovalRow, DecisionError> {
        let approved = input.approved;
        let decided = self.decided(id, by, input).await;
        if let Err(error) = &decided {
            self.services().record_decision_error(id, by, approved, error).await;
        }
        decided
    }

    async fn decided(
        self: &Arc<Self>,
        id: ApprovalId,
        by: &Decider,
        input: DecisionInput,
    ) -> Result<ApprovalRow, DecisionError> {
        let modified_args = input.modified_args.filter(|_| input.approved);
        let mut edited = None;
        if modified_args.is_some() || (input.approved && input.scope != Scope::Once) {
            let row = self.services().decidable(id, by, true).await?;
            let invalid = |refusal: Refusal| DecisionError::Invalid(refusal.error().clone());
            let (runtime, cx, _revived) = self.place_of(&row).await.map_err(invalid)?;
            let binding = judge_again(&runtime, &cx, (&row, modified_args.as_ref()), by, input.scope).await?;
            edited = modified_args.is_some().then_some(binding);
        }
        let input = DecisionInput { modified_args, ..input };
        let row = self.services().decide(id, by, input, edited).await?;
        // The process that holds the call runs it, with the client that waits there; if that is gone, this one does.
        if row.state == State::ApprovedReady && !self.store().is_alive(row.process) {
            self.resume_now(row.id);
        }
        Ok(row)
    }

    /// Runs a held call, or ends it if it may not run any more. What cannot be done now is tried again later.
    pub(super) async fn resume(self: &Arc<Self>, row: &ApprovalRow, running: RunningGuard) {
        let refusal = match self.place_to_resume(row).await {
            Ok(None) => return,
            Ok(Some((runtime, cx, _revived))) => match runtime.enter(&cx) {
                Ok(entered) => {
                    let modified = row.decision.as_ref().and_then(|decision| decision.modified_args.clone());
                    return runtime.resume(entered, cx, request(row, modified), running);
                }
                Err(refusal) => Some(refusal),
            },
            Err(refusal) => refusal,
        };
        running.retry_later();
        if let Some(refusal) = refusal {
            tracing::warn!("{} could not go on: {}", row.call, refusal.error().message);
        }
    }

    /// Where a held call goes on; none if it may not run any more, and was ended. An error means that it is tried again
    /// later, with a reason if that is worth a word.
    async fn place_to_resume(self: &Arc<Self>, row: &ApprovalRow) -> Result<Option<Place>, Option<Refusal>> {
        let failed = |error: gantry_store::Error| {
            Some(Refusal::new(ErrorCode::InternalError, format!("the store failed: {error}")))
        };
        if self.services().ends_with_key(row).await.map_err(failed)? {
            return Ok(None);
        }
        let waits_here = self.services().approvals().waiter_of(row).is_some();
        if let Some(parent) = row.parent.filter(|_| !waits_here) {
            if self.services().is_running(parent, None) {
                // It was decided before the call above has begun to wait for it.
                return Err(None);
            }
            // A call below another ends with it.
            self.services().cancel_held(row, "the call above it is gone").await.map_err(failed)?;
            return Ok(None);
        }
        match self.place_of(row).await {
            Ok(place) => Ok(Some(place)),
            // Its project or its agent is not configured any more.
            Err(refusal) if refusal.error().code == ErrorCode::PermissionDenied => {
                let why = &refusal.error().message;
                tracing::warn!("{} could not go on: {why}", row.call);
                self.services().cancel_held(row, why).await.map_err(failed)?;
                Ok(None)
            }
            Err(refusal) => Err(Some(refusal)),
        }
    }

    /// Where a held call runs, and as what: with the client that waits for it, if one does.
    async fn place_of(self: &Arc<Self>, row: &ApprovalRow) -> Result<Place, Refusal> {
        if let Some(cx) = self.services().approvals().waiter_of(row)
            && let Some(home) = cx.session.runtime().filter(|home| !home.closing.is_cancelled())
            && !cx.session.is_evicted()
        {
            // Others may wait for it besides this caller, so only a caller that waits alone stops it by leaving (`wait`). A
            // call below another stops with that one, and so do all callers that wait for it.
            let above = if row.parent.is_some() { &cx.cancel } else { cx.session.cancellation() };
            let cancel = above.child_token();
            return Ok((home, PipelineContext { id: row.call, cancel, ..cx }, Revived::default()));
        }
        let Context { runtime, agent } = self.context(&row.project, row.agent.as_deref()).await?;
        if agent != row.agent {
            let message =
                format!("agent {} is active now, for which this call is not", agent.unwrap_or_default());
            return Err(Refusal::from(ToolError::new(ErrorCode::PermissionDenied, message)));
        }
        runtime.settled().await;
        let above = row.details.agent_path.split_last().map_or(&[] as &[_], |(_, above)| above);
        let caller = Caller {
            principal: Arc::clone(&row.principal),
            role: row.details.role,
            agent,
            parent_agents: above.into(),
            project: Arc::clone(&row.project),
        };
        let (session, is_new) = runtime.restore_session(row.session, caller, &row.details.door).await?;
        let mut cx = PipelineContext::new(&session);
        (cx.id, cx.turn, cx.parent) = (row.call, row.details.turn, row.parent);
        let revived = Revived(is_new.then(|| (Arc::clone(&runtime), session)));
        Ok((runtime, cx, revived))
    }
}

/// What a yes to a held call is bound to under the rules of now, perhaps with other arguments: that is another question,
/// which may be for others to answer, and whose rules may let a yes reach less far.
pub(super) async fn judge_again(
    runtime: &Runtime,
    cx: &PipelineContext,
    (row, modified): (&ApprovalRow, Option<&Arc<str>>),
    by: &Decider,
    scope: Scope,
) -> Result<Digest, DecisionError> {
    match pipeline::verdict(runtime, cx, &request(row, modified.cloned())).await {
        CallVerdict::Allow(permit) => Ok(permit.binding()),
        CallVerdict::Ask(question) => {
            by.is_listed_approver(question.approvers())?;
            let (rules, remember) = (question.rules().cloned().collect(), question.remember());
            grants::check_scope(&ApprovalDetails { rules, remember, ..row.details.clone() }, scope)?;
            Ok(question.binding())
        }
        CallVerdict::Deny(refusal) => Err(DecisionError::Invalid(refusal.error().clone())),
    }
}

/// A session that was brought back for one call. The runtime forgets it when this is dropped: the call has it then.
#[derive(Debug, Default)]
struct Revived(Option<(Arc<Runtime>, Arc<Session>)>);

impl Drop for Revived {
    fn drop(&mut self) {
        if let Some((runtime, session)) = self.0.take() {
            runtime.sessions.remove(session.id());
        }
    }
}

/// The digest of the arguments as they were sent.
fn sent(row: &ApprovalRow) -> Digest {
    if let Some(sent) = row.details.sent {
        return sent;
    }
    let canonical = gantry_core::json::canonical(&row.details.arguments);
    canonical.map_or_else(|_| row.details.binding, |canonical| Digest::of(canonical.text().as_bytes()))
}

/// The request of a held call, perhaps with the arguments that a person gave instead.
fn request(row: &ApprovalRow, modified: Option<Arc<str>>) -> CallRequest {
    let edited = modified.is_some();
    let decision = row.decision.as_ref().map(|decision| Decision {
        binding: decision.binding,
        approved: decision.verdict == Verdict::Approved,
        by: Arc::clone(&decision.by),
    });
    CallRequest {
        tool: row.name.to_string(),
        arguments: Some(modified.unwrap_or_else(|| Arc::clone(&row.details.arguments))),
        priority: row.details.priority,
        idempotency_key: row.details.idempotency_key.clone(),
        timeout: row.details.timeout_ms.map(Duration::from_millis),
        approver: None,
        keep_result: true,
        resumed: Some(Arc::new(Resumed {
            approval: row.id,
            fingerprint: row.details.fingerprint,
            provider: Arc::clone(&row.details.provider),
            source: row.details.source.clone(),
            sent: sent(row),
            request_key: row.request_key,
            decision,
            edited: edited || row.details.sent.is_some(),
        })),
    }
}
