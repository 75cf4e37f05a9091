//! Keeps the pool and the catalog in step with the providers: what changes there is put together anew, off the async
//! workers, one time after the other, and clients are told once it can be seen.

use super::Runtime;
use super::pool::{self, Before, Built};
use super::setup::State;
use super::sources::{Source, Sources};
use crate::event::EventKind;
use crate::services::ChangeNotice;
use arc_swap::ArcSwap;
use gantry_core::digest::Digest;
use gantry_core::toolset::Pool;
use gantry_provider::Provider;
use gantry_provider::resources::{Change, ListKind};
use gantry_provider::server::{PublishCatalog, ServerGroup};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, SetOnce, broadcast, watch};
use tokio::time::Instant;

/// Providers often change together, at the start above all; their changes are taken in together.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// How long the first listing waits for servers that are slow to start. They appear later, and clients are notified.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Where tools come from, and what was made of it.
#[derive(Debug)]
pub(super) struct Upstreams {
    /// What did not get into the pool.
    pub(super) outside: ArcSwap<Built>,
    /// The servers as a group.
    pub(super) group: Arc<dyn ServerGroup>,
    /// Wakes the one who rebuilds.
    pub(super) dirty: Arc<Notify>,
    /// The number of requests for a rebuild, and how many of them are done.
    asked: AtomicU64,
    done: watch::Sender<u64>,
    /// Set once every server of the set-up was ready or has failed, and the pool shows it.
    pub(super) settled: SetOnce<()>,
    /// Until when callers wait for that.
    discovery_deadline: Instant,
    /// Held while a provider comes or goes.
    pub(super) editing: Mutex<()>,
}

impl Upstreams {
    /// These providers; `built` is what can be seen of them already.
    pub(super) fn new(sources: &Sources, built: &Built, group: Arc<dyn ServerGroup>) -> Self {
        let slowest = sources.servers().map(|server| server.startup_timeout()).max().unwrap_or_default();
        Self {
            discovery_deadline: Instant::now() + slowest.min(FIRST_LOOK),
            outside: ArcSwap::from_pointee(built.clone()),
            group,
            dirty: Arc::new(Notify::new()),
            asked: AtomicU64::new(0),
            done: watch::Sender::new(0),
            settled: SetOnce::new(),
            editing: Mutex::new(()),
        }
    }
}

impl Runtime {
    /// What connected clients may want to hear of, from now on; of all runtimes of the process.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.services.changes.subscribe()
    }

    /// Whether every configured MCP server was ready once or has failed.
    pub(crate) fn has_settled(&self) -> bool {
        self.upstreams.settled.get().is_some()
    }

    /// Waits until every configured MCP server was ready once or has failed, so that the tools of all that work can be
    /// seen, but not longer than [`FIRST_LOOK`], nor than the most patient of them may take to start. After that it never
    /// waits again.
    pub async fn settled(&self) {
        if self.has_settled() {
            return;
        }
        tokio::select! {
            () = self.closing.cancelled() => {}
            _ = self.upstreams.settled.wait() => {}
            () = tokio::time::sleep_until(self.upstreams.discovery_deadline) => {}
        }
    }

    /// Whether a client may have listed the tools, and so knows which provider each bare name belongs to.
    fn was_seen(&self) -> bool {
        self.has_settled() || Instant::now() >= self.upstreams.discovery_deadline
    }

    /// Rebuilds whenever something changes, until the runtime closes.
    pub(super) async fn follow(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = self.upstreams.dirty.notified() => {}
            }
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(DEBOUNCE) => {}
            }
            self.rebuild().await;
        }
    }

    /// Wakes the one who rebuilds when a provider changes, for as long as the provider is there.
    pub(super) fn listen(&self, source: &Source) {
        let Some(mut version) = source.provider.changed() else { return };
        let (dirty, closing) = (Arc::clone(&self.upstreams.dirty), self.closing.clone());
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    changed = version.changed() => match changed {
                        Ok(()) => dirty.notify_one(),
                        Err(_) => return,
                    }
                }
            }
        });
    }

    /// Waits until what was changed by now can be seen.
    pub(crate) async fn rebuilt(&self) {
        let ticket = self.upstreams.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.upstreams.dirty.notify_one();
        let mut done = self.upstreams.done.subscribe();
        tokio::select! {
            () = self.closing.cancelled() => {}
            // The sender is ours, so it is there.
            seen = done.wait_for(|done| *done >= ticket) => drop(seen),
        }
    }

    /// The pool of now, for the next one to be made from.
    pub(super) fn before(&self) -> Before {
        Before { pool: Arc::clone(&self.state().pool), seen: self.was_seen() }
    }

    /// Builds the pool and the catalog of these providers. It is work, so this is not for an async worker.
    pub(super) fn build(&self, sources: &Sources, before: &Before) -> (Built, PublishCatalog) {
        let built = pool::rebuild(sources.all(), &self.services.queues.load(), before);
        let is_in = |server: &dyn Provider| {
            sources.has(server) && !built.left_out.contains_key(&server.origin().provider)
        };
        let beginnings = pool::beginnings(sources.all());
        let catalog = self.upstreams.group.prepare_catalog(&is_in, &beginnings, before.seen);
        (built, catalog)
    }

    async fn rebuild(self: &Arc<Self>) {
        let ticket = self.upstreams.asked.load(Ordering::Acquire);
        let state = self.state();
        let sources = Arc::clone(&state.sources);
        // Asked before building: what a server has by then is in the pool for certain.
        let settled = sources.servers().all(|server| server.has_settled());
        let before = self.before();
        let rt = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || {
            rt.upstreams.group.refresh_pins();
            rt.build(&sources, &before)
        });
        let shown = match work.await {
            Ok((built, catalog)) => {
                if !self.put(&state.sources, built, catalog) {
                    // Those who wait for this go on waiting: another rebuild follows.
                    return;
                }
                true
            }
            // The next one may not come, so waiting for it would help no caller.
            Err(error) => {
                tracing::error!("the tools could not be put together anew: {error}");
                false
            }
        };
        self.upstreams.done.send_replace(ticket);
        if settled && shown && self.upstreams.settled.set(()).is_ok() {
            self.warn();
        }
    }

    /// Shows a new pool and a new catalog, and tells connected clients.
    /// Shown only if the providers are those that it was made of; otherwise there will be another one.
    fn put(&self, sources: &Arc<Sources>, built: Built, catalog: PublishCatalog) -> bool {
        let pool = {
            let _editing = self.upstreams.editing.lock().unwrap_or_else(PoisonError::into_inner);
            let state = self.state();
            if !Arc::ptr_eq(&state.sources, sources) {
                self.upstreams.dirty.notify_one();
                return false;
            }
            self.state.store(Arc::new(State { pool: Arc::clone(&built.pool), ..(*state).clone() }));
            self.toolsets.forget_others(&built.pool);
            Arc::clone(&state.pool)
        };
        self.show(&pool, built, catalog);
        true
    }

    /// Tells connected clients what is other than in the pool before.
    pub(super) fn show(&self, pool: &Arc<Pool>, built: Built, catalog: PublishCatalog) {
        self.warn_of(&built);
        let now = Arc::clone(&built.pool);
        let changed = catalog();
        self.upstreams.outside.store(Arc::new(built));
        for (provider, event) in differences(pool, &now) {
            self.events.emit(None, event);
            self.tell(Change::ListChanged { provider, kind: ListKind::Tools });
        }
        for (provider, kind) in changed {
            self.tell(Change::ListChanged { provider, kind });
        }
    }

    /// Logs what is left out now and was not before; of each provider's tools only the first, for a server can bring
    /// thousands. Tools that are left out from the start are told of when everything has started.
    fn warn_of(&self, built: &Built) {
        let before = self.upstreams.outside.load();
        for (provider, reason) in &built.left_out {
            if before.left_out.get(provider) != Some(reason) {
                tracing::warn!("{provider} is left out: {reason}");
            }
        }
        if !self.has_settled() {
            return;
        }
        let known: HashSet<_> = before.dropped.iter().collect();
        let mut new: BTreeMap<&Arc<str>, Vec<(&str, &str)>> = BTreeMap::new();
        for (provider, tool, why) in built.dropped.iter().filter(|dropped| !known.contains(dropped)) {
            new.entry(provider).or_default().push((tool, why));
        }
        for (provider, tools) in new {
            if let [(tool, why), others @ ..] = tools.as_slice() {
                let more = if others.is_empty() { "" } else { "; gantry doctor names the others" };
                tracing::warn!("tool {tool:?} of {provider} is left out: {why}{more}");
            }
        }
    }
}

/// What each provider has other than before: an event for those that have something.
fn differences(before: &Arc<Pool>, now: &Arc<Pool>) -> Vec<(Arc<str>, EventKind)> {
    if Arc::ptr_eq(before, now) {
        return Vec::new();
    }
    type Seen = BTreeMap<Arc<str>, BTreeMap<Arc<str>, (Digest, bool)>>;
    let seen = |pool: &Pool| {
        let mut seen = Seen::new();
        for tool in pool.tools() {
            let of = seen.entry(Arc::clone(&tool.key.provider)).or_default();
            of.insert(Arc::clone(&tool.name), (tool.fingerprint, tool.quarantined().is_some()));
        }
        seen
    };
    let (old, new, none) = (seen(before), seen(now), BTreeMap::new());
    let mut providers: Vec<&Arc<str>> = old.keys().chain(new.keys()).collect();
    providers.sort();
    providers.dedup();
    let event = |provider: &Arc<str>| {
        let (old, new) = (old.get(provider).unwrap_or(&none), new.get(provider).unwrap_or(&none));
        let missing = |these: &BTreeMap<Arc<str>, _>, those: &BTreeMap<Arc<str>, _>| {
            these.keys().filter(|name| !those.contains_key(*name)).cloned().collect::<Vec<_>>()
        };
        let (added, removed) = (missing(new, old), missing(old, new));
        let other = new.iter().filter(|(name, tool)| old.get(*name).is_some_and(|old| old != *tool));
        let changed: Vec<_> = other.map(|(name, _)| Arc::clone(name)).collect();
        let same = added.is_empty() && removed.is_empty() && changed.is_empty();
        let server = Arc::clone(provider);
        (!same).then(|| (Arc::clone(provider), EventKind::ToolsChanged { server, added, changed, removed }))
    };
    providers.into_iter().filter_map(event).collect()
}
