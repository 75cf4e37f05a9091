//! A changed configuration, applied to a runtime that goes on running.
//!
//! The new rules, the new providers and the pool of what they have by then come into force in one step. Calls that began
//! before go on under the old ones, at the providers that they were permitted for.

use super::Runtime;
use super::pool::Built;
use super::setup::{Setup, State};
use super::sources::{Source, Sources};
use crate::options::{Options, Plan};
use crate::projects::DRAIN;
use gantry_provider::Provider;
use gantry_provider::server::Server;
use std::sync::{Arc, PoisonError};
use tokio_util::sync::CancellationToken;

/// The providers of a changed configuration beside those before.
struct Change {
    sources: Arc<Sources>,
    /// Servers that are not there any more, or are other ones now.
    gone: Vec<Arc<dyn Server>>,
    /// Servers that are new, and have to be started.
    fresh: Vec<Source>,
}

impl Runtime {
    /// Applies a plan that was checked. Servers whose settings are as before are left alone, with their connections.
    pub(crate) async fn reconfigure(self: &Arc<Self>, plan: Plan) {
        let Plan { options, providers } = plan;
        let providers: Vec<_> = providers.into_iter().map(|provider| self.known_or(provider)).collect();
        for provider in &providers {
            if let Err(reason) = provider.warm_up().await {
                tracing::warn!("{} is not available: {reason}", provider.origin().provider);
            }
        }
        let change = self.change(&options, &providers);
        let (rt, sources, before) = (Arc::clone(self), Arc::clone(&change.sources), self.before());
        let built = tokio::task::spawn_blocking(move || rt.build(&sources, &before));
        // Without a pool of its own nothing of the new configuration can be called; the next rebuild makes one.
        let (built, catalog) = built.await.unwrap_or_else(|error| {
            tracing::error!("the tools could not be put together anew: {error}");
            (Built::default(), Box::new(Vec::new))
        });
        let known = self.sources();
        let pool = self.enact(&options, &change, &built);
        self.show(&pool, built, catalog);
        for source in change.sources.all().iter().filter(|source| is_new(source, &known)) {
            self.listen(source);
        }
        for source in &change.fresh {
            self.listen(source);
            source.server.iter().cloned().for_each(Server::start);
        }
        self.rebuilt().await;
        self.warn();
        // Calls that still run there have been let in under the old rules; they get the time of a switch to end.
        for server in change.gone {
            self.tasks.spawn(retire(server, self.closing.clone()));
        }
    }

    /// The provider that is there already, if it was set up in the same way.
    fn known_or(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        let sources = self.sources();
        let known = sources.get(&provider.origin().provider).map(|source| &source.provider);
        match known.filter(|known| provider.set_up().is_some() && known.set_up() == provider.set_up()) {
            Some(known) => Arc::clone(known),
            None => provider,
        }
    }

    fn change(&self, options: &Options, providers: &[Arc<dyn Provider>]) -> Change {
        let before = self.sources();
        let (mut kept, mut fresh): (Vec<Source>, Vec<Source>) = Default::default();
        for plan in &options.servers {
            let known = before.get(plan.id()).filter(|known| {
                known.server.as_ref().is_some_and(|server| server.config().is_same(&*plan.config))
            });
            match known {
                // How its tools are run may be another way; the connection is the same.
                Some(known) => kept.push(Source { options: Arc::new(plan.options.clone()), ..known.clone() }),
                None => match Arc::clone(&self.upstreams.group).server(&*plan.config) {
                    Ok(server) => fresh.push(Source::of_server(server, plan.options.clone())),
                    // The plan was checked, so this is a mistake of the program; the other servers go on.
                    Err(reason) => tracing::error!("{reason}"),
                },
            }
        }
        let is_kept =
            |server: &Arc<dyn Server>| kept.iter().any(|source| *source.id() == server.origin().provider);
        let gone = before.servers().filter(|server| !is_kept(server)).cloned().collect();
        let own = providers.iter().map(|provider| Source::own(Arc::clone(provider), &options.providers));
        let all = own.chain(kept).chain(fresh.iter().cloned());
        Change { sources: Arc::new(Sources::new(all.collect())), gone, fresh }
    }

    /// The one step. Returns the pool before.
    fn enact(&self, options: &Options, change: &Change, built: &Built) -> Arc<gantry_core::toolset::Pool> {
        let _editing = self.upstreams.editing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state();
        let (revision, setup) = (before.revision + 1, Arc::new(Setup::new(options)));
        let (sources, pool) = (Arc::clone(&change.sources), Arc::clone(&built.pool));
        self.state.store(Arc::new(State { revision, setup, sources, pool }));
        self.toolsets.clear();
        self.output_provider.answers_within(options.response_max_bytes);
        Arc::clone(&before.pool)
    }
}

/// Whether a provider of Gantry's own is not subscribed to yet.
fn is_new(source: &Source, known: &Sources) -> bool {
    let is_same =
        |other: &Source| std::ptr::addr_eq(Arc::as_ptr(&other.provider), Arc::as_ptr(&source.provider));
    source.server.is_none() && !known.all().iter().any(is_same)
}

/// Closes a server that is not there any more once its calls have ended, or their time is over.
async fn retire(server: Arc<dyn Server>, closing: CancellationToken) {
    tokio::select! {
        () = server.idle(DRAIN) => {}
        () = closing.cancelled() => {}
    }
    server.close().await;
}
