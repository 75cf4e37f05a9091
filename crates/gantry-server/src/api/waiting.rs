//! Requests that wait for something to change, for a bounded time.

use crate::error::ApiError;
use crate::places::Place;
use crate::{App, Identity};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a request may wait.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// How often it is looked whether another process has changed something, of which this one does not hear.
const LOOK: Duration = Duration::from_millis(500);

/// A request that waits.
pub(super) struct Waiting<'a> {
    app: &'a App,
    who: &'a Identity,
    until: Instant,
    /// Taken when it begins to wait.
    place: Option<Place>,
    changes: watch::Receiver<u64>,
}

impl<'a> Waiting<'a> {
    /// Waits for as many seconds as the request says, or not at all.
    pub(super) fn seconds(app: &'a App, who: &'a Identity, wait: Option<u64>) -> Result<Self, ApiError> {
        Self::new(app, who, Duration::from_secs(wait.unwrap_or(0)), "wait is a number of seconds, up to 60")
    }

    /// The same in milliseconds.
    pub(super) fn millis(app: &'a App, who: &'a Identity, wait: u64) -> Result<Self, ApiError> {
        let limit = "waitMs is a number of milliseconds, up to 60000";
        Self::new(app, who, Duration::from_millis(wait), limit)
    }

    fn new(app: &'a App, who: &'a Identity, wait: Duration, limit: &str) -> Result<Self, ApiError> {
        if wait > LONGEST {
            return Err(ApiError::invalid(limit));
        }
        let changes = app.projects.services().approvals().changes();
        Ok(Self { app, who, until: Instant::now() + wait, place: None, changes })
    }

    /// To be called before one looks: what changes from now on is worth another look.
    pub(super) fn look(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Takes a place to wait in, if that was not done yet.
    ///
    /// # Errors
    /// So many requests of this sender wait that this one may not.
    pub(super) fn sit_down(&mut self) -> Result<(), ApiError> {
        if self.place.is_none() {
            self.place = Some(self.app.places.take(self.who)?);
        }
        Ok(())
    }

    /// Waits for a change since the last look. Says whether it is worth another look, or the time is over.
    pub(super) async fn more(&mut self) -> Result<bool, ApiError> {
        let now = Instant::now();
        if now >= self.until || self.app.stop.is_cancelled() {
            return Ok(false);
        }
        self.sit_down()?;
        let next = self.until.min(now + LOOK);
        tokio::select! {
            () = self.app.stop.cancelled() => return Ok(false),
            _ = self.changes.changed() => {}
            () = tokio::time::sleep_until(next) => {}
        }
        // A key that is void meanwhile is not answered.
        self.app.keys.check(self.who.key).await?;
        Ok(true)
    }
}
