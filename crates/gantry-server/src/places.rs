//! Places for those who stay: requests that wait, and streams of events. One sender has so many of them and no more, so that
//! one process without a key cannot take the connections of everybody.

use crate::Identity;
use crate::error::ApiError;
use gantry_core::{ErrorCode, Role};
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of one principal.
const PER_PRINCIPAL: usize = 64;

/// Who stays, and how often.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<HashMap<Arc<str>, usize>>>);

impl Places {
    /// A place until it is dropped. Those who decide and those who administer always have one.
    pub(crate) fn take(&self, who: &Identity) -> Result<Place, ApiError> {
        if who.role >= Role::Approver {
            return Ok(Place(None));
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
        Ok(Place(Some((self.clone(), Arc::clone(&who.principal)))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken.
#[derive(Debug)]
pub(crate) struct Place(Option<(Places, Arc<str>)>);

impl Drop for Place {
    fn drop(&mut self) {
        let Some((places, principal)) = &self.0 else { return };
        let mut taken = places.lock();
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
        let places = Places::default();
        let local = Identity::local();
        let mut bot = Identity::local();
        bot.principal = "bot".into();
        let mut taken: Vec<Place> = (0..PER_PRINCIPAL).map(|_| places.take(&local).unwrap()).collect();
        assert!(places.take(&local).is_err());
        drop(places.take(&bot).unwrap());
        drop(places.take(&Identity::person()).unwrap());
        taken.pop();
        taken.push(places.take(&local).unwrap());
        assert!(places.take(&local).is_err());
        drop(taken);
        assert!(places.lock().is_empty(), "nothing is kept of those who are gone");
    }
}
