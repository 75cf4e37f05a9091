//! MCP servers whose tools are missing now. The command line names them; models do not learn of them.

use super::typed;
use crate::client::ApiClient;
use crate::term;
use gantry_core::names::sanitised;
use gantry_server::model::{HealthStatus, Server};

pub(super) struct UnavailableServer {
    server: Server,
    /// Why not, as the end of a sentence: `is down`.
    pub(super) is: &'static str,
}

impl UnavailableServer {
    pub(super) async fn list(client: &ApiClient, project: &str) -> anyhow::Result<Vec<Self>> {
        let servers = client.servers(Some(project)).await?;
        let unavailable = |server: Server| {
            let is = match (server.health, &*server.status) {
                (HealthStatus::Off, _) => "is switched off",
                (_, "starting") => "is still starting",
                (HealthStatus::Red, _) => "is down",
                _ => return None,
            };
            Some(Self { server, is })
        };
        let mut servers: Vec<Self> = servers.into_iter().filter_map(unavailable).collect();
        // A server may run twice: for the active agent and for the others.
        servers.sort_by(|a, b| a.id().cmp(b.id()));
        servers.dedup_by(|a, b| a.id() == b.id());
        Ok(servers)
    }

    pub(super) fn id(&self) -> &str {
        &self.server.id
    }

    /// Whether its configuration switches it off.
    pub(super) fn is_deliberate(&self) -> bool {
        self.server.health == HealthStatus::Off && self.server.last_error.is_none()
    }

    /// Names the server, and the command that explains `what`.
    fn warn(&self, what: &str) {
        let (id, what) = (term::sanitize(self.id()), typed(what, &self.server.project));
        term::eprint(&format!("server {id} {}; see gantry doctor {what}", self.is));
    }
}

/// Names the servers whose tools are missing in a list.
pub(super) async fn warn_unavailable(client: &ApiClient, project: &str) -> anyhow::Result<()> {
    let servers = UnavailableServer::list(client, project).await?;
    servers.iter().filter(|server| !server.is_deliberate()).for_each(|server| server.warn(server.id()));
    Ok(())
}

/// Names the servers that may own a tool that was not found: by its prefix, or because they have no prefix.
pub(super) async fn warn_possible_owner(
    client: &ApiClient,
    project: &str,
    tool: &str,
    unprefixed: &[String],
) -> anyhow::Result<()> {
    for server in UnavailableServer::list(client, project).await? {
        let id = server.id();
        let prefixes = [format!("{id}__"), format!("{}__", sanitised(id)), format!("@{id}/")];
        if unprefixed.iter().any(|it| it == id) || prefixes.iter().any(|prefix| tool.starts_with(prefix)) {
            server.warn(tool);
        }
    }
    Ok(())
}
