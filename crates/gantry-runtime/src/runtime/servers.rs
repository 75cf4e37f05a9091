//! The servers of a runtime: their status; restarting and pinning them while it runs.

use super::{Runtime, Snapshot};
use gantry_core::Tool;
use gantry_provider::server::Server;
use gantry_provider::{HealthStatus, PinChoice, PinDiff, Pins, Provider, ProviderStatus};
use std::sync::Arc;

impl Runtime {
    /// How every API is doing, in the order of the configuration.
    pub fn apis(&self) -> Vec<ProviderStatus> {
        let snapshot = self.snapshot();
        let services = snapshot.providers.all().iter().filter_map(|entry| entry.provider.service_status());
        services.map(|status| self.completed(&snapshot, status)).collect()
    }

    /// The status of a provider, with what only the engine knows.
    fn completed(&self, snapshot: &Snapshot, status: ProviderStatus) -> ProviderStatus {
        let unusable = |tool: &&Arc<Tool>| *tool.key.provider == *status.id && tool.quarantined().is_some();
        let quarantined = snapshot.pool().tools().iter().filter(unusable).count();
        let (project, agent) = (Arc::clone(&self.project), self.active.clone());
        ProviderStatus { project, agent, quarantined, ..status }
    }

    /// How every server is doing, in the order of their ids.
    pub fn servers(&self) -> Vec<ProviderStatus> {
        let snapshot = self.snapshot();
        let status = |server: &Arc<dyn Server>| {
            let status = self.completed(&snapshot, server.status());
            if status.status == "ready" && !snapshot.build.is_current(&**server) {
                // It is there, but the tools that it has now cannot be called before they are in the pool.
                return ProviderStatus { health: HealthStatus::Yellow, status: "starting".into(), ..status };
            }
            status
        };
        snapshot.providers.servers().map(status).collect()
    }

    /// Stops a server and starts it anew, at once. Returns whether there is one.
    pub(crate) fn restart_server(&self, id: &str) -> bool {
        self.snapshot().providers.server(id).inspect(|server| server.restart()).is_some()
    }

    /// What is different between the pinned definitions and those that the servers have now; of one server, or of all.
    pub fn lock_diff(&self, server: Option<&str>) -> Vec<PinDiff> {
        let snapshot = self.snapshot();
        self.servers.pin_diff(server, &|server| snapshot.providers.has(server))
    }

    pub fn lock_pins(&self) -> Pins {
        self.servers.pins()
    }

    /// Pins what the servers have now, as far as it is chosen. Servers that are down keep what is pinned of them. Returns
    /// what was accepted.
    ///
    /// # Errors
    /// The file cannot be written, or what there is now is not what was seen; nothing is pinned then.
    pub async fn lock_accept(self: &Arc<Self>, choice: PinChoice) -> Result<Vec<PinDiff>, String> {
        let (group, snapshot) = (Arc::clone(&self.servers), self.snapshot());
        let accept =
            move || group.accept_pins(&choice, &|server: &dyn Provider| snapshot.providers.has(server));
        let accepted = tokio::task::spawn_blocking(accept).await.map_err(|error| error.to_string())??;
        self.refresh().await;
        Ok(accepted)
    }
}
