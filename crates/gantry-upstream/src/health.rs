//! The health of a replica, judged by its answers to pings.
//!
//! Many servers handle one request after the other, so a busy one may not answer a ping. A missed ping does not count
//! while a request is under way that began before the first miss: each request has its own time limit, and later ones
//! buy no more time. Any message from the server proves that it is there.

use crate::in_flight::InFlight;
use gantry_provider::HealthStatus;
use std::time::Duration;

/// Missed pings in a row, without any other message, after which a connection is dropped.
const MISSES: u32 = 2;

/// The outcome of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PingResult {
    /// It was answered after this time.
    Answered(Duration),
    /// No answer came in time, but another message did.
    Late,
    /// Nothing came.
    Missed,
}

/// The pings that were missed lately.
#[derive(Debug, Default)]
pub(super) struct HealthState {
    misses: u32,
    /// Requests with a lower number were under way when the first ping was missed.
    busy_with: Option<u64>,
}

impl HealthState {
    /// Whether the last ping was missed.
    pub(super) fn has_missed(&self) -> bool {
        self.busy_with.is_some()
    }

    /// The health after one more ping with this time limit.
    pub(super) fn record(&mut self, result: PingResult, limit: Duration, work: &InFlight) -> HealthStatus {
        match result {
            PingResult::Answered(time) => {
                *self = Self::default();
                if time > limit / 2 { HealthStatus::Yellow } else { HealthStatus::Green }
            }
            PingResult::Late => {
                *self = Self::default();
                HealthStatus::Yellow
            }
            PingResult::Missed => {
                let first_miss = *self.busy_with.get_or_insert_with(|| work.next());
                if !work.has_older_than(first_miss) {
                    self.misses += 1;
                }
                if self.misses >= MISSES { HealthStatus::Red } else { HealthStatus::Yellow }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HealthStatus::{Green, Red, Yellow};
    use super::*;
    use std::sync::Arc;

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn one_miss_is_yellow_two_in_a_row_are_red_and_slowness_is_yellow() {
        let (mut state, idle) = (HealthState::default(), InFlight::default());
        let (quick, slow) =
            (PingResult::Answered(LIMIT / 10), PingResult::Answered(LIMIT / 2 + Duration::from_millis(1)));
        let statuses =
            [quick, slow, quick, PingResult::Missed, quick, PingResult::Missed, PingResult::Missed]
                .map(|result| state.record(result, LIMIT, &idle));
        assert_eq!(statuses, [Green, Yellow, Green, Yellow, Green, Yellow, Red]);
    }

    #[test]
    fn a_server_that_says_something_is_there() {
        let (mut state, idle) = (HealthState::default(), InFlight::default());
        let results =
            [PingResult::Missed, PingResult::Late, PingResult::Missed, PingResult::Late, PingResult::Late];
        assert_eq!(results.map(|result| state.record(result, LIMIT, &idle)), [Yellow; 5]);
    }

    #[test]
    fn a_server_may_be_silent_while_it_works_on_what_it_had_and_no_longer() {
        let (mut state, work) = (HealthState::default(), Arc::new(InFlight::default()));
        let long = work.enter();
        let miss = |state: &mut HealthState| state.record(PingResult::Missed, LIMIT, &work);
        assert_eq!([(); 5].map(|()| miss(&mut state)), [Yellow; 5]);
        // A request that is sent to a server that hangs does not prolong its time.
        let _later = work.enter();
        assert_eq!(miss(&mut state), Yellow);
        drop(long);
        assert_eq!([(); 2].map(|()| miss(&mut state)), [Yellow, Red]);
    }
}
