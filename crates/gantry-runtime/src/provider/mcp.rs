//! One MCP server as a provider: its tools, its calls, and everything else it offers.
//!
//! A server may have several replicas, each kept alive by a task of its own (`supervise.rs`). What the server has is
//! what its first ready replica listed; that stays listed while the server is down for a moment, and calls fail fast.
//! A call goes only to a replica that itself has the tool as it was judged. It is sent once: after anything may have been
//! sent, nobody sends it again.

mod answer;
mod backoff;
mod calls;
mod ear;
mod eras;
mod flights;
pub(crate) mod hub;
pub(crate) mod listing;
mod lock;
pub(crate) mod mapping;
mod narrow;
mod odd;
mod poison;
mod process;
mod promises;
mod pulse;
mod replica;
pub(crate) mod seal;
mod secrets;
mod status;
mod supervise;
mod telling;
mod trace;
pub(crate) mod wishes;

use crate::event::EventKind;
use crate::options::ProviderOptions;
use crate::servers::{Light, ServerSettings};
use arc_swap::ArcSwap;
use arc_swap::ArcSwapOption;
use ear::Ear;
use flights::Flight;
use gantry_core::error::Fault;
use gantry_core::names::Style;
use gantry_core::shape::truncated;
use gantry_core::tool::{Origin, ToolKind, ToolSpec};
use gantry_core::{Permit, Tool};
use gantry_mcp::client::{Connection, Failure, Trace, Transport};
use gantry_provider::redact::Redactor;
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use hub::Hub;
use listing::Listing;
use mapping::Mapping;
use promises::Promises;
use replica::{Load, Replica, choose, replicas};
use seal::Task;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What of a server's instructions agents get to read.
const INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// How long the end of a server may take: its processes get some grace.
const CLOSE: Duration = Duration::from_secs(15);

/// How often a server that is to be closed is asked whether it is idle.
const IDLE_CHECK: Duration = Duration::from_millis(20);

/// One MCP server.
#[derive(Debug)]
pub(crate) struct McpServer {
    origin: Origin,
    /// Which server it is of all that could have its id.
    identity: Arc<str>,
    settings: ServerSettings,
    /// How its tools are run; the settings say how they were run first.
    options: ArcSwap<ProviderOptions>,
    mapping: Mapping,
    hub: Arc<Hub>,
    replicas: Vec<Replica>,
    /// What nobody is to see of its settings.
    secrets: Arc<Redactor>,
    /// What its tools answered other than they promised.
    promises: Promises,
    /// What it has; nothing before its first success.
    known: ArcSwapOption<Listing>,
    /// Moves on with every change of what it has.
    version: watch::Sender<u64>,
    /// Set once it was ready or has failed for the first time.
    verdict: SetOnce<()>,
    /// Whether the last event about it said that it is up.
    told_up: AtomicBool,
    /// Its own number: another server under the same id has another one.
    number: u64,
    /// Held while what it has is taken over from the replicas, so that an older state never replaces a newer one.
    settling: Mutex<()>,
    /// Lets equally loaded replicas take turns.
    turn: AtomicUsize,
    /// Held by whoever tells it what sessions want to hear, so that its last word is the newest wish.
    turns: telling::Turns,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The replica that was chosen for a request, which is under way there for as long as this is held.
#[derive(Debug)]
pub(crate) struct Picked {
    replica: usize,
    /// Its connection.
    pub(crate) connection: Arc<Connection>,
    /// Which life of it tasks that come of the request belong to.
    life: u64,
    _flight: Flight,
}

impl McpServer {
    /// The server that these settings describe. Nothing is started yet.
    pub(crate) fn new(settings: ServerSettings, hub: &Arc<Hub>) -> Arc<Self> {
        let tasks = TaskTracker::new();
        let (id, namespace) = (Arc::clone(&settings.id), Arc::clone(&settings.id));
        let secrets = Arc::new(secrets::redactor(&settings));
        Arc::new(Self {
            origin: Origin { provider: id, namespace, kind: ToolKind::Mcp },
            identity: settings.reach.digest().to_string().into(),
            mapping: Mapping::new(&settings.id, settings.prefix),
            replicas: replicas(&settings, &secrets, &tasks),
            secrets,
            promises: Promises::default(),
            hub: Arc::clone(hub),
            known: ArcSwapOption::empty(),
            version: watch::Sender::new(0),
            verdict: SetOnce::new(),
            told_up: AtomicBool::new(false),
            number: hub.next_number(),
            settling: Mutex::default(),
            turn: AtomicUsize::new(0),
            turns: telling::Turns::default(),
            stop: CancellationToken::new(),
            tasks,
            options: ArcSwap::from_pointee(settings.options.clone()),
            settings,
        })
    }

    /// Starts it, unless it is switched off. Does not wait.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.settings.off.is_some() || self.replicas.is_empty() {
            self.verdict.set(()).ok(); // Nothing will ever be known better.
            return;
        }
        for n in 0..self.replicas.len() {
            self.tasks.spawn(supervise::replica(Arc::clone(self), n));
        }
    }

    /// Begins anew, at once.
    pub(crate) fn restart(&self) {
        for replica in &self.replicas {
            // Whoever asks how it is doing is not told of what it was before.
            replica.restarting();
            replica.restart.notify_one();
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.settings.id
    }

    /// How long one try to start may take.
    pub(crate) fn startup_timeout(&self) -> Duration {
        self.settings.startup_timeout
    }

    /// How it is set up.
    pub(crate) fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// How its tools are run.
    pub(crate) fn options(&self) -> Arc<ProviderOptions> {
        self.options.load_full()
    }

    /// From now on its tools are run like this.
    pub(crate) fn set_options(&self, options: &Arc<ProviderOptions>) {
        self.options.store(Arc::clone(options));
    }

    /// How its URIs are shown.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// What it has, once that was known.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.known.load_full()
    }

    /// Whether it was ready, or has failed, at least once.
    pub(crate) fn has_verdict(&self) -> bool {
        self.verdict.get().is_some()
    }

    /// The replica that the next request goes to.
    ///
    /// # Errors
    /// None is ready; says why, and when it is tried again.
    pub(crate) fn pick(&self) -> Result<Picked, String> {
        self.pick_besides(&[], None).ok_or_else(|| self.absence())
    }

    /// The replica that the next request goes to, or the next call of this tool; none of those that were tried.
    fn pick_besides(&self, tried: &[usize], tool: Option<&Tool>) -> Option<Picked> {
        let load = |(n, replica): (usize, &Replica)| {
            let load = replica.load(tool);
            Load { connected: load.connected && !tried.contains(&n), ..load }
        };
        let loads: Vec<Load> = self.replicas.iter().enumerate().map(load).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let n = choose(&loads, turn)?;
        self.take(n, tool)
    }

    fn take(&self, n: usize, tool: Option<&Tool>) -> Option<Picked> {
        let replica = self.replicas.get(n)?;
        let (connection, number) = replica.ready(tool)?;
        // Without sessions nothing at the server depends on the connection, and its tasks outlive it.
        let outlived =
            matches!(replica.transport, Transport::Http { .. }) && connection.about().version.is_modern();
        let life = if outlived { self.number } else { number };
        Some(Picked { replica: n, connection, life, _flight: replica.flights.begin() })
    }

    /// Where a task is; `None` if it ended with the process or the connection that it was made for.
    ///
    /// # Errors
    /// Its replica is down, and may have it when it is back.
    pub(crate) fn of_task(&self, task: &Task) -> Result<Option<Picked>, String> {
        match self.take(task.replica, None) {
            Some(picked) => Ok(Some(picked).filter(|picked| picked.life == task.life)),
            None if task.life == self.number => Err(self.absence()),
            None => Ok(None),
        }
    }

    /// Every connection that is ready.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.replicas.iter().filter_map(Replica::connection).collect()
    }

    fn came_up(&self, n: usize, connection: &Arc<Connection>, listing: Listing, latency: Duration) {
        let Some(replica) = self.replicas.get(n) else { return };
        let number = self.hub.next_number();
        for warning in &listing.warnings {
            tracing::warn!("{}: {warning}", self.settings.id);
        }
        replica.up(connection, Arc::new(listing), latency, number);
        self.settle();
        if !self.told_up.swap(true, Ordering::AcqRel) {
            let known = self.listing();
            let tools = known.as_ref().map_or(0, |listing| listing.tools.len());
            let era = connection.about().version.as_str();
            let up = EventKind::ServerUp { server: Arc::clone(&self.settings.id), era, tools };
            self.hub.events.emit(None, up);
        }
    }

    /// A failure without what nobody is to see.
    pub(crate) fn hidden(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unavailable(why) => Failure::Unavailable(self.secrets.mask(why)),
            Failure::Lost(why) => Failure::Lost(self.secrets.mask(why)),
            Failure::Answered(_) | Failure::Canceled => failure,
        }
    }

    /// What a tool of it answered other than it promised.
    pub(crate) fn broken_promises(&self, tool: &str) -> Vec<String> {
        self.promises.broken(Some(tool))
    }

    fn went_down(&self, replica: &Replica, reason: String, retry: Duration) {
        let reason = self.secrets.mask(reason);
        let was_news = replica.state().last_error.as_deref() != Some(&reason);
        replica.down(reason.clone(), retry);
        self.settle();
        let none_left = self.replicas.iter().all(|replica| replica.connection().is_none());
        if none_left && (self.told_up.swap(false, Ordering::AcqRel) || was_news) {
            let server = Arc::clone(&self.settings.id);
            self.hub.events.emit(None, EventKind::ServerDown { server, reason: reason.into() });
        }
    }

    /// Somebody wants a replica to begin anew.
    fn begins_anew(&self, replica: &Replica) {
        replica.restarting();
        if self.connections().is_empty() {
            self.told_up.store(false, Ordering::Release);
        }
    }

    /// Takes over what the first ready replica lists, and tells whoever follows if that is something new.
    fn settle(&self) {
        let _settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<_> = self.replicas.iter().map(Replica::state).collect();
        let ready = states.iter().filter(|state| state.ready.is_some());
        let first = ready.min_by_key(|state| state.ready).and_then(|state| state.listing.clone());
        let changed = first.is_some_and(|first| {
            let same = self.known.load().as_ref().is_some_and(|known| known.is_like(&first));
            self.known.store(Some(first));
            !same
        });
        let tried =
            states.iter().all(|state| state.tried) || states.iter().any(|state| state.ready.is_some());
        let verdict = tried && self.verdict.set(()).is_ok();
        if changed || verdict {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// Hears what a replica says.
    fn ear(&self, replica: &Replica) -> Arc<dyn Trace> {
        let frames = || trace::Frames::of(&self.settings.id, &self.secrets, self.hub.events.clone());
        Arc::new(Ear { heard: Arc::clone(&replica.heard), frames: self.settings.trace.then(frames) })
    }
}

impl Provider for McpServer {
    fn identity(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.identity))
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        if self.settings.prefix { Style::Prefixed } else { Style::Bare }
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.listing().iter().flat_map(|known| &known.tools).map(|tool| tool.spec.clone()).collect()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.listing().is_some_and(|known| known.tool(name).is_some())
    }

    fn objection(&self, tool: &str) -> Option<String> {
        let known = self.listing()?;
        self.hub.lock.objection(self.id(), tool, known.tool(tool)?.fingerprint)
    }

    fn changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.version.subscribe())
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.call(cx, permit))
    }

    fn instructions(&self) -> Option<String> {
        let known = self.listing()?;
        let text = known.about.instructions.as_deref().filter(|text| !text.trim().is_empty())?;
        self.hub
            .lock
            .admits_instructions(self.id(), text)
            .then(|| truncated(text, INSTRUCTIONS_BYTES).into_owned())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stop.cancel();
            for connection in self.all_connections() {
                tokio::time::timeout(CLOSE, connection.close()).await.ok(); // Its process is ended in any case.
            }
            self.replicas.iter().for_each(Replica::restarting);
            self.tasks.close();
            if tokio::time::timeout(CLOSE, self.tasks.wait()).await.is_err() {
                tracing::warn!("server {} did not end in time", self.settings.id);
            }
        })
    }
}

impl McpServer {
    /// Waits until nothing is under way there, for as long as `grace`.
    pub(crate) async fn idle(&self, grace: Duration) {
        let quiet = async {
            while self.replicas.iter().any(|replica| replica.flights.count() > 0) {
                tokio::time::sleep(IDLE_CHECK).await;
            }
        };
        tokio::time::timeout(grace, quiet).await.ok(); // What is not idle by then is closed all the same.
    }
}

/// Whether a server with this light can be used.
pub(crate) fn is_usable(light: Light) -> bool {
    matches!(light, Light::Green | Light::Yellow)
}

#[cfg(test)]
mod tests;
