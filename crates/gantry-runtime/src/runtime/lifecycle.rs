//! Starting and stopping a runtime.

use super::observer::ServerObserver;
use super::rebuild::Upstreams;
use super::setup::{Setup, State, Toolsets};
use super::sources::{Source, Sources};
use super::{Error, Runtime, pool};
use crate::cache::Cache;
use crate::options::{Options, Plan};
use crate::output_tool::OutputTool;
use crate::outputs::Outputs;
use crate::queue::Queues;
use crate::services::Services;
use crate::session::Sessions;
use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use gantry_core::tool::{Settings, Tool};
use gantry_provider::Provider;
use gantry_provider::server::{Server, ServerGroup};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often outputs of ended sessions are looked for.
const SWEEP: Duration = Duration::from_secs(300);

/// How long calls that were told to stop may take to do so.
const STOP: Duration = Duration::from_secs(2);

impl Runtime {
    /// Warms the providers up, builds the pool and starts.
    ///
    /// # Errors
    /// The tools clash or name a queue that is not configured. A provider that cannot get ready is no error: it is
    /// reported and the others go on.
    pub async fn start(plan: Plan, services: &Arc<Services>) -> Result<Arc<Self>, Error> {
        let Plan { options, providers } = plan;
        for provider in &providers {
            if let Err(reason) = provider.warm_up().await {
                tracing::warn!("{} is not available: {reason}", provider.origin().provider);
            }
        }
        let (number, events) = (services.next_number(), services.events.of(&options.project));
        let changes = services.changes.clone();
        let observer = ServerObserver { events: events.clone(), runtime: number, changes };
        let group = options.server_factory.open(Arc::new(observer));
        let setup = Arc::new(Setup::new(&options));
        let sources = all_sources(&options, &providers, &group)?;
        let queues = services.queues.load();
        pool::check(sources.all(), &queues)?;
        let built = pool::build(sources.all(), &queues);
        let outputs = Outputs::new(&options.data);
        let output_provider = Arc::new(OutputTool::new(outputs.clone(), options.response_max_bytes));
        let mut specs = output_provider.tools();
        let spec = specs.pop().ok_or_else(|| Error::Pool("the output tool has no definition".into()))?;
        let name = spec.name.clone();
        let output_tool = Arc::new(Tool::new(output_provider.origin(), name, spec, Settings::default()));
        let rt = Arc::new(Self {
            number,
            project: options.project,
            active: options.active,
            upstreams: Upstreams::new(&sources, &built, group),
            state: ArcSwap::from_pointee(State {
                revision: 0,
                setup,
                sources: Arc::new(sources),
                pool: built.pool,
            }),
            toolsets: Toolsets::default(),
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
            elsewhere: ArcSwapOption::empty(),
        });
        rt.tasks.spawn(Arc::clone(&rt).sweep());
        rt.connect();
        Ok(rt)
    }

    /// What would keep a runtime of this plan from starting. Starts nothing.
    ///
    /// # Errors
    /// The same as those of [`Runtime::start`].
    pub fn check(plan: &Plan, queues: &Queues) -> Result<(), Error> {
        let Plan { options, providers } = plan;
        let sources = all_sources(options, providers, &options.server_factory.unstarted())?;
        pool::check(sources.all(), queues)
    }

    /// Starts the servers and follows what changes.
    fn connect(self: &Arc<Self>) {
        let sources = self.sources();
        sources.all().iter().for_each(|source| self.listen(source));
        sources.servers().cloned().for_each(Server::start);
        if sources.servers().next().is_none() {
            self.upstreams.settled.set(()).ok(); // It is set here only.
            self.warn();
        }
        // The servers that are switched off have nothing to announce, so the first look is ours.
        self.upstreams.dirty.notify_one();
        self.tasks.spawn(Arc::clone(self).follow());
    }

    /// Logs what looks wrong in the set-up, once everything that can be known of it is known.
    pub(super) fn warn(&self) {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
    }

    async fn sweep(self: Arc<Self>) {
        let mut every = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = every.tick() => {}
            }
            if let Err(error) = self.sweep_once().await {
                tracing::warn!("stored outputs could not be cleaned up: {error}");
            }
        }
    }

    /// Removes the outputs of sessions that no process has used within the retention time.
    async fn sweep_once(&self) -> std::io::Result<()> {
        let (outputs, retention) = (self.outputs.clone(), self.setup().limits.retention);
        let oldest = crate::clock::now_us() - i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let candidates = tokio::task::spawn_blocking(move || outputs.older_than(retention)).await??;
        for session in candidates {
            let live =
                self.sessions.all().iter().any(|live| live.id() == session && live.last_used_us() >= oldest);
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

    /// Takes no new calls from here on, and no new sessions.
    pub(crate) fn close_doors(&self) {
        self.closing.cancel();
    }

    /// Ends the sessions, cancels what still runs, and closes everything but the ledger. What the sessions are told is why.
    pub(crate) async fn end(&self, why: &Arc<str>) {
        self.close_doors();
        // A session that begins from here on sees for itself that it has to leave.
        for session in self.live_sessions() {
            session.leave(why);
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
            let running = self.services.count(|call| call.runtime == self.number);
            if running > 0 {
                tracing::warn!("{running} calls still run after {} s; they are canceled", grace.as_secs());
            }
            for session in self.sessions.all() {
                session.cancellation().cancel();
            }
            // Held calls may go on in sessions that were brought back for them.
            self.services.cancel_these(|call| call.runtime == self.number);
            if tokio::time::timeout(STOP, self.tasks.wait()).await.is_err() {
                tracing::error!("calls did not stop; their outcome is recorded as unknown at the next start");
            }
        }
        // Gantry's own providers are the plan's, and other runtimes of the project may use them.
        let sources = self.sources();
        join_all(sources.servers().map(|server| server.close())).await;
    }
}

/// The providers of a plan, with its servers made but not started.
fn all_sources(
    options: &Options,
    providers: &[Arc<dyn Provider>],
    group: &Arc<dyn ServerGroup>,
) -> Result<Sources, Error> {
    let own = providers.iter().map(|provider| Ok(Source::own(Arc::clone(provider), &options.providers)));
    let servers = options.servers.iter().map(|plan| {
        let server = Arc::clone(group).server(&*plan.config).map_err(Error::Pool)?;
        Ok(Source::of_server(server, plan.options.clone()))
    });
    Ok(Sources::new(own.chain(servers).collect::<Result<_, _>>()?))
}
