//! The writing side of the ledger: what the transaction of one group may append, and under which conditions.
//!
//! **Invariant:** rows of `ledger` are only ever inserted. Every entry is chained to the head that was read inside the same
//! transaction, because another process of the node may have appended since the last one.
//!
//! **Invariant:** the entries of a call are numbered by `step`, and no two have the same number, so of two nodes that go on
//! with the same call one fails.
//!
//! An error that concerns one caller alone is returned before anything is written for it. The writer fails the whole group
//! after any other error ([`Error::aborts_group`]).

mod calls;
mod chain;
mod entry;
mod recovery;

pub use calls::CallFilter;
pub use chain::{BadEntry, Verification};
pub use entry::{CallHead, CallRow, CalledTool, IdempotencyKey, Intent, IntentOutcome, Outcome, WholeCall};
pub use recovery::Recovery;

#[cfg(test)]
pub(crate) use calls::CALLS;
pub(crate) use entry::{HeadBody, TransitionBody, masked};
pub(crate) use recovery::recover;

use crate::approvals;
use crate::error::Error;
use crate::options::{ARGUMENTS_MAX, KEY_MAX};
use crate::retention::{self, now_us};
use crate::session_totals::SessionTotals;
use crate::sql::{Connection, Prepared, Row, Value, names, placeholders, statements, to_json, values};
use crate::writer::{Message, OnCallerGone, Record};
use crate::{Store, check_size, count_change};
use chain::Head;
use gantry_core::State;
use gantry_core::id::{CallId, NodeId, ProcessId, SessionId};
use std::borrow::Cow;
use std::sync::Arc;

/// The columns of an entry, in the order in which they are written and hashed.
macro_rules! columns {
    ($as:ident) => {
        $as!(node, seq, kind, call, step, process, at, project, session, principal, name, state, body, hash)
    };
}

statements! {
    APPEND = concat!("INSERT INTO ledger (", columns!(names), ") VALUES (", columns!(placeholders),
        ") ON CONFLICT (call, step) DO NOTHING");
    NEWEST = "SELECT project, session, principal, name, state, step FROM ledger WHERE call = $1 ORDER BY step DESC LIMIT 1";
    OPEN_CALL = "INSERT INTO open_calls (call, process) VALUES ($1, $2)";
    CLOSE_CALL = "DELETE FROM open_calls WHERE call = $1";
    USE_KEY = "INSERT INTO idempotency (call, project, principal, key, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
}

#[cfg(test)]
pub(crate) const ALL_STATEMENTS: [&[crate::sql::Statement]; 4] =
    [STATEMENTS, calls::STATEMENTS, chain::STATEMENTS, recovery::STATEMENTS];

impl Store {
    /// Records that a call is about to have its effect; durable when it returns.
    ///
    /// If the key was used before by the same project and principal, nothing is recorded and the call that used it is
    /// returned. A call that was held begins under its own id and key again, and under its approval, which is `Executing`
    /// from then on.
    ///
    /// Cancel-safety: a caller that stops waiting must not run the call; its intent may have become durable, and then
    /// stays open until this process ends.
    ///
    /// # Errors
    /// `Taken` when the call has begun, ended or waits, or its approval does not let it run; otherwise the intent is not
    /// durable and the call must not run.
    pub async fn intend(&self, intent: Intent) -> Result<IntentOutcome, Error> {
        check_head(&intent.head, intent.idempotency.as_ref())?;
        // Without its caller the call would not run.
        self.write(OnCallerGone::Skip, move |ledger| ledger.intend(&intent)).await
    }

    /// Records how a call ended; durable when it returns.
    ///
    /// It takes calls that run, and those whose outcome was unknown until a person found out. A held call that was
    /// approved, and is refused or fails before it begins, ends as `CancelledBySystem`; one that has begun ends as
    /// `CompletedFailure` if it is said to be refused.
    ///
    /// # Errors
    /// `UnknownCall` without an earlier entry, `Taken` when the call is settled or waits; otherwise the outcome is not
    /// durable and may be given again.
    pub async fn close(&self, call: CallId, mut outcome: Outcome) -> Result<(), Error> {
        if !outcome.state.is_over() {
            return Err(Error::NotAnEnding { call, state: outcome.state });
        }
        self.write(OnCallerGone::Write, move |ledger| ledger.close(call, &mut outcome)).await
    }

    /// Records a call that has ended, in one entry, committed with the next group. Returns when the writer has accepted it,
    /// which waits while its channel is full. The call must have no entry.
    ///
    /// # Errors
    /// `Closed` after shutdown; `NotAnEnding` and `TooLarge` for records that cannot be.
    pub async fn record(&self, whole: WholeCall) -> Result<(), Error> {
        if whole.outcome.state == State::Executing {
            return Err(Error::NotAnEnding { call: whole.head.id, state: whole.outcome.state });
        }
        check_size("arguments", whole.head.arguments.len(), ARGUMENTS_MAX)?;
        self.send(Message::Record(Record::Whole(Box::new(whole)))).await
    }

    /// Walks every hash chain from its first entry to its newest.
    ///
    /// # Errors
    /// The store cannot be read; a broken chain is a result, not an error.
    pub async fn verify(&self) -> Result<Verification, Error> {
        // A ledger that was tampered with may not be writable; it is verified all the same.
        self.flush().await.ok();
        self.read_committed(chain::verify).await
    }
}

pub(crate) fn check_head(head: &CallHead, key: Option<&IdempotencyKey>) -> Result<(), Error> {
    check_size("arguments", head.arguments.len(), ARGUMENTS_MAX)?;
    check_size("the idempotency key", key.map_or(0, |key| key.key.len()), KEY_MAX)
}

/// Who appends: a process, to the chain of its node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author {
    pub(crate) node: NodeId,
    pub(crate) process: ProcessId,
}

impl Author {
    pub(crate) fn new(conn: &Connection, process: ProcessId) -> Result<Self, Error> {
        Ok(Self { node: chain::own_node(conn)?, process })
    }
}

/// What one transaction appends.
pub(crate) struct Ledger<'tx> {
    pub(crate) conn: &'tx Connection,
    pub(crate) author: Author,
    append: Prepared<'tx>,
    head: Head,
    first: i64,
    pub(crate) totals: SessionTotals,
    /// Whether approvals, grants or keys change.
    pub(crate) changed: bool,
}

/// The newest entry of a call, as far as the next one repeats it.
pub(crate) struct Newest {
    project: Arc<str>,
    pub(crate) session: SessionId,
    principal: Arc<str>,
    name: Arc<str>,
    pub(crate) state: State,
    step: i64,
}

impl Newest {
    pub(crate) fn next_step(&self) -> i64 {
        self.step + 1
    }
}

/// An entry, as far as it differs from the one before it.
pub(crate) struct Next<'a> {
    /// One of the kinds that `entry.rs` lists.
    pub(crate) kind: &'static str,
    pub(crate) state: State,
    pub(crate) at: i64,
    pub(crate) body: &'a str,
}

impl<'tx> Ledger<'tx> {
    /// Begins to append; `conn` must be inside a write transaction.
    pub(crate) fn begin(conn: &'tx Connection, author: Author) -> Result<Self, Error> {
        let (append, head) = (conn.prepare(APPEND)?, Head::read(conn, author.node)?);
        let totals = SessionTotals::default();
        Ok(Self { conn, author, append, head, first: head.seq, totals, changed: false })
    }

    /// Writes what the group changed beside its entries. Returns how many entries there were.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        self.totals.write(self.conn)?;
        if self.changed {
            count_change(self.conn)?;
        }
        let appended = u64::try_from(self.head.seq - self.first).unwrap_or_default();
        if appended > 0 {
            self.head.write(self.conn, self.author.node)?;
        }
        Ok(appended)
    }

    /// Changes approvals, grants or keys without an entry.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&Connection) -> T) -> T {
        let before = self.conn.n_changed();
        let answer = change(self.conn);
        self.changed |= self.conn.n_changed() != before;
        answer
    }

    /// Records that a call is about to have its effect, unless its key or its id says that it already has. One that was
    /// held begins under its approval, which is used up by it.
    pub(crate) fn intend(&mut self, intent: &Intent) -> Result<IntentOutcome, Error> {
        let (head, key) = (&intent.head, intent.idempotency.as_ref());
        if let Some(call) = self.earlier_use(head, key)? {
            let row = calls::call_with_result(self.conn, call)?.ok_or(Error::UnknownCall { call })?;
            return Ok(IntentOutcome::Duplicate(Box::new(row)));
        }
        let mut body = HeadBody::new(head, key);
        let step = if let Some(approval) = intent.approval {
            let (row, step) = self.redeemable(approval, head.id, intent.decided)?;
            body.approval = Some(row.id);
            self.redeem(row)?;
            step
        } else if let Some(newest) = self.newest(head.id)? {
            return Err(Error::Taken { call: head.id, state: newest.state });
        } else {
            0
        };
        self.append_head("intent", head, (step, State::Executing), &body)?;
        self.conn.execute(OPEN_CALL, values![head.id, self.author.process])?;
        self.use_key(head, key)?;
        self.totals.touch(head.session, head.started_us);
        Ok(IntentOutcome::Recorded)
    }

    /// Records how a call ended that has begun or is unknown, or that may not begin any more. If it was held, the state in
    /// which it ends is corrected to one that its approval can have.
    pub(crate) fn close(&mut self, call: CallId, outcome: &mut Outcome) -> Result<(), Error> {
        let newest = self.newest(call)?.ok_or(Error::UnknownCall { call })?;
        if newest.state.is_settled() {
            return Err(Error::Taken { call, state: newest.state });
        }
        if let Some((approval, state)) = self.ending(call, outcome.state)? {
            outcome.state = state;
            self.end_approval(approval, outcome)?;
        }
        self.end("outcome", call, &newest, outcome)
    }

    /// Records a call that has ended, in one entry. Its id is not looked up: this is the path of plain reads.
    pub(crate) fn record(&mut self, whole: &WholeCall) -> Result<(), Error> {
        let (head, outcome) = (&whole.head, &whole.outcome);
        let body = HeadBody { outcome: Some(Cow::Borrowed(outcome)), ..HeadBody::new(head, None) };
        self.append_head("whole", head, (0, outcome.state), &body)?;
        retention::keep_result(self.conn, head.id, outcome)?;
        self.totals.count(head.session, None, outcome);
        Ok(())
    }

    /// Records that the process of an open call has died.
    pub(crate) fn recover(&mut self, call: CallId) -> Result<(), Error> {
        let newest = self.newest(call)?.ok_or(Error::UnknownCall { call })?;
        let message = "gantry stopped while this call was running, so it may have had its effect; \
             check before running it again";
        let outcome = Outcome {
            effect_state: Cow::Borrowed("possible"),
            ..Outcome::unmeasured(State::OutcomeUnknown, "OUTCOME_UNKNOWN", message.to_owned(), now_us())
        };
        let approval = approvals::newest_of(self.conn, call)?;
        if let Some(approval) = approval.filter(|row| row.state == State::Executing) {
            self.end_approval(approval, &outcome)?;
        }
        self.end("recovered", call, &newest, &outcome)
    }

    /// The other call that has used the key. A call that waited for a person meets its own key again.
    pub(crate) fn earlier_use(
        &self,
        head: &CallHead,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<CallId>, Error> {
        let Some(key) = key else { return Ok(None) };
        let used = calls::key_use(self.conn, &head.caller.project, &head.caller.principal, &key.key)?;
        Ok(used.filter(|call| *call != head.id))
    }

    pub(crate) fn use_key(&self, head: &CallHead, key: Option<&IdempotencyKey>) -> Result<(), Error> {
        let Some(key) = key else { return Ok(()) };
        let caller = &head.caller;
        let now = now_us();
        let values = values![head.id, caller.project, caller.principal, key.key, now];
        self.conn.execute(USE_KEY, values).map(|_| ())
    }

    pub(crate) fn newest(&self, call: CallId) -> Result<Option<Newest>, Error> {
        self.conn.first(NEWEST, values![call], |row: &mut Row<'_>| {
            Ok(Newest {
                project: row.take()?,
                session: row.take()?,
                principal: row.take()?,
                name: row.take()?,
                state: row.take()?,
                step: row.take()?,
            })
        })
    }

    fn end(
        &mut self,
        kind: &'static str,
        call: CallId,
        newest: &Newest,
        outcome: &Outcome,
    ) -> Result<(), Error> {
        let body = to_json(outcome)?;
        let next = Next { kind, state: outcome.state, at: outcome.finished_us, body: &body };
        self.append_next(call, newest, &next)?;
        self.conn.execute(CLOSE_CALL, values![call])?;
        retention::keep_result(self.conn, call, outcome)?;
        self.totals.count(newest.session, Some(newest.state), outcome);
        Ok(())
    }

    /// Appends an entry that goes on with a call.
    pub(crate) fn append_next(
        &mut self,
        call: CallId,
        newest: &Newest,
        next: &Next<'_>,
    ) -> Result<(), Error> {
        let Newest { project, session, principal, name, .. } = newest;
        self.append((call, newest.next_step()), (project, *session, principal, name), next)
    }

    /// Appends an entry with the head of its call.
    pub(crate) fn append_head(
        &mut self,
        kind: &'static str,
        head: &CallHead,
        (step, state): (i64, State),
        body: &HeadBody<'_>,
    ) -> Result<(), Error> {
        let CallHead { caller, tool, .. } = head;
        let next = Next { kind, state, at: head.started_us, body: &to_json(body)? };
        self.append((head.id, step), (&caller.project, head.session, &caller.principal, &tool.name), &next)
    }

    fn append(
        &mut self,
        (call, step): (CallId, i64),
        (project, session, principal, name): (&str, SessionId, &str, &str),
        next: &Next<'_>,
    ) -> Result<(), Error> {
        let Author { node, process } = self.author;
        let seq = self.head.seq.saturating_add(1);
        let hashed: &[Value<'_>; chain::COLUMNS] = values![
            node, seq, next.kind, call, step, process, next.at, project, session, principal, name,
            next.state, next.body
        ];
        let hash = chain::hash(&self.head.hash, hashed);
        if self.append.execute(hashed.iter().chain(values![hash]))? == 0 {
            return Err(Error::StepTaken);
        }
        self.head = Head { seq, hash };
        Ok(())
    }
}
