//! One replica of a server: its connection, and how it is doing.

use super::listing::Listing;
use super::narrow::Narrow;
use super::process::Program;
use crate::clock;
use crate::servers::{Light, Reach, Remote, ReplicaStatus, ServerSettings};
use arc_swap::ArcSwapOption;
use gantry_mcp::client::{Connection, Transport};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// One replica.
#[derive(Debug)]
pub(super) struct Replica {
    /// Its address, or its number.
    pub(super) name: String,
    /// The way to it.
    pub(super) transport: Transport,
    /// Its process, if it is one of ours.
    pub(super) program: Option<Arc<Program>>,
    /// Tells it to begin anew.
    pub(super) restart: Notify,
    /// Connections for clients that can do less.
    pub(super) narrow: Narrow,
    connection: ArcSwapOption<Connection>,
    state: Mutex<State>,
}

/// How a replica is doing.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// At a glance.
    pub(super) light: Light,
    /// Whether it has been ready, or has failed, at least once.
    pub(super) tried: bool,
    /// When the light changed last.
    pub(super) since_us: i64,
    /// How long it took to answer last.
    pub(super) latency: Option<Duration>,
    /// What went wrong last.
    pub(super) last_error: Option<String>,
    /// When it is tried again.
    pub(super) retry_us: Option<i64>,
    /// What it listed last.
    pub(super) listing: Option<Arc<Listing>>,
    /// When it became ready, counted over the replicas of a server; none while it is not.
    pub(super) ready: Option<u64>,
}

impl Replica {
    pub(super) fn new(name: String, transport: Transport, program: Option<Arc<Program>>) -> Self {
        let state = State {
            light: Light::Yellow,
            tried: false,
            since_us: clock::now_us(),
            latency: None,
            last_error: None,
            retry_us: None,
            listing: None,
            ready: None,
        };
        let (restart, connection) = (Notify::new(), ArcSwapOption::empty());
        let narrow = Narrow::default();
        Self { name, transport, program, restart, narrow, connection, state: Mutex::new(state) }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is doing.
    pub(super) fn state(&self) -> State {
        self.locked().clone()
    }

    /// Its connection, while it has one.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.load_full()
    }

    /// It is ready, as the `order`th of its server.
    pub(super) fn up(
        &self,
        connection: &Arc<Connection>,
        listing: Arc<Listing>,
        latency: Duration,
        order: u64,
    ) {
        let mut state = self.locked();
        state.shine(Light::Green);
        (state.tried, state.retry_us, state.ready) = (true, None, Some(order));
        (state.latency, state.listing) = (Some(latency), Some(listing));
        drop(state);
        self.connection.store(Some(Arc::clone(connection)));
    }

    /// It is down, and tried again after a while.
    pub(super) fn down(&self, reason: String, retry: Duration) {
        self.connection.store(None);
        self.narrow.end();
        let mut state = self.locked();
        state.shine(Light::Red);
        let retry = i64::try_from(retry.as_micros()).unwrap_or(i64::MAX);
        (state.tried, state.ready) = (true, None);
        (state.last_error, state.retry_us) = (Some(reason), Some(clock::now_us().saturating_add(retry)));
    }

    /// It begins anew because somebody said so.
    pub(super) fn restarting(&self) {
        self.connection.store(None);
        self.narrow.end();
        let mut state = self.locked();
        state.shine(Light::Yellow);
        (state.ready, state.retry_us) = (None, None);
    }

    /// A health check came to this.
    pub(super) fn checked(&self, light: Light, latency: Option<Duration>) {
        let mut state = self.locked();
        state.shine(light);
        state.latency = latency.or(state.latency);
    }

    /// It has listed anew.
    pub(super) fn listed(&self, listing: Arc<Listing>) {
        self.locked().listing = Some(listing);
    }

    /// What is to be known to choose it or another.
    pub(super) fn load(&self) -> Load {
        let connection = self.connection.load();
        let in_flight = connection.as_ref().map_or(0, |connection| connection.in_flight());
        Load { light: self.locked().light, connected: connection.is_some(), in_flight }
    }

    /// Requests under way.
    fn in_flight(&self) -> usize {
        self.connection.load().as_ref().map_or(0, |connection| connection.in_flight())
    }

    /// For `GET /api/v1/servers`.
    pub(super) fn status(&self) -> ReplicaStatus {
        let state = self.state();
        let (name, in_flight) = (self.name.clone(), self.in_flight());
        ReplicaStatus { name, light: state.light, in_flight, last_error: state.last_error }
    }
}

impl State {
    fn shine(&mut self, light: Light) {
        if self.light != light {
            (self.light, self.since_us) = (light, clock::now_us());
        }
    }
}

/// A replica for every address, or for every process that is wanted.
pub(super) fn replicas(settings: &ServerSettings, tasks: &TaskTracker) -> Vec<Replica> {
    let each = |remote: &Remote, transport: fn(String, Vec<(String, String)>) -> Transport| {
        let replica =
            |url: &String| Replica::new(url.clone(), transport(url.clone(), remote.headers.clone()), None);
        remote.urls.iter().map(replica).collect()
    };
    match &settings.reach {
        Reach::Stdio { command, args, env, cwd, replicas } => (1..=*replicas)
            .map(|n| {
                let program =
                    Arc::new(Program::new(Arc::clone(&settings.id), command, args, env, cwd, tasks.clone()));
                let transport = Transport::Stdio(Arc::clone(&program) as _);
                Replica::new(n.to_string(), transport, Some(program))
            })
            .collect(),
        Reach::Http(remote) => each(remote, |url, headers| Transport::Http { url, headers }),
        Reach::Sse(remote) => each(remote, |url, headers| Transport::Sse { url, headers }),
        Reach::WebSocket(remote) => each(remote, |url, headers| Transport::WebSocket { url, headers }),
        Reach::Tcp(addresses) => addresses
            .iter()
            .map(|address| Replica::new(address.clone(), Transport::Tcp { address: address.clone() }, None))
            .collect(),
    }
}

/// What is known of a replica when one is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) light: Light,
    pub(super) connected: bool,
    pub(super) in_flight: usize,
}

/// The least loaded healthy replica; of equals, they take turns.
pub(super) fn choose(loads: &[Load], turn: usize) -> Option<usize> {
    let usable = loads.iter().enumerate().filter(|(_, load)| load.connected && load.light != Light::Red);
    usable
        .min_by_key(|(n, load)| {
            (load.light != Light::Green, load.in_flight, (n + loads.len() - turn % loads.len()) % loads.len())
        })
        .map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(light: Light, connected: bool, in_flight: usize) -> Load {
        Load { light, connected, in_flight }
    }

    #[test]
    fn calls_go_to_the_least_loaded_healthy_replica() {
        use Light::{Green, Red, Yellow};
        let check = |loads: &[Load], expected| assert_eq!(choose(loads, 0), expected, "{loads:?}");
        check(&[load(Green, true, 3), load(Green, true, 1), load(Green, true, 2)], Some(1));
        check(&[load(Yellow, true, 0), load(Green, true, 9)], Some(1));
        check(&[load(Yellow, true, 0), load(Red, false, 0)], Some(0));
        check(&[load(Green, false, 0), load(Red, true, 0)], None);
        check(&[], None);
    }

    #[test]
    fn idle_replicas_take_turns() {
        let loads = [load(Light::Green, true, 0); 3];
        assert_eq!([0, 1, 2, 3].map(|turn| choose(&loads, turn)), [Some(0), Some(1), Some(2), Some(0)]);
    }
}
