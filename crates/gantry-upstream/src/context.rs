//! What the MCP servers of one runtime share, and the engine's way to all of them: a [`ServerGroup`].

use crate::catalog::ResourceCatalog;
use crate::eras::Eras;
use crate::listing::Listing;
use crate::options::ServerSettings;
use crate::pins::PinFile;
use crate::server::UpstreamServer;
use crate::subscriptions::Subscriptions;
use crate::task_token::TaskSigner;
use arc_swap::ArcSwap;
use gantry_core::id::SessionId;
use gantry_core::names::NamePrefixes;
use gantry_core::raw;
use gantry_provider::resources::{Features, ForwardRequest, ListKind};
use gantry_provider::server::{
    Observer, RequestScope, Server, ServerConfig, ServerFactory, ServerFilter, ServerGroup,
};
use gantry_provider::{BoxFuture, ErrorObject, PinChoice, PinDiff, Pins};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fmt, io};
use tokio::sync::Semaphore;

/// The size of a notification that is still passed on to clients.
pub(crate) const CHANGE_BYTES: usize = 64 * 1024;

/// The file in the data folder that remembers the protocol era of each server.
const ERAS: &str = "eras.json";

/// What the servers of a project are run with. Opens their context, once for each runtime of the project.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    pub project: Arc<str>,
    pub data: PathBuf,
    /// The file that pins the definitions of tools; it need not exist.
    pub lock_file: PathBuf,
    /// Says whether the file counts; it always does unless given.
    pub lock_trust: Option<Arc<dyn LockTrust>>,
    pub init_concurrency: usize,
}

/// Knows the lock files that persons made. One that a tool made must not pin anything.
pub trait LockTrust: fmt::Debug + Send + Sync {
    /// Whether a file that is there counts; an error pins everything.
    fn counts(&self, file: &Path) -> Result<bool, String>;

    /// Writes the file for a person, from when on it counts.
    fn write(&self, file: &Path, write: &dyn Fn() -> io::Result<()>) -> io::Result<()>;
}

impl ServerFactory for UpstreamOptions {
    fn open(&self, observer: Arc<dyn Observer>) -> Arc<dyn ServerGroup> {
        Arc::new(UpstreamContext::new(self, observer))
    }
}

/// What the servers of one runtime share.
#[derive(Debug)]
pub(crate) struct UpstreamContext {
    pub(crate) project: Arc<str>,
    pub(crate) pins: PinFile,
    pub(crate) eras: Arc<Eras>,
    pub(crate) task_signer: TaskSigner,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) starts: Semaphore,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) catalog: ArcSwap<ResourceCatalog>,
    /// Every server that was made here and still exists. The engine owns them.
    servers: Mutex<Vec<Weak<UpstreamServer>>>,
    /// Counts servers and connections.
    numbers: AtomicU64,
}

impl UpstreamContext {
    pub(crate) fn new(options: &UpstreamOptions, observer: Arc<dyn Observer>) -> Self {
        Self {
            project: Arc::clone(&options.project),
            pins: PinFile::new(options.lock_file.clone(), options.lock_trust.clone()),
            eras: Arc::new(Eras::new(options.data.join(ERAS))),
            task_signer: TaskSigner::new(),
            observer,
            starts: Semaphore::new(options.init_concurrency.max(1)),
            subscriptions: Subscriptions::default(),
            catalog: ArcSwap::default(),
            servers: Mutex::default(),
            numbers: AtomicU64::new(0),
        }
    }

    /// A number that no server and no connection had before.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn register(&self, server: &Arc<UpstreamServer>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|server| server.strong_count() > 0);
        servers.push(Arc::downgrade(server));
    }

    /// The servers that exist, in the order of their ids.
    pub(crate) fn servers(&self) -> Vec<Arc<UpstreamServer>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut servers: Vec<_> = servers.iter().filter_map(Weak::upgrade).collect();
        servers.sort_by(|a, b| a.id().cmp(b.id()));
        servers
    }

    pub(crate) fn selected_servers(&self, selected: ServerFilter<'_>) -> Vec<Arc<UpstreamServer>> {
        let mut servers = self.servers();
        servers.retain(|server| selected(&**server));
        servers
    }

    /// The present definitions of one server, or of all that are selected, as far as they are known.
    fn listings(&self, server: Option<&str>, selected: ServerFilter<'_>) -> Vec<(Arc<str>, Arc<Listing>)> {
        let servers = self.selected_servers(selected).into_iter();
        let named = servers.filter(|known| server.is_none_or(|id| *id == **known.id()));
        named.filter_map(|server| Some((Arc::clone(server.id()), server.listing()?))).collect()
    }
}

impl ServerGroup for UpstreamContext {
    fn server(self: Arc<Self>, config: &dyn ServerConfig) -> Result<Arc<dyn Server>, String> {
        let any: &dyn Any = config;
        let settings: &ServerSettings = any.downcast_ref().ok_or_else(|| {
            format!("internal error: the settings of {} are not those of an MCP server", config.id())
        })?;
        Ok(UpstreamServer::new(settings.clone(), &self))
    }

    fn refresh_pins(&self) {
        self.pins.refresh();
    }

    fn pins(&self) -> Pins {
        self.pins.summary()
    }

    fn pin_diff(&self, server: Option<&str>, selected: ServerFilter<'_>) -> Vec<PinDiff> {
        self.listings(server, selected).iter().flat_map(|(id, listing)| self.pins.diff(id, listing)).collect()
    }

    fn accept_pins(&self, choice: &PinChoice, selected: ServerFilter<'_>) -> Result<Vec<PinDiff>, String> {
        let PinChoice { server, tool, seen } = choice;
        let listings = self.listings(server.as_deref(), selected);
        if let Some(server) = server.as_deref().filter(|_| listings.is_empty()) {
            return Err(format!(
                "server {server} has not been ready yet, so there is nothing to pin; see gantry servers"
            ));
        }
        self.pins.accept(&listings, tool.as_deref(), seen.as_deref())
    }

    fn warnings(&self) -> Vec<String> {
        self.pins.read_error().into_iter().collect()
    }

    fn update_catalog(
        &self,
        selected: ServerFilter<'_>,
        prefixes: &[NamePrefixes<'_>],
        keep_owners: bool,
    ) -> Vec<(Arc<str>, ListKind)> {
        let before = self.catalog.load_full();
        let kept = keep_owners.then_some(&*before);
        let new = Arc::new(ResourceCatalog::build(&self.selected_servers(selected), prefixes, kept));
        self.catalog.store(Arc::clone(&new));
        new.changes_since(&before)
    }

    fn catalog(&self, kind: ListKind, selected: ServerFilter<'_>) -> String {
        let servers = self.selected_servers(selected);
        let visible: BTreeSet<&str> = servers.iter().map(|server| &**server.id()).collect();
        self.catalog.load().list_json(kind, |server| visible.contains(server))
    }

    fn features(&self, selected: ServerFilter<'_>) -> Features {
        let (mut features, mut extensions) = (Features::default(), BTreeMap::<String, String>::new());
        for listing in self.selected_servers(selected).iter().filter_map(|server| server.listing()) {
            features.resources |= listing.offers("resources");
            features.prompts |= listing.offers("prompts");
            features.completions |= listing.offers("completions");
            features.logging |= listing.offers("logging");
            let own = raw::member(&listing.about.capabilities, "extensions").and_then(raw::members);
            for (name, value) in own.unwrap_or_default() {
                extensions.entry(name.into_owned()).or_insert_with(|| value.to_owned());
            }
        }
        let text = || raw::object(extensions.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        features.extensions = (!extensions.is_empty()).then(text);
        features
    }

    fn request<'a>(
        &'a self,
        request: ForwardRequest,
        scope: &'a dyn RequestScope,
    ) -> BoxFuture<'a, Result<String, ErrorObject>> {
        Box::pin(self.forward(request, scope))
    }

    fn end_session(&self, session: SessionId) -> Option<BoxFuture<'static, ()>> {
        self.drop_subscriptions(session)
    }
}
