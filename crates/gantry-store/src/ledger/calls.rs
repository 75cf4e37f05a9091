//! Reads calls: single ones, and lists of them.

use super::entry::{EndBody, HeadBody};
use crate::error::Error;
use crate::sessions::SessionKey;
use crate::sql::{Connection, Query, Row, from_json, list, single, statements, values};
use crate::{CallHead, CallRow, Outcome, Page, Store, page_size};
use gantry_core::State;
use gantry_core::id::{CallId, SessionId};
use std::sync::Arc;

statements! {
    ENTRIES = "SELECT call, step, kind, process, at, project, session, principal, name, state, body
         FROM ledger WHERE call = $1 ORDER BY step";
    RESULT = "SELECT result FROM results WHERE call = $1";
    KEY_USE = "SELECT call FROM idempotency WHERE project = $1 AND principal = $2 AND key = $3";
    OF_SESSION = "SELECT call FROM ledger WHERE session = $1 AND step = 0 ORDER BY call LIMIT $2";
}

// A call stands where its first entry stands, so that it keeps its place while it goes on. Its id begins with its time.
list! {
    CALLS = "SELECT h.call FROM ledger h WHERE h.step = 0", "ORDER BY h.call DESC";
    OF_PROJECT = "h.project = $?";
    OF_PRINCIPAL = "h.principal = $?";
    IN_SESSION = "h.session = $?";
    OF_NAME = "h.name = $?";
    IN_STATE = "(SELECT n.state FROM ledger n WHERE n.call = h.call ORDER BY n.step DESC LIMIT 1) = $?";
    FROM = "h.call >= $?";
    BEFORE = "h.call < $?";
}

/// Which calls to list; a field that is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    pub project: Option<Arc<str>>,
    pub principal: Option<Arc<str>>,
    pub session: Option<SessionId>,
    pub name: Option<Arc<str>>,
    pub state: Option<State>,
    /// Begun at or after this time, to the millisecond.
    pub since_us: Option<i64>,
    /// Begun before this time, to the millisecond.
    pub until_us: Option<i64>,
    /// After the page that gave this as `next`.
    pub cursor: Option<CallId>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}

impl Store {
    /// The call with that id, with its result if that is kept.
    pub async fn call(&self, id: CallId) -> Result<Option<CallRow>, Error> {
        self.read_own_writes(move |conn| call_with_result(conn, id)).await
    }

    /// The call that was made under an idempotency key, with its result if that is kept.
    pub async fn call_by_key(
        &self,
        project: Arc<str>,
        principal: Arc<str>,
        key: String,
    ) -> Result<Option<CallRow>, Error> {
        self.read_own_writes(move |conn| match key_use(conn, &project, &principal, &key)? {
            Some(call) => call_with_result(conn, call),
            None => Ok(None),
        })
        .await
    }

    pub async fn calls(&self, filter: CallFilter) -> Result<Page<CallRow, CallId>, Error> {
        self.read_own_writes(move |conn| list(conn, &filter)).await
    }

    /// The first calls of a session, the oldest first; the limit is that of `CallFilter`.
    pub async fn calls_of_session(
        &self,
        session: SessionId,
        limit: u32,
    ) -> Result<Page<CallRow, CallId>, Error> {
        self.read_own_writes(move |conn| {
            let (limit, conn) = (page_size(limit), conn.snapshot()?);
            let ids = conn.all(OF_SESSION, values![session, limit + 1], single)?;
            Page::cut(ids, limit, |id: &CallId| *id).try_map(|id| existing(&conn, id))
        })
        .await
    }
}

fn list(conn: &Connection, filter: &CallFilter) -> Result<Page<CallRow, CallId>, Error> {
    let (since, until) = (filter.since_us.map(first_id), filter.until_us.map(first_id));
    let mut query = Query::new(CALLS);
    query.and(OF_PROJECT, &filter.project);
    query.and(OF_PRINCIPAL, &filter.principal);
    query.and(IN_SESSION, &filter.session);
    query.and(OF_NAME, &filter.name);
    query.and(IN_STATE, &filter.state);
    query.and(FROM, &since);
    query.and(BEFORE, &until);
    query.and(BEFORE, &filter.cursor);
    // One moment for the list and its calls.
    let (limit, conn) = (page_size(filter.limit), conn.snapshot()?);
    let ids = conn.list(query, limit + 1, single)?;
    Page::cut(ids, limit, |id: &CallId| *id).try_map(|id| existing(&conn, id))
}

/// The smallest id that a call of that time or later can have: a UUIDv7 begins with 48 bits of milliseconds.
fn first_id(at_us: i64) -> CallId {
    let millis = u64::try_from(at_us.div_euclid(1000)).unwrap_or(0).min((1 << 48) - 1);
    CallId::from_bytes((u128::from(millis) << 80).to_be_bytes())
}

fn existing(conn: &Connection, id: CallId) -> Result<CallRow, Error> {
    call(conn, id)?.ok_or(Error::UnknownCall { call: id })
}

/// The call with that id, without its kept result.
pub(crate) fn call(conn: &Connection, id: CallId) -> Result<Option<CallRow>, Error> {
    let mut call = None;
    conn.visit(ENTRIES, values![id], |row| {
        call = Some(fold(call.take(), row)?);
        Ok(true)
    })?;
    Ok(call)
}

pub(crate) fn call_with_result(conn: &Connection, id: CallId) -> Result<Option<CallRow>, Error> {
    let Some(mut call) = call(conn, id)? else { return Ok(None) };
    if let Some(outcome) = &mut call.outcome {
        outcome.result = conn.first(RESULT, values![id], single)?;
    }
    Ok(Some(call))
}

pub(crate) fn key_use(
    conn: &Connection,
    project: &str,
    principal: &str,
    key: &str,
) -> Result<Option<CallId>, Error> {
    conn.first(KEY_USE, values![project, principal, key], single)
}

/// The call after one more of its entries.
fn fold(before: Option<CallRow>, row: &mut Row<'_>) -> Result<CallRow, Error> {
    let (id, step): (CallId, i64) = (row.take()?, row.take()?);
    let corrupt = |what: String| Error::corrupt(format!("entry {step} of {id}: {what}"));
    let kind: String = row.take()?;
    let (process, started_us) = (row.take()?, row.take()?);
    let (project, session, principal) = (row.take()?, row.take()?, row.take()?);
    let (name, state) = (row.take()?, row.take()?);
    let body: String = row.take()?;
    let begun = |before: Option<CallRow>| {
        before.ok_or_else(|| corrupt("it goes on with a call that never began".to_owned()))
    };
    let of_state = |outcome| Outcome { state, ..outcome };
    match kind.as_str() {
        "held" | "intent" | "whole" => {
            let body: HeadBody<'_> = from_json(&body).map_err(corrupt)?;
            let mut head: CallHead = body.head.into_owned();
            (head.id, head.session, head.started_us, head.tool.name) = (id, session, started_us, name);
            head.caller = SessionKey { project, principal, ..head.caller };
            let idempotency = body.idempotency.map(std::borrow::Cow::into_owned);
            let outcome = body.outcome.map(|outcome| of_state(outcome.into_owned()));
            let refused = before.map_or_else(Vec::new, |call| call.refused);
            Ok(CallRow { process, head, state, idempotency, outcome, refused })
        }
        "refusal" => {
            let mut call = begun(before)?;
            call.refused.push(from_json(&body).map_err(corrupt)?);
            Ok(call)
        }
        "decision" => {
            let outcome = from_json::<EndBody>(&body).map_err(corrupt)?.outcome.map(of_state);
            Ok(CallRow { process, state, outcome, ..begun(before)? })
        }
        "outcome" | "recovered" => {
            let outcome = Some(of_state(from_json(&body).map_err(corrupt)?));
            Ok(CallRow { process, state, outcome, ..begun(before)? })
        }
        _ => Err(corrupt(format!("it says \"{kind}\""))),
    }
}
