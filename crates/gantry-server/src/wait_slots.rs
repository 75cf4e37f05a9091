//! WaitSlots for those who stay: requests that wait, and streams of events. One sender has so many of them and no more, so that
//! one process without a key cannot acquire the connections of everybody.

use crate::Identity;
use crate::error::ApiError;
use gantry_core::{ErrorCode, Role};
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// WaitSlots of one principal.
const PER_PRINCIPAL: usize = 64;

/// Who stays, and how often.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitSlots(Arc<Mutex<HashMap<Arc<str>, usize>>>);

impl WaitSlots {
    /// A place until it is dropped. Those who decide and those who administer always have one.
    pub(crate) fn acquire(&self, who: &Identity) -> Result<WaitSlot, ApiError> {
        if who.role >= Role::Approver {
            return Ok(WaitSlot(None));
        }
        let mut taken = self.lock();
        let count = taken.entry(Arc::clone(&who.principal)).or_default();
        if *count >= PER_PRINCIPAL {
            let message = format!(
                "{PER_PRINCIPAL} requests of {} wait already; ask again when one has ended, or ask without waiting",
                who.principal
            );
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::QueueFull, message));
        }
        *count += 1;
        Ok(WaitSlot(Some((self.clone(), Arc::clone(&who.principal)))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken.
#[derive(Debug)]
pub(crate) struct WaitSlot(Option<(WaitSlots, Arc<str>)>);

impl Drop for WaitSlot {
    fn drop(&mut self) {
        let Some((slots, principal)) = &self.0 else { return };
        let mut taken = slots.lock();
        let left = taken.get_mut(principal).map_or(0, |count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == 0 {
            taken.remove(principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_has_so_many_places_and_others_have_their_own() {
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
        drop(taken);
        assert!(slots.lock().is_empty(), "nothing is kept of those who are gone");
    }
}
