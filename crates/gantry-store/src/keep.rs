//! What is kept for a while and then forgotten: idempotency keys and the results of calls.

use crate::error::Error;
use crate::ledger::execute;
use crate::options::{PRUNE_STEP, REMEMBERED, RESULT_MAX};
use crate::row::Outcome;
use gantry_core::id::CallId;
use rusqlite::Connection;
use std::time::{SystemTime, UNIX_EPOCH};

/// Keeps the result of a call, if it was given one.
pub(crate) fn result(conn: &Connection, call: CallId, outcome: &Outcome) -> Result<(), Error> {
    let Some(result) = &outcome.result else { return Ok(()) };
    // That the call ended must be recorded in any case, so a result that is too long is left out and not refused.
    if result.len() > RESULT_MAX {
        tracing::warn!(%call, bytes = result.len(), limit = RESULT_MAX, "a result is too long to be kept");
        return Ok(());
    }
    let insert = "INSERT OR REPLACE INTO results (call, at, result) VALUES (?1, ?2, ?3)";
    execute(conn, insert, (call.as_bytes(), now_us(), result))
}

/// Forgets keys and results that are old, a bounded number at a time. The key of a call that still runs stays.
pub(crate) fn forget(conn: &Connection) -> Result<(), Error> {
    let before = now_us().saturating_sub(i64::try_from(REMEMBERED.as_micros()).unwrap_or(i64::MAX));
    execute(
        conn,
        "DELETE FROM idempotency WHERE call IN (SELECT call FROM idempotency
         WHERE at < ?1 AND call NOT IN (SELECT call FROM open_calls) LIMIT ?2)",
        (before, PRUNE_STEP),
    )?;
    execute(
        conn,
        "DELETE FROM results WHERE call IN (SELECT call FROM results WHERE at < ?1 LIMIT ?2)",
        (before, PRUNE_STEP),
    )
}

/// The time, in microseconds of Unix time.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
