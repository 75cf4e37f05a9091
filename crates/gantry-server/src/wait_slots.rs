//! Limits long polls and event streams to 64 per principal, so that one process without a key cannot exhaust the connection
//! limit.

use crate::Identity;
use crate::error::ApiError;
use gantry_core::{ErrorCode, Role};
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const PER_PRINCIPAL: usize = 64;

/// The free slots of every principal that has taken some.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitSlots(Arc<Mutex<HashMap<Arc<str>, Arc<Semaphore>>>>);

/// A slot that is taken until this is dropped; `None` for those who are not limited.
pub(crate) type WaitSlot = Option<OwnedSemaphorePermit>;

impl WaitSlots {
    /// Takes a slot. Approvers and administrators are not limited.
    pub(crate) fn acquire(&self, who: &Identity) -> Result<WaitSlot, ApiError> {
        if who.role >= Role::Approver {
            return Ok(None);
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, free| free.available_permits() < PER_PRINCIPAL);
        let free =
            all.entry(Arc::clone(&who.principal)).or_insert_with(|| Semaphore::new(PER_PRINCIPAL).into());
        let permit = Arc::clone(free).try_acquire_owned().map_err(|_full| {
            let message = format!(
                "{PER_PRINCIPAL} requests of {} wait already; ask again when one has ended, or ask without waiting",
                who.principal
            );
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::QueueFull, message)
        })?;
        Ok(Some(permit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_so_many_slots_and_others_have_their_own() {
        let slots = WaitSlots::default();
        let local = Identity::local();
        let mut bot = Identity::local();
        bot.principal = "bot".into();
        let mut taken: Vec<WaitSlot> = (0..PER_PRINCIPAL).map(|_| slots.acquire(&local).unwrap()).collect();
        assert!(slots.acquire(&local).is_err());
        drop(slots.acquire(&bot).unwrap());
        drop(slots.acquire(&Identity::owner()).unwrap());
        taken.pop();
        taken.push(slots.acquire(&local).unwrap());
        assert!(slots.acquire(&local).is_err());
        drop((taken, slots.acquire(&bot).unwrap()));
        drop(slots.acquire(&bot).unwrap());
        assert_eq!(slots.0.lock().unwrap().len(), 1, "unused entries are removed");
    }
}
