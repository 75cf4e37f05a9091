//! The MCP servers of a runtime: started, watched, added, removed and pinned while it runs.

use super::Runtime;
use super::pool;
use super::setup::State;
use super::sources::{Source, Sources};
use crate::provider::mcp::McpServer;
use crate::provider::mcp::listing::Listing;
use crate::servers::{Light, LockDiff, ServerSettings, ServerStatus};
use gantry_core::Tool;
use gantry_provider::Provider as _;
use std::sync::{Arc, PoisonError};

impl Runtime {
    /// How every MCP server is doing, in the order of their ids.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        let (outside, pool) = (self.upstreams.outside.load(), self.pool());
        let sources = self.sources();
        let quarantined = |id: &str| {
            let unusable = |tool: &&Arc<Tool>| *tool.key.provider == *id && tool.quarantined().is_some();
            pool.tools().iter().filter(unusable).count()
        };
        let status = |server: &Arc<McpServer>| match outside.left_out.get(server.id()) {
            // It may well be there, but nothing of it can be used.
            Some(reason) => ServerStatus {
                light: Light::Red,
                status: "down",
                last_error: Some(reason.clone()),
                ..server.status()
            },
            None => {
                let status = ServerStatus { quarantined: quarantined(server.id()), ..server.status() };
                // It is there, but the tools that it has now cannot be called before they are in the pool.
                let is_early = status.status == "ready" && !outside.has_heard(server);
                if is_early {
                    ServerStatus { light: Light::Yellow, status: "starting", ..status }
                } else {
                    status
                }
            }
        };
        let of_agent = |status| ServerStatus { agent: self.active.clone(), ..status };
        sources.servers().map(status).map(of_agent).collect()
    }

    /// Starts one more server. It is there until it is removed or the process ends.
    ///
    /// # Errors
    /// There is a provider of that id already, or the settings cannot be used.
    pub async fn add_server(&self, settings: ServerSettings) -> Result<(), String> {
        if self.closing.is_cancelled() {
            return Err("Gantry is shutting down".to_owned());
        }
        let server = McpServer::new(settings, &self.upstreams.hub);
        let source = Source::of_server(Arc::clone(&server));
        pool::check(std::slice::from_ref(&source), &self.commons.queues.load())
            .map_err(|error| error.to_string())?;
        {
            let _editing = self.upstreams.editing.lock().unwrap_or_else(PoisonError::into_inner);
            let sources = self.sources();
            if sources.get(server.id()).is_some() || *server.id() == self.output_tool.key.provider {
                return Err(format!("there is a provider {} already; remove it first", server.id()));
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

    /// Stops a server and takes its tools away, also if nobody waits for it. Returns whether there was one.
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
    pub fn lock_diff(&self, server: Option<&str>) -> Vec<LockDiff> {
        let lock = &self.upstreams.hub.lock;
        self.listed(server).iter().flat_map(|(id, listing)| lock.diff(id, listing)).collect()
    }

    /// Pins what the servers have now: everything, or only one server, or only one tool of it. Servers that are down
    /// keep what is pinned of them. Returns what was accepted.
    ///
    /// # Errors
    /// The file cannot be written, or what there is now is not what was `seen` ([`LockDiff::revision`]); nothing is
    /// pinned then.
    pub async fn lock_accept(
        &self,
        server: Option<&str>,
        tool: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Vec<LockDiff>, String> {
        let listed = self.listed(server);
        if let Some(server) = server.filter(|_| listed.is_empty()) {
            return Err(format!(
                "server {server} has not been ready yet, so there is nothing to pin; see gantry servers"
            ));
        }
        let hub = Arc::clone(&self.upstreams.hub);
        let (tool, seen) = (tool.map(str::to_owned), seen.map(str::to_owned));
        let accept = move || hub.lock.accept(&listed, tool.as_deref(), seen.as_deref());
        let accepted = tokio::task::spawn_blocking(accept).await.map_err(|error| error.to_string())??;
        self.rebuilt().await;
        Ok(accepted)
    }

    /// What the servers have, as far as it is known.
    fn listed(&self, server: Option<&str>) -> Vec<(Arc<str>, Arc<Listing>)> {
        let sources = self.sources();
        let meant = sources.servers().filter(|known| server.is_none_or(|id| *id == **known.id()));
        meant.filter_map(|server| Some((Arc::clone(server.id()), server.listing()?))).collect()
    }
}
