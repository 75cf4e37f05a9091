//! The servers of a runtime: their status; adding, removing, restarting and pinning them while it runs.

use super::Runtime;
use super::pool::{self, PrefixIndex};
use super::providers::ProviderEntry;
use crate::options::ServerPlan;
use gantry_core::Tool;
use gantry_provider::server::Server;
use gantry_provider::{HealthStatus, PinChoice, PinDiff, Provider, ProviderStatus};
use std::sync::Arc;

impl Runtime {
    /// How every server is doing, in the order of their ids.
    #[must_use]
    pub fn servers(&self) -> Vec<ProviderStatus> {
        let snapshot = self.snapshot();
        let quarantined = |id: &str| {
            let unusable = |tool: &&Arc<Tool>| *tool.key.provider == *id && tool.quarantined().is_some();
            snapshot.pool().tools().iter().filter(unusable).count()
        };
        let status = |server: &Arc<dyn Server>| {
            let (id, status) = (&server.origin().provider, server.status());
            let status = ProviderStatus { agent: self.active.clone(), ..status };
            if let Some(reason) = snapshot.build.excluded.providers.get(id) {
                // It may well be there, but nothing of it can be used.
                let last_error = Some(reason.clone());
                return ProviderStatus { health: HealthStatus::Red, status: "down", last_error, ..status };
            }
            let status = ProviderStatus { quarantined: quarantined(id), ..status };
            if status.status == "ready" && !snapshot.build.is_current(&**server) {
                // It is there, but the tools that it has now cannot be called before they are in the pool.
                return ProviderStatus { health: HealthStatus::Yellow, status: "starting", ..status };
            }
            status
        };
        snapshot.providers.servers().map(status).collect()
    }

    /// Starts one more server. It is there until it is removed or the process ends.
    ///
    /// # Errors
    /// There is a provider of that id already, or the settings cannot be used.
    pub(crate) async fn add_server(self: &Arc<Self>, plan: ServerPlan) -> Result<(), String> {
        if self.closing.is_cancelled() {
            return Err("Gantry is shutting down".to_owned());
        }
        let entry = ProviderEntry::server(Arc::clone(&self.servers).server(&*plan.config)?, plan.options);
        let _building = self.building.enter().await;
        let (queues, now) = (self.services.queues.load_full(), self.snapshot());
        pool::check(std::slice::from_ref(&entry), &queues).map_err(|error| error.to_string())?;
        if now.providers.get(entry.id()).is_some() || *entry.id() == self.output_tool.key.provider {
            return Err(format!("there is a provider {} already; remove it first", entry.id()));
        }
        PrefixIndex::of(now.providers.all()).0.add(&entry).map_err(|error| error.to_string())?;
        self.install(Arc::clone(&now.options), Arc::new(now.providers.with(entry.clone()))).await;
        Ok(())
    }

    /// Stops a server and takes its tools away. Returns whether there was one.
    pub(crate) async fn remove_server(self: &Arc<Self>, id: &str) -> bool {
        let building = self.building.enter().await;
        let now = self.snapshot();
        let Some(server) = now.providers.server(id) else { return false };
        self.install(Arc::clone(&now.options), Arc::new(now.providers.without(id))).await;
        drop(building);
        server.close().await;
        true
    }

    /// Stops a server and starts it anew, at once. Returns whether there is one.
    pub(crate) fn restart_server(&self, id: &str) -> bool {
        self.snapshot().providers.server(id).inspect(|server| server.restart()).is_some()
    }

    /// What is different between the pinned definitions and those that the servers have now; of one server, or of all.
    #[must_use]
    pub fn lock_diff(&self, server: Option<&str>) -> Vec<PinDiff> {
        let snapshot = self.snapshot();
        self.servers.pin_diff(server, &|server| snapshot.providers.has(server))
    }

    /// Pins what the servers have now: everything, or only one server, or only one tool of it. Servers that are down
    /// keep what is pinned of them. Returns what was accepted.
    ///
    /// # Errors
    /// The file cannot be written, or what there is now is not what was `seen` ([`PinDiff::revision`]); nothing is
    /// pinned then.
    pub async fn lock_accept(
        self: &Arc<Self>,
        server: Option<&str>,
        tool: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Vec<PinDiff>, String> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let choice = PinChoice { server: owned(server), tool: owned(tool), seen: owned(seen) };
        let (group, snapshot) = (Arc::clone(&self.servers), self.snapshot());
        let accept =
            move || group.accept_pins(&choice, &|server: &dyn Provider| snapshot.providers.has(server));
        let accepted = tokio::task::spawn_blocking(accept).await.map_err(|error| error.to_string())??;
        self.refresh().await;
        Ok(accepted)
    }
}
