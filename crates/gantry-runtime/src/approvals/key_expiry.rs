//! What ends with the key of a caller: its held calls, and what was granted to it or by it.
//!
//! A grant ends with its key by itself, and the key of a caller is checked when an approver decides about its call and again
//! before the call runs, so nothing depends on when this is noticed. The worker sees to it that the lists say so as well. It
//! also ends calls that were just being held when a key was revoked, and those that another process held.

use crate::clock;
use crate::projects::Projects;
use crate::services::Services;
use gantry_store::{ApprovalFilter, ApprovalRow, Error, KeyStatus};
use std::sync::Arc;

/// Keys, and callers, that are taken care of at a time.
const BATCH: u32 = 64;

impl Services {
    /// Why the calls of this principal may not run any more, if their key has ended.
    async fn key_ended(&self, principal: &Arc<str>) -> Result<Option<&'static str>, Error> {
        let standing = self.store.key_status(Arc::clone(principal), clock::latest_us()).await?;
        Ok(match standing {
            KeyStatus::NoKey | KeyStatus::Valid { .. } => None,
            KeyStatus::Expired => Some("the key of its caller expired"),
            KeyStatus::Revoked => Some("the key of its caller was revoked"),
        })
    }

    /// Ends every held call of this principal, if their key has ended. Returns how many did. If it fails, some may have.
    pub async fn withdraw_ended(&self, principal: &Arc<str>) -> Result<usize, Error> {
        let Some(why) = self.key_ended(principal).await? else { return Ok(0) };
        let principal = Some(Arc::clone(principal));
        self.withdraw_where(ApprovalFilter { principal, ..ApprovalFilter::default() }, why).await
    }

    /// Ends a held call, if the key of its caller has ended. Returns whether that is so.
    pub(crate) async fn ends_with_key(&self, row: &ApprovalRow) -> Result<bool, Error> {
        let Some(why) = self.key_ended(&row.principal).await? else { return Ok(false) };
        // If another process was first with it, it has ended as well.
        self.cancel_held(row, why).await?;
        Ok(true)
    }
}

impl Projects {
    /// Ends what belongs to keys that have ended.
    pub(super) async fn end_with_keys(&self) -> Result<(), Error> {
        let (store, now) = (self.store(), clock::latest_us());
        store.expire_keys(now, BATCH).await?;
        for principal in store.callers_without_key(now, BATCH).await? {
            self.services().withdraw_ended(&principal).await?;
        }
        Ok(())
    }
}
