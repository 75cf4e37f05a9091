//! One replica of a server: its connection, and how it is doing.

use super::flights::Flights;
use super::listing::Listing;
use super::narrow::Narrow;
use super::process::{self, Program};
use crate::clock;
use crate::servers::{Light, Reach, Remote, ReplicaStatus, ServerSettings};
use gantry_core::Tool;
use gantry_mcp::client::{Connection, Transport};
use gantry_provider::redact::Redactor;
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
    /// Its process, if it is one of ours.
    pub(super) program: Option<Arc<Program>>,
    /// Tells it to begin anew.
    pub(super) restart: Notify,
    /// Connections for clients that can do less.
    pub(super) narrow: Narrow,
    /// What clients have under way there.
    pub(super) flights: Arc<Flights>,
    /// Set whenever it says something.
    pub(super) heard: Arc<AtomicBool>,
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
    /// The number of its connection, which counts all connections in the order in which they became ready; none while
    /// there is none.
    pub(super) ready: Option<u64>,
    /// Kept beside what it listed, so that nobody takes the one for a reason to use another of the other.
    connection: Option<Arc<Connection>>,
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
            connection: None,
        };
        Self {
            name,
            transport,
            program,
            restart: Notify::new(),
            narrow: Narrow::default(),
            flights: Arc::default(),
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
        state.shine(Light::Green);
        (state.tried, state.retry_us, state.ready) = (true, None, Some(number));
        (state.latency, state.listing) = (Some(latency), Some(listing));
        state.connection = Some(Arc::clone(connection));
    }

    /// It is down, and tried again after a while.
    pub(super) fn down(&self, reason: String, retry: Duration) {
        self.narrow.end();
        let mut state = self.locked();
        state.shine(Light::Red);
        let retry = i64::try_from(retry.as_micros()).unwrap_or(i64::MAX);
        (state.tried, state.ready, state.connection) = (true, None, None);
        (state.last_error, state.retry_us) = (Some(reason), Some(clock::now_us().saturating_add(retry)));
    }

    /// It begins anew because somebody said so.
    pub(super) fn restarting(&self) {
        self.narrow.end();
        let mut state = self.locked();
        state.shine(Light::Yellow);
        (state.ready, state.retry_us, state.connection) = (None, None, None);
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

    /// It counts as ready although it has no connection.
    #[cfg(test)]
    pub(super) fn pretend_ready(&self, number: u64) {
        self.locked().ready = Some(number);
    }

    /// What is to be known to choose it or another for a request, or for a call of this tool.
    pub(super) fn load(&self, tool: Option<&Tool>) -> Load {
        let in_flight = self.flights.count();
        let state = self.locked();
        Load { light: state.light, connected: state.connection.is_some() && state.has(tool), in_flight }
    }

    /// For `GET /api/v1/servers`.
    pub(super) fn status(&self) -> ReplicaStatus {
        let state = self.state();
        let (name, in_flight) = (self.name.clone(), self.flights.count());
        ReplicaStatus { name, light: state.light, in_flight, last_error: state.last_error }
    }
}

impl State {
    /// Whether a call of this tool would run what was judged.
    fn has(&self, tool: Option<&Tool>) -> bool {
        let listed = |tool: &Tool| self.listing.as_ref().is_some_and(|listing| listing.defines(tool));
        tool.is_none_or(listed)
    }

    fn shine(&mut self, light: Light) {
        if self.light != light {
            (self.light, self.since_us) = (light, clock::now_us());
        }
    }
}

/// What people see of the n-th address: no key that stands in its query; its number where several look alike then.
fn shown(urls: &[String], n: usize) -> String {
    let bare = |url: &String| {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let host = rest.split('/').next().unwrap_or_default();
        // A name and a password before the host are nobody's business either.
        let hidden = host.rsplit_once('@').map_or(0, |(secret, _)| secret.len() + 1);
        format!("{scheme}://{}", rest.get(hidden..).unwrap_or_default())
    };
    let name = urls.get(n).map(bare).unwrap_or_default();
    let alike = urls.iter().filter(|url| bare(url) == name).count() > 1;
    if alike { format!("{name} ({})", n + 1) } else { name }
}

/// A replica for every address, or for every process that is wanted.
pub(super) fn replicas(
    settings: &ServerSettings,
    secrets: &Arc<Redactor>,
    tasks: &TaskTracker,
) -> Vec<Replica> {
    let each = |remote: &Remote, transport: fn(String, Vec<(String, String)>) -> Transport| {
        let replica = |(n, url): (usize, &String)| {
            Replica::new(shown(&remote.urls, n), transport(url.clone(), remote.headers.clone()), None)
        };
        remote.urls.iter().enumerate().map(replica).collect()
    };
    match &settings.reach {
        Reach::Stdio { command, args, env, cwd, replicas } => (1..=*replicas)
            .map(|n| {
                let (id, spec) = (Arc::clone(&settings.id), process::spec(command, args, env, cwd));
                let program = Arc::new(Program::new(id, spec, Arc::clone(secrets), tasks.clone()));
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
    /// It has a connection, and the tool that is to be called.
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
