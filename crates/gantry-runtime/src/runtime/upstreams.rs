//! The servers of a runtime: shown, added, removed, restarted and pinned while it runs.

use super::Runtime;
use super::pool;
use super::setup::State;
use super::sources::{Source, Sources};
use crate::options::ServerPlan;
use gantry_core::Tool;
use gantry_provider::server::Server;
use gantry_provider::{HealthStatus, PinChoice, PinDiff, Provider, ProviderStatus};
use std::sync::{Arc, PoisonError};

impl Runtime {
    /// How every server is doing, in the order of their ids.
    #[must_use]
    pub fn servers(&self) -> Vec<ProviderStatus> {
        let (outside, pool) = (self.upstreams.outside.load(), self.pool());
        let sources = self.sources();
        let quarantined = |id: &str| {
            let unusable = |tool: &&Arc<Tool>| *tool.key.provider == *id && tool.quarantined().is_some();
            pool.tools().iter().filter(unusable).count()
        };
        let status = |server: &Arc<dyn Server>| match outside.left_out.get(&server.origin().provider) {
            // It may well be there, but nothing of it can be used.
            Some(reason) => ProviderStatus {
                health: HealthStatus::Red,
                status: "down",
                last_error: Some(reason.clone()),
                ..server.status()
            },
            None => {
                let status =
                    ProviderStatus { quarantined: quarantined(&server.origin().provider), ..server.status() };
                // It is there, but the tools that it has now cannot be called before they are in the pool.
                let is_early = status.status == "ready" && !outside.has_heard(&**server);
                if is_early {
                    ProviderStatus { health: HealthStatus::Yellow, status: "starting", ..status }
                } else {
                    status
                }
            }
        };
        let of_agent = |status| ProviderStatus { agent: self.active.clone(), ..status };
        sources.servers().map(status).map(of_agent).collect()
    }

    /// Starts one more server. It is there until it is removed or the process ends.
    ///
    /// # Errors
    /// There is a provider of that id already, or the settings cannot be used.
    pub async fn add_server(&self, plan: ServerPlan) -> Result<(), String> {
        if self.closing.is_cancelled() {
            return Err("Gantry is shutting down".to_owned());
        }
        let ServerPlan { config, options } = plan;
        let server = Arc::clone(&self.upstreams.group).server(&*config)?;
        let source = Source::of_server(Arc::clone(&server), options);
        pool::check(std::slice::from_ref(&source), &self.services.queues.load())
            .map_err(|error| error.to_string())?;
        {
            let _editing = self.upstreams.editing.lock().unwrap_or_else(PoisonError::into_inner);
            let sources = self.sources();
            if sources.get(source.id()).is_some() || *source.id() == self.output_tool.key.provider {
                return Err(format!("there is a provider {} already; remove it first", source.id()));
            }
            pool::Apart::of(sources.all()).0.add(&source).map_err(|error| error.to_string())?;
            self.replace_sources(sources.with(source.clone()));
        }
        self.listen(&source);
        server.start();
        self.rebuilt().await;
        Ok(())
    }

    /// From now on these are the providers. To be called while `editing` is held.
    fn replace_sources(&self, sources: Sources) {
        let state = self.state();
        self.state.store(Arc::new(State {
            revision: state.revision + 1,
            sources: Arc::new(sources),
            ..(*state).clone()
        }));
    }

    /// Stops a server and takes its tools away, also if its caller is gone. Returns whether there was one.
    pub async fn remove_server(self: &Arc<Self>, id: &str) -> bool {
        let server = {
            let _editing = self.upstreams.editing.lock().unwrap_or_else(PoisonError::into_inner);
            let sources = self.sources();
            let Some(server) = sources.get(id).and_then(|source| source.server.clone()) else { return false };
            self.replace_sources(sources.without(id));
            server
        };
        let rt = Arc::clone(self);
        let removal = self.tasks.spawn(async move {
            rt.rebuilt().await;
            server.close().await;
        });
        if let Err(error) = removal.await {
            tracing::error!("server {id} may not have ended: {error}");
        }
        true
    }

    /// Stops a server and starts it anew, at once. Returns whether there is one.
    pub async fn restart_server(&self, id: &str) -> bool {
        let sources = self.sources();
        let server = sources.get(id).and_then(|source| source.server.as_ref());
        server.inspect(|server| server.restart()).is_some()
    }

    /// What is different between the pinned definitions and those that the servers have now; of one server, or of all.
    #[must_use]
    pub fn lock_diff(&self, server: Option<&str>) -> Vec<PinDiff> {
        let sources = self.sources();
        self.upstreams.group.pin_diff(server, &|server| sources.has(server))
    }

    /// Pins what the servers have now: everything, or only one server, or only one tool of it. Servers that are down
    /// keep what is pinned of them. Returns what was accepted.
    ///
    /// # Errors
    /// The file cannot be written, or what there is now is not what was `seen` ([`PinDiff::revision`]); nothing is
    /// pinned then.
    pub async fn lock_accept(
        &self,
        server: Option<&str>,
        tool: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Vec<PinDiff>, String> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let choice = PinChoice { server: owned(server), tool: owned(tool), seen: owned(seen) };
        let (group, sources) = (Arc::clone(&self.upstreams.group), self.sources());
        let accept = move || group.accept_pins(&choice, &|server: &dyn Provider| sources.has(server));
        let accepted = tokio::task::spawn_blocking(accept).await.map_err(|error| error.to_string())??;
        self.rebuilt().await;
        Ok(accepted)
    }
}
