//! The table of approvals. Every query is answered by an index, however many rows wait.

use super::{all, did_change, each_project, first, json, optional_json, word};
use crate::approval::{Announced, ApprovalFilter, ApprovalRow, Asked, DecisionRow, Omitted, Ready, Unsent};
use crate::body;
use crate::error::Error;
use crate::ledger::execute;
use crate::options::{PAGE_BYTES, PAGE_MAX};
use crate::query::{Where, page, page_size, text};
use crate::row::{Page, SessionKey, State};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, NodeId, SessionId};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use std::cmp::Reverse;
use std::sync::Arc;

macro_rules! columns {
    ($long:literal, $rest:literal) => {
        concat!(
            "SELECT seq, id, call, session, parent, project, principal, agent, name, sameness, state, node,
             created_us, deadline_us, ended_us, collected, announced, attempts, decision, message, supersedes,
             asked, ",
            $long,
            " FROM approvals ",
            $rest
        )
    };
}

/// Whole rows.
macro_rules! select {
    ($rest:literal) => {
        columns!("arguments, modified, NULL, NULL", $rest)
    };
}

/// Rows without arguments that have more than 16 KiB, which are not even read: only their length is.
macro_rules! select_slim {
    ($rest:literal) => {
        columns!(
            "iif(octet_length(arguments) > 16384, '', arguments),
             iif(octet_length(modified) > 16384, NULL, modified),
             iif(octet_length(arguments) > 16384, octet_length(arguments), NULL),
             iif(octet_length(modified) > 16384, octet_length(modified), NULL)",
            $rest
        )
    };
}

const BY_SEQ: &str = select!("WHERE seq = ?1");
const SLIM_BY_SEQ: &str = select_slim!("WHERE seq = ?1");
const BY_ID: &str = select!("WHERE id = ?1");
const OF_CALL: &str = select!("WHERE call = ?1 ORDER BY seq DESC LIMIT 1");
/// One that still goes on comes before those that have ended.
const SAME: &str = select!(
    "WHERE sameness = ?1 AND collected = 0 AND (ended_us IS NULL OR ended_us > ?2)
     ORDER BY ended_us IS NOT NULL, seq DESC LIMIT 1"
);
const READY: &str = "SELECT id, due_us, seq FROM approvals INDEXED BY approvals_ready
     WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') AND node = ?1
     AND due_us <= ?2 AND (due_us, seq) > (?3, ?4) ORDER BY due_us, seq LIMIT ?5";
/// Each step goes to the first row of the next process, however many the one before has.
const HOLDERS: &str = "WITH RECURSIVE holders (node) AS (
       SELECT min(node) FROM approvals INDEXED BY approvals_ready
         WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY')
       UNION ALL
       SELECT (SELECT min(node) FROM approvals INDEXED BY approvals_ready
           WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') AND node > holders.node)
         FROM holders WHERE holders.node IS NOT NULL LIMIT ?1)
     SELECT node FROM holders WHERE node IS NOT NULL";
/// What was approved is due at 0, however much of it there is, and is not walked over.
const EXPIRED: &str = select_slim!(
    "INDEXED BY approvals_due WHERE due_us BETWEEN 1 AND ?1 AND state = 'PENDING_APPROVAL' ORDER BY due_us LIMIT ?2"
);
const NEXT_DUE: &str = "SELECT due_us FROM approvals WHERE due_us IS NOT NULL ORDER BY due_us LIMIT 1";
const UNSENT: &str = "SELECT seq, id, node FROM approvals INDEXED BY approvals_unsent
     WHERE unsent IS NOT NULL AND project = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
const WAITING_OF_CALLER: &str = "SELECT count(*) FROM (SELECT 1 FROM approvals
     WHERE project = ?1 AND principal = ?2 AND agent IS ?3
     AND state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') LIMIT ?4)";
const WAITING: &str = "SELECT count(*) FROM (SELECT 1 FROM approvals
     WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') LIMIT ?1)";
const ORPHANS: &str = "SELECT id, parent, node FROM approvals
     WHERE state = 'PENDING_APPROVAL' AND parent IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM open_calls WHERE open_calls.call = approvals.parent)";
const EXACT: &str = "SELECT seq FROM approvals WHERE exact = 1 AND ended_us < ?1 LIMIT ?2";
const OVER: &str = "DELETE FROM approvals WHERE seq IN
     (SELECT seq FROM approvals WHERE exact = 0 AND ended_us < ?1 LIMIT ?2)";

/// Adds a row and returns its place.
pub(crate) fn insert(conn: &Connection, row: &ApprovalRow) -> Result<i64, Error> {
    let values = params![
        row.id.as_bytes(),
        row.call.as_bytes(),
        row.session.as_bytes(),
        row.parent.as_ref().map(CallId::as_bytes),
        row.project,
        row.principal,
        row.agent,
        row.name,
        row.dedup_key.as_bytes(),
        row.state.as_str(),
        row.node.as_bytes(),
        row.created_us,
        row.deadline_us,
        row.ended_us,
        row.collected,
        row.announced.as_number(),
        row.attempts,
        encoded(row.decision.as_ref())?,
        row.message,
        row.supersedes.as_ref().map(ApprovalId::as_bytes),
        body::encode(&row.asked)?,
        modified(row),
        row.asked.arguments,
    ];
    execute(
        conn,
        "INSERT INTO approvals
         (id, call, session, parent, project, principal, agent, name, sameness, state, node, created_us,
          deadline_us, ended_us, collected, announced, attempts, decision, message, supersedes, asked,
          modified, arguments)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
          ?22, ?23)",
        values,
    )?;
    Ok(conn.last_insert_rowid())
}

/// Writes what can change of a row.
pub(crate) fn update(conn: &Connection, row: &ApprovalRow) -> Result<(), Error> {
    let values = params![
        row.seq,
        row.state.as_str(),
        row.node.as_bytes(),
        row.deadline_us,
        row.ended_us,
        row.collected,
        row.attempts,
        encoded(row.decision.as_ref())?,
        row.message,
        modified(row),
    ];
    execute(
        conn,
        "UPDATE approvals SET state = ?2, node = ?3, deadline_us = ?4, ended_us = ?5, collected = ?6,
         attempts = ?7, decision = ?8, message = ?9, modified = ?10 WHERE seq = ?1",
        values,
    )
}

/// Notes that somebody was given the outcome. Says whether there was one, and it was the first time.
pub(crate) fn collect(conn: &Connection, id: ApprovalId) -> Result<bool, Error> {
    let update =
        "UPDATE approvals SET collected = 1 WHERE id = ?1 AND collected = 0 AND ended_us IS NOT NULL";
    did_change(conn, update, [id.as_bytes()])
}

/// Notes how much the webhook has taken; what was noted before is never undone.
pub(crate) fn announced(conn: &Connection, id: ApprovalId, announced: Announced) -> Result<(), Error> {
    let update = "UPDATE approvals SET announced = ?2 WHERE id = ?1 AND announced < ?2";
    execute(conn, update, params![id.as_bytes(), announced.as_number()])
}

/// The approval with that id.
pub(crate) fn find(conn: &Connection, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
    first(conn, BY_ID, [id.as_bytes()], read)
}

/// The newest approval of a call.
pub(crate) fn newest_of(conn: &Connection, call: CallId) -> Result<Option<ApprovalRow>, Error> {
    first(conn, OF_CALL, [call.as_bytes()], read)
}

/// The approval of the same request that goes on, or ended after that moment and nobody was told.
pub(crate) fn same_as(
    conn: &Connection,
    dedup_key: Digest,
    since_us: i64,
) -> Result<Option<ApprovalRow>, Error> {
    first(conn, SAME, params![dedup_key.as_bytes(), since_us], read)
}

/// How many calls of a caller wait, counted up to the limit.
pub(crate) fn waiting_of_caller(conn: &Connection, caller: &SessionKey, limit: u32) -> Result<u32, Error> {
    let values = params![caller.project, caller.principal, caller.agent, limit];
    first(conn, WAITING_OF_CALLER, values, |row| row.get(0)).map(Option::unwrap_or_default)
}

/// How many calls wait, counted up to the limit.
pub(crate) fn waiting(conn: &Connection, limit: u32) -> Result<u32, Error> {
    first(conn, WAITING, [limit], |row| row.get(0)).map(Option::unwrap_or_default)
}

/// What this process holds and nothing but time keeps from running, the longest due first, after that one.
pub(crate) fn ready(
    conn: &Connection,
    node: NodeId,
    now_us: i64,
    after: Option<Ready>,
    limit: u32,
) -> Result<Vec<Ready>, Error> {
    let (due_us, seq) = after.map_or((i64::MIN, 0), |after| (after.due_us, after.seq));
    let values = params![node.as_bytes(), now_us, due_us, seq, limit.min(PAGE_MAX)];
    all(conn, READY, values, |row| {
        Ok(Ready { id: ApprovalId::from_bytes(row.get(0)?), due_us: row.get(1)?, seq: row.get(2)? })
    })
}

/// The processes that hold calls that nobody has to decide about any more.
pub(crate) fn holders(conn: &Connection) -> Result<Vec<NodeId>, Error> {
    all(conn, HOLDERS, [PAGE_MAX], |row| row.get(0).map(NodeId::from_bytes))
}

/// What nobody has decided in time, the longest first, without long arguments.
pub(crate) fn expired(conn: &Connection, now_us: i64, limit: u32) -> Result<Vec<ApprovalRow>, Error> {
    all(conn, EXPIRED, params![now_us, limit.min(PAGE_MAX)], read)
}

/// When something is due next.
pub(crate) fn next_due(conn: &Connection) -> Result<Option<i64>, Error> {
    first(conn, NEXT_DUE, [], |row| row.get(0))
}

/// The approvals of a project about which its webhook has something to take, the oldest first, after that place.
pub(crate) fn unsent(conn: &Connection, project: &str, after: i64, limit: u32) -> Result<Vec<Unsent>, Error> {
    all(conn, UNSENT, params![project, after, limit.min(PAGE_MAX)], |row| {
        let id = ApprovalId::from_bytes(row.get(1)?);
        Ok(Unsent { seq: row.get(0)?, id, node: NodeId::from_bytes(row.get(2)?) })
    })
}

/// Those that nobody has decided and whose call above has no open intent: which, below which call, held by whom.
pub(crate) fn orphans(conn: &Connection) -> Result<Vec<(ApprovalId, CallId, NodeId)>, Error> {
    all(conn, ORPHANS, [], |row| {
        let id = ApprovalId::from_bytes(row.get(0)?);
        Ok((id, CallId::from_bytes(row.get(1)?), NodeId::from_bytes(row.get(2)?)))
    })
}

/// Masks the secrets in the arguments of approvals that ended before that moment.
pub(crate) fn mask(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    // One at a time: arguments may be long.
    for seq in all(conn, EXACT, (before_us, limit), |row| row.get::<_, i64>(0))? {
        let Some(mut row) = first(conn, BY_SEQ, [seq], read)? else { continue };
        row.asked.arguments = body::masked(&row.asked.arguments, usize::MAX).into();
        if let Some(modified) = row.decision.as_mut().and_then(|decision| decision.modified_args.as_mut()) {
            *modified = body::masked(modified, usize::MAX).into();
        }
        let values = params![row.seq, row.asked.arguments, modified(&row)];
        execute(
            conn,
            "UPDATE approvals SET exact = 0, arguments = ?2, modified = ?3 WHERE seq = ?1",
            values,
        )?;
    }
    Ok(())
}

/// Deletes approvals that ended before that moment.
pub(crate) fn forget(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    execute(conn, OVER, (before_us, limit))
}

/// Approvals, the newest first, without long arguments.
pub(crate) fn list(conn: &Connection, filter: &ApprovalFilter) -> Result<Page<ApprovalRow>, Error> {
    let limit = page_size(filter.limit);
    // One transaction, so that the places and their rows are of the same moment.
    let tx = conn.unchecked_transaction().map_err(Error::sqlite)?;
    let mut found = Vec::new();
    // Each project is walked from its newest: one walk over several would have to sort all they have.
    for project in each_project(filter.projects.as_deref()) {
        let (sql, values) = places(filter, project.as_ref(), limit);
        found.extend(all(&tx, &sql, params_from_iter(values), |row| row.get::<_, i64>(0))?);
    }
    found.sort_unstable_by_key(|seq| Reverse(*seq));
    let page = page(found, limit, |seq| *seq);
    let (mut items, mut bytes) = (Vec::new(), 0);
    let mut places = page.items.into_iter();
    for seq in places.by_ref() {
        let Some(row) = first(&tx, SLIM_BY_SEQ, [seq], read)? else { continue };
        bytes += row.argument_bytes();
        items.push(row);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    let cut = places.next().and(items.last()).map(|row| row.seq);
    Ok(Page { items, next: cut.or(page.next) })
}

/// The query for the places of one page, and one more.
fn places(filter: &ApprovalFilter, project: Option<&Arc<str>>, limit: u32) -> (String, Vec<Value>) {
    let mut conditions = Where::default();
    conditions.and("state = ?", filter.state.map(|state| state.as_str().to_owned()));
    conditions.and("project = ?", text(project));
    conditions.and("principal = ?", text(filter.principal.as_ref()));
    conditions.and("name = ?", text(filter.name.as_ref()));
    conditions.and("session = ?", filter.session.map(|id| id.as_bytes().to_vec()));
    conditions.and("call = ?", filter.call.map(|id| id.as_bytes().to_vec()));
    conditions.and("seq < ?", filter.cursor);
    let sql = format!(
        "SELECT seq FROM approvals WHERE true{} ORDER BY seq DESC LIMIT {}",
        conditions.sql,
        i64::from(limit) + 1
    );
    (sql, conditions.values)
}

fn encoded(decision: Option<&DecisionRow>) -> Result<Option<String>, Error> {
    decision.map(body::encode).transpose()
}

fn modified(row: &ApprovalRow) -> Option<&Arc<str>> {
    row.decision.as_ref().and_then(|decision| decision.modified_args.as_ref())
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    let bytes = |index| row.get::<_, Option<u32>>(index).map(|bytes| bytes.map(|bytes| bytes as usize));
    let asked = Asked { arguments: row.get(22)?, ..json(row, 21)? };
    let modified_args: Option<Arc<str>> = row.get(23)?;
    let decision: Option<DecisionRow> = optional_json(row, 18)?;
    Ok(ApprovalRow {
        seq: row.get(0)?,
        id: ApprovalId::from_bytes(row.get(1)?),
        call: CallId::from_bytes(row.get(2)?),
        session: SessionId::from_bytes(row.get(3)?),
        parent: row.get::<_, Option<[u8; 16]>>(4)?.map(CallId::from_bytes),
        project: row.get(5)?,
        principal: row.get(6)?,
        agent: row.get(7)?,
        name: row.get(8)?,
        dedup_key: Digest::from_bytes(row.get(9)?),
        state: word(row, 10, State::parse)?,
        node: NodeId::from_bytes(row.get(11)?),
        created_us: row.get(12)?,
        deadline_us: row.get(13)?,
        ended_us: row.get(14)?,
        collected: row.get(15)?,
        announced: Announced::from_number(row.get(16)?),
        attempts: row.get(17)?,
        decision: decision.map(|decision| DecisionRow { modified_args, ..decision }),
        message: row.get(19)?,
        supersedes: row.get::<_, Option<[u8; 16]>>(20)?.map(ApprovalId::from_bytes),
        asked,
        omitted: Omitted { arguments: bytes(24)?, modified_args: bytes(25)? },
    })
}

#[cfg(test)]
mod tests;
