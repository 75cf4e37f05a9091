//! The providers of a runtime, each with how its tools are run.

use super::Error;
use crate::options::{Plan, ProviderOptions};
use gantry_provider::Provider;
use gantry_provider::server::{Server, ServerGroup};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One provider and how its tools are run.
#[derive(Debug, Clone)]
pub(super) struct ProviderEntry {
    /// The provider.
    pub(super) provider: Arc<dyn Provider>,
    /// The same, if it is a server.
    pub(super) server: Option<Arc<dyn Server>>,
    /// How its tools are run.
    pub(super) options: Arc<ProviderOptions>,
    /// Tells it from others that have, had or will have its id.
    pub(super) instance_id: u64,
}

impl ProviderEntry {
    /// One of Gantry's own providers.
    fn own(provider: &Arc<dyn Provider>, options: &HashMap<Arc<str>, ProviderOptions>) -> Self {
        let options = options.get(&provider.origin().provider).cloned().unwrap_or_default();
        let (provider, instance_id) = (Arc::clone(provider), next_instance_id());
        Self { provider, server: None, options: Arc::new(options), instance_id }
    }

    /// A server.
    pub(super) fn server(server: Arc<dyn Server>, options: ProviderOptions) -> Self {
        let (provider, options) = (Arc::clone(&server) as _, Arc::new(options));
        Self { provider, server: Some(server), options, instance_id: next_instance_id() }
    }

    /// The provider's id.
    pub(super) fn id(&self) -> &Arc<str> {
        &self.provider.origin().provider
    }
}

fn next_instance_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// All providers: Gantry's own in the order of the plan, then the servers in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Providers {
    order: Vec<ProviderEntry>,
    index: HashMap<Arc<str>, usize>,
}

impl Providers {
    /// These providers.
    fn new(mut order: Vec<ProviderEntry>) -> Self {
        order.sort_by_cached_key(|entry| entry.server.as_ref().map(|_| Arc::clone(entry.id())));
        let index = order.iter().enumerate().map(|(n, entry)| (Arc::clone(entry.id()), n)).collect();
        Self { order, index }
    }

    /// The providers of a plan. A server of `former` that is configured as before is kept, with its connections; the
    /// others are made, and not started.
    ///
    /// # Errors
    /// A server is of a kind that the group does not know.
    pub(super) fn of_plan(plan: &Plan, group: &Arc<dyn ServerGroup>, former: &Self) -> Result<Self, Error> {
        let own = plan.providers.iter().map(|it| Ok(ProviderEntry::own(it, &plan.options.providers)));
        let servers = plan.options.servers.iter().map(|plan| {
            let known = former
                .get(plan.id())
                .filter(|known| known.server.as_ref().is_some_and(|server| server.has_config(&*plan.config)));
            match known {
                // How its tools are run may be another way; the connection is the same.
                Some(known) => Ok(ProviderEntry { options: Arc::new(plan.options.clone()), ..known.clone() }),
                None => {
                    let server = Arc::clone(group).server(&*plan.config).map_err(Error::Pool)?;
                    Ok(ProviderEntry::server(server, plan.options.clone()))
                }
            }
        });
        Ok(Self::new(own.chain(servers).collect::<Result<_, _>>()?))
    }

    /// The provider of this id.
    pub(super) fn get(&self, id: &str) -> Option<&ProviderEntry> {
        self.index.get(id).and_then(|n| self.order.get(*n))
    }

    /// The server of this id.
    pub(super) fn server(&self, id: &str) -> Option<&Arc<dyn Server>> {
        self.get(id)?.server.as_ref()
    }

    /// All of them.
    pub(super) fn all(&self) -> &[ProviderEntry] {
        &self.order
    }

    /// Whether this very provider is one of them, not another one of its id.
    pub(super) fn has(&self, provider: &dyn Provider) -> bool {
        let found = self.get(&provider.origin().provider);
        found.is_some_and(|entry| std::ptr::addr_eq(Arc::as_ptr(&entry.provider), provider))
    }

    /// Those that are not in `other`.
    pub(super) fn without_those_of(&self, other: &Self) -> Vec<ProviderEntry> {
        self.order.iter().filter(|entry| !other.has(&*entry.provider)).cloned().collect()
    }

    /// The servers among them.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Arc<dyn Server>> {
        self.order.iter().filter_map(|entry| entry.server.as_ref())
    }

    /// The same with one more.
    pub(super) fn with(&self, entry: ProviderEntry) -> Self {
        Self::new(self.order.iter().cloned().chain([entry]).collect())
    }

    /// The same without one.
    pub(super) fn without(&self, id: &str) -> Self {
        Self::new(self.order.iter().filter(|entry| **entry.id() != *id).cloned().collect())
    }
}
