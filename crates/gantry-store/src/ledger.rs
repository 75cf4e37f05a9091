//! The writing side of the ledger: what one group's transaction may append, and under which conditions.
//!
//! **Invariant:** rows of `ledger` are only ever inserted. Every entry is chained to the head that was read inside
//! the same transaction, because another process may have appended since the last one.
//!
//! An operation answers in two layers: the outer error is the transaction's and fails the whole group, the inner
//! one concerns its caller alone and leaves the transaction as it was.

mod held;

use crate::approval::ApprovalRow;
use crate::body::{self, HeadBody, OutcomeBody};
use crate::chain::{Columns, Head};
use crate::error::Error;
use crate::keep::{self, now_us};
use crate::read::{self, Kind};
use crate::row::{
    CallHead, CallRow, IdempotencyKey, Intended, Intent, Outcome, SessionRow, State, WholeCall,
};
use crate::table;
use crate::tally::Tally;
use gantry_core::id::{CallId, NodeId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Params, params};
use std::borrow::Cow;

/// The answer to one caller inside a transaction that goes on.
pub(crate) type Answer<T> = Result<Result<T, Error>, Error>;

/// One transaction's worth of appending.
pub(crate) struct Ledger<'tx> {
    conn: &'tx Connection,
    node: NodeId,
    head: Head,
    first: i64,
    tally: Tally,
    /// Whether one of the tables beside the ledger changes.
    changed: bool,
}

/// What an entry of a call repeats from the entry before it.
struct Newest {
    project: String,
    session: SessionId,
    principal: String,
    name: String,
    state: State,
}

/// What an entry adds to the one before it.
struct Next<'a> {
    kind: Kind,
    state: State,
    at: i64,
    body: &'a str,
}

/// Whether a call may begin.
enum Beginning {
    /// Nobody held it.
    Plain,
    /// It was held, and this approval lets it run.
    Approved(Box<ApprovalRow>),
    /// Its key says that it is this call, which has begun before.
    Repeated(Box<CallRow>),
}

impl<'tx> Ledger<'tx> {
    /// Begins to append; `conn` must be inside a write transaction.
    pub(crate) fn begin(conn: &'tx Connection, node: NodeId) -> Result<Self, Error> {
        let head = Head::read(conn)?;
        Ok(Self { conn, node, head, first: head.seq, tally: Tally::default(), changed: false })
    }

    /// Writes what the group changed beside its entries, and says how many entries there were.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        self.tally.write(self.conn)?;
        if self.changed {
            table::changed(self.conn)?;
        }
        let appended = u64::try_from(self.head.seq - self.first).unwrap_or_default();
        if appended > 0 {
            let row = (self.head.seq, self.head.hash.as_bytes());
            execute(self.conn, "UPDATE ledger_head SET seq = ?1, hash = ?2", row)?;
        }
        Ok(appended)
    }

    /// Changes one of the tables beside the ledger.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&Connection) -> T) -> T {
        let before = self.conn.total_changes();
        let answer = change(self.conn);
        self.changed |= self.conn.total_changes() != before;
        answer
    }

    /// Records that a call is about to have its effect, unless its key or its id says that it already has. One that
    /// was held begins under its approval, which is used up by it.
    pub(crate) fn intend(&mut self, intent: &Intent) -> Answer<Intended> {
        let (head, key) = (&intent.head, intent.idempotency.as_ref());
        let mut body = HeadBody::new(head, key, None);
        match self.beginning(intent) {
            Ok(Beginning::Plain) => {}
            Ok(Beginning::Approved(row)) => {
                body = body.under(row.id, None);
                self.redeem(*row)?;
            }
            Ok(Beginning::Repeated(row)) => return Ok(Ok(Intended::Repeated(row))),
            Err(error) => return Ok(Err(error)),
        }
        self.append_head(Kind::Intent, head, State::Executing, &body::encode(&body)?)?;
        let open = (head.id.as_bytes(), self.node.as_bytes());
        execute(self.conn, "INSERT INTO open_calls (call, node) VALUES (?1, ?2)", open)?;
        self.remember_key(head, key)?;
        self.tally.touch(head.session, head.started_us);
        Ok(Ok(Intended::Fresh))
    }

    /// Records how a call ended that has begun or is unknown, or that may not begin any more. If it was held, the state
    /// in which it ends is corrected to one that its approval can have.
    pub(crate) fn close(&mut self, call: CallId, outcome: &mut Outcome) -> Answer<()> {
        let newest = match self.newest(call) {
            Ok(Some(newest)) if newest.state.is_settled() => {
                return Ok(Err(Error::Taken { call, state: newest.state }));
            }
            Ok(Some(newest)) => newest,
            Ok(None) => return Ok(Err(Error::UnknownCall { call })),
            Err(error) => return Ok(Err(error)),
        };
        match self.ending(call, outcome.state) {
            Ok(None) => {}
            Ok(Some((approval, state))) => {
                outcome.state = state;
                self.end_approval(approval, outcome)?;
            }
            Err(error) => return Ok(Err(error)),
        }
        self.end(Kind::Outcome, call, &newest, outcome)?;
        Ok(Ok(()))
    }

    /// Records a call that has ended, in one entry. Its id is not looked up: this is the path of plain reads.
    pub(crate) fn record(&mut self, whole: &WholeCall) -> Result<(), Error> {
        let body = body::encode(&HeadBody::new(&whole.head, None, Some(&whole.outcome)))?;
        self.append_head(Kind::Whole, &whole.head, whole.outcome.state, &body)?;
        keep::result(self.conn, whole.head.id, &whole.outcome)?;
        self.tally.count(whole.head.session, None, &whole.outcome);
        Ok(())
    }

    /// Records that the process of an open call has died.
    pub(crate) fn recover(&mut self, call: CallId) -> Result<(), Error> {
        let newest = self.newest(call)?.ok_or(Error::UnknownCall { call })?;
        let outcome = Outcome {
            state: State::OutcomeUnknown,
            code: Some(Cow::Borrowed("OUTCOME_UNKNOWN")),
            message: Some(
                "gantry stopped while this call was running, so it may have had its effect; \
                 check before running it again"
                    .to_owned(),
            ),
            effect_state: Cow::Borrowed("possible"),
            latency_us: 0,
            characters_in: 0,
            characters_out: 0,
            cost_micros: 0,
            finished_us: now_us(),
            attempts: 0,
            cached: false,
            result: None,
        };
        let approval = table::approvals::newest_of(self.conn, call)?;
        if let Some(approval) = approval.filter(|row| row.state == State::Executing) {
            self.end_approval(approval, &outcome)?;
        }
        self.end(Kind::Recovered, call, &newest, &outcome)
    }

    /// Records a session; one that is there already is left as it is.
    pub(crate) fn open_session(&mut self, session: &SessionRow) -> Result<(), Error> {
        let key = &session.key;
        let row = params![
            session.id.as_bytes(),
            key.project,
            key.principal,
            key.agent,
            key.door,
            session.parent.as_ref().map(CallId::as_bytes),
            session.started_us,
            session.last_us,
            session.ended_us,
        ];
        let insert = "INSERT INTO sessions
             (id, project, principal, agent, door, parent, started_us, last_us, ended_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING";
        execute(self.conn, insert, row)
    }

    /// Records that a session was used.
    pub(crate) fn touch_session(&mut self, id: SessionId, at: i64) {
        self.tally.touch(id, at);
    }

    /// Records that a session ended; the first end counts.
    pub(crate) fn close_session(&mut self, id: SessionId, at: i64) -> Result<(), Error> {
        self.tally.touch(id, at);
        let update = "UPDATE sessions SET ended_us = ?2 WHERE id = ?1 AND ended_us IS NULL";
        execute(self.conn, update, (id.as_bytes(), at))
    }

    fn beginning(&self, intent: &Intent) -> Result<Beginning, Error> {
        let head = &intent.head;
        if let Some(call) = self.earlier_use(head, intent.idempotency.as_ref())? {
            let row = read::call_with_result(self.conn, call)?.ok_or(Error::UnknownCall { call })?;
            return Ok(Beginning::Repeated(Box::new(row)));
        }
        if let Some(approval) = intent.approval {
            return self
                .redeemable(approval, head.id, intent.decided)
                .map(|row| Beginning::Approved(Box::new(row)));
        }
        match self.newest(head.id)? {
            None => Ok(Beginning::Plain),
            Some(newest) => Err(Error::Taken { call: head.id, state: newest.state }),
        }
    }

    /// The other call that has used the key. A call that waited for a person meets its own key again.
    fn earlier_use(&self, head: &CallHead, key: Option<&IdempotencyKey>) -> Result<Option<CallId>, Error> {
        let Some(key) = key else { return Ok(None) };
        let used = key_use(self.conn, &head.caller.project, &head.caller.principal, &key.key)?;
        Ok(used.filter(|call| *call != head.id))
    }

    fn remember_key(&self, head: &CallHead, key: Option<&IdempotencyKey>) -> Result<(), Error> {
        let Some(key) = key else { return Ok(()) };
        let row = params![head.id.as_bytes(), head.caller.project, head.caller.principal, key.key, now_us()];
        let insert = "INSERT INTO idempotency (call, project, principal, key, at)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        execute(self.conn, insert, row)
    }

    fn newest(&self, call: CallId) -> Result<Option<Newest>, Error> {
        let mut query = self
            .conn
            .prepare_cached(
                "SELECT project, session, principal, name, state, seq
                 FROM ledger WHERE call = ?1 ORDER BY seq DESC LIMIT 1",
            )
            .map_err(Error::sqlite)?;
        let mut rows = query.query([call.as_bytes()]).map_err(Error::sqlite)?;
        let Some(row) = rows.next().map_err(Error::sqlite)? else { return Ok(None) };
        let seq = row.get(5).map_err(Error::sqlite)?;
        let state = read::word(row, 4, seq, State::parse)?;
        let newest = || {
            Ok(Newest {
                project: row.get(0)?,
                session: SessionId::from_bytes(row.get(1)?),
                principal: row.get(2)?,
                name: row.get(3)?,
                state,
            })
        };
        newest().map(Some).map_err(Error::sqlite)
    }

    fn end(&mut self, kind: Kind, call: CallId, newest: &Newest, outcome: &Outcome) -> Result<(), Error> {
        let body = body::encode(&OutcomeBody::new(outcome))?;
        let next = Next { kind, state: outcome.state, at: outcome.finished_us, body: &body };
        self.append_next(call, newest, &next)?;
        execute(self.conn, "DELETE FROM open_calls WHERE call = ?1", [call.as_bytes()])?;
        keep::result(self.conn, call, outcome)?;
        self.tally.count(newest.session, Some(newest.state), outcome);
        Ok(())
    }

    fn append_next(&mut self, call: CallId, newest: &Newest, next: &Next<'_>) -> Result<(), Error> {
        let node = self.node;
        self.append(&Columns {
            seq: self.head.seq.saturating_add(1),
            kind: next.kind.as_str(),
            call: call.as_bytes(),
            node: node.as_bytes(),
            at: next.at,
            project: &newest.project,
            session: newest.session.as_bytes(),
            principal: &newest.principal,
            name: &newest.name,
            state: next.state.as_str(),
            body: next.body,
        })
    }

    fn append_head(&mut self, kind: Kind, head: &CallHead, state: State, body: &str) -> Result<(), Error> {
        let node = self.node;
        self.append(&Columns {
            seq: self.head.seq.saturating_add(1),
            kind: kind.as_str(),
            call: head.id.as_bytes(),
            node: node.as_bytes(),
            at: head.started_us,
            project: &head.caller.project,
            session: head.session.as_bytes(),
            principal: &head.caller.principal,
            name: &head.tool.name,
            state: state.as_str(),
            body,
        })
    }

    fn append(&mut self, entry: &Columns<'_>) -> Result<(), Error> {
        let hash = entry.hash(&self.head.hash);
        let row = params![
            entry.seq,
            entry.kind,
            entry.call,
            entry.node,
            entry.at,
            entry.project,
            entry.session,
            entry.principal,
            entry.name,
            entry.state,
            entry.body,
            hash.as_bytes(),
        ];
        let insert = "INSERT INTO ledger
             (seq, kind, call, node, at, project, session, principal, name, state, body, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        execute(self.conn, insert, row)?;
        self.head = Head { seq: entry.seq, hash };
        Ok(())
    }
}

/// The call that has used this key.
pub(crate) fn key_use(
    conn: &Connection,
    project: &str,
    principal: &str,
    key: &str,
) -> Result<Option<CallId>, Error> {
    let query = "SELECT call FROM idempotency WHERE project = ?1 AND principal = ?2 AND key = ?3";
    let used = conn
        .prepare_cached(query)
        .and_then(|mut query| query.query_row(params![project, principal, key], |row| row.get(0)).optional())
        .map_err(Error::sqlite)?;
    Ok(used.map(CallId::from_bytes))
}

/// Runs a statement that is prepared once per connection.
pub(crate) fn execute(conn: &Connection, sql: &str, row: impl Params) -> Result<(), Error> {
    conn.prepare_cached(sql).and_then(|mut statement| statement.execute(row)).map_err(Error::sqlite)?;
    Ok(())
}
