//! Waits between attempts to connect: short at first, up to a minute later, without end, and never equal for all servers.

use std::time::Duration;
use uuid::Uuid;

/// The waits in seconds; the last one is repeated for as long as it takes.
const WAITS: [u64; 7] = [0, 1, 2, 5, 10, 30, 60];

/// Waits are lengthened by up to this part of themselves, so that servers that failed together do not return together.
const JITTER_PERCENT: u64 = 20;

/// The wait after one more failure, when there were so many in a row before.
pub(super) fn wait_after(failures: usize) -> Duration {
    let seconds = WAITS.get(failures).or(WAITS.last()).copied().unwrap_or_default();
    let span = seconds * 1000 * JITTER_PERCENT / 100;
    let jitter = u64::from(Uuid::new_v4().as_fields().0) % (span + 1);
    Duration::from_millis(seconds * 1000 + jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_jitter_and_never_end() {
        for (failures, seconds) in [0, 1, 2, 5, 10, 30, 60, 60, 60].into_iter().enumerate() {
            let wait = wait_after(failures);
            let (least, most) = (Duration::from_secs(seconds), Duration::from_millis(seconds * 1200));
            assert!((least..=most).contains(&wait), "{wait:?} after {seconds} s");
        }
    }
}
