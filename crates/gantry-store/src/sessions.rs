//! Sessions: one run of an agent, or one connected client.

use crate::error::Error;
use crate::ledger::Ledger;
use crate::sql::{
    Connection, Query, Record as _, list, names, placeholders, record, single, statements, values,
};
use crate::writer::{Message, Record};
use crate::{Page, Store, page_size};
use gantry_core::id::{CallId, SessionId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The columns of a new session, in the order in which they are written and read.
macro_rules! columns {
    ($as:ident) => {
        $as!(id, project, principal, agent, door, parent, started_us, last_us, ended_us)
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT ", columns!(names),
            ", calls, failed, refused, unknown, latency_us, characters_in, characters_out, cost_micros FROM sessions ",
            $rest
        )
    };
}

statements! {
    INSERT = concat!("INSERT INTO sessions (", columns!(names), ") VALUES (", columns!(placeholders),
        ") ON CONFLICT (id) DO NOTHING");
    END = "UPDATE sessions SET ended_us = $1 WHERE id = $2 AND ended_us IS NULL";
    END_OF_PRINCIPAL = "UPDATE sessions SET ended_us = $1 WHERE principal = $2 AND ended_us IS NULL";
    HAS_CALLED = "SELECT 1 FROM sessions WHERE principal = $1 LIMIT 1";
    BY_ID = select!("WHERE id = $1");
    RESUMABLE = select!("WHERE project = $1 AND principal = $2 AND agent IS NOT DISTINCT FROM $3 AND door = $4
         AND parent IS NULL AND ended_us IS NULL AND last_us >= $5 ORDER BY id DESC LIMIT 1");
}

list! {
    SESSIONS = select!("WHERE true"), "ORDER BY id DESC";
    OF_PROJECT = "project = $?";
    OF_PRINCIPAL = "principal = $?";
    OF_AGENT = "agent = $?";
    OF_PARENT = "parent = $?";
    BELOW = "parent IN (SELECT call FROM ledger WHERE session = $? AND step = 0)";
    BEFORE = "id < $?";
}

/// The caller of a session and its entry point: two connections with the same key are one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    #[serde(skip)]
    pub project: Arc<str>,
    #[serde(skip)]
    pub principal: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The entry point: `cli`, `http`, `mcp`.
    pub door: Cow<'static, str>,
}

record!(SessionKey: project, principal, agent, door);

/// One run of an agent, or one connected client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: SessionId,
    pub key: SessionKey,
    /// The call that started it, for the session of a sub-agent.
    pub parent: Option<CallId>,
    /// When it began, in microseconds of Unix time.
    pub started_us: i64,
    pub last_us: i64,
    pub ended_us: Option<i64>,
}

record!(SessionRow: id, key, parent, started_us, last_us, ended_us);

/// Sums over the calls of one session, without those of the sessions below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that ended or whose outcome is unknown.
    pub calls: u64,
    /// Those of them that did not end well: failed, refused or unknown.
    pub failed: u64,
    /// Those of them that were not run.
    pub refused: u64,
    /// Those of them that may or may not have had their effect.
    pub unknown: u64,
    pub latency_us: u64,
    /// Characters of the requests.
    pub characters_in: u64,
    /// Characters of the replies.
    pub characters_out: u64,
    /// Cost, in millionths of the currency.
    pub cost_micros: u64,
}

record!(Totals: calls, failed, refused, unknown, latency_us, characters_in, characters_out, cost_micros);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    pub session: SessionRow,
    pub totals: Totals,
}

record!(SessionSummary: session, totals);

/// Which sessions to list; a field that is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    pub project: Option<Arc<str>>,
    pub principal: Option<Arc<str>>,
    pub agent: Option<Arc<str>>,
    pub parent: Option<CallId>,
    /// Started by a call of this session.
    pub below: Option<SessionId>,
    /// After the page that gave this as `next`.
    pub cursor: Option<SessionId>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}

impl Store {
    /// Records that a session began; accepted like `record`.
    pub async fn open_session(&self, session: SessionRow) -> Result<(), Error> {
        self.send(Message::Record(Record::OpenSession(Box::new(session)))).await
    }

    /// Records that a session ended; accepted like `record`.
    pub async fn close_session(&self, id: SessionId, at_us: i64) -> Result<(), Error> {
        self.send(Message::Record(Record::CloseSession(id, at_us))).await
    }

    pub async fn session(&self, id: SessionId) -> Result<Option<SessionSummary>, Error> {
        self.read_own_writes(move |conn| conn.first(BY_ID, values![id], SessionSummary::read)).await
    }

    /// The sessions that pass the filter and their sums, the newest first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Page<SessionSummary, SessionId>, Error> {
        self.read_own_writes(move |conn| {
            let mut query = Query::new(SESSIONS);
            query.and(OF_PROJECT, &filter.project);
            query.and(OF_PRINCIPAL, &filter.principal);
            query.and(OF_AGENT, &filter.agent);
            query.and(OF_PARENT, &filter.parent);
            query.and(BELOW, &filter.below);
            query.and(BEFORE, &filter.cursor);
            let limit = page_size(filter.limit);
            let found = conn.list(query, limit + 1, SessionSummary::read)?;
            Ok(Page::cut(found, limit, |summary| summary.session.id))
        })
        .await
    }

    /// The newest session of that key which has not ended and was used since then.
    pub async fn resumable_session(
        &self,
        key: &SessionKey,
        since_us: i64,
    ) -> Result<Option<SessionRow>, Error> {
        let key = key.clone();
        self.read_own_writes(move |conn| {
            let values = values![key.project, key.principal, key.agent, key.door, since_us];
            Ok(conn.first(RESUMABLE, values, SessionSummary::read)?.map(|summary| summary.session))
        })
        .await
    }
}

impl Ledger<'_> {
    /// Records a session; one that is there already is left as it is.
    pub(crate) fn open_session(&mut self, session: &SessionRow) -> Result<(), Error> {
        self.conn.execute(INSERT, &session.values()).map(|_| ())
    }

    /// Records that a session ended; the first end counts.
    pub(crate) fn close_session(&mut self, id: SessionId, at: i64) -> Result<(), Error> {
        self.totals.touch(id, at);
        self.conn.execute(END, values![at, id]).map(|_| ())
    }
}

pub(crate) fn end_of_principal(conn: &Connection, principal: &str, at_us: i64) -> Result<(), Error> {
    conn.execute(END_OF_PRINCIPAL, values![at_us, principal]).map(|_| ())
}

pub(crate) fn has_called(conn: &Connection, principal: &str) -> Result<bool, Error> {
    conn.first(HAS_CALLED, values![principal], single::<i64>).map(|found| found.is_some())
}
