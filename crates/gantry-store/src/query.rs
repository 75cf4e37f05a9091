//! The queries: lists of calls and sessions, and the sessions that still stand.

use crate::error::Error;
use crate::options::{PAGE_DEFAULT, PAGE_MAX};
use crate::read;
use crate::row::{
    CallFilter, CallRow, Page, SessionFilter, SessionKey, SessionRow, SessionSummary, State, Totals,
};
use gantry_core::id::{CallId, SessionId};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};
use std::sync::Arc;

/// The conditions of a query and the values they are bound to.
#[derive(Default)]
pub(crate) struct Where {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Where {
    /// Adds a condition, whose `?` is the value; none if there is no value.
    pub(crate) fn and(&mut self, condition: &'static str, value: Option<impl Into<Value>>) {
        let Some(value) = value else { return };
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.push(value.into());
    }
}

/// Calls, the newest first.
pub(crate) fn calls(conn: &Connection, filter: &CallFilter) -> Result<Page<CallRow>, Error> {
    let mut conditions = Where::default();
    conditions.and("h.project = ?", text(filter.project.as_ref()));
    conditions.and("h.principal = ?", text(filter.principal.as_ref()));
    conditions.and("h.session = ?", filter.session.map(|id| id.as_bytes().to_vec()));
    conditions.and("h.name = ?", text(filter.name.as_ref()));
    conditions.and(
        "(SELECT n.state FROM ledger n WHERE n.call = h.call ORDER BY n.seq DESC LIMIT 1) = ?",
        filter.state.map(|state: State| state.as_str().to_owned()),
    );
    // The first two bound the walk with the help of the narrow index on the time; the others decide. The plus
    // signs keep SQLite from shortcuts that are longer: reading the ledger from its beginning to find the least
    // `seq`, or walking the index on the time and sorting what it finds.
    conditions.and("h.seq >= (SELECT min(+seq) FROM ledger WHERE at >= ?)", filter.since_us);
    conditions.and("h.seq <= (SELECT max(+seq) FROM ledger WHERE at < ?)", filter.until_us);
    conditions.and("+h.at >= ?", filter.since_us);
    conditions.and("+h.at < ?", filter.until_us);
    conditions.and("h.seq < ?", filter.cursor);
    list_calls(conn, conditions, "DESC", filter.limit)
}

/// The calls of a session, the oldest first.
pub(crate) fn calls_of_session(
    conn: &Connection,
    session: SessionId,
    cursor: Option<i64>,
    limit: u32,
) -> Result<Page<CallRow>, Error> {
    let mut conditions = Where::default();
    conditions.and("h.session = ?", Some(session.as_bytes().to_vec()));
    conditions.and("h.seq > ?", cursor);
    list_calls(conn, conditions, "ASC", limit)
}

fn list_calls(
    conn: &Connection,
    mut conditions: Where,
    order: &'static str,
    limit: u32,
) -> Result<Page<CallRow>, Error> {
    let limit = page_size(limit);
    conditions.values.push(Value::Integer(i64::from(limit) + 1));
    // A call stands where its first entry stands, so that it keeps its place while it goes on.
    let sql = format!(
        "SELECT h.seq, h.call FROM ledger h WHERE h.kind IN ('held', 'intent', 'whole')
         AND NOT EXISTS (SELECT 1 FROM ledger e WHERE e.call = h.call AND e.seq < h.seq){}
         ORDER BY h.seq {order} LIMIT ?",
        conditions.sql
    );
    // One transaction, so that the list and its calls are of the same moment.
    let tx = conn.unchecked_transaction().map_err(Error::sqlite)?;
    let found: Vec<(i64, CallId)> = tx
        .prepare_cached(&sql)
        .and_then(|mut query| {
            query
                .query_map(params_from_iter(conditions.values), |row| {
                    Ok((row.get(0)?, CallId::from_bytes(row.get(1)?)))
                })?
                .collect()
        })
        .map_err(Error::sqlite)?;
    let page = page(found, limit, |(seq, _)| *seq);
    let calls = page.items.into_iter().map(|(_, call)| read::call(&tx, call)).filter_map(Result::transpose);
    Ok(Page { items: calls.collect::<Result<_, _>>()?, next: page.next })
}

const SESSION: &str =
    "SELECT seq, id, project, principal, agent, door, parent, started_us, last_us, ended_us,
     calls, failed, refused, unknown, latency_us, characters_in, characters_out, cost_micros FROM sessions";

/// Sessions, the newest first.
pub(crate) fn sessions(conn: &Connection, filter: &SessionFilter) -> Result<Page<SessionSummary>, Error> {
    let limit = page_size(filter.limit);
    let mut conditions = Where::default();
    conditions.and("project = ?", text(filter.project.as_ref()));
    conditions.and("principal = ?", text(filter.principal.as_ref()));
    conditions.and("agent = ?", text(filter.agent.as_ref()));
    conditions.and("parent = ?", filter.parent.map(|id| id.as_bytes().to_vec()));
    let below = filter.below.map(|id| id.as_bytes().to_vec());
    conditions.and("parent IN (SELECT call FROM ledger WHERE session = ?)", below);
    conditions.and("seq < ?", filter.cursor);
    conditions.values.push(Value::Integer(i64::from(limit) + 1));
    let sql = format!("{SESSION} WHERE true{} ORDER BY seq DESC LIMIT ?", conditions.sql);
    let found = conn
        .prepare_cached(&sql)
        .and_then(|mut query| query.query_map(params_from_iter(conditions.values), summary)?.collect())
        .map_err(Error::sqlite)?;
    Ok(page(found, limit, |summary: &SessionSummary| summary.seq))
}

/// The session with that id.
pub(crate) fn session(conn: &Connection, id: SessionId) -> Result<Option<SessionSummary>, Error> {
    conn.prepare_cached(&format!("{SESSION} WHERE id = ?"))
        .and_then(|mut query| query.query_row([id.as_bytes()], summary).optional())
        .map_err(Error::sqlite)
}

/// The newest session of that key which has not ended and was used since then.
pub(crate) fn standing_session(
    conn: &Connection,
    key: &SessionKey,
    since_us: i64,
) -> Result<Option<SessionRow>, Error> {
    let sql = format!(
        "{SESSION} WHERE project = ?1 AND principal = ?2 AND agent IS ?3 AND door = ?4
         AND parent IS NULL AND ended_us IS NULL AND last_us >= ?5 ORDER BY seq DESC LIMIT 1"
    );
    let values = rusqlite::params![key.project, key.principal, key.agent, key.door, since_us];
    conn.prepare_cached(&sql)
        .and_then(|mut query| query.query_row(values, summary).optional())
        .map(|found| found.map(|summary| summary.session))
        .map_err(Error::sqlite)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let sum = |index: usize| row.get(index).map(|sum: i64| u64::try_from(sum).unwrap_or_default());
    Ok(SessionSummary {
        seq: row.get(0)?,
        session: SessionRow {
            id: SessionId::from_bytes(row.get(1)?),
            key: SessionKey {
                project: row.get(2)?,
                principal: row.get(3)?,
                agent: row.get(4)?,
                door: row.get::<_, String>(5)?.into(),
            },
            parent: row.get::<_, Option<[u8; 16]>>(6)?.map(CallId::from_bytes),
            started_us: row.get(7)?,
            last_us: row.get(8)?,
            ended_us: row.get(9)?,
        },
        totals: Totals {
            calls: sum(10)?,
            failed: sum(11)?,
            refused: sum(12)?,
            unknown: sum(13)?,
            latency_us: sum(14)?,
            characters_in: sum(15)?,
            characters_out: sum(16)?,
            cost_micros: sum(17)?,
        },
    })
}

pub(crate) fn text(value: Option<&Arc<str>>) -> Option<String> {
    value.map(|text| text.to_string())
}

pub(crate) fn page_size(limit: u32) -> u32 {
    if limit == 0 { PAGE_DEFAULT } else { limit.min(PAGE_MAX) }
}

/// Cuts a list that was fetched with one row too many; that row says that there are more.
pub(crate) fn page<T>(mut items: Vec<T>, limit: u32, seq: fn(&T) -> i64) -> Page<T> {
    let limit = limit as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    Page { next: items.last().filter(|_| more).map(seq), items }
}
