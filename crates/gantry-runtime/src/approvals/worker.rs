//! The worker: the one task of a process that runs held calls that were approved or are due, and ends those that expired.
//!
//! Everything it does is a step that the store allows once, so the workers of two processes may meet at the same rows.

use crate::clock;
use crate::projects::Projects;
use futures_util::future::join_all;
use gantry_core::State;
use gantry_core::id::ApprovalId;
use gantry_provider::task;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the worker reads whether other processes have left something to do, and which keys have ended.
const POLL: Duration = Duration::from_secs(1);

/// How soon it looks again at what is due and could not be begun.
const SOON: Duration = Duration::from_millis(250);

/// Rows that are taken care of at a time.
const BATCH: u32 = 256;

/// Runs and ends held calls until Gantry stops.
pub(crate) async fn run(projects: Weak<Projects>, stop: CancellationToken) {
    let mut next_key_check = Instant::now();
    loop {
        let Some(alive) = projects.upgrade() else { return };
        let approvals = Arc::clone(alive.services().approvals());
        // Order: before the rows are read, so that what comes meanwhile wakes the worker.
        let work = approvals.work.notified();
        if next_key_check <= Instant::now() {
            next_key_check = Instant::now() + POLL;
            if let Err(error) = alive.end_with_keys().await {
                tracing::warn!("held calls of callers without a valid key could not be ended: {error}");
            }
        }
        let pause = match alive.run_due().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!("held calls that are due could not be run or ended: {error}");
                POLL
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
    /// Does what is due, and returns when to look again.
    async fn run_due(self: &Arc<Self>) -> Result<Duration, gantry_store::Error> {
        let store = self.store().clone();
        loop {
            let mut expired = store.expired(clock::steady_us(), BATCH).await?;
            let found = expired.len();
            expired.retain(|row| self.services().keeps_time_of(row));
            // At once, so that they share a commit.
            let ended = join_all(expired.iter().map(|row| async {
                // A decision in the last moment stands. Either way the row may be long and is let go.
                self.services().expire(row).await.map(drop)
            }));
            ended.await.into_iter().collect::<Result<(), _>>()?;
            if found < BATCH as usize || expired.is_empty() {
                break;
            }
        }
        self.resume_due().await?;
        let next = store.next_due().await?;
        let left = next.map(|at| at.saturating_sub(clock::steady_us()).max(0).unsigned_abs());
        // What another process holds, or what waits for its turn here, is due until it has begun; it is not ours to hurry.
        Ok(left.map_or(POLL, |us| if us == 0 { SOON } else { Duration::from_micros(us).min(POLL) }))
    }

    /// Runs the held calls whose turn has come and that are this process's to run: those that it holds, and what processes
    /// that are gone have left, where this one takes over from them.
    async fn resume_due(self: &Arc<Self>) -> Result<(), gantry_store::Error> {
        let store = self.store();
        let mut processes = vec![store.process()];
        if self.services().approvals().takes_over_orphans() {
            let holders = store.holders().await?;
            processes.extend(holders.into_iter().filter(|process| !store.is_alive(*process)));
        }
        let mut left = BATCH;
        for process in processes {
            // What was begun, or is tried again later, stays due for a while, and must not hold up what is behind it.
            let mut after = None;
            while left > 0 {
                let page = store.ready(process, clock::steady_us(), after, BATCH).await?;
                for ready in &page {
                    left -= u32::from(left > 0 && self.resume_now(ready.id));
                }
                after = page.last().copied();
                if page.len() < BATCH as usize {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs a held call in a task of its own, because its project may have to start first. Returns false if the call runs
    /// already or is to be tried again later.
    pub(super) fn resume_now(self: &Arc<Self>, id: ApprovalId) -> bool {
        let Some(running) = self.services().approvals().begin(id) else { return false };
        let projects = Arc::clone(self);
        task::spawn("run held call", async move {
            let row = match projects.store().approval(id).await {
                Ok(Some(row)) if matches!(row.state, State::ApprovedReady | State::ScheduledForExecution) => {
                    row
                }
                // Another process was first with it.
                Ok(_) => return,
                Err(error) => {
                    running.retry_later();
                    return tracing::warn!("{id}, which is due, could not be read: {error}");
                }
            };
            projects.resume(&row, running).await;
        });
        true
    }
}
