//! Starting and stopping a runtime.

use super::observer::ServerObserver;
use super::providers::Providers;
use super::snapshot::Snapshot;
use super::{Error, Runtime, pool};
use crate::cache::Cache;
use crate::options::Plan;
use crate::output_tool::{self, OutputTool};
use crate::outputs::Outputs;
use crate::projects::STOP;
use crate::queue::Queues;
use crate::serial_gate::SerialGate;
use crate::services::Services;
use crate::session::Sessions;
use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use gantry_core::tool::{Settings, Tool};
use gantry_provider::Provider;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the first listing waits for servers that are slow to start. They appear later, and clients are notified.
const MAX_DISCOVERY: Duration = Duration::from_secs(10);

/// How often outputs of ended sessions are looked for.
const SWEEP: Duration = Duration::from_secs(300);

impl Runtime {
    /// Gets the providers ready, builds the first snapshot and starts the servers.
    ///
    /// # Errors
    /// The tools clash or name a queue that is not configured. A provider that cannot get ready is no error: it is
    /// reported and the others go on.
    pub async fn start(plan: Plan, services: &Arc<Services>) -> Result<Arc<Self>, Error> {
        let (instance_id, events) = (services.next_id(), services.events.for_project(&plan.options.project));
        let changes = services.changes.clone();
        let observer = ServerObserver { events: events.clone(), runtime: instance_id, changes };
        let servers = plan.options.server_factory.open(Arc::new(observer));
        let providers = Providers::of_plan(&plan, &servers, &Providers::default()).map_err(Error)?;
        providers.prepare(&Providers::default()).await;
        pool::check(providers.all(), &services.queues.load()).map_err(Error)?;
        let options = Arc::new(plan.options);
        let slowest = providers.servers().map(|server| server.startup_timeout()).max().unwrap_or_default();
        let outputs = Outputs::new(&options.data);
        let output_provider = Arc::new(OutputTool::new(outputs.clone()));
        let (name, spec) = (output_tool::NAME.into(), output_tool::spec());
        let output_tool = Arc::new(Tool::new(output_provider.origin(), name, spec, Settings::default()));
        let rt = Arc::new(Self {
            instance_id,
            project: Arc::clone(&options.project),
            active: options.active.clone(),
            snapshot: ArcSwap::from_pointee(Snapshot::empty(Arc::clone(&options))),
            servers,
            building: SerialGate::default(),
            changed: Arc::new(Notify::new()),
            generation: watch::Sender::new(0),
            discovery_deadline: Instant::now() + slowest.min(MAX_DISCOVERY),
            output_tool,
            output_provider,
            services: Arc::clone(services),
            cache: Cache::default(),
            outputs,
            store: services.store.clone(),
            events,
            sessions: Sessions::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            canceling: CancellationToken::new(),
            relocation: ArcSwapOption::empty(),
        });
        let building = rt.building.enter().await;
        rt.install(options, Arc::new(providers)).await;
        drop(building);
        rt.tasks.spawn(Arc::clone(&rt).sweep());
        rt.tasks.spawn(Arc::clone(&rt).follow_changes());
        Ok(rt)
    }

    /// What would keep a runtime of this plan from starting. Starts nothing.
    pub fn check(plan: &Plan, queues: &Queues) -> Result<(), Error> {
        let group = plan.options.server_factory.open(Arc::new(()));
        let providers = Providers::of_plan(plan, &group, &Providers::default());
        providers.and_then(|providers| pool::check(providers.all(), queues)).map_err(Error)
    }

    async fn sweep(self: Arc<Self>) {
        let mut every = tokio::time::interval(SWEEP);
        while self.closing.run_until_cancelled(every.tick()).await.is_some() {
            if let Err(error) = self.sweep_once().await {
                tracing::warn!("stored outputs could not be cleaned up: {error}");
            }
        }
    }

    /// Removes the outputs of sessions that no process has used within the retention time.
    async fn sweep_once(&self) -> std::io::Result<()> {
        let (outputs, retention) =
            (self.outputs.clone(), self.snapshot().options.limits.output_retention.get());
        let oldest = crate::clock::now_us() - i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let candidates = tokio::task::spawn_blocking(move || outputs.older_than(retention)).await??;
        for session in candidates {
            let live = self.sessions.get(session).is_some_and(|live| live.last_used_us() >= oldest);
            let used = match self.store.session(session).await {
                Ok(summary) => summary.is_some_and(|summary| summary.session.last_us >= oldest),
                // What cannot be looked up is kept.
                Err(_) => true,
            };
            if !live && !used {
                let outputs = self.outputs.clone();
                tokio::task::spawn_blocking(move || outputs.remove(session)).await??;
            }
        }
        Ok(())
    }

    /// Evicts and ends the sessions for this reason, cancels what still runs, and closes everything but the ledger.
    pub(crate) async fn end(&self, why: &Arc<str>) {
        self.closing.cancel();
        self.canceling.cancel();
        // A session that is opened from here on is evicted when it is registered.
        for session in self.sessions.all() {
            session.evict(why);
            self.close_session(&session).await;
        }
        self.shutdown(Duration::ZERO).await;
    }

    /// Takes no new calls and lets the running ones end, for as long as `grace`. Returns whether all have ended.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.closing.cancel();
        self.tasks.close();
        tokio::time::timeout(grace, self.tasks.wait()).await.is_ok()
    }

    /// Lets running calls end for as long as `grace`, then cancels them, ends the sessions and closes the providers. The
    /// ledger stays open.
    pub async fn shutdown(&self, grace: Duration) {
        if !self.drain(grace).await {
            self.canceling.cancel();
            // Held calls may go on in sessions that were brought back for them, which are not among the others.
            let running = self.services.cancel_where(|call| call.runtime == self.instance_id);
            if running > 0 {
                tracing::warn!("{running} calls still run after {} s; they are canceled", grace.as_secs());
            }
            self.sessions.all().iter().for_each(|session| session.cancellation().cancel());
            if tokio::time::timeout(STOP, self.tasks.wait()).await.is_err() {
                tracing::error!("calls did not stop; their outcome is recorded as unknown at the next start");
            }
        }
        // Gantry's own providers are the plan's, and other runtimes of the project may use them.
        let snapshot = self.snapshot();
        join_all(snapshot.providers.servers().map(|server| server.close())).await;
    }
}
