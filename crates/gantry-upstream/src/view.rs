//! The state of a server at one moment: the states of its replicas, and what follows from them.
//!
//! A view never changes. When the state of a replica does, `UpstreamServer::update` puts a new view in place of the old
//! one; so a request finds everything that it has to know with one load.

use crate::capability_sessions::CapabilitySessions;
use crate::health::InFlight;
use crate::listing::Listing;
use gantry_core::Tool;
use gantry_mcp::client::Connection;
use gantry_provider::{HealthStatus, clock};
use std::sync::Arc;
use std::time::Duration;

/// A replica that is tried again so soon is about to connect. Shorter than the backoff after a second failure.
pub(super) const AT_ONCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Ready {
    /// Its number, in the order in which the connections of all servers became ready.
    pub(super) number: u64,
    pub(super) connection: Arc<Connection>,
    /// Sessions with the same replica for clients that can do less.
    pub(super) sessions: CapabilitySessions,
}

#[derive(Debug, Clone)]
pub(super) struct ReplicaState {
    pub(super) health: HealthStatus,
    /// When the health changed last.
    pub(super) since_us: i64,
    /// How long the last answer took.
    pub(super) latency: Option<Duration>,
    /// The last failure; it stays when the replica is ready again.
    pub(super) last_error: Option<String>,
    pub(super) retry_us: Option<i64>,
    /// What it listed last; it stays while the replica is down.
    pub(super) listing: Option<Arc<Listing>>,
    pub(super) ready: Option<Arc<Ready>>,
    /// Requests of clients that are under way there.
    pub(super) in_flight: InFlight,
}

impl ReplicaState {
    fn new() -> Self {
        Self {
            health: HealthStatus::Yellow,
            since_us: clock::now_us(),
            latency: None,
            last_error: None,
            retry_us: None,
            listing: None,
            ready: None,
            in_flight: InFlight::default(),
        }
    }

    /// It has a connection and has listed what it has, which took this long.
    pub(super) fn up(&mut self, ready: Ready, listing: Listing, latency: Duration) {
        self.set_health(HealthStatus::Green, Some(latency));
        (self.ready, self.listing, self.retry_us) = (Some(Arc::new(ready)), Some(Arc::new(listing)), None);
    }

    /// It has no connection, and is tried again after a while.
    pub(super) fn down(&mut self, reason: String, retry: Duration) {
        self.set_health(HealthStatus::Red, None);
        let retry = i64::try_from(retry.as_micros()).unwrap_or(i64::MAX);
        self.retry_us = Some(clock::now_us().saturating_add(retry));
        (self.ready, self.last_error) = (None, Some(reason));
    }

    /// It reconnects because a person asked for it.
    pub(super) fn restarting(&mut self) {
        self.set_health(HealthStatus::Yellow, None);
        (self.ready, self.retry_us) = (None, None);
    }

    /// Sets the health, and how long the last answer took if there was one.
    pub(super) fn set_health(&mut self, health: HealthStatus, latency: Option<Duration>) {
        if self.health != health {
            (self.health, self.since_us) = (health, clock::now_us());
        }
        self.latency = latency.or(self.latency);
    }

    /// Its connection, if it has one and defines this tool as it was judged.
    pub(super) fn ready_for(&self, tool: Option<&Tool>) -> Option<&Arc<Ready>> {
        let defines = |tool: &Tool| self.listing.as_ref().is_some_and(|listing| listing.defines(tool));
        self.ready.as_ref().filter(|_| tool.is_none_or(defines))
    }
}

#[derive(Debug)]
pub(super) struct ServerView {
    /// The states of its replicas, in their order.
    pub(super) replicas: Vec<ReplicaState>,
    /// What the server has: the list of the replica that has been ready for longest. It stays while no replica is ready.
    pub(super) listing: Option<Arc<Listing>>,
}

impl ServerView {
    /// The view of a server with so many replicas that was not started yet.
    pub(super) fn new(replicas: usize) -> Self {
        Self { replicas: (0..replicas).map(|_| ReplicaState::new()).collect(), listing: None }
    }

    /// The view of these replicas. `before` is what the server had before.
    pub(super) fn aggregate(replicas: Vec<ReplicaState>, before: Option<Arc<Listing>>) -> Self {
        let ready = replicas.iter().filter_map(|state| Some((state.ready.as_ref()?.number, &state.listing)));
        let listing = ready.min_by_key(|(number, _)| *number).and_then(|(_, listing)| listing.clone());
        Self { listing: listing.or(before), replicas }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.replicas.iter().any(|state| state.ready.is_some())
    }

    /// Whether a replica connects now, or is about to because its connection has ended.
    pub(super) fn is_reconnecting(&self) -> bool {
        let soon = clock::now_us().saturating_add(i64::try_from(AT_ONCE.as_micros()).unwrap_or(i64::MAX));
        self.replicas.iter().any(|state| match &state.ready {
            Some(ready) => ready.connection.has_ended(),
            None => state.retry_us.is_none_or(|retry| retry <= soon),
        })
    }

    /// Whether the server was ready once, or every replica has failed once.
    pub(super) fn has_settled(&self) -> bool {
        self.listing.is_some() || self.replicas.iter().all(|state| state.last_error.is_some())
    }

    /// Whether the engine would find the same in another view: the same list, and the same answer to whether it has
    /// settled.
    pub(super) fn offers_the_same_as(&self, other: &Self) -> bool {
        let is_same_list = match (&self.listing, &other.listing) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.is_like(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_list && self.has_settled() == other.has_settled()
    }

    /// The replica that the next request, or the next call of this tool, goes to; none of those that were tried.
    pub(super) fn choose(&self, tried: &[usize], tool: Option<&Tool>, turn: usize) -> Option<usize> {
        let states = self.replicas.iter().enumerate();
        let usable = states.filter(|(n, state)| !tried.contains(n) && state.ready_for(tool).is_some());
        let loads = usable.map(|(n, state)| (n, state.health, state.in_flight.count()));
        least_loaded(loads, self.replicas.len(), turn)
    }
}

/// The least loaded healthy one of these replicas, given by number, health and requests under way; equals take turns.
fn least_loaded(
    loads: impl Iterator<Item = (usize, HealthStatus, usize)>,
    replicas: usize,
    turn: usize,
) -> Option<usize> {
    let rank = |(n, health, in_flight): &(usize, HealthStatus, usize)| {
        (*health != HealthStatus::Green, *in_flight, (n + replicas - turn % replicas) % replicas)
    };
    loads.min_by_key(rank).map(|(n, _, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use HealthStatus::{Green, Yellow};

    #[test]
    fn calls_go_to_the_least_loaded_healthy_replica() {
        let check = |loads: &[(usize, HealthStatus, usize)], expected| {
            assert_eq!(least_loaded(loads.iter().copied(), 3, 0), expected, "{loads:?}");
        };
        check(&[(0, Green, 3), (1, Green, 1), (2, Green, 2)], Some(1));
        check(&[(0, Yellow, 0), (2, Green, 9)], Some(2));
        check(&[(1, Yellow, 0)], Some(1));
        check(&[], None);
    }

    #[test]
    fn idle_replicas_take_turns() {
        let idle = || (0..3).map(|n| (n, Green, 0));
        assert_eq!(
            [0, 1, 2, 3].map(|turn| least_loaded(idle(), 3, turn)),
            [Some(0), Some(1), Some(2), Some(0)]
        );
    }
}
