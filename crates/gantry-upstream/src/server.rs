//! One MCP server as a provider: its tools, its calls, and everything else it offers.
//!
//! A server may have several replicas, each kept alive by its own task (`supervise.rs`). What the server has is what the
//! replica listed that became ready first; that stays listed while the server is down for a moment, and calls fail fast.
//! A call goes only to a replica that has the tool as it was judged. It is sent once: a call that may have been sent is
//! never sent again.

use crate::context::UpstreamContext;
use crate::listing::Listing;
use crate::options::ServerSettings;
use crate::replica::{Replica, replicas};
use crate::subscriptions::SubscriptionTurns;
use crate::task_token::Task;
use crate::trace::FrameTap;
use crate::uri_map::UriMap;
use crate::view::{Ready, ReplicaState, ServerView};
use arc_swap::ArcSwap;
use gantry_core::names::Style;
use gantry_core::tool::{Origin, ToolKind, ToolSpec};
use gantry_core::truncate::truncate;
use gantry_core::{Permit, Tool};
use gantry_mcp::client::{Change, Connection, OfferedCapabilities, Protocol, Target, Trace, Transport};
use gantry_provider::redact::Redactor;
use gantry_provider::{BoxFuture, CallContext, CallResult, Provider};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Bytes of a server's instructions that agents get to read.
const INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// How long the end of a server may take; its processes get this long to stop by themselves.
const CLOSE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct UpstreamServer {
    pub(crate) origin: Origin,
    /// Tells it from other servers that could have its id: a digest of how it is reached.
    identity: Arc<str>,
    pub(crate) settings: ServerSettings,
    pub(crate) uri_map: UriMap,
    pub(crate) context: Arc<UpstreamContext>,
    pub(crate) replicas: Vec<Replica>,
    /// The parts of its settings that are masked in what Gantry shows.
    pub(crate) secrets: Arc<Redactor>,
    pub(crate) view: ArcSwap<ServerView>,
    /// Counts the changes of what it has. Its lock is held while the view is replaced ([`Self::update`]).
    version: watch::Sender<u64>,
    view_changed: Notify,
    /// Its own number: another server under the same id has another one.
    number: u64,
    /// Lets equally loaded replicas take turns.
    turn: AtomicUsize,
    /// Puts requests about subscriptions in order.
    pub(crate) subscription_turns: SubscriptionTurns,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// The replica that was chosen for a request, which counts as under way there for as long as this is held.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) replica: usize,
    pub(crate) ready: Arc<Ready>,
    /// The epoch that tasks of the request belong to ([`Task::epoch`]).
    pub(crate) epoch: u64,
    _in_flight: TaskTrackerToken,
}

impl UpstreamServer {
    /// The server that these settings describe. Nothing is started yet.
    pub(crate) fn new(settings: ServerSettings, context: &Arc<UpstreamContext>) -> Arc<Self> {
        Self::with_replicas(settings, context, replicas)
    }

    pub(crate) fn with_replicas(
        settings: ServerSettings,
        context: &Arc<UpstreamContext>,
        replicas: impl FnOnce(&ServerSettings, &Arc<Redactor>, &TaskTracker) -> Vec<Replica>,
    ) -> Arc<Self> {
        let (secrets, tasks) = (Arc::new(settings.options.redactor()), TaskTracker::new());
        let replicas = replicas(&settings, &secrets, &tasks);
        let (id, namespace) = (Arc::clone(&settings.id), Arc::clone(&settings.id));
        let server = Arc::new(Self {
            origin: Origin { provider: id, namespace, kind: ToolKind::Mcp },
            identity: settings.options.endpoint_digest().to_string().into(),
            uri_map: UriMap::new(&settings.id, settings.options.prefix),
            view: ArcSwap::from_pointee(ServerView::new(replicas.len())),
            replicas,
            secrets,
            context: Arc::clone(context),
            version: watch::Sender::new(0),
            view_changed: Notify::new(),
            number: context.next_number(),
            turn: AtomicUsize::new(0),
            subscription_turns: SubscriptionTurns::default(),
            stop: CancellationToken::new(),
            tasks,
            settings,
        });
        context.register(&server);
        server
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.settings.id
    }

    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.view.load().listing.clone()
    }

    /// Changes the state of a replica, and the view with it; the engine is notified if the server offers something else
    /// then. Returns the view before.
    pub(crate) fn update(&self, n: usize, change: impl FnOnce(&mut ReplicaState)) -> Arc<ServerView> {
        let mut before = None;
        // Order: changes are made one after the other, under the lock of the channel.
        self.version.send_if_modified(|version| {
            let old = before.insert(self.view.load_full());
            let mut replicas = old.replicas.clone();
            replicas.get_mut(n).map(change);
            let new = ServerView::aggregate(replicas, old.listing.clone());
            let is_news = !new.offers_the_same_as(old);
            self.view.store(Arc::new(new));
            *version += u64::from(is_news);
            is_news
        });
        self.view_changed.notify_waiters();
        before.unwrap_or_else(|| self.view.load_full())
    }

    /// The replica that the next request goes to.
    ///
    /// # Errors
    /// None is ready; says why, and when it is tried again.
    pub(crate) fn pick_any(&self) -> Result<Picked, String> {
        self.pick(&self.view.load(), &[], None).ok_or_else(|| self.why_unavailable())
    }

    /// The replica that the next request, or the next call of this tool, goes to; none of those that were tried.
    pub(crate) fn pick(&self, view: &ServerView, tried: &[usize], tool: Option<&Tool>) -> Option<Picked> {
        self.take(view, view.choose(tried, tool, self.turn.fetch_add(1, Ordering::Relaxed))?, tool)
    }

    /// The replica for a request that was not sent because its connection had ended: one that is ready, or the first that
    /// reconnects at once. `None` if none does, if the tool is another one there, or if the request is cancelled.
    pub(crate) async fn pick_reconnected(
        &self,
        tool: Option<&Tool>,
        cancel: &CancellationToken,
    ) -> Option<Picked> {
        let reconnected = async {
            loop {
                let changed = self.view_changed.notified();
                let view = self.view.load_full();
                let picked = self.pick(&view, &[], tool);
                if picked.as_ref().is_some_and(|picked| !picked.ready.connection.has_ended()) {
                    return picked;
                }
                if !view.is_reconnecting() {
                    return None;
                }
                changed.await;
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = cancel.cancelled() => None,
            picked = timeout(self.settings.options.startup_timeout.get(), reconnected) => picked.ok().flatten(),
        }
    }

    fn take(&self, view: &ServerView, n: usize, tool: Option<&Tool>) -> Option<Picked> {
        let state = view.replicas.get(n)?;
        let ready = Arc::clone(state.ready_for(tool)?);
        // A modern server over HTTP has no sessions: nothing there depends on the connection, so tasks outlive it.
        let is_http = matches!(self.replicas.get(n)?.transport, Transport::Http { .. });
        let outlived = is_http && ready.connection.info().version.is_modern();
        let epoch = if outlived { self.number } else { ready.number };
        Some(Picked { replica: n, ready, epoch, _in_flight: state.in_flight.enter() })
    }

    /// The replica that has a task; `None` if the task ended with the process or the connection that it was made for.
    ///
    /// # Errors
    /// Its replica is down, and may have it when it is back.
    pub(crate) fn pick_for_task(&self, task: &Task) -> Result<Option<Picked>, String> {
        match self.take(&self.view.load(), task.replica, None) {
            Some(picked) => Ok(Some(picked).filter(|picked| picked.epoch == task.epoch)),
            None if task.epoch == self.number => Err(self.why_unavailable()),
            None => Ok(None),
        }
    }

    /// Every connection that is ready, besides those for clients that can do less.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let view = self.view.load();
        let ready = view.replicas.iter().filter_map(|state| state.ready.as_ref());
        ready.map(|ready| Arc::clone(&ready.connection)).collect()
    }

    /// Every connection that is ready.
    pub(crate) fn all_connections(&self) -> Vec<Arc<Connection>> {
        let view = self.view.load();
        let ready = view.replicas.iter().filter_map(|state| state.ready.as_ref());
        let others = ready.flat_map(|ready| ready.sessions.connections());
        self.connections().into_iter().chain(others).collect()
    }

    pub(crate) fn on_ready(&self, n: usize, ready: Ready, mut listing: Listing, latency: Duration) {
        for warning in &listing.warnings {
            tracing::warn!("{}: {warning}", self.settings.id);
        }
        let era = ready.connection.info().version.as_str();
        listing.keep_output_checks(self.listing().as_deref());
        let before = self.update(n, |state| state.up(ready, listing, latency));
        if !before.is_ready() {
            let tools = self.listing().map_or(0, |listing| listing.tools.len());
            self.context.observer.ready(&self.settings.id, era, tools);
        }
    }

    /// A replica is down; `was_up` says whether it was ready until now.
    pub(crate) fn on_down(&self, n: usize, was_up: bool, reason: String, retry: Duration) {
        let reason = self.secrets.mask(reason);
        let before = self.update(n, |state| state.down(reason.clone(), retry));
        let last_error = before.replicas.get(n).and_then(|state| state.last_error.as_ref());
        let is_news = was_up || last_error != Some(&reason);
        if is_news && !self.view.load().is_ready() {
            self.context.observer.down(&self.settings.id, reason);
        }
    }

    /// A replica as it is connected to.
    pub(crate) fn target(
        &self,
        replica: &Replica,
        protocol: Protocol,
        declared: OfferedCapabilities,
        changes: mpsc::Sender<Change>,
    ) -> Target {
        Target {
            name: Arc::clone(self.id()),
            transport: replica.transport.clone(),
            protocol,
            declared,
            startup_timeout: self.settings.options.startup_timeout.get(),
            trace: Some(self.frame_tap(replica)),
            changes,
            lists_changed: Arc::clone(&replica.lists_changed),
        }
    }

    /// Sees the messages of a replica.
    pub(crate) fn frame_tap(&self, replica: &Replica) -> Arc<dyn Trace> {
        let is_traced = self.settings.options.trace.unwrap_or(false);
        Arc::new(FrameTap {
            server: Arc::clone(self.id()),
            secrets: Arc::clone(&self.secrets),
            heard: Arc::clone(&replica.heard),
            observer: is_traced.then(|| Arc::clone(&self.context.observer)),
        })
    }
}

impl Provider for UpstreamServer {
    fn identity(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.identity))
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        if self.settings.options.prefix { Style::Prefixed } else { Style::Bare }
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.listing().iter().flat_map(|listing| &listing.tools).map(|tool| tool.spec.clone()).collect()
    }

    fn quarantine_reason(&self, tool: &str) -> Option<String> {
        let listing = self.listing()?;
        self.context.pins.objection(self.id(), tool, listing.tool(tool)?.fingerprint)
    }

    fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        Some(self.version.subscribe())
    }

    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, CallResult> {
        Box::pin(self.call(cx, permit))
    }

    fn instructions(&self) -> Option<String> {
        let listing = self.listing()?;
        let text = listing.about.instructions.as_deref().filter(|text| !text.trim().is_empty())?;
        let is_admitted = self.context.pins.admits_instructions(self.id(), text);
        is_admitted.then(|| truncate(text, INSTRUCTIONS_BYTES).to_owned())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stop.cancel();
            for connection in self.all_connections() {
                timeout(CLOSE, connection.close()).await.ok(); // Its process ends in any case.
            }
            (0..self.replicas.len()).for_each(|n| drop(self.update(n, ReplicaState::restarting)));
            self.tasks.close();
            if timeout(CLOSE, self.tasks.wait()).await.is_err() {
                tracing::warn!("server {} did not end in time", self.settings.id);
            }
        })
    }
}
