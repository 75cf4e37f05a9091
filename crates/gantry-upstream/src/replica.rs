//! One replica of a server: its connection, and how it is doing.

use crate::capability_sessions::CapabilitySessions;
use crate::config::{Remote, ServerSettings, TransportConfig};
use crate::in_flight::InFlight;
use crate::listing::Listing;
use crate::process::{self, StdioProcess};
use gantry_core::Tool;
use gantry_egress::display_url;
use gantry_mcp::client::{Connection, Transport};
use gantry_provider::redact::Redactor;
use gantry_provider::{HealthStatus, ReplicaStatus, clock};
use std::sync::atomic::AtomicBool;
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
    /// Its process, if Gantry starts it.
    pub(super) process: Option<Arc<StdioProcess>>,
    /// Tells its task to reconnect.
    pub(super) restart: Notify,
    /// Sessions for clients that can do less.
    pub(super) capability_sessions: CapabilitySessions,
    /// Requests of clients that are under way there.
    pub(super) in_flight: Arc<InFlight>,
    /// Set by every message that comes from it.
    pub(super) heard: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// How a replica is doing.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// In one word.
    pub(super) health: HealthStatus,
    /// Whether it has been ready, or has failed, at least once.
    pub(super) tried: bool,
    /// When the health changed last.
    pub(super) since_us: i64,
    /// How long it took to answer last.
    pub(super) latency: Option<Duration>,
    /// The last failure.
    pub(super) last_error: Option<String>,
    /// When it is tried again.
    pub(super) retry_us: Option<i64>,
    /// What it listed last.
    pub(super) listing: Option<Arc<Listing>>,
    /// The number of its connection, in the order in which all connections became ready; none while there is none.
    pub(super) ready: Option<u64>,
    /// Kept beside the listing, so that both are read and replaced together.
    connection: Option<Arc<Connection>>,
}

impl Replica {
    pub(super) fn new(name: String, transport: Transport, process: Option<Arc<StdioProcess>>) -> Self {
        let state = State {
            health: HealthStatus::Yellow,
            tried: false,
            since_us: clock::now_us(),
            latency: None,
            last_error: None,
            retry_us: None,
            listing: None,
            ready: None,
            connection: None,
        };
        Self {
            name,
            transport,
            process,
            restart: Notify::new(),
            capability_sessions: CapabilitySessions::default(),
            in_flight: Arc::default(),
            heard: Arc::default(),
            state: Mutex::new(state),
        }
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
        self.locked().connection.clone()
    }

    /// Its connection and the number of it, while it has one, and has this tool as it was judged.
    pub(super) fn ready(&self, tool: Option<&Tool>) -> Option<(Arc<Connection>, u64)> {
        let state = self.locked();
        let connection = state.connection.clone().filter(|_| state.has(tool))?;
        Some((connection, state.ready?))
    }

    /// What it listed last.
    pub(super) fn listing(&self) -> Option<Arc<Listing>> {
        self.locked().listing.clone()
    }

    /// It is ready, with a connection of this number.
    pub(super) fn up(
        &self,
        connection: &Arc<Connection>,
        listing: Arc<Listing>,
        latency: Duration,
        number: u64,
    ) {
        let mut state = self.locked();
        state.set_health(HealthStatus::Green);
        (state.tried, state.retry_us, state.ready) = (true, None, Some(number));
        (state.latency, state.listing) = (Some(latency), Some(listing));
        state.connection = Some(Arc::clone(connection));
    }

    /// It is down, and tried again after a while.
    pub(super) fn down(&self, reason: String, retry: Duration) {
        self.capability_sessions.end();
        let mut state = self.locked();
        state.set_health(HealthStatus::Red);
        let retry = i64::try_from(retry.as_micros()).unwrap_or(i64::MAX);
        (state.tried, state.ready, state.connection) = (true, None, None);
        (state.last_error, state.retry_us) = (Some(reason), Some(clock::now_us().saturating_add(retry)));
    }

    /// It reconnects because a person asked for it.
    pub(super) fn restarting(&self) {
        self.capability_sessions.end();
        let mut state = self.locked();
        state.set_health(HealthStatus::Yellow);
        (state.ready, state.retry_us, state.connection) = (None, None, None);
    }

    /// The result of a health check.
    pub(super) fn checked(&self, health: HealthStatus, latency: Option<Duration>) {
        let mut state = self.locked();
        state.set_health(health);
        state.latency = latency.or(state.latency);
    }

    /// It has listed its tools again.
    pub(super) fn listed(&self, listing: Arc<Listing>) {
        self.locked().listing = Some(listing);
    }

    /// It counts as ready although it has no connection.
    #[cfg(test)]
    pub(super) fn pretend_ready(&self, number: u64) {
        self.locked().ready = Some(number);
    }

    /// What decides whether a request, or a call of this tool, goes to it or to another replica.
    pub(super) fn load(&self, tool: Option<&Tool>) -> Load {
        let in_flight = self.in_flight.count();
        let state = self.locked();
        Load { health: state.health, connected: state.connection.is_some() && state.has(tool), in_flight }
    }

    /// For `GET /api/v1/servers`.
    pub(super) fn status(&self) -> ReplicaStatus {
        let state = self.state();
        let (name, in_flight) = (self.name.clone(), self.in_flight.count());
        ReplicaStatus { name, health: state.health, in_flight, last_error: state.last_error }
    }
}

impl State {
    /// Whether a call of this tool would run what was judged.
    fn has(&self, tool: Option<&Tool>) -> bool {
        let listed = |tool: &Tool| self.listing.as_ref().is_some_and(|listing| listing.defines(tool));
        tool.is_none_or(listed)
    }

    fn set_health(&mut self, health: HealthStatus) {
        if self.health != health {
            (self.health, self.since_us) = (health, clock::now_us());
        }
    }
}

/// The n-th address without credentials; with its number where several look alike.
fn display_name(urls: &[String], n: usize) -> String {
    let name = urls.get(n).map(|url| display_url(url)).unwrap_or_default();
    let alike = urls.iter().filter(|url| display_url(url) == name).count() > 1;
    if alike { format!("{name} ({})", n + 1) } else { name }
}

/// One replica for each address, or for each process.
pub(super) fn replicas(
    settings: &ServerSettings,
    secrets: &Arc<Redactor>,
    tasks: &TaskTracker,
) -> Vec<Replica> {
    let each = |remote: &Remote, transport: fn(String, Vec<(String, String)>) -> Transport| {
        let replica = |(n, url): (usize, &String)| {
            Replica::new(display_name(&remote.urls, n), transport(url.clone(), remote.headers.clone()), None)
        };
        remote.urls.iter().enumerate().map(replica).collect()
    };
    match &settings.transport {
        TransportConfig::Stdio { command, args, env, cwd, replicas } => (1..=*replicas)
            .map(|n| {
                let (id, spec) = (Arc::clone(&settings.id), process::spec(command, args, env, cwd));
                let process = Arc::new(StdioProcess::new(id, spec, Arc::clone(secrets), tasks.clone()));
                let transport = Transport::Stdio(Arc::clone(&process) as _);
                Replica::new(n.to_string(), transport, Some(process))
            })
            .collect(),
        TransportConfig::Http(remote) => each(remote, |url, headers| Transport::Http { url, headers }),
        TransportConfig::Sse(remote) => each(remote, |url, headers| Transport::Sse { url, headers }),
        TransportConfig::WebSocket(remote) => {
            each(remote, |url, headers| Transport::WebSocket { url, headers })
        }
        TransportConfig::Tcp(addresses) => addresses
            .iter()
            .map(|address| Replica::new(address.clone(), Transport::Tcp { address: address.clone() }, None))
            .collect(),
    }
}

/// What decides between replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) health: HealthStatus,
    /// Whether it has a connection, and the tool that is to be called.
    pub(super) connected: bool,
    pub(super) in_flight: usize,
}

/// The least loaded healthy replica; of equals, they take turns.
pub(super) fn choose(loads: &[Load], turn: usize) -> Option<usize> {
    let usable =
        loads.iter().enumerate().filter(|(_, load)| load.connected && load.health != HealthStatus::Red);
    usable
        .min_by_key(|(n, load)| {
            (
                load.health != HealthStatus::Green,
                load.in_flight,
                (n + loads.len() - turn % loads.len()) % loads.len(),
            )
        })
        .map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(health: HealthStatus, connected: bool, in_flight: usize) -> Load {
        Load { health, connected, in_flight }
    }

    #[test]
    fn calls_go_to_the_least_loaded_healthy_replica() {
        use HealthStatus::{Green, Red, Yellow};
        let check = |loads: &[Load], expected| assert_eq!(choose(loads, 0), expected, "{loads:?}");
        check(&[load(Green, true, 3), load(Green, true, 1), load(Green, true, 2)], Some(1));
        check(&[load(Yellow, true, 0), load(Green, true, 9)], Some(1));
        check(&[load(Yellow, true, 0), load(Red, false, 0)], Some(0));
        check(&[load(Green, false, 0), load(Red, true, 0)], None);
        check(&[], None);
    }

    #[test]
    fn idle_replicas_take_turns() {
        let loads = [load(HealthStatus::Green, true, 0); 3];
        assert_eq!([0, 1, 2, 3].map(|turn| choose(&loads, turn)), [Some(0), Some(1), Some(2), Some(0)]);
    }
}
