//! When messages that a webhook has not taken are tried again, and which of its failures are logged.

use gantry_core::id::ApprovalId;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// How long after a message is tried again, and how long after all further tries.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Messages whose next try is remembered. While there are so many, no others are tried.
const LIMIT: usize = 10_000;

/// Failures that are told apart in the log, until the webhook takes something again.
const LOGGED: usize = 16;

/// What one webhook has not taken. Each message has its own pauses, so that one which is never taken holds up no other.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// When each is tried next, and how often it was tried.
    waiting: HashMap<ApprovalId, (Instant, u32)>,
    /// The failures that were logged since the webhook took something.
    logged: BTreeSet<String>,
}

impl Retries {
    /// How often a message was tried before, if it may be sent now.
    pub(super) fn begin(&mut self, id: ApprovalId, now: Instant) -> Option<u32> {
        match self.waiting.get(&id) {
            Some((at, _)) if *at > now => None,
            Some(_) => self.waiting.remove(&id).map(|(_, tries)| tries),
            None => (self.waiting.len() < LIMIT).then_some(0),
        }
    }

    /// When the next one is due. Called after all that is due was begun, so that what was not need not be sent any more.
    pub(super) fn next(&mut self, now: Instant) -> Option<Instant> {
        self.waiting.retain(|_, (at, _)| *at > now);
        self.waiting.values().map(|(at, _)| *at).min()
    }

    /// Notes a failure. Returns whether it is to be logged: it is one that was not, since something was taken.
    pub(super) fn failed(&mut self, id: ApprovalId, tries: u32, reason: &str, now: Instant) -> bool {
        let pause = usize::try_from(tries).ok().and_then(|n| PAUSES.get(n)).copied().unwrap_or(LONGEST_PAUSE);
        self.waiting.insert(id, (now + pause, tries.saturating_add(1)));
        self.logged.len() < LOGGED && self.logged.insert(reason.to_owned())
    }

    /// Notes that a message was taken. Returns whether failures were logged before.
    pub(super) fn recovered(&mut self) -> bool {
        !std::mem::take(&mut self.logged).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_tried_again_after_longer_and_longer_pauses_and_holds_up_no_other() {
        let (mut retries, mut now, id) = (Retries::default(), Instant::now(), ApprovalId::mint());
        for (tries, pause) in (0..).zip([1, 5, 30, 120, 600, 600]) {
            assert_eq!(retries.begin(id, now), Some(tries));
            retries.failed(id, tries, "a", now);
            let due = now + Duration::from_secs(pause);
            assert_eq!((retries.begin(id, now), retries.next(now)), (None, Some(due)));
            assert_eq!(retries.begin(ApprovalId::mint(), now), Some(0));
            now = due;
        }
        assert_eq!(retries.next(now), None, "it need not be sent any more");
        assert_eq!(retries.begin(id, now), Some(0));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let (mut retries, now, id) = (Retries::default(), Instant::now(), ApprovalId::mint());
        retries.failed(id, 0, "a", now);
        for _ in 1..LIMIT {
            retries.failed(ApprovalId::mint(), 0, "a", now);
        }
        assert_eq!(retries.begin(ApprovalId::mint(), now), None);
        assert_eq!(retries.begin(id, now + LONGEST_PAUSE), Some(1));
        assert_eq!(retries.begin(ApprovalId::mint(), now), Some(0));
    }

    #[test]
    fn a_failure_is_logged_once_until_something_is_taken() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        let failed = |retries: &mut Retries, reason: &str| retries.failed(ApprovalId::mint(), 0, reason, now);
        assert!(!retries.recovered());
        assert!(failed(&mut retries, "a") && !failed(&mut retries, "a") && failed(&mut retries, "b"));
        assert!(retries.recovered() && !retries.recovered());
        assert!(failed(&mut retries, "a"));
        let logged = (0..100).filter(|n| failed(&mut retries, &n.to_string())).count();
        assert_eq!(logged, LOGGED - 1);
    }
}
