//! Long polls: requests that wait for a change of an approval, for a bounded time.

use super::query::Sender;
use crate::error::ApiError;
use crate::wait_slots::WaitSlot;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often changes of other processes are looked for, which this one is not notified of.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A request that may wait.
pub(super) struct LongPoll<'a> {
    sender: &'a Sender,
    until: Instant,
    /// Acquired when it begins to wait.
    slot: Option<WaitSlot>,
    changes: watch::Receiver<u64>,
}

impl<'a> LongPoll<'a> {
    /// Waits for as many seconds as the request says, or not at all.
    pub(super) fn seconds(sender: &'a Sender, wait: Option<u64>) -> Result<Self, ApiError> {
        Self::new(sender, Duration::from_secs(wait.unwrap_or(0)), "wait is a number of seconds, up to 60")
    }

    /// The same in milliseconds.
    pub(super) fn millis(sender: &'a Sender, wait: u64) -> Result<Self, ApiError> {
        Self::new(sender, Duration::from_millis(wait), "waitMs is a number of milliseconds, up to 60000")
    }

    fn new(sender: &'a Sender, wait: Duration, limit: &str) -> Result<Self, ApiError> {
        if wait > MAX_WAIT {
            return Err(ApiError::invalid(limit));
        }
        let changes = sender.app.projects.services().approvals().changes();
        Ok(Self { sender, until: Instant::now() + wait, slot: None, changes })
    }

    /// To be called before reading: a change from now on ends the wait.
    pub(super) fn mark_seen(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Acquires a slot to wait in, unless it has one.
    ///
    /// # Errors
    /// Too many requests of this sender wait.
    pub(super) fn acquire_slot(&mut self) -> Result<(), ApiError> {
        if self.slot.is_none() {
            self.slot = Some(self.sender.app.slots.acquire(self.sender)?);
        }
        Ok(())
    }

    /// Waits for a change since [`Self::mark_seen`]. Returns false when the time is over.
    pub(super) async fn wait_for_change(&mut self) -> Result<bool, ApiError> {
        let (now, app) = (Instant::now(), &self.sender.app);
        if now >= self.until || app.stop.is_cancelled() {
            return Ok(false);
        }
        self.acquire_slot()?;
        let next = self.until.min(now + POLL_INTERVAL);
        tokio::select! {
            () = app.stop.cancelled() => return Ok(false),
            _ = self.changes.changed() => {}
            () = tokio::time::sleep_until(next) => {}
        }
        // The key may have expired or been revoked meanwhile.
        app.keys.check(self.sender.key).await?;
        Ok(true)
    }
}
