//! Going on with a held call: the same pipeline runs again, under today's rules, with the decision to redeem.

use super::Busy;
use super::decide::{Decider, Given, NotDecided};
use crate::context::CallCx;
use crate::projects::{Context, Projects};
use crate::runtime::Runtime;
use crate::session::Session;
use gantry_core::approval::{Decision, Resumed};
use gantry_core::digest::Digest;
use gantry_core::error::{ErrorCode, Refusal, ToolError};
use gantry_core::id::ApprovalId;
use gantry_core::{CallRequest, Caller, State, Verdict as CallVerdict};
use gantry_store::{ApprovalRow, Verdict};
use std::sync::Arc;
use std::time::Duration;

impl Projects {
    /// Decides about a held call, and sees to it that it goes on.
    ///
    /// # Errors
    /// Nothing was decided, for this reason.
    pub async fn decide(
        self: &Arc<Self>,
        id: ApprovalId,
        by: &Decider,
        given: Given,
    ) -> Result<ApprovalRow, NotDecided> {
        let approved = given.approved;
        let decided = self.decided(id, by, given).await;
        if let Err(error) = &decided {
            self.commons().not_decided(id, by, approved, error).await;
        }
        decided
    }

    async fn decided(
        self: &Arc<Self>,
        id: ApprovalId,
        by: &Decider,
        given: Given,
    ) -> Result<ApprovalRow, NotDecided> {
        let edited = match given.modified_args.as_ref().filter(|_| given.approved) {
            None => None,
            Some(arguments) => {
                let row = self.commons().decidable(id, by, true).await?;
                Some(self.foresee(&row, arguments, by).await?)
            }
        };
        let given = Given { modified_args: given.modified_args.filter(|_| given.approved), ..given };
        let row = self.commons().decide(id, by, given, edited).await?;
        // The process that holds the call runs it, with the client that waits there; if that is gone, this one does.
        if row.state == State::ApprovedReady && !self.store().is_alive(row.node) {
            self.take_up(row.id);
        }
        Ok(row)
    }

    /// What a decision about the call with other arguments is bound to. It is another question, which may be for others
    /// to answer.
    async fn foresee(
        self: &Arc<Self>,
        row: &ApprovalRow,
        arguments: &Arc<str>,
        by: &Decider,
    ) -> Result<Digest, NotDecided> {
        let invalid = |refusal: Refusal| NotDecided::Invalid(refusal.error().clone());
        let (runtime, cx, revived) = self.place_of(row).await.map_err(invalid)?;
        let request = request(row, Some(Arc::clone(arguments)));
        let verdict = runtime.verdict(&cx, &request).await;
        revived.forget();
        match verdict {
            CallVerdict::Allow(permit) => Ok(permit.binding()),
            CallVerdict::Ask(question) => by.is_named(question.approvers()).map(|()| question.binding()),
            CallVerdict::Deny(refusal) => Err(invalid(refusal)),
        }
    }

    /// Runs a held call.
    pub(super) async fn resume(self: &Arc<Self>, row: &ApprovalRow, busy: Busy) -> Result<(), Refusal> {
        if self.has_lost_its_caller(row, &busy).await {
            return Ok(());
        }
        let waits_here = self.commons().approvals().waiter_of(row).is_some();
        if let Some(parent) = row.parent.filter(|_| !waits_here) {
            if self.commons().is_running(parent, None) {
                // It was decided before the call above has begun to wait for it.
                busy.postpone();
                return Ok(());
            }
            // A call below another ends with it.
            let gone = "the call above it is gone";
            if let Err(error) = self.commons().cancel_held(row, gone).await {
                tracing::warn!("{} could not be ended: {error}", row.id);
                busy.postpone();
            }
            return Ok(());
        }
        let (runtime, cx, revived) = match self.place_of(row).await {
            Ok(place) => place,
            Err(refusal) => return self.give_up(row, &busy, refusal).await,
        };
        let entered = match runtime.enter(&cx) {
            Ok(entered) => entered,
            Err(refusal) => {
                busy.postpone();
                revived.forget();
                return Err(refusal);
            }
        };
        let modified = row.decision.as_ref().and_then(|decision| decision.modified_args.clone());
        let request = request(row, modified);
        runtime.resume(entered, cx, request, busy);
        revived.forget();
        Ok(())
    }

    /// There is no place any more where the call could run; or not at the moment.
    async fn give_up(&self, row: &ApprovalRow, busy: &Busy, refusal: Refusal) -> Result<(), Refusal> {
        busy.postpone();
        if refusal.error().code != ErrorCode::PermissionDenied {
            return Err(refusal);
        }
        // Its project or its agent is not configured any more.
        if let Err(error) = self.commons().cancel_held(row, &refusal.error().message).await {
            tracing::warn!("{} could not be ended: {error}", row.id);
        }
        Err(refusal)
    }

    /// Where a held call runs, and as what: with the client that waits for it, if one does.
    async fn place_of(
        self: &Arc<Self>,
        row: &ApprovalRow,
    ) -> Result<(Arc<Runtime>, CallCx, Revived), Refusal> {
        if let Some(cx) = self.commons().approvals().waiter_of(row)
            && let Some(home) = cx.session.home().filter(|home| !home.is_closing())
            && !cx.session.is_displaced()
        {
            // Others may wait for it besides this caller, so only one who is alone stops it by leaving (`attend`). A call
            // below another stops with that one, and so does everybody who waits for it.
            let above = if row.parent.is_some() { &cx.cancel } else { cx.session.cancellation() };
            let cancel = above.child_token();
            return Ok((home, CallCx { id: row.call, cancel, ..cx }, Revived::default()));
        }
        let Context { runtime, agent } = self.context(&row.project, row.agent.as_deref()).await?;
        if agent != row.agent {
            let message =
                format!("agent {} is active now, for which this call is not", agent.unwrap_or_default());
            return Err(Refusal::from(ToolError::new(ErrorCode::PermissionDenied, message)));
        }
        runtime.settled().await;
        let above = row.asked.agent_path.split_last().map_or(&[] as &[_], |(_, above)| above);
        let caller = Caller {
            principal: Arc::clone(&row.principal),
            role: row.asked.role,
            agent,
            above: above.into(),
            project: Arc::clone(&row.project),
        };
        let (session, is_new) = runtime.session_again(row.session, caller, &row.asked.door).await?;
        let mut cx = CallCx::new(&session);
        (cx.id, cx.turn, cx.parent) = (row.call, row.asked.turn, row.parent);
        let revived = Revived(is_new.then(|| (Arc::clone(&runtime), session)));
        Ok((runtime, cx, revived))
    }
}

/// A session that was brought back for one call.
#[derive(Debug, Default)]
struct Revived(Option<(Arc<Runtime>, Arc<Session>)>);

impl Revived {
    /// The call has what it needs of it.
    fn forget(self) {
        if let Some((runtime, session)) = self.0 {
            runtime.forget_session(&session);
        }
    }
}

/// The digest of the arguments as they were sent.
fn sent(row: &ApprovalRow) -> Digest {
    if let Some(sent) = row.asked.sent {
        return sent;
    }
    let canonical = gantry_core::json::canonical(&row.asked.arguments);
    canonical.map_or_else(|_| row.asked.binding, |canonical| Digest::of(canonical.text().as_bytes()))
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
        arguments: Some(modified.unwrap_or_else(|| Arc::clone(&row.asked.arguments))),
        priority: row.asked.priority,
        idempotency_key: row.asked.idempotency_key.clone(),
        timeout: row.asked.timeout_ms.map(Duration::from_millis),
        approver: None,
        keep_result: true,
        resumed: Some(Arc::new(Resumed {
            approval: row.id,
            fingerprint: row.asked.fingerprint,
            provider: Arc::clone(&row.asked.provider),
            source: row.asked.source.clone(),
            sent: sent(row),
            sameness: row.sameness,
            decision,
            edited: edited || row.asked.sent.is_some(),
        })),
    }
}
