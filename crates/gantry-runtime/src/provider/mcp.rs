//! One MCP server as a provider: its tools, its calls, and everything else it offers.
//!
//! A server may have several replicas, each kept alive by a task of its own (`supervise.rs`). What the server has is
//! what its first ready replica listed; that stays listed while the server is down for a moment, and calls fail fast.
//! A call is sent once: after anything may have been sent, nobody sends it again.

mod answer;
mod backoff;
mod eras;
pub(crate) mod hub;
pub(crate) mod listing;
mod lock;
pub(crate) mod mapping;
mod narrow;
mod poison;
mod process;
mod pulse;
mod replica;
pub(crate) mod seal;
mod status;
mod supervise;
mod trace;
pub(crate) mod wishes;

use super::{BoxFuture, Provider, RawOutput};
use crate::context::CallCx;
use crate::event::EventKind;
use crate::servers::{Light, ServerSettings};
use arc_swap::ArcSwapOption;
use gantry_core::error::{ErrorCode, Fault, Refusal, ToolError};
use gantry_core::names::Style;
use gantry_core::policy::OwnVerdict;
use gantry_core::shape::truncated;
use gantry_core::tool::{Origin, ToolKind, ToolSpec};
use gantry_core::{Permit, ResolvedCall};
use gantry_mcp::Turn;
use gantry_mcp::client::{Connection, Failure, Trace};
use hub::Hub;
use listing::Listing;
use mapping::Mapping;
use replica::{Load, Replica, choose, replicas};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What of a server's instructions agents get to read.
const INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// How long the end of a server may take: its processes get some grace.
const CLOSE: Duration = Duration::from_secs(15);

/// One MCP server.
#[derive(Debug)]
pub(crate) struct McpServer {
    origin: Origin,
    settings: ServerSettings,
    mapping: Mapping,
    hub: Arc<Hub>,
    replicas: Vec<Replica>,
    /// What it has; nothing before its first success.
    known: ArcSwapOption<Listing>,
    /// Moves on with every change of what it has.
    version: watch::Sender<u64>,
    /// Set once it was ready or has failed for the first time.
    verdict: SetOnce<()>,
    /// Whether the last event about it said that it is up.
    told_up: AtomicBool,
    /// Counts the replicas that became ready, for their order.
    order: AtomicU64,
    /// Lets equally loaded replicas take turns.
    turn: AtomicUsize,
    /// Held by whoever tells it what sessions want to hear, so that its last word is the newest wish.
    pub(crate) telling: Semaphore,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl McpServer {
    /// The server that these settings describe. Nothing is started yet.
    pub(crate) fn new(settings: ServerSettings, hub: &Arc<Hub>) -> Arc<Self> {
        let tasks = TaskTracker::new();
        let (id, namespace) = (Arc::clone(&settings.id), Arc::clone(&settings.id));
        Arc::new(Self {
            origin: Origin { provider: id, namespace, kind: ToolKind::Mcp },
            mapping: Mapping::new(&settings.id, settings.prefix),
            replicas: replicas(&settings, &tasks),
            hub: Arc::clone(hub),
            known: ArcSwapOption::empty(),
            version: watch::Sender::new(0),
            verdict: SetOnce::new(),
            told_up: AtomicBool::new(false),
            order: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            telling: Semaphore::new(1),
            stop: CancellationToken::new(),
            tasks,
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
    pub(crate) fn pick(&self) -> Result<(usize, Arc<Connection>), String> {
        self.pick_besides(&[]).ok_or_else(|| self.absence())
    }

    /// The replica that the next request goes to, none of these.
    fn pick_besides(&self, tried: &[usize]) -> Option<(usize, Arc<Connection>)> {
        let load = |(n, replica): (usize, &Replica)| {
            let load = replica.load();
            Load { connected: load.connected && !tried.contains(&n), ..load }
        };
        let loads: Vec<Load> = self.replicas.iter().enumerate().map(load).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        choose(&loads, turn).and_then(|n| Some((n, self.replicas.get(n)?.connection()?)))
    }

    /// The connection of one replica.
    pub(crate) fn replica(&self, n: usize) -> Result<Arc<Connection>, String> {
        self.replicas.get(n).and_then(Replica::connection).ok_or_else(|| self.absence())
    }

    /// Every connection that is ready.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.replicas.iter().filter_map(Replica::connection).collect()
    }

    fn came_up(&self, n: usize, connection: &Arc<Connection>, listing: Listing, latency: Duration) {
        let Some(replica) = self.replicas.get(n) else { return };
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        for warning in &listing.warnings {
            tracing::warn!("{}: {warning}", self.settings.id);
        }
        replica.up(connection, Arc::new(listing), latency, order);
        self.settle();
        if !self.told_up.swap(true, Ordering::AcqRel) {
            let known = self.listing();
            let tools = known.as_ref().map_or(0, |listing| listing.tools.len());
            let era = connection.about().version.as_str();
            let up = EventKind::ServerUp { server: Arc::clone(&self.settings.id), era, tools };
            self.hub.events.emit(None, up);
        }
    }

    fn went_down(&self, replica: &Replica, reason: String, retry: Duration) {
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

    fn trace(&self) -> Option<Arc<dyn Trace>> {
        let frames = || trace::Frames::of(&self.settings, Arc::clone(&self.hub.events));
        self.settings.trace.then(|| Arc::new(frames()) as Arc<dyn Trace>)
    }

    async fn call(&self, cx: &CallCx, permit: &Permit) -> Result<RawOutput, Fault> {
        let tool = permit.tool();
        self.is_as_judged(permit)?;
        let (mut replica, mut connection) = self.pick().map_err(|reason| answer::unavailable(&reason))?;
        let mut tried = Vec::new();
        let result = loop {
            let fitting = self.fitting(replica, connection, &*cx.audience).await;
            let turn = Turn { audience: Arc::clone(&cx.audience), cancel: cx.cancel.clone() };
            let failure = match fitting.call(permit, cx.meta.as_deref(), turn).await {
                Ok(result) => break result,
                Err(failure) => failure,
            };
            tried.push(replica);
            // Only what was certainly not sent may be sent elsewhere.
            let next =
                matches!(failure, Failure::Unavailable(_)).then(|| self.pick_besides(&tried)).flatten();
            (replica, connection) = next.ok_or_else(|| answer::fault(self.id(), tool, failure))?;
        };
        answer::output(self, replica, cx.caller(), tool, &result)
    }

    /// A permit is for the definition that was judged. If the server has another one by now, or one that waits for a
    /// person, the call is not the one that was permitted.
    fn is_as_judged(&self, permit: &Permit) -> Result<(), Fault> {
        let tool = permit.tool();
        let refused = |code, message: String| Err(Fault::without_effect(ToolError::new(code, message)));
        if let Some(reason) = self.objection(&tool.key.tool) {
            let message = format!("{} is quarantined: {reason}. Nothing was sent.", tool.name);
            return refused(ErrorCode::ToolQuarantined, message);
        }
        let known = self.listing();
        let same = known
            .as_ref()
            .and_then(|known| known.tool(&tool.key.tool))
            .map(|d| d.fingerprint == tool.fingerprint);
        match same {
            Some(true) => Ok(()),
            Some(false) => refused(
                ErrorCode::ToolQuarantined,
                format!(
                    "server {} has changed what {} is; list the tools again. Nothing was sent.",
                    self.id(),
                    tool.name
                ),
            ),
            None => refused(
                ErrorCode::UpstreamUnavailable,
                format!(
                    "server {} does not have {} any more; list the tools again. Nothing was sent.",
                    self.id(),
                    tool.name
                ),
            ),
        }
    }
}

impl Provider for McpServer {
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

    fn inspect<'a>(
        &'a self,
        _cx: &'a CallCx,
        _call: &'a ResolvedCall,
    ) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::ready(Ok(OwnVerdict::default())))
    }

    fn execute<'a>(&'a self, cx: &'a CallCx, permit: &'a Permit) -> BoxFuture<'a, Result<RawOutput, Fault>> {
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

/// Whether a server with this light can be used.
pub(crate) fn is_usable(light: Light) -> bool {
    matches!(light, Light::Green | Light::Yellow)
}

#[cfg(test)]
mod tests;
