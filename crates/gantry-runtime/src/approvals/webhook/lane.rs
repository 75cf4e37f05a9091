//! What one project's webhook has yet to be told, in which order, and when it is tried again.
//!
//! **Invariant:** of one approval, one message is under way at a time, and what happened first is told first.

use gantry_core::State;
use gantry_core::id::ApprovalId;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Messages to one webhook that are under way at once.
const AT_ONCE: usize = 8;

/// Requests that are remembered; others are found in the store when there is room.
const REQUESTS: usize = 10_000;

/// Decisions and ends that wait to be told; more are lost.
const NEWS: usize = 1000;

/// How often a decision or an end is tried.
const NEWS_TRIES: u32 = 5;

/// How long after a message is tried again, and how long after all further tries.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Failures that are told apart in the log, until the webhook takes something again.
const FAILURES: usize = 16;

/// What is to be told of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// That it waits for a person.
    Request,
    /// That it stands like this, or as the store says, since that moment.
    News { state: Option<State>, at_us: i64 },
}

/// One message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Errand {
    pub(super) id: ApprovalId,
    pub(super) about: About,
    /// How often it was tried before.
    pub(super) tries: u32,
}

/// How a message fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    /// The webhook has it.
    Taken,
    /// There is nothing to be told any more.
    Moot,
    /// It was not taken, for this reason.
    Failed(String),
}

/// What one webhook has yet to be told.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Requests by the time of their next try, with the number of tries.
    requests: BTreeMap<(Instant, ApprovalId), u32>,
    /// The approvals in `requests`, and those of them that are under way.
    requested: HashSet<ApprovalId>,
    /// Decisions and ends, the oldest first, each with the time of its next try.
    news: VecDeque<(Instant, Errand)>,
    /// The approvals of which a message is under way.
    flying: HashSet<ApprovalId>,
    /// The failures that were logged since the webhook took something.
    failures: BTreeSet<String>,
}

impl Lane {
    /// An approval waits for a person.
    pub(super) fn ask(&mut self, id: ApprovalId, now: Instant) {
        if self.requested.len() < REQUESTS && self.requested.insert(id) {
            self.requests.insert((now, id), 0);
        }
    }

    /// Something happened to an approval.
    pub(super) fn tell(&mut self, id: ApprovalId, state: Option<State>, at_us: i64, now: Instant) {
        if self.news.len() >= NEWS {
            tracing::warn!("the webhook is too far behind; it is not told what became of {id}");
            return;
        }
        self.news.push_back((now, Errand { id, about: About::News { state, at_us }, tries: 0 }));
    }

    /// The next message to send, if there is one and not too many are under way.
    pub(super) fn next(&mut self, now: Instant) -> Option<Errand> {
        if self.flying.len() >= AT_ONCE {
            return None;
        }
        let errand = self.next_request(now).or_else(|| self.next_news(now))?;
        self.flying.insert(errand.id);
        Some(errand)
    }

    fn next_request(&mut self, now: Instant) -> Option<Errand> {
        let (key, tries) = self.free_requests().next().filter(|((due, _), _)| *due <= now)?;
        self.requests.remove(&key);
        Some(Errand { id: key.1, about: About::Request, tries })
    }

    fn next_news(&mut self, now: Instant) -> Option<Errand> {
        let (place, _) = self.free_news().find(|(_, due)| *due <= now)?;
        self.news.remove(place).map(|(_, errand)| errand)
    }

    /// The requests that wait for nothing but their time, which is the earliest first.
    fn free_requests(&self) -> impl Iterator<Item = ((Instant, ApprovalId), u32)> {
        let all = self.requests.iter().map(|(key, tries)| (*key, *tries));
        all.filter(|((_, id), _)| !self.flying.contains(id))
    }

    /// The places of the news that wait for nothing but their time, and that time.
    fn free_news(&self) -> impl Iterator<Item = (usize, Instant)> {
        // What happened to an approval before comes first, also if that has to wait.
        let mut before = self.flying.clone();
        let all = self.news.iter().enumerate();
        all.filter(move |(_, (_, errand))| before.insert(errand.id)).map(|(place, (due, _))| (place, *due))
    }

    /// A message has fared like this.
    pub(super) fn landed(&mut self, errand: Errand, sent: &Sent, now: Instant) {
        self.flying.remove(&errand.id);
        let again = Errand { tries: errand.tries.saturating_add(1), ..errand };
        match (sent, errand.about) {
            (Sent::Taken | Sent::Moot, About::Request) => {
                self.requested.remove(&errand.id);
            }
            (Sent::Taken | Sent::Moot, About::News { .. }) => {}
            (Sent::Failed(_), About::Request) => {
                self.requests.insert((now + pause(errand.tries), errand.id), again.tries);
            }
            (Sent::Failed(_), About::News { .. }) if again.tries < NEWS_TRIES => {
                self.news.push_front((now + pause(errand.tries), again));
            }
            (Sent::Failed(_), About::News { .. }) => {
                tracing::warn!("the webhook was not told what became of {}", errand.id);
            }
        }
    }

    /// All requests are due now: something has changed that may help.
    pub(super) fn hurry(&mut self, now: Instant) {
        let requests = std::mem::take(&mut self.requests);
        self.requests = requests.into_keys().map(|(_, id)| ((now, id), 0)).collect();
        self.failures.clear();
    }

    /// Notes a failure. Returns whether it is to be logged: it is one that was not, since something was taken.
    pub(super) fn failed(&mut self, reason: &str) -> bool {
        self.failures.len() < FAILURES && self.failures.insert(reason.to_owned())
    }

    /// Notes that a message was taken. Returns whether others were not, just before.
    pub(super) fn recovered(&mut self) -> bool {
        !std::mem::take(&mut self.failures).is_empty()
    }

    /// When there is something to send, if nothing happens before.
    pub(super) fn wakes(&self) -> Option<Instant> {
        if self.flying.len() >= AT_ONCE {
            return None;
        }
        let request = self.free_requests().next().map(|((due, _), _)| due);
        self.free_news().map(|(_, due)| due).chain(request).min()
    }

    /// Whether there is nothing to be told.
    pub(super) fn is_idle(&self) -> bool {
        self.requested.is_empty() && self.news.is_empty() && self.flying.is_empty()
    }
}

/// How long to wait after so many tries and one more.
fn pause(tries: u32) -> Duration {
    usize::try_from(tries).ok().and_then(|n| PAUSES.get(n)).copied().unwrap_or(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn failed() -> Sent {
        Sent::Failed("it answered 500".into())
    }

    #[test]
    fn a_request_is_tried_ever_more_rarely_until_it_is_taken() {
        let (mut lane, start, id) = (Lane::default(), Instant::now(), ApprovalId::mint());
        lane.ask(id, start);
        lane.ask(id, start);
        let mut now = start;
        for (n, pause) in [1, 5, 30, 120, 600, 600, 600].into_iter().enumerate() {
            let errand = lane.next(now).unwrap();
            assert_eq!((errand.about, errand.tries as usize), (About::Request, n));
            assert_eq!((lane.next(now), lane.wakes()), (None, None));
            lane.ask(id, now);
            lane.landed(errand, &failed(), now);
            assert_eq!(lane.wakes(), Some(after(now, pause)));
            assert_eq!(lane.next(after(now, pause - 1)), None);
            now = after(now, pause);
        }
        let errand = lane.next(now).unwrap();
        lane.landed(errand, &failed(), now);
        assert!(lane.failed("a"));
        lane.hurry(now);
        assert!(lane.failed("a"), "it is told anew");
        let errand = lane.next(now).unwrap();
        assert_eq!(errand.tries, 0);
        lane.landed(errand, &Sent::Taken, now);
        assert!(lane.is_idle() && lane.wakes().is_none());
    }

    #[test]
    fn a_few_are_under_way_at_once_and_the_rest_waits() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        let ids: Vec<_> = (0..20).map(|_| ApprovalId::mint()).collect();
        ids.iter().for_each(|id| lane.ask(*id, now));
        let flying: Vec<_> = std::iter::from_fn(|| lane.next(now)).collect();
        assert_eq!(flying.iter().map(|errand| errand.id).collect::<Vec<_>>(), ids[..AT_ONCE]);
        assert_eq!(lane.wakes(), None);
        lane.landed(flying[0], &Sent::Moot, now);
        assert_eq!((lane.wakes(), lane.next(now).map(|errand| errand.id)), (Some(now), Some(ids[AT_ONCE])));
    }

    #[test]
    fn what_happened_first_is_told_first_and_then_given_up() {
        let (mut lane, start) = (Lane::default(), Instant::now());
        let (id, other) = (ApprovalId::mint(), ApprovalId::mint());
        lane.ask(id, start);
        let request = lane.next(start).unwrap();
        lane.tell(id, Some(State::ApprovedReady), 1, start);
        lane.tell(id, None, 2, start);
        lane.tell(other, Some(State::RejectedByUser), 3, start);
        // The request is under way: only what is about another approval goes.
        assert_eq!(lane.next(start).map(|errand| errand.id), Some(other));
        assert_eq!((lane.next(start), lane.wakes()), (None, None));
        lane.landed(request, &Sent::Taken, start);
        let mut now = start;
        for tries in 0..NEWS_TRIES {
            let errand = lane.next(now).unwrap();
            assert_eq!(
                (errand.about, errand.tries),
                (About::News { state: Some(State::ApprovedReady), at_us: 1 }, tries)
            );
            lane.landed(errand, &failed(), now);
            now = lane.wakes().unwrap();
        }
        assert_eq!(lane.next(now).map(|errand| errand.about), Some(About::News { state: None, at_us: 2 }));
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        for _ in 0..REQUESTS + 10 {
            lane.ask(ApprovalId::mint(), now);
        }
        for _ in 0..NEWS + 10 {
            lane.tell(ApprovalId::mint(), None, 0, now);
        }
        assert_eq!((lane.requests.len(), lane.news.len()), (REQUESTS, NEWS));
    }

    #[test]
    fn a_failure_is_logged_once_until_something_is_taken() {
        let mut lane = Lane::default();
        assert!(!lane.recovered());
        assert!(lane.failed("a") && !lane.failed("a") && lane.failed("b"));
        assert!(lane.recovered() && !lane.recovered());
        assert!(lane.failed("a"));
        let logged = (0..100).filter(|n| lane.failed(&n.to_string())).count();
        assert_eq!(logged, FAILURES - 1);
    }
}
