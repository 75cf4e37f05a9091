//! What is kept for a while and then forgotten: idempotency keys, the results of calls, and approvals, grants and
//! keys that are over.

use crate::error::Error;
use crate::ledger::execute;
use crate::options::{EXACT_FOR, MASK_STEP, OVER_KEPT, PRUNE_STEP, REMEMBERED, RESULT_MAX};
use crate::row::Outcome;
use crate::table::{approvals, grants, keys};
use gantry_core::id::CallId;
use rusqlite::Connection;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// Forgets what is old, a bounded number at a time. The key of a call that still runs or waits stays.
pub(crate) fn forget(conn: &Connection) -> Result<(), Error> {
    let now = now_us();
    let remembered = before(now, REMEMBERED);
    execute(
        conn,
        "DELETE FROM idempotency WHERE call IN (SELECT call FROM idempotency
         WHERE at < ?1 AND call NOT IN (SELECT call FROM open_calls)
         AND NOT EXISTS (SELECT 1 FROM approvals
             WHERE approvals.call = idempotency.call AND approvals.ended_us IS NULL) LIMIT ?2)",
        (remembered, PRUNE_STEP),
    )?;
    execute(
        conn,
        "DELETE FROM results WHERE call IN (SELECT call FROM results WHERE at < ?1 LIMIT ?2)",
        (remembered, PRUNE_STEP),
    )?;
    approvals::mask(conn, before(now, EXACT_FOR), MASK_STEP)?;
    let kept = before(now, OVER_KEPT);
    approvals::forget(conn, kept, PRUNE_STEP)?;
    grants::forget(conn, kept, PRUNE_STEP)?;
    keys::forget(conn, kept)
}

/// The moment that long before another one.
pub(crate) fn before(at_us: i64, time: Duration) -> i64 {
    at_us.saturating_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX))
}

/// The time, in microseconds of Unix time.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
