//! Replies about calls that were held: what came of them, for the callers that made them.

use crate::context::PipelineContext;
use crate::options::Delivery;
use crate::pipeline::idempotency;
use crate::reply::{Reply, Shaped, effect_of};
use crate::runtime::Runtime;
use crate::session::Session;
use gantry_core::error::{CallFailure, EffectState, ErrorCode, Refusal, ToolError};
use gantry_core::id::CallId;
use gantry_core::{CallError, State};
use gantry_store::{ApprovalRow, CallRow, Verdict};
use std::sync::Arc;
use std::time::Duration;

impl Runtime {
    /// The reply to a caller whose call was held and is over.
    pub(crate) async fn outcome(&self, cx: &PipelineContext, row: ApprovalRow) -> Reply {
        let call = match self.store.call(row.call).await {
            Ok(call) => call,
            Err(error) => {
                tracing::error!("the outcome of call {} could not be read: {error}", row.call);
                None
            }
        };
        let outcome = self.result_of(cx, &row, call.as_ref()).await;
        let approved = row.decision.as_ref().filter(|decision| decision.verdict == Verdict::Approved);
        let is_edited = row.details.sent.is_some() || approved.is_some_and(|by| by.modified_args.is_some());
        // The ledger has the arguments of the intent, as it may show them.
        let executed = call.as_ref().filter(|_| is_edited && approved.is_some() && row.attempts > 0);
        let latency = call.as_ref().and_then(|call| call.outcome.as_ref()).map_or(0, |o| o.latency_us);
        Reply {
            id: row.call,
            state: row.state,
            effect: effect_of(&outcome),
            outcome: outcome.map_err(|error| error.error()),
            latency: Duration::from_micros(latency),
            tool: cx.session.toolset().find(&row.name).ok().cloned(),
            approved_by: approved.map(|decision| Arc::clone(&decision.by)),
            executed_arguments: executed.map(|call| Arc::clone(&call.head.arguments)),
            repeats: (row.call != cx.id).then_some(row.call),
            budget_exceeded: false,
            approval: Some(Arc::new(row)),
        }
    }

    /// How a call that is held, or was, stands for the caller that made it; nothing for other callers.
    ///
    /// # Errors
    /// The store failed.
    pub async fn held(&self, session: &Arc<Session>, call: CallId) -> Result<Option<Reply>, Refusal> {
        let row = self.store.approval_of(call).await.map_err(|error| unreadable(&error))?;
        let caller = session.caller();
        let is_own = |row: &ApprovalRow| {
            row.project == caller.project && row.principal == caller.principal && row.agent == caller.agent
        };
        let Some(row) = row.filter(is_own) else { return Ok(None) };
        let mut cx = PipelineContext::new(session);
        cx.id = row.call;
        if row.state.is_over() {
            return Ok(Some(self.outcome(&cx, row).await));
        }
        let waits = ToolError::new(ErrorCode::ApprovalRequired, format!("{} is {}", row.call, row.state));
        Ok(Some(Reply {
            state: row.state,
            approval: Some(Arc::new(row)),
            ..Reply::rejected_before_entry(call, &Refusal::from(waits))
        }))
    }

    /// Withdraws a held call of this caller, or stops it if it runs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn withdraw(&self, session: &Session, call: CallId, why: &str) -> Result<(), Refusal> {
        let own = Some(&*session.caller().principal);
        let withdrawn = self.services.withdraw(call, own, why).await.map_err(|error| unreadable(&error))?;
        if !withdrawn {
            self.services.cancel_call(call, own);
        }
        Ok(())
    }

    /// Notes that a caller is given the outcome of a held call, so that the same request is a new call from now on.
    /// Nothing to note if it was not held or is not over.
    pub async fn collect(&self, reply: &Reply) {
        let Some(row) = reply.approval.as_ref().filter(|row| row.state.is_over()) else { return };
        if let Err(error) = self.store.mark_delivered(row.id).await {
            tracing::warn!("that the outcome of {} was given could not be recorded: {error}", row.call);
        }
    }

    /// How held calls reach a person.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.snapshot().options.approvals.delivery
    }

    async fn result_of(
        &self,
        cx: &PipelineContext,
        row: &ApprovalRow,
        call: Option<&CallRow>,
    ) -> Result<Shaped, CallError> {
        let kept = call.and_then(|call| call.outcome.as_ref()).and_then(|outcome| outcome.result.as_deref());
        let is_gone = || {
            let message = format!("{} has run, and its result is no longer kept", row.call);
            let error = ToolError::new(ErrorCode::ExecutionError, message);
            CallError::from(CallFailure { error, effect: EffectState::Done })
        };
        match row.state {
            State::CompletedSuccess | State::CompletedFailure if let Some(kept) = kept => {
                match (idempotency::replay(self, cx, kept).await, row.state) {
                    // A success has no refusal of its own, so what was kept cannot be read or is gone.
                    (Err(CallError::Refused(_)), State::CompletedSuccess) => Err(is_gone()),
                    (replayed, _) => Ok(Shaped { body: replayed?, cached: false }),
                }
            }
            State::CompletedSuccess | State::CompletedFailure => Err(is_gone()),
            State::OutcomeUnknown => {
                let message = format!(
                    "Gantry stopped while {} ran, so whether it took effect is unknown. Check before you repeat it.",
                    row.call
                );
                Err(CallFailure::with_possible_effect(ToolError::new(ErrorCode::OutcomeUnknown, message))
                    .into())
            }
            State::PendingApproval
            | State::ScheduledForExecution
            | State::ApprovedReady
            | State::Executing
            | State::RejectedByUser
            | State::RejectedByTimeout
            | State::CancelledBySystem
            | State::Refused => Err(Refusal::from(unrun_error(row, call)).into()),
        }
    }
}

fn unreadable(error: &gantry_store::Error) -> Refusal {
    Refusal::new(ErrorCode::InternalError, format!("the call could not be looked up: {error}"))
}

/// How a call ended that never ran; what a person said of it comes first.
fn unrun_error(row: &ApprovalRow, call: Option<&CallRow>) -> ToolError {
    let why = row.message.as_deref();
    if row.state == State::RejectedByUser {
        let decision = row.decision.as_ref();
        let by = decision.map_or("an approver", |decision| &*decision.by);
        let message = match decision.and_then(|decision| decision.reason.as_deref()) {
            Some(reason) => format!("denied by {by}: {reason}. Nothing was run."),
            None => format!("denied by {by}; nothing was run"),
        };
        return ToolError::new(ErrorCode::RejectedByUser, message);
    }
    if row.state == State::RejectedByTimeout {
        let why = why.unwrap_or("no approver decided in time; nothing was run");
        return ToolError::new(ErrorCode::RejectedByTimeout, format!("expired: {why}"));
    }
    let recorded = call.filter(|_| row.decision.is_none()).map(idempotency::ended);
    recorded.filter(|recorded| recorded.code != ErrorCode::Canceled).unwrap_or_else(|| {
        let why = why.unwrap_or("the call was withdrawn");
        ToolError::new(ErrorCode::Canceled, format!("canceled: {why}; nothing was run"))
    })
}
