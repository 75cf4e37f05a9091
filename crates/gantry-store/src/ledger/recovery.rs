//! Finds the calls of processes that have died and records of each that its outcome is unknown. Approvals that waited for a
//! decision below such a call are cancelled. Approved calls that had not started stay approved; the next server that claims
//! them runs them, or cancels them if their parent call is gone.
//!
//! Nothing here says whether a call should run again: a person decides that.

use super::{Author, CallRow, Ledger, calls};
use crate::approvals::{self, ApprovalRow};
use crate::error::Error;
use crate::membership::{self, ProcessLock};
use crate::retention;
use crate::sql::{Connection, statements};
use gantry_core::id::{CallId, ProcessId};
use std::collections::HashSet;
use std::path::Path;

statements! {
    OPEN_CALLS = "SELECT call, process FROM open_calls";
}

/// What was found when the store was opened.
#[derive(Debug)]
pub struct Recovery {
    /// Calls that were running in processes that have died; their outcome is unknown.
    pub unknown: Vec<CallRow>,
    /// Undecided approvals of calls below one that had been running in a process that has died; they are cancelled.
    pub orphaned: Vec<ApprovalRow>,
    /// How many processes had died, or had shut down while calls were running.
    pub dead_processes: usize,
}

/// Ends what dead processes left open. The calls of living ones are left alone.
pub(crate) fn recover(conn: &mut Connection, locks: &Path, author: Author) -> Result<Recovery, Error> {
    let dead = membership::dead(locks)?;
    // Before the transaction: the check may take long, and other processes should not have to wait for it.
    let is_abandoned = |(_, process): &(CallId, ProcessId)| !membership::has_lock_file(locks, *process);
    if !dead.is_empty() || open_calls(conn)?.iter().any(is_abandoned) {
        conn.quick_check()?;
    }

    // Order: the open calls are read inside the write transaction that ends them, so that of two processes that recover at
    // the same time one finds nothing left to do.
    let tx = conn.write()?;
    let mut gone: HashSet<ProcessId> = dead.iter().map(|lock: &ProcessLock| lock.process).collect();
    let mut ledger = Ledger::begin(&tx, author)?;
    let mut calls = Vec::new();
    for (call, process) in open_calls(&tx)? {
        // A process without a lock file has shut down while the call was still running.
        if gone.contains(&process) || !membership::has_lock_file(locks, process) {
            gone.insert(process);
            ledger.recover(call)?;
            calls.push(call);
        }
    }
    let recovered: HashSet<CallId> = calls.iter().copied().collect();
    let mut orphaned = Vec::new();
    for (approval, parent, holder) in approvals::orphans(&tx)? {
        let is_held = !gone.contains(&holder) && membership::has_lock_file(locks, holder);
        if recovered.contains(&parent) || !is_held {
            orphaned.push(ledger.cancel_orphan(approval)?);
        }
    }
    ledger.finish()?;
    retention::prune(&tx)?;
    let rows = calls.into_iter().map(|call| calls::call(&tx, call)).filter_map(Result::transpose);
    let unknown = rows.collect::<Result<_, _>>()?;
    tx.commit()?;
    Ok(Recovery { unknown, orphaned, dead_processes: gone.len() })
}

fn open_calls(conn: &Connection) -> Result<Vec<(CallId, ProcessId)>, Error> {
    conn.all(OPEN_CALLS, &[], |row| Ok((row.take()?, row.take()?)))
}
