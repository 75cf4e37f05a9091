//! One MCP server as a provider: its tools, its calls, and everything else it offers.
//!
//! A server may have several replicas, each kept alive by its own task (`supervise.rs`). What the server has is what the
//! replica listed that became ready first; that stays listed while the server is down for a moment, and calls fail fast.
//! A call goes only to a replica that has the tool as it was judged. It is sent once: a call that may have been sent is
//! never sent again.

use crate::config::ServerSettings;
use crate::context::UpstreamContext;
use crate::frame_tap::FrameTap;
use crate::in_flight::InFlightGuard;
use crate::listing::Listing;
use crate::output_check::OutputChecks;
use crate::replica::{Load, Replica, choose, replicas};
use crate::resubscribe::SubscriptionLocks;
use crate::supervise;
use crate::task_token::Task;
use crate::trace::FrameLog;
use crate::uri_map::UriMap;
use arc_swap::ArcSwapOption;
use gantry_core::digest::Digest;
use gantry_core::error::Fault;
use gantry_core::names::Style;
use gantry_core::shape::truncated;
use gantry_core::tool::{Origin, ToolKind, ToolSpec};
use gantry_core::{Permit, Tool};
use gantry_mcp::client::{Connection, Failure, Trace, Transport};
use gantry_provider::redact::Redactor;
use gantry_provider::server::{Server, ServerConfig};
use gantry_provider::{BoxFuture, CallContext, Provider, ProviderStatus, RawOutput};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of a server's instructions that agents get to read.
const INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// How long the end of a server may take; its processes get this long to stop by themselves.
const CLOSE: Duration = Duration::from_secs(15);

/// How often a server that is to be closed is checked for requests under way.
const IDLE_CHECK: Duration = Duration::from_millis(20);

/// One MCP server.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    pub(crate) origin: Origin,
    /// Tells it from other servers that could have its id: a digest of how it is reached.
    identity: Arc<str>,
    pub(crate) settings: ServerSettings,
    uri_map: UriMap,
    pub(crate) context: Arc<UpstreamContext>,
    pub(crate) replicas: Vec<Replica>,
    /// The parts of its settings that are masked in what Gantry shows.
    pub(crate) secrets: Arc<Redactor>,
    /// Results that did not match the output schema of their tool.
    pub(crate) output_checks: OutputChecks,
    /// What it has; none before it was ready for the first time.
    pub(crate) current: ArcSwapOption<Listing>,
    /// Counts the changes of what it has.
    version: watch::Sender<u64>,
    /// Set once it was ready or has failed for the first time.
    pub(crate) first_result: SetOnce<()>,
    /// Whether the observer was last told that it is up.
    up_announced: AtomicBool,
    /// Its own number: another server under the same id has another one.
    number: u64,
    /// Held while what it has is taken over from the replicas, so that an older state never replaces a newer one.
    refreshing: Mutex<()>,
    /// Lets equally loaded replicas take turns.
    turn: AtomicUsize,
    /// Held while the server is told of a subscription, so that the newest state is what it hears last.
    pub(crate) subscription_locks: SubscriptionLocks,
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
}

/// The replica that was chosen for a request, which counts as under way there for as long as this is held.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) replica: usize,
    /// Its connection.
    pub(crate) connection: Arc<Connection>,
    /// The epoch that tasks of the request belong to ([`Task::epoch`]).
    pub(crate) epoch: u64,
    _guard: InFlightGuard,
}

impl UpstreamServer {
    /// The server that these settings describe. Nothing is started yet.
    pub(crate) fn new(settings: ServerSettings, context: &Arc<UpstreamContext>) -> Arc<Self> {
        let (secrets, tasks) = (Arc::new(crate::secrets::redactor(&settings)), TaskTracker::new());
        let replicas = replicas(&settings, &secrets, &tasks);
        Self::with_replicas(settings, context, replicas, secrets, tasks)
    }

    /// The same with these replicas, whose processes belong to `tasks`.
    pub(crate) fn with_replicas(
        settings: ServerSettings,
        context: &Arc<UpstreamContext>,
        replicas: Vec<Replica>,
        secrets: Arc<Redactor>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (id, namespace) = (Arc::clone(&settings.id), Arc::clone(&settings.id));
        let server = Arc::new(Self {
            origin: Origin { provider: id, namespace, kind: ToolKind::Mcp },
            identity: settings.transport.digest().to_string().into(),
            uri_map: UriMap::new(&settings.id, settings.prefix),
            replicas,
            secrets,
            output_checks: OutputChecks::default(),
            context: Arc::clone(context),
            current: ArcSwapOption::empty(),
            version: watch::Sender::new(0),
            first_result: SetOnce::new(),
            up_announced: AtomicBool::new(false),
            number: context.next_number(),
            refreshing: Mutex::default(),
            turn: AtomicUsize::new(0),
            subscription_locks: SubscriptionLocks::default(),
            stop: CancellationToken::new(),
            tasks,
            settings,
        });
        context.add(&server);
        server
    }

    /// Its id.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.settings.id
    }

    /// How clients see its URIs.
    pub(crate) fn uri_map(&self) -> &UriMap {
        &self.uri_map
    }

    /// What it has, once it was ready.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.current.load_full()
    }

    /// The replica that the next request goes to.
    ///
    /// # Errors
    /// None is ready; says why, and when it is tried again.
    pub(crate) fn pick(&self) -> Result<Picked, String> {
        self.pick_besides(&[], None).ok_or_else(|| self.why_unavailable())
    }

    /// The replica that the next request, or the next call of this tool, goes to; none of those that were tried.
    pub(crate) fn pick_besides(&self, tried: &[usize], tool: Option<&Tool>) -> Option<Picked> {
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
        // A modern server over HTTP has no sessions: nothing there depends on the connection, so tasks outlive it.
        let outlived =
            matches!(replica.transport, Transport::Http { .. }) && connection.about().version.is_modern();
        let epoch = if outlived { self.number } else { number };
        Some(Picked { replica: n, connection, epoch, _guard: replica.in_flight.enter() })
    }

    /// The replica that has a task; `None` if the task ended with the process or the connection that it was made for.
    ///
    /// # Errors
    /// Its replica is down, and may have it when it is back.
    pub(crate) fn of_task(&self, task: &Task) -> Result<Option<Picked>, String> {
        match self.take(task.replica, None) {
            Some(picked) => Ok(Some(picked).filter(|picked| picked.epoch == task.epoch)),
            None if task.epoch == self.number => Err(self.why_unavailable()),
            None => Ok(None),
        }
    }

    /// Every connection that is ready.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.replicas.iter().filter_map(Replica::connection).collect()
    }

    pub(crate) fn on_ready(
        &self,
        n: usize,
        connection: &Arc<Connection>,
        listing: Listing,
        latency: Duration,
    ) {
        let Some(replica) = self.replicas.get(n) else { return };
        let number = self.context.next_number();
        for warning in &listing.warnings {
            tracing::warn!("{}: {warning}", self.settings.id);
        }
        replica.up(connection, Arc::new(listing), latency, number);
        self.refresh_view();
        if !self.up_announced.swap(true, Ordering::AcqRel) {
            let known = self.listing();
            let tools = known.as_ref().map_or(0, |listing| listing.tools.len());
            let era = connection.about().version.as_str();
            self.context.observer.ready(&self.settings.id, era, tools);
        }
    }

    /// A failure with secrets masked.
    pub(crate) fn hidden(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unavailable(why) => Failure::Unavailable(self.secrets.mask(why)),
            Failure::Lost(why) => Failure::Lost(self.secrets.mask(why)),
            Failure::Answered(_) | Failure::Canceled => failure,
        }
    }

    pub(crate) fn on_down(&self, replica: &Replica, reason: String, retry: Duration) {
        let reason = self.secrets.mask(reason);
        let was_news = replica.state().last_error.as_deref() != Some(&reason);
        replica.down(reason.clone(), retry);
        self.refresh_view();
        let none_left = self.replicas.iter().all(|replica| replica.connection().is_none());
        if none_left && (self.up_announced.swap(false, Ordering::AcqRel) || was_news) {
            self.context.observer.down(&self.settings.id, reason);
        }
    }

    /// A replica drops its connection because a person asked for a restart.
    pub(crate) fn on_restart(&self, replica: &Replica) {
        replica.restarting();
        if self.connections().is_empty() {
            self.up_announced.store(false, Ordering::Release);
        }
    }

    /// Takes over the list of the replica that has been ready for longest, and announces it if it is another.
    pub(crate) fn refresh_view(&self) {
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<_> = self.replicas.iter().map(Replica::state).collect();
        let ready = states.iter().filter(|state| state.ready.is_some());
        let first = ready.min_by_key(|state| state.ready).and_then(|state| state.listing.clone());
        let changed = first.is_some_and(|first| {
            let same = self.current.load().as_ref().is_some_and(|known| known.is_like(&first));
            self.current.store(Some(first));
            !same
        });
        let tried =
            states.iter().all(|state| state.tried) || states.iter().any(|state| state.ready.is_some());
        let first_result = tried && self.first_result.set(()).is_ok();
        if changed || first_result {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// Sees the messages of a replica.
    pub(crate) fn frame_tap(&self, replica: &Replica) -> Arc<dyn Trace> {
        let log = || FrameLog::new(&self.settings.id, &self.secrets, &self.context.observer);
        Arc::new(FrameTap { heard: Arc::clone(&replica.heard), log: self.settings.trace.then(log) })
    }
}

impl Provider for UpstreamServer {
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
        self.context.pins.objection(self.id(), tool, known.tool(tool)?.fingerprint)
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
        self.context
            .pins
            .admits_instructions(self.id(), text)
            .then(|| truncated(text, INSTRUCTIONS_BYTES).into_owned())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stop.cancel();
            for connection in self.all_connections() {
                tokio::time::timeout(CLOSE, connection.close()).await.ok(); // Its process ends in any case.
            }
            self.replicas.iter().for_each(Replica::restarting);
            self.tasks.close();
            if tokio::time::timeout(CLOSE, self.tasks.wait()).await.is_err() {
                tracing::warn!("server {} did not end in time", self.settings.id);
            }
        })
    }
}

impl Server for UpstreamServer {
    fn config(&self) -> &dyn ServerConfig {
        &self.settings
    }

    fn start(self: Arc<Self>) {
        if self.settings.disabled.is_some() || self.replicas.is_empty() {
            self.first_result.set(()).ok(); // There is nothing to wait for.
            return;
        }
        for n in 0..self.replicas.len() {
            self.tasks.spawn(supervise::replica(Arc::clone(&self), n));
        }
    }

    fn restart(&self) {
        for replica in &self.replicas {
            // The status says at once that it is starting.
            replica.restarting();
            replica.restart.notify_one();
        }
    }

    fn idle(&self, grace: Duration) -> BoxFuture<'_, ()> {
        let idle = async {
            while self.replicas.iter().any(|replica| replica.in_flight.count() > 0) {
                tokio::time::sleep(IDLE_CHECK).await;
            }
        };
        Box::pin(async move {
            tokio::time::timeout(grace, idle).await.ok(); // The engine closes it then in any case.
        })
    }

    fn startup_timeout(&self) -> Duration {
        self.settings.startup_timeout
    }

    fn has_settled(&self) -> bool {
        self.first_result.get().is_some()
    }

    fn tools_digest(&self) -> Option<Digest> {
        self.listing().map(|known| known.tools_digest)
    }

    fn status(&self) -> ProviderStatus {
        self.describe()
    }

    fn unavailable_reason(&self) -> Option<String> {
        self.pick().err()
    }

    fn warnings(&self) -> Vec<String> {
        self.list_warnings()
    }

    fn remarks(&self, tool: &str) -> Vec<String> {
        let known = self.listing();
        let flags = known.as_ref().and_then(|known| known.tool(tool)).map(|tool| tool.flags.clone());
        let flags = flags.unwrap_or_default().into_iter().map(|flag| format!("it looks suspicious: {flag}"));
        let violations = self.output_checks.violations(Some(tool));
        self.unavailable_reason().into_iter().chain(flags).chain(violations).collect()
    }
}
