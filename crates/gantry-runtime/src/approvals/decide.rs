//! A person's decision about a held call: who may make it, and what it does.

use super::grants;
use crate::clock;
use crate::services::Services;
use gantry_core::approval::Approvers;
use gantry_core::digest::Digest;
use gantry_core::error::ToolError;
use gantry_core::id::{ApprovalId, CallId, GrantId};
use gantry_core::pattern::Pattern;
use gantry_core::truncate::truncate;
use gantry_core::{Role, State};
use gantry_store::{ApprovalRow, DecisionRow, RefusedDecision, Scope, Transition, Verdict};
use std::sync::Arc;

/// Bytes of a reason that a person gives.
const REASON_BYTES: usize = 4096;

#[derive(Debug, Clone)]
pub struct Decider {
    pub name: Arc<str>,
    pub role: Role,
    /// Whether they may decide about calls under their own name: they are the person whose data folder this is.
    pub owner: bool,
    /// The projects that they may decide in; none means all.
    pub projects: Option<Arc<[Arc<str>]>>,
    /// The tools that they may decide about; none means all.
    pub tools: Option<Arc<[Pattern]>>,
    /// The entry point by which they decide: `cli`, `http`, `page`, `elicitation`.
    pub via: Arc<str>,
}

#[derive(Debug, Clone, Default)]
pub struct DecisionInput {
    pub approved: bool,
    pub modified_args: Option<Arc<str>>,
    /// Why, in words that the caller reads.
    pub reason: Option<String>,
    /// For how long a yes holds.
    pub scope: Scope,
}

#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    #[error("{0}")]
    Forbidden(String),
    /// It has been decided, or has ended; this is how it stands.
    #[error("{id} is {state} already; what was decided first stands", id = .0.id, state = .0.state)]
    Decided(Box<ApprovalRow>),
    #[error("{} has expired: no approver decided in time", .0.id)]
    Expired(Box<ApprovalRow>),
    /// What they said cannot be: arguments that do not fit, or that a policy denies.
    #[error("{}", .0.message)]
    Invalid(ToolError),
    #[error("the decision could not be recorded: {0}")]
    Store(#[from] gantry_store::Error),
}

/// The approval that has ended, or how it stands if it had ended or begun already.
type EndResult = Result<Result<Box<ApprovalRow>, Box<ApprovalRow>>, gantry_store::Error>;

impl Decider {
    /// Whether they may know of an approval.
    pub fn sees(&self, row: &ApprovalRow) -> bool {
        let project = self.projects.as_ref().is_none_or(|projects| projects.contains(&row.project));
        let spelled = format!("{}__{}", row.details.provider, row.details.tool);
        let names = [&*row.name, &spelled];
        let tool = self.tools.as_ref().is_none_or(|patterns| {
            patterns.iter().any(|pattern| names.iter().any(|name| pattern.matches(name)))
        });
        self.role >= Role::Approver && project && tool
    }

    /// Whether their yes to an approval would count.
    pub(crate) fn may_approve(&self, row: &ApprovalRow) -> bool {
        self.sees(row) && self.may(row, true).is_ok()
    }

    /// Whether they may decide so about an approval that they may know of.
    fn may(&self, row: &ApprovalRow, approved: bool) -> Result<(), DecisionError> {
        if self.name == row.principal && !self.owner {
            let why = "approvers do not decide about their own calls; ask another approver";
            return Err(DecisionError::Forbidden(why.into()));
        }
        if approved {
            self.is_listed_approver(row.details.approvers.iter().map(Vec::as_slice))
        } else {
            Ok(())
        }
    }

    /// Whether their yes counts where rules name who may give it: they are in every list.
    pub(super) fn is_listed_approver<'a>(
        &self,
        lists: impl Iterator<Item = &'a [Arc<str>]>,
    ) -> Result<(), DecisionError> {
        let who = Approvers::by(lists);
        if who.includes(&self.name) { Ok(()) } else { Err(DecisionError::Forbidden(who.refusal())) }
    }
}

impl Services {
    /// Records what an approver decided. `edited` is the binding of the call with the arguments that they gave.
    pub(crate) async fn decide(
        &self,
        id: ApprovalId,
        by: &Decider,
        input: DecisionInput,
        edited: Option<Digest>,
    ) -> Result<ApprovalRow, DecisionError> {
        let row = self.decidable(id, by, input.approved).await?;
        let scope = if input.approved { input.scope } else { Scope::Once };
        grants::check_scope(&row.details, scope)?;
        let now = clock::steady_us();
        let decision = DecisionRow {
            verdict: if input.approved { Verdict::Approved } else { Verdict::Denied },
            by: Arc::clone(&by.name),
            via: Arc::clone(&by.via),
            at_us: now,
            reason: input.reason.filter(|reason| !reason.trim().is_empty()).map(|mut reason| {
                reason.truncate(reason.floor_char_boundary(REASON_BYTES));
                reason.into()
            }),
            modified_args: input.modified_args,
            binding: edited.unwrap_or(row.details.binding),
            scope: input.scope,
            grant: (scope != Scope::Once).then(GrantId::generate),
        };
        let grant = grants::grant(&row, &decision);
        let delay = i64::try_from(row.details.delay_ms.saturating_mul(1000)).unwrap_or(i64::MAX / 2);
        // An approver who says yes to a call that waits for its time wants it now.
        let waits = delay > 0 && row.state == State::PendingApproval;
        let to = match (input.approved, waits) {
            (true, true) => State::ScheduledForExecution,
            (true, false) => State::ApprovedReady,
            (false, _) => State::RejectedByUser,
        };
        let deadline_us = (to == State::ScheduledForExecution).then(|| now.saturating_add(delay));
        let step = Transition { to, decision: Some(decision), deadline_us, message: None, at_us: now };
        let row = match self.store.transition(id, step, grant).await {
            Err(gantry_store::Error::NotPossible { row }) => return Err(over(row)),
            decided => decided.map_err(grants::not_recorded)?,
        };
        self.announce(&row);
        Ok(*row)
    }

    pub(crate) async fn record_decision_error(
        &self,
        id: ApprovalId,
        by: &Decider,
        approved: bool,
        error: &DecisionError,
    ) {
        let why = match error {
            DecisionError::Store(_) => return,
            DecisionError::Unknown(_) => {
                "it is of a project or a tool that they do not decide about".to_owned()
            }
            DecisionError::Forbidden(_)
            | DecisionError::Decided(_)
            | DecisionError::Expired(_)
            | DecisionError::Invalid(_) => error.to_string(),
        };
        self.record_refused_decision(id, (&by.name, &by.via), Some(approved), &why).await;
    }

    /// Puts on record that a client wanted to decide by an entry point, and why that does not count.
    pub async fn record_refused_decision(
        &self,
        id: ApprovalId,
        (by, via): (&str, &str),
        approved: Option<bool>,
        why: &str,
    ) {
        let why = truncate(why, REASON_BYTES).to_owned();
        let refused = RefusedDecision {
            approval: id,
            by: by.into(),
            via: via.into(),
            approved,
            why: why.as_str().into(),
            at_us: clock::steady_us(),
        };
        match self.store.refuse(refused).await {
            Ok(()) => tracing::warn!("{id}: what {by} decided ({via}) does not count: {why}"),
            // There is nothing that it could be recorded with.
            Err(gantry_store::Error::UnknownApproval { .. }) => {}
            Err(error) => tracing::error!("{id}: that {by} may not decide could not be recorded: {error}"),
        }
    }

    /// The approval that an approver is about to decide, if they may and it can still be decided.
    pub(crate) async fn decidable(
        &self,
        id: ApprovalId,
        by: &Decider,
        approved: bool,
    ) -> Result<ApprovalRow, DecisionError> {
        let row = self.store.approval(id).await?;
        if by.role < Role::Approver {
            return Err(DecisionError::Forbidden(
                "an agent cannot decide; it takes the key of an approver".into(),
            ));
        }
        let row = row.filter(|row| by.sees(row)).ok_or(DecisionError::Unknown(id))?;
        by.may(&row, approved)?;
        // Its holder's clock counts, as long as the holder is there.
        let is_late =
            self.keeps_time_of(&row) && row.deadline_us.is_some_and(|end| end <= clock::steady_us());
        if row.state == State::PendingApproval && is_late {
            let (Ok(row) | Err(row)) = self.expire(&row).await?;
            return Err(over(row));
        }
        if row.state.is_waiting() && self.ends_with_key(&row).await? {
            let row = self.store.approval(id).await?.ok_or(DecisionError::Unknown(id))?;
            return Err(over(Box::new(row)));
        }
        // A call that waits for its time can be stopped, or hurried if no approver was asked.
        let scheduled = row.state == State::ScheduledForExecution && (!approved || row.decision.is_none());
        if row.state == State::PendingApproval || scheduled { Ok(row) } else { Err(over(Box::new(row))) }
    }

    /// Whether it is for this process to say that time is over for an approval: it holds it, or its holder is gone.
    pub(super) fn keeps_time_of(&self, row: &ApprovalRow) -> bool {
        row.process == self.store.process() || !self.store.is_alive(row.process)
    }

    pub(super) async fn expire(&self, row: &ApprovalRow) -> EndResult {
        let waited = row.deadline_us.unwrap_or(row.created_us).saturating_sub(row.created_us);
        let message = format!("no approver decided within {}; nothing was run", span(waited));
        self.end_undecided(row, State::RejectedByTimeout, &message).await
    }

    async fn end_undecided(&self, row: &ApprovalRow, to: State, message: &str) -> EndResult {
        let (message, at_us) = (Some(message.into()), clock::steady_us());
        let step = Transition { to, decision: None, deadline_us: None, message, at_us };
        match self.store.transition(row.id, step, None).await {
            Err(gantry_store::Error::NotPossible { row }) => Ok(Err(row)),
            ended => {
                let row = ended?;
                self.announce(&row);
                Ok(Ok(row))
            }
        }
    }

    /// Withdraws a call that waits; with `own`, only if it is one of that principal's. Returns whether it waited. A caller
    /// that withdraws its own call knows what became of it: the same call again is a new one.
    pub async fn withdraw(
        &self,
        call: CallId,
        own: Option<&str>,
        why: &str,
    ) -> Result<bool, gantry_store::Error> {
        let Some(row) = self.store.approval_of(call).await? else { return Ok(false) };
        if own.is_some_and(|own| *row.principal != *own) {
            return Ok(false);
        }
        let withdrawn = self.cancel_held(&row, why).await?;
        if withdrawn && own.is_some() {
            self.store.mark_delivered(row.id).await?;
        }
        Ok(withdrawn)
    }

    /// Ends an approval because its call is not wanted any more.
    pub(crate) async fn cancel_held(
        &self,
        row: &ApprovalRow,
        why: &str,
    ) -> Result<bool, gantry_store::Error> {
        Ok(self.end_undecided(row, State::CancelledBySystem, why).await?.is_ok())
    }
}

fn over(row: Box<ApprovalRow>) -> DecisionError {
    if row.state == State::RejectedByTimeout {
        DecisionError::Expired(row)
    } else {
        DecisionError::Decided(row)
    }
}

/// A time as people say it.
fn span(us: i64) -> String {
    match us / 1_000_000 {
        0 => format!("{} ms", us / 1000),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}
