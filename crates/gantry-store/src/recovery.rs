//! Finds the calls of processes that have died and says of each that its outcome is unknown. What waited for a
//! decision below such a call is cancelled. What was let through and had not begun is left as it is: whoever takes it up
//! runs it if it is a call of its own, and ends it if the call above it is gone.
//!
//! Never a word on whether they should run again: that is for a person to decide.

use crate::error::Error;
use crate::keep;
use crate::ledger::Ledger;
use crate::node::{self, NodeLock};
use crate::read;
use crate::row::Recovery;
use crate::schema::quick_check;
use crate::table::approvals;
use gantry_core::id::{CallId, NodeId};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::HashSet;
use std::path::Path;

/// Settles what dead processes left open. The calls of living ones are left alone.
pub(crate) fn recover(conn: &mut Connection, nodes: &Path, me: NodeId) -> Result<Recovery, Error> {
    let locks = node::dead(nodes)?;
    // Before the transaction: the check may take long, and others should not have to wait for it.
    if !locks.is_empty() || open_calls(conn)?.iter().any(|(_, node)| !node::is_claimed(nodes, *node)) {
        quick_check(conn)?;
    }

    // Order: the open calls are read inside the write transaction that settles them, so that of two processes
    // that recover at the same time one finds nothing left to do.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
    let mut gone: HashSet<NodeId> = locks.iter().map(|lock: &NodeLock| lock.node).collect();
    let mut ledger = Ledger::begin(&tx, me)?;
    let mut calls = Vec::new();
    for (call, node) in open_calls(&tx)? {
        // A node without a lock file has shut down while the call was still running.
        if gone.contains(&node) || !node::is_claimed(nodes, node) {
            gone.insert(node);
            ledger.recover(call)?;
            calls.push(call);
        }
    }
    let recovered: HashSet<CallId> = calls.iter().copied().collect();
    let mut orphaned = Vec::new();
    for (approval, parent, holder) in approvals::orphans(&tx)? {
        let is_held = !gone.contains(&holder) && node::is_claimed(nodes, holder);
        if recovered.contains(&parent) || !is_held {
            orphaned.push(ledger.orphan(approval)?);
        }
    }
    ledger.finish()?;
    keep::forget(&tx)?;
    let rows = calls.into_iter().map(|call| read::call(&tx, call)).filter_map(Result::transpose);
    let unknown = rows.collect::<Result<_, _>>()?;
    tx.commit().map_err(Error::sqlite)?;
    Ok(Recovery { unknown, orphaned, dead_nodes: gone.len() })
}

fn open_calls(conn: &Connection) -> Result<Vec<(CallId, NodeId)>, Error> {
    conn.prepare("SELECT call, node FROM open_calls")
        .and_then(|mut query| {
            query
                .query_map([], |row| Ok((CallId::from_bytes(row.get(0)?), NodeId::from_bytes(row.get(1)?))))?
                .collect()
        })
        .map_err(Error::sqlite)
}
