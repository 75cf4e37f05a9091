//! How long to wait before a server is tried again: briefly at first, forever, and never all servers at once.

use std::time::Duration;
use uuid::Uuid;

/// The waits in seconds; the last one is repeated for as long as it takes.
const WAITS: [u64; 7] = [0, 1, 2, 5, 10, 30, 60];

/// Waits are lengthened by up to this part of themselves, so that servers that failed together do not return together.
const JITTER_PERCENT: u64 = 20;

/// How many waits a server has had.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: usize,
}

impl Backoff {
    /// The wait after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let seconds = WAITS.get(self.failures).or(WAITS.last()).copied().unwrap_or_default();
        self.failures = self.failures.saturating_add(1);
        let span = seconds * 1000 * JITTER_PERCENT / 100;
        let jitter = u64::from(Uuid::new_v4().as_fields().0) % (span + 1);
        Duration::from_millis(seconds * 1000 + jitter)
    }

    /// Starts again with the shortest wait.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_jitter_never_end_and_begin_anew() {
        let mut backoff = Backoff::default();
        for seconds in [0, 1, 2, 5, 10, 30, 60, 60, 60] {
            let wait = backoff.next();
            let (least, most) = (Duration::from_secs(seconds), Duration::from_millis(seconds * 1200));
            assert!((least..=most).contains(&wait), "{wait:?} after {seconds} s");
        }
        backoff.reset();
        assert_eq!(backoff.next(), Duration::ZERO);
    }
}
