//! The table of approvals. Every query is answered by an index, however many calls wait.

use super::{ApprovalFilter, ApprovalRow, DecisionRow, Omitted, Ready, Unsent, WebhookSent};
use crate::error::Error;
use crate::ledger::masked;
use crate::options::{JOINED_FOR, PAGE_MAX};
use crate::retention;
use crate::sessions::SessionKey;
use crate::sql::{
    Connection, Query, Record as _, Row, list, names, placeholders, single, statements, values,
};
use crate::{Page, Store, count_changes, page_size};
use gantry_core::State;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, ProcessId};
use std::sync::Arc;

/// The columns of a row, in the order in which they are written and read; arguments are read after them.
macro_rules! columns {
    ($as:ident $(, $more:ident)*) => {
        $as!(id, call, step, session, parent, project, principal, agent, name, request_key, state, process, created_us,
            deadline_us, ended_us, delivered, webhook_messages_sent, attempts, decision, message, supersedes, asked
            $(, $more)*)
    };
}

/// Whole rows.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(names, arguments, modified), " FROM approvals ", $rest)
    };
}

/// Rows without arguments that have more than 2 KiB: SQLite reads only their length.
macro_rules! select_slim {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            columns!(names),
            ", CASE WHEN octet_length(arguments) > 2048 THEN '' ELSE arguments END,
             CASE WHEN octet_length(modified) > 2048 THEN NULL ELSE modified END,
             CASE WHEN octet_length(arguments) > 2048 THEN octet_length(arguments) END,
             CASE WHEN octet_length(modified) > 2048 THEN octet_length(modified) END FROM approvals ",
            $rest
        )
    };
}

statements! {
    INSERT = concat!("INSERT INTO approvals (", columns!(names, arguments, modified, due_us, unsent), ") VALUES (",
        columns!(placeholders, arguments, modified, due_us, unsent), ")");
    UPDATE = "UPDATE approvals SET state = $1, process = $2, deadline_us = $3, ended_us = $4, delivered = $5, attempts = $6,
         decision = $7, message = $8, modified = $9, due_us = $10, unsent = $11 WHERE id = $12";
    DELIVERED = "UPDATE approvals SET delivered = 1 WHERE id = $1 AND delivered = 0 AND ended_us IS NOT NULL";
    STATE = "SELECT state FROM approvals WHERE id = $1";
    /// What the webhook has taken is never undone.
    SENT = "UPDATE approvals SET webhook_messages_sent = $1, unsent = $2 WHERE id = $3 AND webhook_messages_sent < $1";
    BY_ID = select!("WHERE id = $1");
    OF_CALL = select!("WHERE call = $1 ORDER BY step DESC LIMIT 1");
    /// One that has not ended comes before those that have.
    SAME = select!("WHERE request_key = $1 AND delivered = 0 AND (ended_us IS NULL OR ended_us > $2)
         ORDER BY ended_us IS NOT NULL, id DESC LIMIT 1");
    READY = "SELECT id, due_us FROM approvals
         WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') AND process = $1
         AND due_us <= $2 AND (due_us, id) > ($3, $4) ORDER BY due_us, id LIMIT $5";
    HOLDERS = "SELECT DISTINCT process FROM approvals
         WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') ORDER BY process LIMIT $1";
    /// Approved ones are due at 0, and are not walked over.
    EXPIRED = select_slim!("WHERE due_us BETWEEN 1 AND $1 AND state = 'PENDING_APPROVAL' ORDER BY due_us LIMIT $2");
    /// One look into the index for each state.
    NEXT_DUE = "SELECT min(due_us) FROM (
         SELECT min(due_us) AS due_us FROM approvals WHERE state = 'PENDING_APPROVAL' AND due_us IS NOT NULL
         UNION ALL SELECT min(due_us) FROM approvals WHERE state = 'SCHEDULED_FOR_EXECUTION' AND due_us IS NOT NULL
         UNION ALL SELECT min(due_us) FROM approvals WHERE state = 'APPROVED_READY' AND due_us IS NOT NULL) AS due";
    UNSENT = "SELECT id, process FROM approvals WHERE unsent = 1 AND project = $1 AND id > $2 ORDER BY id LIMIT $3";
    WAITING_OF_CALLER = "SELECT count(*) FROM (SELECT 1 FROM approvals
         WHERE project = $1 AND principal = $2 AND agent IS NOT DISTINCT FROM $3
         AND state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') LIMIT $4) AS waiting";
    WAITING = "SELECT count(*) FROM (SELECT 1 FROM approvals
         WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') LIMIT $1) AS waiting";
    ORPHANS = "SELECT id, parent, process FROM approvals WHERE state = 'PENDING_APPROVAL' AND parent IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM open_calls WHERE open_calls.call = approvals.parent)";
    UNMASKED = "SELECT id FROM approvals WHERE args_unmasked = 1 AND ended_us < $1 LIMIT $2";
    MASK = "UPDATE approvals SET args_unmasked = 0, arguments = $1, modified = $2 WHERE id = $3";
    /// The ids are found in an index alone.
    ENDING = select_slim!("WHERE id IN (SELECT id FROM approvals WHERE substr(id, $1) = $2) ORDER BY id DESC LIMIT $3");
    PRUNE = "DELETE FROM approvals WHERE id IN
         (SELECT id FROM approvals WHERE args_unmasked = 0 AND ended_us < $1 LIMIT $2)";
}

// Ids first: those of several projects are sorted.
list! {
    APPROVALS = select_slim!("WHERE id IN (SELECT id FROM approvals WHERE true"), "ORDER BY id DESC", ") ORDER BY id DESC";
    IN_STATE = "state = $?";
    OF_PROJECTS = "project IN ($?)";
    OF_PRINCIPAL = "principal = $?";
    OF_NAME = "name = $?";
    IN_SESSION = "session = $?";
    ABOUT_CALL = "call = $?";
    BEFORE = "id < $?";
}

impl Store {
    /// The held call that is the same request as another and that a repetition would join, at that moment.
    pub async fn same_as(&self, request_key: Digest, now_us: i64) -> Result<Option<ApprovalRow>, Error> {
        self.read_committed(move |conn| same_as(conn, request_key, now_us)).await
    }

    /// Records that a caller was given the outcome of the call that this approval is about; durable when it returns.
    /// Returns whether this was the first time; before the end there is no outcome, and nothing is recorded.
    pub async fn mark_delivered(&self, id: ApprovalId) -> Result<bool, Error> {
        self.change(move |conn| conn.execute(DELIVERED, values![id]).map(|n_rows| n_rows > 0)).await
    }

    /// Records how many messages about an approval the webhook has taken; durable when it returns.
    pub async fn mark_sent(&self, id: ApprovalId, sent: WebhookSent) -> Result<(), Error> {
        self.change(move |conn| {
            let Some(state) = conn.first(STATE, values![id], single::<State>)? else { return Ok(()) };
            conn.execute(SENT, values![sent.as_number(), sent.is_unsent(state), id]).map(|_| ())
        })
        .await
    }

    pub async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        self.read_committed(move |conn| find(conn, id)).await
    }

    /// The approvals whose ids end with these bytes, the newest first; at most a thousand.
    pub async fn approvals_ending(&self, bytes: Vec<u8>) -> Result<Vec<ApprovalRow>, Error> {
        self.read_committed(move |conn| {
            let first = 17 - i64::try_from(bytes.len()).unwrap_or(17);
            conn.all(ENDING, values![first, *bytes, PAGE_MAX], read_slim)
        })
        .await
    }

    pub async fn approval_of(&self, call: CallId) -> Result<Option<ApprovalRow>, Error> {
        self.read_committed(move |conn| newest_of(conn, call)).await
    }

    /// The approvals that pass the filter, the newest first. Of arguments that have more than 2 KiB only the size is
    /// given.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Page<ApprovalRow, ApprovalId>, Error> {
        self.read_committed(move |conn| {
            let limit = page_size(filter.limit);
            Ok(Page::cut(conn.list(query(&filter), limit + 1, read_slim)?, limit, |row| row.id))
        })
        .await
    }

    /// The calls that a process holds and that may run at that moment: those that were approved, and then the scheduled
    /// ones, the longest due first. At most `limit`, up to 1000, of those after one that was found before.
    pub async fn ready(
        &self,
        process: ProcessId,
        now_us: i64,
        after: Option<Ready>,
        limit: u32,
    ) -> Result<Vec<Ready>, Error> {
        self.read_committed(move |conn| {
            let after = after.unwrap_or(Ready { id: first_id(), due_us: i64::MIN });
            let limit = limit.min(PAGE_MAX);
            conn.all(READY, values![process, now_us, after.due_us, after.id, limit], |row| {
                Ok(Ready { id: row.take()?, due_us: row.take()? })
            })
        })
        .await
    }

    /// The processes that hold calls that run now or at their time, alive or not; a thousand at most.
    pub async fn holders(&self) -> Result<Vec<ProcessId>, Error> {
        self.read_committed(|conn| conn.all(HOLDERS, values![PAGE_MAX], single)).await
    }

    /// Pending ones whose time was over at that moment, the longest first. At most `limit`, up to 1000, without long
    /// arguments.
    pub async fn expired(&self, now_us: i64, limit: u32) -> Result<Vec<ApprovalRow>, Error> {
        self.read_committed(move |conn| conn.all(EXPIRED, values![now_us, limit.min(PAGE_MAX)], read_slim))
            .await
    }

    /// When something is due next; 0 means at once, because it was approved.
    pub async fn next_due(&self) -> Result<Option<i64>, Error> {
        self.read_committed(|conn| conn.first(NEXT_DUE, &[], single).map(Option::flatten)).await
    }

    /// The approvals of a project about which its webhook has messages to take, the oldest first. At most `limit`, up to
    /// 1000, after one that was found before.
    pub async fn unsent(
        &self,
        project: Arc<str>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Unsent>, Error> {
        self.read_committed(move |conn| {
            let after = after.unwrap_or_else(first_id);
            conn.all(UNSENT, values![project, after, limit.min(PAGE_MAX)], |row| {
                Ok(Unsent { id: row.take()?, process: row.take()? })
            })
        })
        .await
    }

    /// A number that grows whenever any process has changed an approval, a grant or a key. Cheap enough to be polled.
    pub async fn version(&self) -> Result<i64, Error> {
        self.read_committed(count_changes).await
    }
}

/// An id before all others.
fn first_id() -> ApprovalId {
    ApprovalId::from_bytes([0; 16])
}

pub(crate) fn query(filter: &ApprovalFilter) -> Query<'_> {
    let mut query = Query::new(APPROVALS);
    query.and(IN_STATE, &filter.state);
    query.and_any(OF_PROJECTS, filter.projects.as_deref());
    query.and(OF_PRINCIPAL, &filter.principal);
    query.and(OF_NAME, &filter.name);
    query.and(IN_SESSION, &filter.session);
    query.and(ABOUT_CALL, &filter.call);
    query.and(BEFORE, &filter.cursor);
    query
}

pub(super) fn insert(conn: &Connection, row: &ApprovalRow) -> Result<(), Error> {
    let (modified, due_us, unsent) =
        (row.modified_args(), row.due_us(), row.webhook_sent.is_unsent(row.state));
    let mut values = row.values();
    values.extend_from_slice(values![row.details.arguments, modified, due_us, unsent]);
    conn.execute(INSERT, &values).map(|_| ())
}

/// Writes the columns that can change.
pub(super) fn update(conn: &Connection, row: &ApprovalRow) -> Result<(), Error> {
    conn.execute(
        UPDATE,
        values![
            row.state,
            row.process,
            row.deadline_us,
            row.ended_us,
            row.delivered,
            row.attempts,
            row.decision,
            row.message,
            row.modified_args(),
            row.due_us(),
            row.webhook_sent.is_unsent(row.state),
            row.id,
        ],
    )
    .map(|_| ())
}

pub(super) fn find(conn: &Connection, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
    conn.first(BY_ID, values![id], read)
}

pub(crate) fn newest_of(conn: &Connection, call: CallId) -> Result<Option<ApprovalRow>, Error> {
    conn.first(OF_CALL, values![call], read)
}

/// The approval of the same request that has not ended, or ended not long before that moment and was not delivered.
pub(super) fn same_as(
    conn: &Connection,
    request_key: Digest,
    now_us: i64,
) -> Result<Option<ApprovalRow>, Error> {
    conn.first(SAME, values![request_key, retention::before(now_us, JOINED_FOR)], read)
}

/// How many calls of a caller wait, counted up to the limit.
pub(super) fn waiting_of_caller(conn: &Connection, caller: &SessionKey, limit: u32) -> Result<u32, Error> {
    let values = values![caller.project, caller.principal, caller.agent, limit];
    conn.first(WAITING_OF_CALLER, values, single).map(Option::unwrap_or_default)
}

/// How many calls wait, counted up to the limit.
pub(super) fn waiting(conn: &Connection, limit: u32) -> Result<u32, Error> {
    conn.first(WAITING, values![limit], single).map(Option::unwrap_or_default)
}

/// Undecided ones whose parent call has no open intent: the approval, that call, and the process that holds it.
pub(crate) fn orphans(conn: &Connection) -> Result<Vec<(ApprovalId, CallId, ProcessId)>, Error> {
    conn.all(ORPHANS, &[], |row| Ok((row.take()?, row.take()?, row.take()?)))
}

/// Masks the secrets in the arguments of approvals that ended before that moment.
pub(crate) fn mask(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    // One at a time: arguments may be long.
    for id in conn.all(UNMASKED, values![before_us, limit], single)? {
        let Some(row) = find(conn, id)? else { continue };
        let arguments = masked(&row.details.arguments, usize::MAX);
        let modified = row.modified_args().map(|text| masked(text, usize::MAX));
        conn.execute(MASK, values![arguments, modified, id])?;
    }
    Ok(())
}

/// Deletes approvals that ended before that moment.
pub(crate) fn prune(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    conn.execute(PRUNE, values![before_us, limit]).map(|_| ())
}

fn read(row: &mut Row<'_>) -> Result<ApprovalRow, Error> {
    let mut found = ApprovalRow::read(row)?;
    found.details.arguments = row.take()?;
    let modified_args = row.take()?;
    found.decision = found.decision.map(|decision| DecisionRow { modified_args, ..decision });
    Ok(found)
}

fn read_slim(row: &mut Row<'_>) -> Result<ApprovalRow, Error> {
    let mut found = read(row)?;
    let mut bytes = || row.take::<Option<u32>>().map(|bytes| bytes.map(|bytes| bytes as usize));
    found.omitted = Omitted { arguments: bytes()?, modified_args: bytes()? };
    Ok(found)
}
