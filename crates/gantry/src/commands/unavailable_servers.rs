//! MCP servers whose tools are missing now. The command line names them; models do not learn of them.

use super::typed;
use crate::client::{ApiClient, query};
use crate::term;
use gantry_core::names::sanitised;
use gantry_server::model::{HealthStatus, Server};

/// A server that cannot be used now.
pub(super) struct UnavailableServer {
    pub(super) id: String,
    project: String,
    /// Why not, as the end of a sentence: `is down`.
    pub(super) is: &'static str,
    /// Whether its configuration switches it off.
    pub(super) is_deliberate: bool,
}

impl UnavailableServer {
    /// Every server of a project that cannot be used now.
    pub(super) async fn list(client: &ApiClient, project: &str) -> anyhow::Result<Vec<Self>> {
        let path = format!("/api/v1/servers{}", query(&[("project", Some(project))]));
        let servers: Vec<Server> = client.list(&path).await?;
        let mut servers: Vec<Self> = servers.iter().filter_map(Self::of).collect();
        // A server may run twice: for the active agent and for the others.
        servers.sort_by(|a, b| a.id.cmp(&b.id));
        servers.dedup_by(|a, b| a.id == b.id);
        Ok(servers)
    }

    fn of(server: &Server) -> Option<Self> {
        let is = match (server.health, &*server.status) {
            (HealthStatus::Off, _) => "is switched off",
            (_, "starting") => "is still starting",
            (HealthStatus::Red, _) => "is down",
            _ => return None,
        };
        let is_deliberate = server.health == HealthStatus::Off && server.last_error.is_none();
        Some(Self { id: server.id.to_string(), project: server.project.to_string(), is, is_deliberate })
    }

    /// Whether a tool of this name would belong to the server, by the prefixes of names.
    fn may_own(&self, tool: &str) -> bool {
        let prefixes =
            [format!("{}__", self.id), format!("{}__", sanitised(&self.id)), format!("@{}/", self.id)];
        prefixes.iter().any(|prefix| tool.starts_with(prefix))
    }

    /// Names the server, and the command that explains `what`.
    fn warn(&self, what: &str) {
        let (id, what) = (term::sanitize(&self.id), typed(what, &self.project));
        term::eprint(&format!("server {id} {}; see gantry doctor {what}", self.is));
    }
}

/// Names the servers whose tools are missing in a list.
pub(super) async fn warn_unavailable(client: &ApiClient, project: &str) -> anyhow::Result<()> {
    let servers = UnavailableServer::list(client, project).await?;
    servers.iter().filter(|server| !server.is_deliberate).for_each(|server| server.warn(&server.id));
    Ok(())
}

/// Names the servers that may own a tool that was not found: by its prefix, or because they have no prefix.
pub(super) async fn warn_possible_owner(
    client: &ApiClient,
    project: &str,
    tool: &str,
    unprefixed: &[String],
) -> anyhow::Result<()> {
    let servers = UnavailableServer::list(client, project).await?;
    let owners = servers.iter().filter(|server| server.may_own(tool) || unprefixed.contains(&server.id));
    owners.for_each(|server| server.warn(tool));
    Ok(())
}
