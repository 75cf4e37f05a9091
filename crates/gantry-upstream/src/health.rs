//! The health of a replica, judged by its answers to pings.
//!
//! Many servers handle one request after the other, so a busy one may not answer a ping. A missed ping does not count
//! while a request is under way that began before the first miss: each request has its own time limit, and later ones
//! buy no more time. Any message from the server proves that it is there.

use gantry_provider::HealthStatus;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Missed pings in a row, without any other message, after which a connection is dropped.
const MISSES: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PingResult {
    /// It was answered after this time.
    Answered(Duration),
    /// No answer came in time, but another message did.
    Late,
    /// Nothing came.
    Missed,
}

/// The requests of clients that are under way at a replica. Those that began before a ping was missed are counted apart
/// from later ones.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight {
    latest: TaskTracker,
    earlier: Vec<TaskTracker>,
}

impl InFlight {
    /// Counts one more request, until the token is dropped.
    pub(super) fn enter(&self) -> TaskTrackerToken {
        self.latest.token()
    }

    pub(super) fn count(&self) -> usize {
        self.earlier.iter().map(TaskTracker::len).sum::<usize>() + self.latest.len()
    }

    /// Counts requests from now on apart from those so far, and returns the latter.
    fn split(&mut self) -> Vec<TaskTracker> {
        // The latest group stays even if it is empty: a request may be about to enter it.
        self.earlier.retain(|group| !group.is_empty());
        self.earlier.push(std::mem::take(&mut self.latest));
        self.earlier.clone()
    }
}

/// The pings that were missed lately.
#[derive(Debug, Default)]
pub(super) struct HealthState {
    misses: u32,
    /// The requests that were under way when the first ping was missed.
    busy_with: Option<Vec<TaskTracker>>,
}

impl HealthState {
    pub(super) fn has_missed(&self) -> bool {
        self.busy_with.is_some()
    }

    /// The health after one more ping with this time limit.
    pub(super) fn record(
        &mut self,
        result: PingResult,
        limit: Duration,
        work: &mut InFlight,
    ) -> HealthStatus {
        if result == PingResult::Missed {
            let earlier = self.busy_with.get_or_insert_with(|| work.split());
            if earlier.iter().all(TaskTracker::is_empty) {
                self.misses += 1;
            }
            return if self.misses >= MISSES { HealthStatus::Red } else { HealthStatus::Yellow };
        }
        *self = Self::default();
        match result {
            PingResult::Answered(time) if time <= limit / 2 => HealthStatus::Green,
            PingResult::Answered(_) | PingResult::Late | PingResult::Missed => HealthStatus::Yellow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HealthStatus::{Green, Red, Yellow};
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn one_miss_is_yellow_two_in_a_row_are_red_and_slowness_is_yellow() {
        let (mut state, mut idle) = (HealthState::default(), InFlight::default());
        let (quick, slow) =
            (PingResult::Answered(LIMIT / 10), PingResult::Answered(LIMIT / 2 + Duration::from_millis(1)));
        let statuses =
            [quick, slow, quick, PingResult::Missed, quick, PingResult::Missed, PingResult::Missed]
                .map(|result| state.record(result, LIMIT, &mut idle));
        assert_eq!(statuses, [Green, Yellow, Green, Yellow, Green, Yellow, Red]);
    }

    #[test]
    fn a_server_that_says_something_is_there() {
        let (mut state, mut idle) = (HealthState::default(), InFlight::default());
        let results =
            [PingResult::Missed, PingResult::Late, PingResult::Missed, PingResult::Late, PingResult::Late];
        assert_eq!(results.map(|result| state.record(result, LIMIT, &mut idle)), [Yellow; 5]);
    }

    #[test]
    fn a_server_may_be_silent_while_it_works_on_what_it_had_and_no_longer() {
        let (mut state, mut work) = (HealthState::default(), InFlight::default());
        let long = work.enter();
        let miss =
            |state: &mut HealthState, work: &mut InFlight| state.record(PingResult::Missed, LIMIT, work);
        assert_eq!([(); 5].map(|()| miss(&mut state, &mut work)), [Yellow; 5]);
        // A server that answered in between may still work on it.
        assert_eq!(state.record(PingResult::Late, LIMIT, &mut work), Yellow);
        assert_eq!([(); 5].map(|()| miss(&mut state, &mut work)), [Yellow; 5]);
        // A request that is sent to a server that hangs does not prolong its time.
        let _later = work.enter();
        assert_eq!((miss(&mut state, &mut work), work.count()), (Yellow, 2));
        drop(long);
        assert_eq!([(); 2].map(|()| miss(&mut state, &mut work)), [Yellow, Red]);
        assert_eq!(work.count(), 1);
    }
}
