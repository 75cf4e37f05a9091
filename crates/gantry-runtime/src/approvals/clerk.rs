//! The clerk: the one task of a process that looks after what waits. It runs what was approved or is due, and ends what
//! nobody decided in time.
//!
//! Everything it does is a step that the store allows once, so two clerks of two processes may look after the same rows.

use crate::clock;
use crate::projects::Projects;
use futures_util::future::join_all;
use gantry_core::State;
use gantry_store::ApprovalRow;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the clerk looks whether other processes have left something to do.
const LOOK: Duration = Duration::from_secs(1);

/// How soon it looks again at what is due and could not be begun.
const GLANCE: Duration = Duration::from_millis(250);

/// Rows that are taken care of at a time.
const BATCH: u32 = 256;

/// Looks after what waits until it is told to stop.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    loop {
        let Some(alive) = projects.upgrade() else { return };
        let approvals = Arc::clone(alive.commons().approvals());
        // Asked for before looking, so that what comes meanwhile wakes us.
        let work = approvals.work.notified();
        let pause = match alive.look_after().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!("calls that wait could not be looked after: {error}");
                LOOK
            }
        };
        drop(alive);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = work => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl Projects {
    /// Does what is due, and says when to look again.
    async fn look_after(self: &Arc<Self>) -> Result<Duration, gantry_store::Error> {
        let store = self.store().clone();
        loop {
            let mut expired = store.expired(clock::steady_us(), BATCH).await?;
            let found = expired.len();
            expired.retain(|row| self.commons().keeps_time_of(row));
            // At once, so that they share a commit.
            let ended = join_all(expired.iter().map(|row| async {
                // If somebody decided in the last moment, that stands. Either way the row may be long and is let go.
                self.commons().expire(row).await.map(drop)
            }));
            ended.await.into_iter().collect::<Result<(), _>>()?;
            if found < BATCH as usize || expired.is_empty() {
                break;
            }
        }
        // Those that were taken up stay due until they have begun, which must not hold up those behind them.
        let ahead = u32::try_from(self.commons().approvals().taken_up()).unwrap_or(u32::MAX);
        let due = store.due(clock::steady_us(), BATCH.saturating_add(ahead)).await?;
        let ready = due.into_iter().filter(|row| row.state != State::PendingApproval);
        ready.for_each(|row| self.take_up(row));
        let next = store.next_due().await?;
        let left = next.map(|at| at.saturating_sub(clock::steady_us()).max(0).unsigned_abs());
        // What another process holds, or what waits for its turn here, is due until it has begun; it is not ours to hurry.
        Ok(left.map_or(LOOK, |us| if us == 0 { GLANCE } else { Duration::from_micros(us).min(LOOK) }))
    }

    /// Runs a held call whose turn has come, if that is for this process to do.
    fn take_up(self: &Arc<Self>, row: ApprovalRow) {
        let commons = self.commons();
        let mine = row.node == commons.store.node();
        let orphan = || commons.approvals().is_adopting() && !commons.store.is_alive(row.node);
        if mine || orphan() {
            self.take_up_here(row);
        }
    }

    /// The row with its arguments, which a list leaves out where they are long.
    async fn whole(&self, row: ApprovalRow) -> Result<ApprovalRow, gantry_store::Error> {
        if row.is_whole() {
            return Ok(row);
        }
        let found = self.store().approval(row.id).await?;
        found.ok_or(gantry_store::Error::UnknownApproval { approval: row.id })
    }

    /// Runs a held call here. Nobody waits for that: its project may have to start first.
    pub(super) fn take_up_here(self: &Arc<Self>, row: ApprovalRow) {
        let Some(busy) = self.commons().approvals().begin(row.id) else { return };
        let projects = Arc::clone(self);
        tokio::spawn(async move {
            let row = match projects.whole(row).await {
                Ok(row) => row,
                Err(error) => {
                    busy.postpone();
                    return tracing::warn!("a call that is due could not be read: {error}");
                }
            };
            if let Err(refusal) = projects.resume(&row, busy).await {
                tracing::warn!("{} could not go on: {}", row.call, refusal.error().message);
            }
        });
    }
}
