//! Replaces the snapshot of a runtime: at its start, when a provider has other tools, when a server comes or goes, and when
//! the configuration changes.
//!
//! Options, providers and pool come into force in one step, built off the async workers, one snapshot after the other.
//! Calls that began before go on under the former one, at the providers that they were permitted for.

use super::pool::{self, Excluded};
use super::providers::{ProviderEntry, Providers};
use super::{Runtime, Snapshot};
use crate::event::EventKind;
use crate::options::{Options, Plan};
use crate::projects::DRAIN;
use gantry_core::Tool;
use gantry_core::toolset::Pool;
use gantry_provider::Provider;
use gantry_provider::resources::{Change, ListKind};
use gantry_provider::server::Server;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Providers often change together, at the start above all; their changes are taken in together.
const DEBOUNCE: Duration = Duration::from_millis(20);

impl Runtime {
    /// Waits until every configured MCP server was ready once or has failed, so that the tools of all that work can be
    /// seen; at most ten seconds, or the longest startup timeout if that is less. After that it never waits again.
    pub async fn settled(&self) {
        // The usual case needs no receiver and no timer.
        if self.snapshot().discovered {
            return;
        }
        let mut generation = self.generation.subscribe();
        tokio::select! {
            biased;
            // The sender is this runtime's own, so it is there.
            seen = generation.wait_for(|_| self.snapshot().discovered) => drop(seen),
            () = self.closing.cancelled() => {}
            () = tokio::time::sleep_until(self.discovery_deadline) => {}
        }
    }

    /// Refreshes the snapshot whenever a provider changes, until the runtime closes.
    pub(super) async fn follow_changes(self: Arc<Self>) {
        let due = || async {
            self.changed.notified().await;
            tokio::time::sleep(DEBOUNCE).await;
        };
        while self.closing.run_until_cancelled(due()).await.is_some() {
            self.refresh().await;
        }
    }

    /// Takes in what the providers have now, to its end also if its caller is gone.
    pub(crate) async fn refresh(self: &Arc<Self>) {
        let rt = Arc::clone(self);
        let refresh = self.tasks.spawn(async move {
            let _building = rt.building.enter().await;
            let now = rt.snapshot();
            rt.install(Arc::clone(&now.options), Arc::clone(&now.providers)).await;
        });
        if let Err(error) = refresh.await {
            tracing::error!("the tools could not be refreshed: {error}");
        }
    }

    /// Applies a changed configuration. Calls that still run at servers that are gone have been let in under the old
    /// rules; they get the time of a switch to end.
    pub(crate) async fn reconfigure(self: &Arc<Self>, plan: Plan) {
        let gone = self.apply(plan, true).await;
        self.log_warnings();
        for server in gone {
            let closing = self.closing.clone();
            self.tasks.spawn(async move {
                closing.run_until_cancelled(server.idle(DRAIN)).await;
                server.close().await;
            });
        }
    }

    /// Puts a plan that was checked in force. Servers whose settings are as before are left alone, with their connections;
    /// Gantry's own providers too, unless `is_reload`, which has them read their documents again. Returns the servers that
    /// are gone, which are still to be closed. The caller sees to it that plans of one runtime are applied one at a time.
    pub(crate) async fn apply(self: &Arc<Self>, plan: Plan, is_reload: bool) -> Vec<Arc<dyn Server>> {
        let former = Arc::clone(&self.snapshot().providers);
        let providers = match Providers::of_plan(&plan, &self.servers, &former) {
            Ok(providers) => Arc::new(providers),
            // The plan was checked, so this is a mistake of the program.
            Err(error) => {
                tracing::error!("the configuration cannot be applied: {error}");
                return Vec::new();
            }
        };
        let none = Providers::default();
        providers.prepare(if is_reload { &none } else { &former }).await;
        let _building = self.building.enter().await;
        if self.closing.is_cancelled() {
            // What is started from here on would not be closed.
            return Vec::new();
        }
        let gone = former.without_those_of(&providers);
        self.install(Arc::new(plan.options), providers).await;
        gone.into_iter().filter_map(|entry| entry.server).collect()
    }

    /// Builds the snapshot of these options and providers, puts it in force, starts the servers that are new, and notifies
    /// connected clients. To be called in `building`.
    pub(super) async fn install(self: &Arc<Self>, options: Arc<Options>, providers: Arc<Providers>) {
        let former = self.snapshot();
        let added = providers.without_those_of(&former.providers);
        // Order: before the tools are taken, so that no change of them is missed.
        added.iter().for_each(|entry| self.listen(entry));
        let (rt, before) = (Arc::clone(self), Arc::clone(&former));
        let parts = (Arc::clone(&options), Arc::clone(&providers));
        let work = tokio::task::spawn_blocking(move || rt.build_snapshot(&before, parts));
        let (now, catalog_changes) = work.await.unwrap_or_else(|error| {
            tracing::error!("the tools could not be put together anew: {error}");
            let is_same = Arc::ptr_eq(&former.options, &options);
            // Without a pool of its own nothing of a new configuration can be called; the next change makes one. Under the
            // same options the former pool is right: tools of a provider that is gone are refused.
            let build = if is_same { Arc::clone(&former.build) } else { Arc::default() };
            (former.next(options, providers, build, former.discovered), Vec::new())
        });
        let now = Arc::new(now);
        self.snapshot.store(Arc::clone(&now));
        self.output_provider.answers_within(now.options.limits.tool_response_max_bytes.size());
        self.announce(&former, &now, catalog_changes);
        self.generation.send_modify(|generation| *generation += 1);
        if now.discovered && !former.discovered {
            self.log_warnings();
        }
        if !added.is_empty() {
            added.into_iter().filter_map(|entry| entry.server).for_each(Server::start);
            // Servers that are switched off have nothing to announce.
            self.changed.notify_one();
        }
    }

    /// Builds the snapshot and the catalog of these providers. It is work, so this is not for an async worker.
    fn build_snapshot(
        &self,
        former: &Snapshot,
        (options, providers): (Arc<Options>, Arc<Providers>),
    ) -> (Snapshot, Vec<(Arc<str>, ListKind)>) {
        self.servers.refresh_pins();
        // Order: asked before the tools are taken: what a server has by then is in the pool for certain.
        let discovered = former.discovered || providers.servers().all(|server| server.has_settled());
        // A client may have listed the tools, and so knows which provider each name without a prefix belongs to.
        let keep_owners = former.discovered || Instant::now() >= self.discovery_deadline;
        let build = pool::build(providers.all(), former.pool(), keep_owners);
        let prefixes = pool::name_prefixes(providers.all());
        let is_in = |server: &dyn Provider| providers.has(server);
        let changes = self.servers.update_catalog(&is_in, &prefixes, keep_owners);
        (former.next(options, providers, Arc::new(build), discovered), changes)
    }

    /// Has the snapshot refreshed when a provider changes, for as long as the provider is there.
    fn listen(&self, entry: &ProviderEntry) {
        let Some(mut version) = entry.provider.subscribe() else { return };
        let (changed, closing) = (Arc::clone(&self.changed), self.closing.clone());
        self.tasks.spawn(closing.run_until_cancelled_owned(async move {
            while version.changed().await.is_ok() {
                changed.notify_one();
            }
        }));
    }

    /// Logs what is excluded now, and notifies connected clients of what is other than before.
    fn announce(&self, former: &Snapshot, now: &Snapshot, changed: Vec<(Arc<str>, ListKind)>) {
        if former.discovered {
            log_excluded(&former.build.excluded, &now.build.excluded);
        }
        if former.revision == 0 {
            // No client knows anything of a runtime before its first snapshot.
            return;
        }
        for (provider, [added, changed, removed]) in tool_changes(former.pool(), now.pool()) {
            let server = Arc::clone(&provider);
            self.events.emit(None, EventKind::ToolsChanged { server, added, changed, removed });
            self.notify_clients(Change::ListChanged { provider, kind: ListKind::Tools });
        }
        for (provider, kind) in changed {
            self.notify_clients(Change::ListChanged { provider, kind });
        }
    }

    /// Logs what looks wrong in the configuration.
    fn log_warnings(&self) {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
    }
}

/// Logs which tools are excluded now and were not before; of each provider's only the first, for a server can bring
/// thousands. Those that are excluded from the start are among the warnings that are logged when everything has started.
fn log_excluded(former: &[Excluded], now: &[Excluded]) {
    let known: HashSet<_> = former.iter().collect();
    let mut logged = HashSet::new();
    for (provider, tool, why) in now.iter().filter(|tool| !known.contains(tool)) {
        if logged.insert(provider) {
            tracing::warn!("tool {tool:?} of {provider} is left out: {why}; gantry doctor names all");
        }
    }
}

/// The names of the tools that a provider has more than before, has changed, and has no longer.
type ToolChanges = [Vec<Arc<str>>; 3];

/// The changes of each provider that has other tools than before.
fn tool_changes(former: &Arc<Pool>, now: &Arc<Pool>) -> BTreeMap<Arc<str>, ToolChanges> {
    let mut changes: BTreeMap<Arc<str>, ToolChanges> = BTreeMap::new();
    if Arc::ptr_eq(former, now) {
        return changes;
    }
    for tool in now.tools() {
        let old = find_same(former, tool);
        let is_same = |old: &Arc<Tool>| {
            old.fingerprint == tool.fingerprint && old.quarantined().is_some() == tool.quarantined().is_some()
        };
        if !old.is_some_and(is_same) {
            let [added, changed, _] = changes.entry(Arc::clone(&tool.key.provider)).or_default();
            if old.is_some() { changed } else { added }.push(Arc::clone(&tool.name));
        }
    }
    for tool in former.tools().iter().filter(|tool| find_same(now, tool).is_none()) {
        let [_, _, removed] = changes.entry(Arc::clone(&tool.key.provider)).or_default();
        removed.push(Arc::clone(&tool.name));
    }
    changes
}

fn find_same<'p>(pool: &'p Pool, tool: &Tool) -> Option<&'p Arc<Tool>> {
    pool.named(&tool.name).filter(|other| other.key.provider == tool.key.provider)
}
