//! The clerk: the one task of a process that looks after what waits. It runs what was approved or is due, and ends what
//! nobody decided in time.
//!
//! Everything it does is a step that the store allows once, so two clerks of two processes may look after the same rows.

use crate::clock;
use crate::projects::Projects;
use futures_util::future::join_all;
use gantry_core::State;
use gantry_core::id::{ApprovalId, NodeId};
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
        self.end_with_keys().await;
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
        self.take_up_all().await?;
        let next = store.next_due().await?;
        let left = next.map(|at| at.saturating_sub(clock::steady_us()).max(0).unsigned_abs());
        // What another process holds, or what waits for its turn here, is due until it has begun; it is not ours to hurry.
        Ok(left.map_or(LOOK, |us| if us == 0 { GLANCE } else { Duration::from_micros(us).min(LOOK) }))
    }

    /// Runs the held calls whose turn has come and that are this process's to run: those that it holds, and what processes
    /// that are gone have left, where those are taken care of here.
    async fn take_up_all(self: &Arc<Self>) -> Result<(), gantry_store::Error> {
        let (store, approvals) = (self.store(), self.commons().approvals());
        approvals.tidy();
        let mut left = BATCH as usize;
        self.take_up_of(store.node(), &mut left).await?;
        if !approvals.is_adopting() {
            return Ok(());
        }
        for node in store.holders().await? {
            if !store.is_alive(node) {
                self.take_up_of(node, &mut left).await?;
            }
        }
        Ok(())
    }

    /// The same for those that one process holds, as many as are left to be taken up at a time.
    async fn take_up_of(self: &Arc<Self>, node: NodeId, left: &mut usize) -> Result<(), gantry_store::Error> {
        let mut after = None;
        // Those that were taken up, or put off, stay due until they have begun, which must not hold up those behind them.
        while *left > 0 {
            let page = self.store().ready(node, clock::steady_us(), after, BATCH).await?;
            for ready in &page {
                if *left > 0 && self.take_up(ready.id) {
                    *left -= 1;
                }
            }
            after = page.last().copied();
            if page.len() < BATCH as usize {
                break;
            }
        }
        Ok(())
    }

    /// Runs a held call here, unless it is run already or has been put off. Returns whether it is. Nobody waits for that:
    /// its project may have to start first.
    pub(super) fn take_up(self: &Arc<Self>, id: ApprovalId) -> bool {
        let Some(busy) = self.commons().approvals().begin(id) else { return false };
        let projects = Arc::clone(self);
        tokio::spawn(async move {
            let row = match projects.store().approval(id).await {
                Ok(Some(row)) if matches!(row.state, State::ApprovedReady | State::ScheduledForExecution) => {
                    row
                }
                // Somebody else was first with it.
                Ok(_) => return,
                Err(error) => {
                    busy.postpone();
                    return tracing::warn!("{id}, which is due, could not be read: {error}");
                }
            };
            if let Err(refusal) = projects.resume(&row, busy).await {
                tracing::warn!("{} could not go on: {}", row.call, refusal.error().message);
            }
        });
        true
    }
}
