//! Transitions of approvals: a call is held, decided, redeemed and ended here.
//!
//! **Invariant:** the newest approval of a call is in the state of the call's newest entry. Both are written by the same
//! transaction, after [`State::may_become`] was asked inside it, so of two that decide at once one loses.

use super::queries::{find, insert, newest_of, same_as, update, waiting, waiting_of_caller};
use super::{ApprovalRow, DecisionRow, HoldLimits, HoldOutcome, NewApproval, RefusedDecision, Transition};
use crate::error::Error;
use crate::grants::{self, GrantRow};
use crate::ledger::{HeadBody, Ledger, Newest, Next, Outcome, TransitionBody, check_head};
use crate::options::{REASON_MAX, REFUSALS_MAX};
use crate::retention::now_us;
use crate::sessions::SessionKey;
use crate::sql::{single, statements, to_json, values};
use crate::writer::OnCallerGone;
use crate::{Store, check_size};
use gantry_core::State;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId};
use gantry_core::limits::{ARGUMENT_BYTES, RECORDED_ARGUMENT_BYTES};
use gantry_core::truncate::truncate;
use std::sync::Arc;

statements! {
    REFUSALS = "SELECT count(*) FROM ledger WHERE call = $1 AND kind = 'refusal'";
}

impl Store {
    /// Holds a call; durable when it returns. If the same request waits already, runs, or ended within the last hour
    /// without its outcome being delivered, it is joined.
    ///
    /// One that supersedes another ends that one as `CancelledBySystem` in the same transaction. It has the same call,
    /// and no limit keeps it out.
    ///
    /// Cancel-safety: a caller that stops waiting leaves the call held or not; a repetition of the request joins it.
    ///
    /// # Errors
    /// `TooManyHeld` beyond the limits; `Taken` for a call that has an entry, for the other call that has used the key,
    /// and for an approval that cannot be superseded because it does not let its call run (any more). Nothing is held
    /// then.
    pub async fn hold(&self, new: NewApproval, limits: HoldLimits) -> Result<HoldOutcome, Error> {
        check_head(&new.head, new.idempotency.as_ref())?;
        check_size("arguments", new.row.details.arguments.len(), ARGUMENT_BYTES)?;
        self.write(OnCallerGone::Skip, move |ledger| ledger.hold(&new, limits)).await
    }

    /// Moves an approval on, and its call with it; durable when it returns. A grant is given by the same transaction, or
    /// not at all. A step that denies a call that was approved before also revokes the grant that was given then.
    ///
    /// The steps are those of decisions, of time and of withdrawal. To run a call, intend it; to end it then, close it; to
    /// ask about it again, hold one that supersedes it.
    ///
    /// # Errors
    /// `NotPossible` with the row as it is, if its state does not allow the step: another decision was first.
    /// `UnknownApproval`, `TooManyGrants`, or the store cannot be written; everything is as it was then.
    pub async fn transition(
        &self,
        id: ApprovalId,
        step: Transition,
        grant: Option<GrantRow>,
    ) -> Result<Box<ApprovalRow>, Error> {
        if let Some(decision) = &step.decision {
            check_size("the reason", decision.reason.as_ref().map_or(0, |text| text.len()), REASON_MAX)?;
            let modified = decision.modified_args.as_ref().map_or(0, |text| text.len());
            check_size("arguments", modified, ARGUMENT_BYTES)?;
        }
        self.write(OnCallerGone::Write, move |ledger| ledger.transition(id, &step, grant.as_ref())).await
    }

    /// Records that a decision was refused; durable when it returns. Of one call, a hundred are recorded.
    pub async fn refuse(&self, refused: RefusedDecision) -> Result<(), Error> {
        check_size("the reason", refused.why.len(), REASON_MAX)?;
        self.write(OnCallerGone::Write, move |ledger| ledger.refuse(&refused)).await
    }
}

impl Ledger<'_> {
    /// Holds a call, unless the same request is held already.
    fn hold(&mut self, new: &NewApproval, limits: HoldLimits) -> Result<HoldOutcome, Error> {
        let (call, mut row) = (new.head.id, row_of(new));
        let taken = |state| Err(Error::Taken { call, state });
        if !matches!(row.state, State::PendingApproval | State::ScheduledForExecution) {
            return taken(row.state);
        }
        let known = find(self.conn, row.id)?;
        if let Some(id) = row.supersedes {
            let (old, newest) = self.current(id)?;
            let is_its_turn = old.call == call && is_approved(old.state) && old.state.may_become(row.state);
            if !is_its_turn || known.is_some() {
                return taken(old.state);
            }
            row.step = newest.next_step();
            // It may have gone on in a session that was brought back for it.
            row.details.own_session &= old.details.own_session;
            self.supersede(old, new)?;
        } else {
            if let Some(same) = same_as(self.conn, row.request_key, row.created_us)? {
                return Ok(HoldOutcome::Joined(Box::new(same)));
            }
            if let Some(known) = known {
                return taken(known.state);
            }
            if let Some(newest) = self.newest(call)? {
                return taken(newest.state);
            }
            if let Some(call) = self.earlier_use(&new.head, new.idempotency.as_ref())? {
                let state = self.newest(call)?.ok_or(Error::UnknownCall { call })?.state;
                return Err(Error::Taken { call, state });
            }
            self.check_limits(&new.head.caller, limits)?;
        }
        let (head, key) = (&new.head, new.idempotency.as_ref());
        let (approval, supersedes) = (Some(row.id), row.supersedes);
        let body = HeadBody { approval, supersedes, ..HeadBody::new(head, key) };
        self.append_head("held", head, (row.step, row.state), &body)?;
        self.use_key(head, key)?;
        self.totals.touch(head.session, head.started_us);
        row.process = self.author.process;
        insert(self.conn, &row)?;
        self.changed = true;
        Ok(HoldOutcome::Held(Box::new(row)))
    }

    fn transition(
        &mut self,
        id: ApprovalId,
        step: &Transition,
        grant: Option<&GrantRow>,
    ) -> Result<Box<ApprovalRow>, Error> {
        let (row, newest) = self.current(id)?;
        if !is_transition(row.state, step.to) {
            return Err(Error::NotPossible { row: Box::new(row) });
        }
        if let Some(grant) = grant {
            grants::give(self.conn, grant)?;
        }
        let given = row.decision.as_ref().and_then(|decision| decision.grant);
        if let (Some(given), State::RejectedByUser, Some(no)) = (given, step.to, &step.decision) {
            grants::revoke(self.conn, given, &no.by, step.at_us)?;
        }
        self.step(row, &newest, step).map(Box::new)
    }

    /// Records that a decision was refused, unless so many were recorded already that one more says nothing new.
    fn refuse(&mut self, refused: &RefusedDecision) -> Result<(), Error> {
        let (row, newest) = self.current(refused.approval)?;
        let n_refusals: u32 = self.conn.first(REFUSALS, values![row.call], single)?.unwrap_or_default();
        if n_refusals >= REFUSALS_MAX {
            return Ok(());
        }
        let (kind, state, at) = ("refusal", newest.state, refused.at_us);
        self.append_next(row.call, &newest, &Next { kind, state, at, body: &to_json(refused)? })
    }

    /// Ends an approval whose parent call is gone.
    pub(crate) fn cancel_orphan(&mut self, id: ApprovalId) -> Result<ApprovalRow, Error> {
        let (row, newest) = self.current(id)?;
        let step = Transition {
            to: State::CancelledBySystem,
            decision: None,
            deadline_us: None,
            message: Some("the call above it ended, so no caller waits for it any more".into()),
            at_us: now_us(),
        };
        self.step(row, &newest, &step)
    }

    /// The approval under which a call is about to begin, if it allows that, and the step of the intent.
    pub(crate) fn redeemable(
        &self,
        id: ApprovalId,
        call: CallId,
        decided: Option<Digest>,
    ) -> Result<(ApprovalRow, i64), Error> {
        let (row, newest) = self.current(id)?;
        let is_ready = row.call == call && row.state == newest.state && is_approved(row.state);
        // A decision that came after the call was resumed is not the one that it was resumed with.
        let is_known = row.decision.as_ref().is_none_or(|decision| Some(decision.binding) == decided);
        if is_ready && is_known {
            Ok((row, newest.next_step()))
        } else {
            Err(Error::Taken { call, state: row.state })
        }
    }

    /// Marks an approval as used, together with the intent of its call.
    pub(crate) fn redeem(&mut self, mut row: ApprovalRow) -> Result<(), Error> {
        row.state = State::Executing;
        row.attempts = row.attempts.saturating_add(1);
        row.process = self.author.process;
        self.changed = true;
        update(self.conn, &row)
    }

    /// The approval that ends with this outcome of its call, and the state in which both do. Calls that were never held
    /// have none.
    pub(crate) fn ending(&self, call: CallId, ended: State) -> Result<Option<(ApprovalRow, State)>, Error> {
        let Some(row) = newest_of(self.conn, call)? else { return Ok(None) };
        let state = if is_approved(row.state) && is_unrun(ended) {
            // It was refused, or it failed, before its intent: it had no effect, and the approval is used up.
            State::CancelledBySystem
        } else if row.state == State::Executing && !row.state.may_become(ended) {
            // It was stopped once it had begun.
            State::CompletedFailure
        } else if !row.state.is_waiting() && row.state.may_become(ended) {
            ended
        } else {
            return Err(Error::Taken { call, state: row.state });
        };
        Ok(Some((row, state)))
    }

    pub(crate) fn end_approval(&mut self, mut row: ApprovalRow, outcome: &Outcome) -> Result<(), Error> {
        row.state = outcome.state;
        row.ended_us = Some(outcome.finished_us);
        row.attempts = row.attempts.max(outcome.attempts);
        row.message = outcome.message.as_deref().map(cut);
        self.changed = true;
        update(self.conn, &row)
    }

    fn check_limits(&self, caller: &SessionKey, limits: HoldLimits) -> Result<(), Error> {
        let (limit, what) = (limits.per_caller, "of this caller");
        if waiting_of_caller(self.conn, caller, limit)? >= limit {
            return Err(Error::TooManyHeld { limit, what });
        }
        let (limit, what) = (limits.total, "of all callers");
        if waiting(self.conn, limit)? >= limit {
            return Err(Error::TooManyHeld { limit, what });
        }
        Ok(())
    }

    /// Ends an approval whose call is asked about again. The entry that holds the call anew says so in the ledger.
    fn supersede(&mut self, mut old: ApprovalRow, new: &NewApproval) -> Result<(), Error> {
        old.state = State::CancelledBySystem;
        old.ended_us = Some(new.row.created_us);
        old.message = Some(format!("what was approved has changed; {} takes its place", new.row.id).into());
        // It is no outcome of the call, so it must not be delivered as one.
        old.delivered = true;
        update(self.conn, &old)
    }

    fn current(&self, id: ApprovalId) -> Result<(ApprovalRow, Newest), Error> {
        let row = find(self.conn, id)?.ok_or(Error::UnknownApproval { approval: id })?;
        let newest = self.newest(row.call)?.ok_or(Error::UnknownCall { call: row.call })?;
        Ok((row, newest))
    }

    /// Writes a step that is allowed.
    fn step(
        &mut self,
        mut row: ApprovalRow,
        newest: &Newest,
        step: &Transition,
    ) -> Result<ApprovalRow, Error> {
        let outcome = step.to.is_over().then(|| outcome_of(&row, step));
        let body = to_json(&TransitionBody::new(row.id, step, outcome.as_ref()))?;
        let next = Next { kind: "decision", state: step.to, at: step.at_us, body: &body };
        self.append_next(row.call, newest, &next)?;
        if let Some(outcome) = &outcome {
            self.totals.count(newest.session, Some(newest.state), outcome);
            row.ended_us = Some(step.at_us);
        }
        if step.to == State::ScheduledForExecution {
            row.deadline_us = step.deadline_us;
        }
        row.state = step.to;
        row.decision = step.decision.clone().or(row.decision);
        row.message = step.message.as_deref().map(cut).or(row.message);
        update(self.conn, &row)?;
        self.changed = true;
        Ok(row)
    }
}

/// Whether this is a step of [`Store::transition`]. A held call begins and ends by an intent and an outcome.
fn is_transition(from: State, to: State) -> bool {
    let is_step = matches!(
        to,
        State::ApprovedReady
            | State::ScheduledForExecution
            | State::RejectedByUser
            | State::RejectedByTimeout
            | State::CancelledBySystem
    );
    is_step && from.may_become(to)
}

/// Whether the call needs no decision any more.
fn is_approved(state: State) -> bool {
    matches!(state, State::ApprovedReady | State::ScheduledForExecution)
}

/// Whether a call can have ended so without having begun.
fn is_unrun(ended: State) -> bool {
    matches!(ended, State::Refused | State::CompletedFailure | State::CancelledBySystem)
}

/// The row as it is stored. What it has in common with the call is the call's.
fn row_of(new: &NewApproval) -> ApprovalRow {
    let head = &new.head;
    ApprovalRow {
        call: head.id,
        step: 0,
        session: head.session,
        parent: head.parent,
        project: Arc::clone(&head.caller.project),
        principal: Arc::clone(&head.caller.principal),
        agent: head.caller.agent.clone(),
        name: Arc::clone(&head.tool.name),
        ended_us: None,
        delivered: false,
        ..new.row.clone()
    }
}

/// The outcome of a call that ends without having begun.
fn outcome_of(row: &ApprovalRow, step: &Transition) -> Outcome {
    let (code, usual) = if step.to == State::RejectedByUser {
        ("REJECTED_BY_USER", denial(step.decision.as_ref()))
    } else if step.to == State::RejectedByTimeout {
        ("REJECTED_BY_TIMEOUT", "no approver decided in time, so it was not run".to_owned())
    } else {
        ("CANCELED", "it was withdrawn before it ran".to_owned())
    };
    let message = truncate(step.message.as_deref().unwrap_or(&usual), RECORDED_ARGUMENT_BYTES).to_owned();
    Outcome { attempts: row.attempts, ..Outcome::unmeasured(step.to, code, message, step.at_us) }
}

fn denial(decision: Option<&DecisionRow>) -> String {
    let by = decision.map_or("an approver", |decision| &decision.by);
    match decision.and_then(|decision| decision.reason.as_deref()) {
        Some(reason) => format!("{by} said no: {reason}"),
        None => format!("{by} said no to this call"),
    }
}

fn cut(message: &str) -> Arc<str> {
    truncate(message, RECORDED_ARGUMENT_BYTES).into()
}
