//! Publishes changed rows to waiting callers: one task per process reads them from the store, whichever process has changed
//! them. A waiting caller reads nothing itself.

use super::Approvals;
use crate::projects::Projects;
use gantry_core::State;
use gantry_core::id::CallId;
use gantry_store::{ApprovalRow, Error, Store};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the store is asked whether another process has changed something, while callers wait.
const POLL: Duration = Duration::from_millis(500);

/// Publishes changed rows to the callers that wait for them, until Gantry stops.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    let approvals = projects.upgrade().map(|alive| Arc::clone(alive.services().approvals()));
    let Some(approvals) = approvals else { return };
    let mut every = tokio::time::interval(POLL);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The store's version when all rows were read last.
    let mut seen = None;
    loop {
        let is_tick = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = approvals.poll.notified() => false,
            _ = every.tick() => true,
        };
        let Some(alive) = projects.upgrade() else { return };
        let store = alive.store();
        if is_tick && let Err(error) = approvals.find_changed(store, &mut seen).await {
            tracing::warn!("whether held calls have changed could not be read: {error}");
        }
        let changed: Vec<_> = approvals.waiters().changed.drain().collect();
        for call in changed {
            match current(store, call).await {
                Ok(row) => row.into_iter().for_each(|row| approvals.publish(row)),
                Err(error) => {
                    tracing::warn!("{call}, which callers wait for, could not be read: {error}");
                    // Without waking: it is read again at the next tick.
                    approvals.waiters().changed.insert(call);
                }
            }
        }
    }
}

impl Approvals {
    /// Finds what other processes may have changed: everything if they have changed anything, and calls whose process died
    /// while it ran them.
    async fn find_changed(&self, store: &Store, seen: &mut Option<i64>) -> Result<(), Error> {
        let mut rows: Vec<_> =
            self.waiters().waiting.values().map(|waiting| Arc::clone(&waiting.row.borrow())).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let version = store.version().await?;
        let is_newer = seen.replace(version) != Some(version);
        rows.retain(|row| is_newer || is_abandoned(store, row));
        self.waiters().changed.extend(rows.iter().map(|row| row.call));
        Ok(())
    }

    /// Notifies the callers if the newest approval of their call is another one than they know of, or stands otherwise.
    fn publish(&self, row: ApprovalRow) {
        if let Some(waiting) = self.waiters().waiting.get(&row.call) {
            waiting.row.send_if_modified(|last| {
                let is_other = last.step < row.step || (last.step == row.step && last.state != row.state);
                if is_other {
                    *last = Arc::new(row);
                }
                is_other
            });
        }
    }
}

/// Whether the process that runs the call is gone.
fn is_abandoned(store: &Store, row: &ApprovalRow) -> bool {
    row.state == State::Executing && !store.is_alive(row.process)
}

/// The newest approval of a call as it is published to callers. How a call ended whose process is gone is unknown: the next start records that,
/// and callers need not wait for it.
async fn current(store: &Store, call: CallId) -> Result<Option<ApprovalRow>, Error> {
    match store.approval_of(call).await? {
        Some(row) if is_abandoned(store, &row) => unless_recorded(store, call).await,
        row => Ok(row),
    }
}

/// How a call ended whose process is gone. That process may have recorded it right before its end, so the row is read once
/// more.
pub(super) async fn unless_recorded(store: &Store, call: CallId) -> Result<Option<ApprovalRow>, Error> {
    let row = store.approval_of(call).await?;
    Ok(row.map(|row| {
        let state = if row.state == State::Executing { State::OutcomeUnknown } else { row.state };
        ApprovalRow { state, ..row }
    }))
}
