//! The providers of a runtime, each with how its tools are run.

use super::pool;
use crate::options::{Plan, ProviderOptions};
use futures_util::future::join_all;
use gantry_provider::Provider;
use gantry_provider::server::{Server, ServerGroup};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone)]
pub(super) struct ProviderEntry {
    pub(super) provider: Arc<dyn Provider>,
    /// The same, if it is a server.
    pub(super) server: Option<Arc<dyn Server>>,
    pub(super) options: Arc<ProviderOptions>,
    /// Tells it from others that have, had or will have its id.
    pub(super) instance_id: u64,
}

impl ProviderEntry {
    fn new(
        provider: Arc<dyn Provider>,
        server: Option<Arc<dyn Server>>,
        options: Arc<ProviderOptions>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { provider, server, options, instance_id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.provider.origin().provider
    }
}

/// All providers: Gantry's own in the order of the plan, then the servers in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Providers {
    order: Vec<ProviderEntry>,
    index: HashMap<Arc<str>, usize>,
}

impl Providers {
    /// The providers of a plan. One of `former` that is configured as before is kept, a server with its connections; the
    /// other servers are made, and not started.
    ///
    /// # Errors
    /// Two providers cannot be told apart, a name is reserved, or a server is of a kind that the group does not know.
    pub(super) fn of_plan(plan: &Plan, group: &Arc<dyn ServerGroup>, former: &Self) -> Result<Self, String> {
        let mut order = Vec::new();
        for provider in &plan.providers {
            let id = &provider.origin().provider;
            let is_same = |it: &&ProviderEntry| {
                let digest = it.provider.config_digest();
                Arc::ptr_eq(&it.provider, provider) || digest.is_some() && digest == provider.config_digest()
            };
            let options = Arc::new(plan.options.providers.get(id).cloned().unwrap_or_default());
            order.push(match former.get(id).filter(is_same) {
                Some(known) => ProviderEntry { options, ..known.clone() },
                None => ProviderEntry::new(Arc::clone(provider), None, options),
            });
        }
        for plan in &plan.options.servers {
            let is_same =
                |it: &&ProviderEntry| it.server.as_ref().is_some_and(|it| it.has_config(&*plan.config));
            let options = Arc::new(plan.options.clone());
            order.push(match former.get(plan.id()).filter(is_same) {
                // How its tools are run may be another way; the connection is the same.
                Some(known) => ProviderEntry { options, ..known.clone() },
                None => {
                    let server = Arc::clone(group).server(&*plan.config)?;
                    ProviderEntry::new(Arc::clone(&server) as _, Some(server), options)
                }
            });
        }
        pool::check_names(&order)?;
        order.sort_by_cached_key(|entry| entry.server.as_ref().map(|_| Arc::clone(entry.id())));
        let index = order.iter().enumerate().map(|(n, entry)| (Arc::clone(entry.id()), n)).collect();
        Ok(Self { order, index })
    }

    /// Gets Gantry's own providers ready, all at once, except those that are ready already. One that cannot is reported; the
    /// others go on.
    pub(super) async fn prepare(&self, ready: &Self) {
        let own = self.order.iter().filter(|entry| entry.server.is_none() && !ready.has(&*entry.provider));
        join_all(own.map(|entry| async {
            if let Err(reason) = entry.provider.prepare().await {
                tracing::warn!("{} is not available: {reason}", entry.id());
            }
        }))
        .await;
    }

    pub(super) fn get(&self, id: &str) -> Option<&ProviderEntry> {
        self.index.get(id).and_then(|n| self.order.get(*n))
    }

    pub(super) fn server(&self, id: &str) -> Option<&Arc<dyn Server>> {
        self.get(id)?.server.as_ref()
    }

    pub(super) fn all(&self) -> &[ProviderEntry] {
        &self.order
    }

    /// Whether this very provider is one of them, not another one of its id.
    pub(super) fn has(&self, provider: &dyn Provider) -> bool {
        let found = self.get(&provider.origin().provider);
        found.is_some_and(|entry| std::ptr::addr_eq(Arc::as_ptr(&entry.provider), provider))
    }

    pub(super) fn without_those_of(&self, other: &Self) -> Vec<ProviderEntry> {
        self.order.iter().filter(|entry| !other.has(&*entry.provider)).cloned().collect()
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &Arc<dyn Server>> {
        self.order.iter().filter_map(|entry| entry.server.as_ref())
    }
}
