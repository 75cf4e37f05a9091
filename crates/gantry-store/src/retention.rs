//! Kept for a while and then deleted: idempotency keys, the results of calls, and approvals, grants and keys that are over.

use crate::error::Error;
use crate::ledger::Outcome;
use crate::options::{MASK_STEP, OVER_KEPT, PRUNE_STEP, REMEMBERED, RESULT_MAX, UNMASKED_FOR};
use crate::sql::{Connection, statements, values};
use crate::{approvals, grants, keys};
use gantry_core::id::CallId;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

statements! {
    KEEP_RESULT = "INSERT INTO results (call, at, result) VALUES ($1, $2, $3)
         ON CONFLICT (call) DO UPDATE SET at = excluded.at, result = excluded.result";
    PRUNE_RESULTS = "DELETE FROM results WHERE call IN (SELECT call FROM results WHERE at < $1 LIMIT $2)";
    /// The key of a call that still runs or waits stays.
    PRUNE_IDEMPOTENCY = "DELETE FROM idempotency WHERE call IN (SELECT call FROM idempotency
         WHERE at < $1 AND call NOT IN (SELECT call FROM open_calls)
         AND NOT EXISTS (SELECT 1 FROM approvals
             WHERE approvals.call = idempotency.call AND approvals.ended_us IS NULL) LIMIT $2)";
}

/// Keeps the result of a call, if it was given one.
pub(crate) fn keep_result(conn: &Connection, call: CallId, outcome: &Outcome) -> Result<(), Error> {
    let Some(result) = &outcome.result else { return Ok(()) };
    // The end of the call must be recorded in any case, so a result that is too long is left out and not refused.
    if result.len() > RESULT_MAX {
        tracing::warn!(%call, bytes = result.len(), limit = RESULT_MAX, "a result is too long to be kept");
        return Ok(());
    }
    conn.execute(KEEP_RESULT, values![call, now_us(), result]).map(|_| ())
}

/// Deletes old rows, a bounded number at a time.
pub(crate) fn prune(conn: &Connection) -> Result<(), Error> {
    let now = now_us();
    let remembered = before(now, REMEMBERED);
    conn.execute(PRUNE_IDEMPOTENCY, values![remembered, PRUNE_STEP])?;
    conn.execute(PRUNE_RESULTS, values![remembered, PRUNE_STEP])?;
    approvals::mask(conn, before(now, UNMASKED_FOR), MASK_STEP)?;
    let kept = before(now, OVER_KEPT);
    approvals::prune(conn, kept, PRUNE_STEP)?;
    grants::prune(conn, kept, PRUNE_STEP)?;
    keys::prune(conn, kept)
}

/// The moment that long before another one.
pub(crate) fn before(at_us: i64, time: Duration) -> i64 {
    at_us.saturating_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX))
}

pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
