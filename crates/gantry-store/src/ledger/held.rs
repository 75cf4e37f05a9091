//! The writing side of approvals: a call is held, settled, redeemed and ended here.
//!
//! **Invariant:** the newest approval of a call is in the state of the call's newest entry. Both are written by the
//! same transaction, after [`State::may_become`] was asked inside it, so of two that decide at once one loses.

use super::{Answer, Ledger, Newest, Next};
use crate::approval::{ApprovalRow, DecisionRow, HeldAs, HoldLimits, NewApproval, RefusedDecision, Settled};
use crate::body::{self, DecisionBody, HeadBody};
use crate::error::Error;
use crate::grant::GrantRow;
use crate::keep::{self, now_us};
use crate::options::{JOINED_FOR, REFUSALS_MAX};
use crate::read::Kind;
use crate::row::{Outcome, SessionKey, State};
use crate::table::{approvals, grants};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId};
use gantry_core::limits::RECORDED_ARGUMENT_BYTES;
use gantry_core::truncate::truncate;
use std::borrow::Cow;
use std::sync::Arc;

/// Where a call that is to be held would stand.
enum Place {
    /// On its own.
    Free,
    /// With the same request, which is there already.
    Same(Box<ApprovalRow>),
    /// In the place of what was approved and has changed.
    Superseding(Box<ApprovalRow>),
}

impl Ledger<'_> {
    /// Holds a call, unless the same request is held already.
    pub(crate) fn hold(&mut self, new: &NewApproval, limits: HoldLimits) -> Answer<HeldAs> {
        let mut row = row_of(new);
        match self.place(new, limits) {
            Ok(Place::Free) => {}
            Ok(Place::Same(row)) => return Ok(Ok(HeldAs::Joined(row))),
            Ok(Place::Superseding(old)) => {
                // It may have gone on in a session that was brought back for it.
                row.asked.own_session &= old.asked.own_session;
                self.supersede(*old, new)?;
            }
            Err(error) => return Ok(Err(error)),
        }
        let (head, key) = (&new.head, new.idempotency.as_ref());
        let body = HeadBody::new(head, key, None).under(new.row.id, new.row.supersedes);
        self.append_head(Kind::Held, head, new.row.state, &body::encode(&body)?)?;
        self.remember_key(head, key)?;
        self.tally.touch(head.session, head.started_us);
        row.node = self.node;
        row.seq = approvals::insert(self.conn, &row)?;
        self.changed = true;
        Ok(Ok(HeldAs::Fresh(Box::new(row))))
    }

    /// Moves an approval on, if its state allows that step; otherwise the answer is the row as it stands. A grant is given
    /// with the step or neither is, and one who stops a call in its delay takes back what was given with the yes to it.
    pub(crate) fn settle(
        &mut self,
        id: ApprovalId,
        step: &Settled,
        grant: Option<&GrantRow>,
    ) -> Answer<Result<Box<ApprovalRow>, Box<ApprovalRow>>> {
        let (row, newest) = match self.standing(id) {
            Ok(standing) => standing,
            Err(error) => return Ok(Err(error)),
        };
        if !may_settle(row.state, step.to) {
            return Ok(Ok(Err(Box::new(row))));
        }
        if let Some(grant) = grant
            && let Err(error) = grants::give(self.conn, grant)?
        {
            return Ok(Err(error));
        }
        let given = row.decision.as_ref().and_then(|decision| decision.grant);
        if let (Some(given), State::RejectedByUser, Some(no)) = (given, step.to, &step.decision) {
            grants::revoke(self.conn, given, &no.by, step.at_us)?;
        }
        let row = self.step(row, &newest, step)?;
        Ok(Ok(Ok(Box::new(row))))
    }

    /// Notes that a decision was turned away, unless so many were noted already that one more says nothing new.
    pub(crate) fn refuse(&mut self, refused: &RefusedDecision) -> Answer<()> {
        let (row, newest) = match self.standing(refused.approval) {
            Ok(standing) => standing,
            Err(error) => return Ok(Err(error)),
        };
        if self.refusals(row.call)? < REFUSALS_MAX {
            let (kind, state, at) = (Kind::Refusal, newest.state, refused.at_us);
            self.append_next(row.call, &newest, &Next { kind, state, at, body: &body::encode(refused)? })?;
        }
        Ok(Ok(()))
    }

    fn refusals(&self, call: CallId) -> Result<u32, Error> {
        let query = "SELECT count(*) FROM ledger WHERE call = ?1 AND kind = 'refusal'";
        self.conn
            .prepare_cached(query)
            .and_then(|mut query| query.query_row([call.as_bytes()], |row| row.get(0)))
            .map_err(Error::sqlite)
    }

    /// Ends an approval that nobody can decide any more, because the call above it is gone.
    pub(crate) fn orphan(&mut self, id: ApprovalId) -> Result<ApprovalRow, Error> {
        let (row, newest) = self.standing(id)?;
        let step = Settled {
            to: State::CancelledBySystem,
            decision: None,
            deadline_us: None,
            message: Some("the call above it ended, so nobody waits for it any more".into()),
            at_us: now_us(),
        };
        self.step(row, &newest, &step)
    }

    /// The approval under which a call is about to begin, if it allows that.
    pub(super) fn redeemable(
        &self,
        id: ApprovalId,
        call: CallId,
        decided: Option<Digest>,
    ) -> Result<ApprovalRow, Error> {
        let (row, newest) = self.standing(id)?;
        let is_ready = row.call == call && row.state == newest.state && is_approved(row.state);
        // A decision that came after the call was taken up is not the one that it was taken up with.
        let is_known = row.decision.as_ref().is_none_or(|decision| Some(decision.binding) == decided);
        if is_ready && is_known { Ok(row) } else { Err(Error::Taken { call, state: row.state }) }
    }

    /// Marks an approval as used, together with the intent of its call.
    pub(super) fn redeem(&mut self, mut row: ApprovalRow) -> Result<(), Error> {
        row.state = State::Executing;
        row.attempts = row.attempts.saturating_add(1);
        row.node = self.node;
        self.changed = true;
        approvals::update(self.conn, &row)
    }

    /// The approval that ends with this outcome of its call, and the state in which both do. Calls that were never
    /// held have none.
    pub(super) fn ending(&self, call: CallId, ended: State) -> Result<Option<(ApprovalRow, State)>, Error> {
        let Some(row) = approvals::newest_of(self.conn, call)? else { return Ok(None) };
        let state = if is_approved(row.state) && is_unrun(ended) {
            // It was refused, or it failed, before its intent: nothing happened, and the yes is used up.
            State::CancelledBySystem
        } else if row.state == State::Executing && !row.state.may_become(ended) {
            // Whatever stopped it once it had begun, it has not run well.
            State::CompletedFailure
        } else if !row.state.is_waiting() && row.state.may_become(ended) {
            ended
        } else {
            return Err(Error::Taken { call, state: row.state });
        };
        Ok(Some((row, state)))
    }

    /// Ends an approval with the outcome of its call.
    pub(super) fn end_approval(&mut self, mut row: ApprovalRow, outcome: &Outcome) -> Result<(), Error> {
        row.state = outcome.state;
        row.ended_us = Some(outcome.finished_us);
        row.attempts = row.attempts.max(outcome.attempts);
        row.message = outcome.message.as_deref().map(cut);
        self.changed = true;
        approvals::update(self.conn, &row)
    }

    fn place(&self, new: &NewApproval, limits: HoldLimits) -> Result<Place, Error> {
        let (call, row) = (new.head.id, &new.row);
        let taken = |state| Err(Error::Taken { call, state });
        let is_waiting = matches!(row.state, State::PendingApproval | State::ScheduledForExecution);
        if !is_waiting {
            return taken(row.state);
        }
        let known = approvals::find(self.conn, row.id)?;
        if let Some(id) = row.supersedes {
            let (old, _) = self.standing(id)?;
            let is_its_turn = old.call == call && is_approved(old.state) && old.state.may_become(row.state);
            let fits = is_its_turn && known.is_none();
            return if fits { Ok(Place::Superseding(Box::new(old))) } else { taken(old.state) };
        }
        let since = keep::before(row.created_us, JOINED_FOR);
        if let Some(same) = approvals::same_as(self.conn, row.dedup_key, since)? {
            return Ok(Place::Same(Box::new(same)));
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
        self.refuse_crowd(&new.head.caller, limits)?;
        Ok(Place::Free)
    }

    fn refuse_crowd(&self, caller: &SessionKey, limits: HoldLimits) -> Result<(), Error> {
        let (limit, what) = (limits.per_caller, "of this caller");
        if approvals::waiting_of_caller(self.conn, caller, limit)? >= limit {
            return Err(Error::TooManyHeld { limit, what });
        }
        let (limit, what) = (limits.total, "of all callers");
        if approvals::waiting(self.conn, limit)? >= limit {
            return Err(Error::TooManyHeld { limit, what });
        }
        Ok(())
    }

    /// Ends an approval whose call is asked about again. The entry that holds the call anew says so in the ledger.
    fn supersede(&mut self, mut old: ApprovalRow, new: &NewApproval) -> Result<(), Error> {
        old.state = State::CancelledBySystem;
        old.ended_us = Some(new.row.created_us);
        old.message = Some(format!("what was approved has changed; {} takes its place", new.row.id).into());
        // It is no outcome of the call, so nobody is to be given it as one.
        old.collected = true;
        approvals::update(self.conn, &old)
    }

    /// An approval and the newest entry of its call.
    fn standing(&self, id: ApprovalId) -> Result<(ApprovalRow, Newest), Error> {
        let row = approvals::find(self.conn, id)?.ok_or(Error::UnknownApproval { approval: id })?;
        let newest = self.newest(row.call)?.ok_or(Error::UnknownCall { call: row.call })?;
        Ok((row, newest))
    }

    /// Writes a step that is allowed.
    fn step(&mut self, mut row: ApprovalRow, newest: &Newest, step: &Settled) -> Result<ApprovalRow, Error> {
        let outcome = step.to.is_over().then(|| outcome_of(&row, step));
        let body = body::encode(&DecisionBody::new(row.id, step, outcome.as_ref()))?;
        let next = Next { kind: Kind::Decision, state: step.to, at: step.at_us, body: &body };
        self.append_next(row.call, newest, &next)?;
        if let Some(outcome) = &outcome {
            self.tally.count(newest.session, Some(newest.state), outcome);
            row.ended_us = Some(step.at_us);
        }
        if step.to == State::ScheduledForExecution {
            row.deadline_us = step.deadline_us;
        }
        row.state = step.to;
        row.decision = step.decision.clone().or(row.decision);
        row.message = step.message.as_deref().map(cut).or(row.message);
        approvals::update(self.conn, &row)?;
        self.changed = true;
        Ok(row)
    }
}

/// Whether an approval may be settled so. It begins and ends with its call, by an intent and an outcome.
fn may_settle(from: State, to: State) -> bool {
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

/// Whether the call needs nobody's word any more.
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
        session: head.session,
        parent: head.parent,
        project: Arc::clone(&head.caller.project),
        principal: Arc::clone(&head.caller.principal),
        agent: head.caller.agent.clone(),
        name: Arc::clone(&head.tool.name),
        ended_us: None,
        collected: false,
        ..new.row.clone()
    }
}

/// The outcome of a call that ends without having begun.
fn outcome_of(row: &ApprovalRow, step: &Settled) -> Outcome {
    let (code, usual) = if step.to == State::RejectedByUser {
        ("REJECTED_BY_USER", said_no(step.decision.as_ref()))
    } else if step.to == State::RejectedByTimeout {
        ("REJECTED_BY_TIMEOUT", "nobody decided in time, so it was not run".to_owned())
    } else {
        ("CANCELED", "it was withdrawn before it ran".to_owned())
    };
    let message = step.message.as_deref().unwrap_or(&usual);
    Outcome {
        state: step.to,
        code: Some(Cow::Borrowed(code)),
        message: Some(truncate(message, RECORDED_ARGUMENT_BYTES).to_owned()),
        effect_state: Cow::Borrowed("none"),
        latency_us: 0,
        characters_in: 0,
        characters_out: 0,
        cost_micros: 0,
        finished_us: step.at_us,
        attempts: row.attempts,
        cached: false,
        result: None,
    }
}

fn said_no(decision: Option<&DecisionRow>) -> String {
    let by = decision.map_or("somebody", |decision| &decision.by);
    match decision.and_then(|decision| decision.reason.as_deref()) {
        Some(reason) => format!("{by} said no: {reason}"),
        None => format!("{by} said no to this call"),
    }
}

fn cut(message: &str) -> Arc<str> {
    truncate(message, RECORDED_ARGUMENT_BYTES).into()
}
