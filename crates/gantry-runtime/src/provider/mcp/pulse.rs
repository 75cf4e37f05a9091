//! The light of a server by its answers to health checks.
//!
//! A server that works on something may have no time for a check: many do one thing after the other. So a check that was
//! missed says nothing while requests are under way that were so already when the first one was missed; each of them has
//! a time limit of its own, and requests that come later buy no more time. A server that says anything at all is there.

use super::flights::Flights;
use crate::servers::Light;
use std::time::Duration;

/// Checks in a row without an answer, or any other word, after which a connection is dropped.
const MISSES: u32 = 2;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// It was answered after this time.
    Answered(Duration),
    /// No answer came in time, but something else did.
    Late,
    /// Nothing came.
    Missed,
}

/// What the last checks came to.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    misses: u32,
    /// Requests before this number were under way when the first check was missed.
    busy_with: Option<u64>,
}

impl Pulse {
    /// Whether the last check was missed.
    pub(super) fn falters(&self) -> bool {
        self.busy_with.is_some()
    }

    /// The light after one more check with this time limit.
    pub(super) fn after(&mut self, beat: Beat, limit: Duration, work: &Flights) -> Light {
        match beat {
            Beat::Answered(time) => {
                *self = Self::default();
                if time > limit / 2 { Light::Yellow } else { Light::Green }
            }
            Beat::Late => {
                *self = Self::default();
                Light::Yellow
            }
            Beat::Missed => {
                let first_miss = *self.busy_with.get_or_insert_with(|| work.next());
                if !work.has_older_than(first_miss) {
                    self.misses += 1;
                }
                if self.misses >= MISSES { Light::Red } else { Light::Yellow }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Light::{Green, Red, Yellow};
    use super::*;
    use std::sync::Arc;

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn one_miss_is_yellow_two_in_a_row_are_red_and_slowness_is_yellow() {
        let (mut pulse, idle) = (Pulse::default(), Flights::default());
        let (quick, slow) =
            (Beat::Answered(LIMIT / 10), Beat::Answered(LIMIT / 2 + Duration::from_millis(1)));
        let lights = [quick, slow, quick, Beat::Missed, quick, Beat::Missed, Beat::Missed]
            .map(|beat| pulse.after(beat, LIMIT, &idle));
        assert_eq!(lights, [Green, Yellow, Green, Yellow, Green, Yellow, Red]);
    }

    #[test]
    fn a_server_that_says_something_is_there() {
        let (mut pulse, idle) = (Pulse::default(), Flights::default());
        let beats = [Beat::Missed, Beat::Late, Beat::Missed, Beat::Late, Beat::Late];
        assert_eq!(beats.map(|beat| pulse.after(beat, LIMIT, &idle)), [Yellow; 5]);
    }

    #[test]
    fn a_server_may_be_silent_while_it_works_on_what_it_had_and_no_longer() {
        let (mut pulse, work) = (Pulse::default(), Arc::new(Flights::default()));
        let long = work.begin();
        let miss = |pulse: &mut Pulse| pulse.after(Beat::Missed, LIMIT, &work);
        assert_eq!([(); 5].map(|()| miss(&mut pulse)), [Yellow; 5]);
        // What is sent to a server that hangs does not keep it alive.
        let _later = work.begin();
        assert_eq!(miss(&mut pulse), Yellow);
        drop(long);
        assert_eq!([(); 2].map(|()| miss(&mut pulse)), [Yellow, Red]);
    }
}
