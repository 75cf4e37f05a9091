//! The requests of clients that are under way at one replica, in the order in which they began.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests under way, by number. The engine limits how many there can be.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// One request under way, until it is dropped.
#[derive(Debug)]
pub(super) struct InFlightGuard {
    of: Arc<InFlight>,
    number: u64,
}

impl InFlight {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more request, until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> InFlightGuard {
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.numbers.insert(number);
        InFlightGuard { of: Arc::clone(self), number }
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.open().numbers.len()
    }

    /// The number that the next request gets.
    pub(super) fn next(&self) -> u64 {
        self.open().next
    }

    /// Whether a request with a lower number is still under way.
    pub(super) fn has_older_than(&self, number: u64) -> bool {
        self.open().numbers.first().is_some_and(|oldest| *oldest < number)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.of.open().numbers.remove(&self.number);
    }
}
