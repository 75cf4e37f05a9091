//! The providers of a runtime: a snapshot that is replaced when one comes or goes.

use crate::options::ProviderOptions;
use gantry_provider::Provider;
use gantry_provider::server::Server;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One provider and how its tools are run.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The provider.
    pub(super) provider: Arc<dyn Provider>,
    /// The same, if it is a server.
    pub(super) server: Option<Arc<dyn Server>>,
    /// How its tools are run.
    pub(super) options: Arc<ProviderOptions>,
    /// Tells it from others that have, had or will have its id.
    pub(super) number: u64,
}

impl Source {
    /// One of Gantry's own providers.
    pub(super) fn own(provider: Arc<dyn Provider>, options: &HashMap<Arc<str>, ProviderOptions>) -> Self {
        let options = options.get(&provider.origin().provider).cloned().unwrap_or_default();
        Self { provider, server: None, options: Arc::new(options), number: next_number() }
    }

    /// A server.
    pub(super) fn of_server(server: Arc<dyn Server>, options: ProviderOptions) -> Self {
        let (provider, options) = (Arc::clone(&server) as _, Arc::new(options));
        Self { provider, server: Some(server), options, number: next_number() }
    }

    /// The provider's id.
    pub(super) fn id(&self) -> &Arc<str> {
        &self.provider.origin().provider
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// All providers: Gantry's own in the order of the set-up, then the servers in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Sources {
    order: Vec<Source>,
    index: HashMap<Arc<str>, usize>,
}

impl Sources {
    /// These providers.
    pub(super) fn new(mut order: Vec<Source>) -> Self {
        order.sort_by(|a, b| {
            let key = |source: &Source| source.server.as_ref().map(|_| Arc::clone(source.id()));
            key(a).cmp(&key(b))
        });
        let index = order.iter().enumerate().map(|(n, source)| (Arc::clone(source.id()), n)).collect();
        Self { order, index }
    }

    /// The provider of this id.
    pub(super) fn get(&self, id: &str) -> Option<&Source> {
        self.index.get(id).and_then(|n| self.order.get(*n))
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Source] {
        &self.order
    }

    /// Whether this very provider is one of them, not another one of its id.
    pub(super) fn has(&self, provider: &dyn Provider) -> bool {
        let found = self.get(&provider.origin().provider);
        found.is_some_and(|source| std::ptr::addr_eq(Arc::as_ptr(&source.provider), provider))
    }

    /// The servers among them.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Arc<dyn Server>> {
        self.order.iter().filter_map(|source| source.server.as_ref())
    }

    /// The same with one more.
    pub(super) fn with(&self, source: Source) -> Self {
        Self::new(self.order.iter().cloned().chain([source]).collect())
    }

    /// The same without one.
    pub(super) fn without(&self, id: &str) -> Self {
        Self::new(self.order.iter().filter(|source| **source.id() != *id).cloned().collect())
    }
}
