//! Puts a call together from its entries; used by queries and, inside its transaction, by the writer.

use crate::body::{self, DecisionBody, HeadBody, HeadColumns, OutcomeBody};
use crate::error::Error;
use crate::row::{CallRow, State};
use gantry_core::id::{CallId, NodeId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Row};

/// The kinds of ledger entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call waits for a person or for its time.
    Held,
    /// A call that waits was decided about, expired or was withdrawn.
    Decision,
    /// A decision about a call was turned away. The call stands as it stood.
    Refusal,
    /// A call is about to have an effect.
    Intent,
    /// A call without a durable intent, recorded after it ended.
    Whole,
    /// A call ended.
    Outcome,
    /// The process of a call ended first.
    Recovered,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Decision => "decision",
            Self::Refusal => "refusal",
            Self::Intent => "intent",
            Self::Whole => "whole",
            Self::Outcome => "outcome",
            Self::Recovered => "recovered",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        let all = [
            Self::Held,
            Self::Decision,
            Self::Refusal,
            Self::Intent,
            Self::Whole,
            Self::Outcome,
            Self::Recovered,
        ];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The call with that id, without its kept result.
pub(crate) fn call(conn: &Connection, id: CallId) -> Result<Option<CallRow>, Error> {
    let mut query = conn
        .prepare_cached(
            "SELECT seq, kind, node, at, project, session, principal, name, state, body
             FROM ledger WHERE call = ?1 ORDER BY seq",
        )
        .map_err(Error::sqlite)?;
    let mut rows = query.query([id.as_bytes()]).map_err(Error::sqlite)?;
    let mut call = None;
    while let Some(row) = rows.next().map_err(Error::sqlite)? {
        call = Some(fold(call, id, row)?);
    }
    Ok(call)
}

/// The call with that id, with its kept result.
pub(crate) fn call_with_result(conn: &Connection, id: CallId) -> Result<Option<CallRow>, Error> {
    let Some(mut call) = call(conn, id)? else { return Ok(None) };
    if let Some(outcome) = &mut call.outcome {
        outcome.result = conn
            .prepare_cached("SELECT result FROM results WHERE call = ?1")
            .and_then(|mut query| query.query_row([id.as_bytes()], |row| row.get(0)).optional())
            .map_err(Error::sqlite)?;
    }
    Ok(Some(call))
}

/// The call after one more of its entries.
fn fold(before: Option<CallRow>, id: CallId, row: &Row<'_>) -> Result<CallRow, Error> {
    let seq: i64 = row.get(0).map_err(Error::sqlite)?;
    let kind = word(row, 1, seq, Kind::parse)?;
    let state = word(row, 8, seq, State::parse)?;
    let node = NodeId::from_bytes(row.get(2).map_err(Error::sqlite)?);
    let body: String = row.get(9).map_err(Error::sqlite)?;
    match kind {
        Kind::Held | Kind::Intent | Kind::Whole => {
            let columns = head_columns(row, id, state).map_err(Error::sqlite)?;
            let (head, idempotency, outcome) = body::decode::<HeadBody<'_>>(&body, seq)?.into_parts(columns);
            let (seq, refused) = before.map_or((seq, Vec::new()), |call| (call.seq, call.refused));
            Ok(CallRow { seq, node, head, state, idempotency, outcome, refused })
        }
        Kind::Refusal => {
            let mut call = begun(before, seq)?;
            call.refused.push(body::decode(&body, seq)?);
            Ok(call)
        }
        Kind::Decision => {
            let outcome = body::decode::<DecisionBody<'_>>(&body, seq)?.into_outcome(state);
            Ok(CallRow { node, state, outcome, ..begun(before, seq)? })
        }
        Kind::Outcome | Kind::Recovered => {
            let outcome = Some(body::decode::<OutcomeBody<'_>>(&body, seq)?.into_outcome(state));
            Ok(CallRow { node, state, outcome, ..begun(before, seq)? })
        }
    }
}

fn begun(before: Option<CallRow>, seq: i64) -> Result<CallRow, Error> {
    before.ok_or_else(|| Error::corrupt(format!("ledger entry {seq} goes on with a call that never began")))
}

fn head_columns(row: &Row<'_>, id: CallId, state: State) -> rusqlite::Result<HeadColumns> {
    Ok(HeadColumns {
        id,
        at: row.get(3)?,
        project: row.get(4)?,
        session: SessionId::from_bytes(row.get(5)?),
        principal: row.get(6)?,
        name: row.get(7)?,
        state,
    })
}

/// The meaning of a column that holds a word of a closed set.
pub(crate) fn word<T>(
    row: &Row<'_>,
    index: usize,
    seq: i64,
    parse: fn(&str) -> Option<T>,
) -> Result<T, Error> {
    let text: String = row.get(index).map_err(Error::sqlite)?;
    parse(&text).ok_or_else(|| Error::corrupt(format!("ledger entry {seq} says \"{text}\"")))
}
