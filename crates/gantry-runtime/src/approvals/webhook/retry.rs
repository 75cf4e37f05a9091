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

/// Different failures that are logged until the webhook takes something again.
const LOGGED: usize = 16;

/// What one webhook has not taken. Each message has its own pauses, so that one which is never taken
/// holds up others for the time of its tries alone.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// When each is tried next, and how often it was tried.
    waiting: HashMap<ApprovalId, (Instant, usize)>,
    /// The failures that were logged since the webhook took something.
    logged: BTreeSet<String>,
}

impl Retries {
    /// Whether a message may be sent now.
    pub(super) fn is_due(&self, id: ApprovalId, now: Instant) -> bool {
        self.waiting.get(&id).map_or(self.waiting.len() < LIMIT, |(at, _)| *at <= now)
    }

    /// When the next one is due. Called when none is due now: what was to be tried by now need not be sent any more.
    pub(super) fn next(&mut self, now: Instant) -> Option<Instant> {
        self.waiting.retain(|_, (at, _)| *at > now);
        self.waiting.values().map(|(at, _)| *at).min()
    }

    /// Notes a failure. Returns whether it is to be logged: it is one that was not, since something was taken.
    pub(super) fn failed(&mut self, id: ApprovalId, reason: &str, now: Instant) -> bool {
        let (at, tries) = self.waiting.entry(id).or_insert((now, 0));
        *at = now + PAUSES.get(*tries).copied().unwrap_or(LONGEST_PAUSE);
        *tries += 1;
        self.logged.len() < LOGGED && self.logged.insert(reason.to_owned())
    }

    /// Notes that a message was taken. Returns whether failures were logged before.
    pub(super) fn taken(&mut self, id: ApprovalId) -> bool {
        self.waiting.remove(&id);
        !std::mem::take(&mut self.logged).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_tried_again_after_longer_and_longer_pauses_and_holds_up_no_other() {
        let (mut retries, mut now, id) = (Retries::default(), Instant::now(), ApprovalId::mint());
        for pause in [1, 5, 30, 120, 600, 600] {
            assert!(retries.is_due(id, now));
            retries.failed(id, "a", now);
            let due = now + Duration::from_secs(pause);
            assert_eq!((retries.is_due(id, now), retries.next(now)), (false, Some(due)));
            assert!(retries.is_due(ApprovalId::mint(), now));
            now = due;
        }
        assert_eq!(retries.next(now), None, "it need not be sent any more");
        assert!(retries.is_due(id, now));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let (mut retries, now, id) = (Retries::default(), Instant::now(), ApprovalId::mint());
        retries.failed(id, "a", now);
        for _ in 1..LIMIT {
            retries.failed(ApprovalId::mint(), "a", now);
        }
        assert!(!retries.is_due(ApprovalId::mint(), now));
        assert!(retries.is_due(id, now + LONGEST_PAUSE));
        retries.taken(id);
        assert!(retries.is_due(ApprovalId::mint(), now));
    }

    #[test]
    fn a_failure_is_logged_once_until_something_is_taken() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        let failed = |retries: &mut Retries, reason: &str| retries.failed(ApprovalId::mint(), reason, now);
        assert!(!retries.taken(ApprovalId::mint()));
        assert!(failed(&mut retries, "a") && !failed(&mut retries, "a") && failed(&mut retries, "b"));
        assert!(retries.taken(ApprovalId::mint()) && !retries.taken(ApprovalId::mint()));
        assert!(failed(&mut retries, "a"));
        let logged = (0..100).filter(|n| failed(&mut retries, &n.to_string())).count();
        assert_eq!(logged, LOGGED - 1);
    }
}
