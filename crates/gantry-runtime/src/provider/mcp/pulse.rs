//! The light of a server by its answers to health checks.

use crate::servers::Light;
use std::time::Duration;

/// Checks in a row without an answer after which a connection is dropped.
const MISSES: u32 = 2;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// It was answered after this time.
    Answered(Duration),
    /// No answer came in time.
    Missed,
}

/// What the last checks came to.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    misses: u32,
}

impl Pulse {
    /// The light after one more check with this time limit.
    pub(super) fn after(&mut self, beat: Beat, limit: Duration) -> Light {
        match beat {
            Beat::Answered(time) => {
                self.misses = 0;
                if time > limit / 2 { Light::Yellow } else { Light::Green }
            }
            Beat::Missed => {
                self.misses += 1;
                if self.misses >= MISSES { Light::Red } else { Light::Yellow }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_miss_is_yellow_two_in_a_row_are_red_and_slowness_is_yellow() {
        let (mut pulse, limit) = (Pulse::default(), Duration::from_secs(5));
        let (quick, slow) =
            (Beat::Answered(limit / 10), Beat::Answered(limit / 2 + Duration::from_millis(1)));
        let lights = [quick, slow, quick, Beat::Missed, quick, Beat::Missed, Beat::Missed]
            .map(|beat| pulse.after(beat, limit));
        use Light::{Green, Red, Yellow};
        assert_eq!(lights, [Green, Yellow, Green, Yellow, Green, Yellow, Red]);
    }
}
