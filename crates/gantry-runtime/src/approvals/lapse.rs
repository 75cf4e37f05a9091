//! What ends with the key of a caller: its calls that wait, and what was granted to it or by it.
//!
//! A grant ends with a key by itself, and a call is held against the key of its caller when somebody decides about it and
//! again before it runs, so nothing depends on when this is noticed. That the lists say so as well is the clerk's to see
//! to. It also ends what was just being held when a key was revoked, and what another process held.

use super::Busy;
use crate::clock;
use crate::commons::Commons;
use crate::projects::Projects;
use gantry_store::{ApprovalRow, Error, Standing};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the clerk looks for keys that have ended.
const LOOK: Duration = Duration::from_secs(1);

/// Keys, and callers, that are taken care of at a look.
const BATCH: u32 = 64;

/// When the clerk has looked last.
#[derive(Debug, Default)]
pub(super) struct Looked(Mutex<Option<Instant>>);

impl Looked {
    /// Whether it is time to look, which is noted.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= LOOK);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Why a call of somebody may not run any more, if that is so.
fn ended(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::NoKey | Standing::Holds { .. } => None,
        Standing::Expired => Some("the key of its caller expired"),
        Standing::Revoked => Some("the key of its caller was revoked"),
    }
}

impl Commons {
    async fn has_ended(&self, principal: &Arc<str>) -> Result<Option<&'static str>, Error> {
        let standing = self.store.standing_of(Arc::clone(principal), clock::latest_us()).await?;
        Ok(ended(standing))
    }

    /// Ends every call of this principal that waits, if their key has ended. Returns how many did.
    ///
    /// # Errors
    /// The store failed; some may have ended.
    pub async fn withdraw_ended(&self, principal: &Arc<str>) -> Result<usize, Error> {
        match self.has_ended(principal).await? {
            Some(why) => self.withdraw_all(principal, why).await,
            None => Ok(0),
        }
    }

    /// Ends a call that waits, if the key of its caller has ended. Returns whether that is so.
    pub(crate) async fn ends_with_key(&self, row: &ApprovalRow) -> Result<bool, Error> {
        let Some(why) = self.has_ended(&row.principal).await? else { return Ok(false) };
        // If somebody else was first with it, it has ended as well.
        self.cancel_held(row, why).await?;
        Ok(true)
    }
}

impl Projects {
    /// Whether a held call may not go on because the key of its caller has ended; it has ended then, too. What cannot be
    /// looked up is tried again later.
    pub(super) async fn has_lost_its_caller(&self, row: &ApprovalRow, busy: &Busy) -> bool {
        match self.commons().ends_with_key(row).await {
            Ok(ended) => ended,
            Err(error) => {
                tracing::warn!("{} cannot go on: its caller could not be looked up: {error}", row.id);
                busy.postpone();
                true
            }
        }
    }

    /// Ends what has lost its key, now and then.
    pub(super) async fn end_with_keys(&self) {
        if !self.commons().approvals().looked_at_keys.is_due() {
            return;
        }
        if let Err(error) = self.look_at_keys().await {
            tracing::warn!("what belongs to keys that have ended could not be ended: {error}");
        }
    }

    async fn look_at_keys(&self) -> Result<(), Error> {
        let (store, now) = (self.store(), clock::latest_us());
        store.lapse(now, BATCH).await?;
        for principal in store.ended_callers(now, BATCH).await? {
            self.commons().withdraw_ended(&principal).await?;
        }
        Ok(())
    }
}
