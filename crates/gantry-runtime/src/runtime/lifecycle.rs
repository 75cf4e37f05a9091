//! Starting and stopping a runtime.

use super::rebuild::Upstreams;
use super::sources::{Source, Sources};
use super::{Error, Limits, Runtime, pool};
use crate::cache::Cache;
use crate::event::{EventKind, Events};
use crate::options::{Options, ProviderOptions};
use crate::outputs::Outputs;
use crate::provider::Provider;
use crate::provider::mcp::McpServer;
use crate::provider::mcp::hub::Hub;
use crate::provider::output::OutputTool;
use crate::queue::Queues;
use crate::session::Sessions;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use gantry_core::tool::{Settings, Tool};
use gantry_store::{Recovery, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
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
    pub async fn start(
        options: Options,
        providers: Vec<Arc<dyn Provider>>,
        store: Store,
        recovery: &Recovery,
    ) -> Result<Arc<Self>, Error> {
        let queues = Queues::new(options.queues);
        let outputs = Outputs::new(&options.data);
        for provider in &providers {
            if let Err(reason) = provider.warm_up().await {
                tracing::warn!("{} is not available: {reason}", provider.origin().provider);
            }
        }
        let events = Arc::new(Events::default());
        let hub = Arc::new(Hub::open(
            Arc::clone(&options.project),
            &options.data,
            options.lock_file,
            options.init_concurrency,
            Arc::clone(&events),
        ));
        let servers = options.servers.into_iter().map(|settings| McpServer::new(settings, &hub));
        let servers = servers.map(Source::of_server);
        let own = providers.into_iter().map(|provider| own(provider, &options.providers));
        let sources = Sources::new(own.chain(servers).collect());
        pool::check(sources.all(), &queues)?;
        let built = pool::build(sources.all(), &queues);
        let output_provider: Arc<dyn Provider> =
            Arc::new(OutputTool::new(outputs.clone(), options.response_max_bytes));
        let mut specs = output_provider.tools();
        let spec = specs.pop().ok_or_else(|| Error::Pool("the output tool has no definition".into()))?;
        let name = spec.name.clone();
        let output_tool = Arc::new(Tool::new(output_provider.origin(), name, spec, Settings::default()));
        let rt = Arc::new(Self {
            project: options.project,
            limits: Limits {
                tool_timeout: options.tool_timeout,
                response_max_bytes: options.response_max_bytes,
                context_budget: options.context_budget,
                retention: options.retention,
                max_calls: options.max_calls,
            },
            policies: ArcSwap::from_pointee(options.policies),
            pool: ArcSwap::new(Arc::clone(&built.pool)),
            upstreams: Upstreams::new(sources, built, hub),
            agents: options.agents,
            toolsets: Mutex::default(),
            output_tool,
            output_provider,
            queues,
            cache: Cache::default(),
            outputs,
            store,
            events,
            sessions: Sessions::default(),
            running: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        });
        rt.report(recovery);
        rt.tasks.spawn(Arc::clone(&rt).sweep());
        rt.connect();
        Ok(rt)
    }

    /// Starts the servers and follows what changes.
    fn connect(self: &Arc<Self>) {
        let sources = self.upstreams.sources.load();
        sources.all().iter().for_each(|source| self.listen(source));
        sources.servers().for_each(McpServer::start);
        if sources.servers().next().is_none() {
            self.upstreams.settled.set(()).ok(); // Nobody else has set it yet.
            self.warn();
        }
        // The servers that are switched off have nothing to announce, so the first look is ours.
        self.upstreams.dirty.notify_one();
        self.tasks.spawn(Arc::clone(self).follow());
    }

    fn report(&self, recovery: &Recovery) {
        if !recovery.unknown.is_empty() {
            let calls = recovery.unknown.iter().map(|row| row.head.id).collect();
            self.events.emit(None, EventKind::CallsRecovered { calls });
        }
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

    /// Removes the outputs of sessions that nobody, in whatever process, has used for as long as they are kept.
    async fn sweep_once(&self) -> std::io::Result<()> {
        let (outputs, retention) = (self.outputs.clone(), self.limits.retention);
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

    /// Takes no new calls and lets the running ones end, for as long as `grace`. Returns whether all have ended.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.closing.cancel();
        self.tasks.close();
        tokio::time::timeout(grace, self.tasks.wait()).await.is_ok()
    }

    /// Lets running calls end for as long as `grace`, then cancels them, closes the providers and the store.
    pub async fn shutdown(&self, grace: Duration) {
        if !self.drain(grace).await {
            tracing::warn!("calls still run after {} s; they are canceled", grace.as_secs());
            for session in self.sessions.all() {
                session.cancellation().cancel();
            }
            if tokio::time::timeout(STOP, self.tasks.wait()).await.is_err() {
                tracing::error!("calls did not stop; their outcome is recorded as unknown at the next start");
            }
        }
        let sources = self.upstreams.sources.load_full();
        join_all(sources.all().iter().map(|source| source.provider.close())).await;
        if let Err(error) = self.store.shutdown().await {
            tracing::error!("the ledger could not be closed cleanly: {error}");
        }
    }
}

/// One of Gantry's own providers.
fn own(provider: Arc<dyn Provider>, options: &HashMap<Arc<str>, ProviderOptions>) -> Source {
    let options = options.get(&provider.origin().provider).cloned().unwrap_or_default();
    Source { provider, server: None, options: Arc::new(options) }
}
