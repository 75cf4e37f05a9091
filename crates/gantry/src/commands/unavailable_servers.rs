//! MCP servers whose tools are not there now, for the person at the command line. Models are never told of them.

use super::typed;
use crate::client::{ApiClient, query};
use crate::term;
use gantry_core::names::sanitised;
use serde_json::Value;

/// A server that cannot be used now.
pub(super) struct UnavailableServer {
    pub(super) id: String,
    project: String,
    /// Why not, as the end of a sentence: `is down`.
    pub(super) is: &'static str,
    /// Whether its configuration wants it so.
    pub(super) is_deliberate: bool,
}

impl UnavailableServer {
    /// Every server of a project that cannot be used now.
    pub(super) async fn list(client: &ApiClient, project: &str) -> anyhow::Result<Vec<Self>> {
        let path = format!("/api/v1/servers{}", query(&[("project", Some(project))]));
        let body = client.get::<Value>(&path).await?;
        let servers = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut absent: Vec<Self> = servers.iter().filter_map(Self::of).collect();
        // One that runs for the active agent and for the others is named once.
        absent.sort_by(|a, b| a.id.cmp(&b.id));
        absent.dedup_by(|a, b| a.id == b.id);
        Ok(absent)
    }

    fn of(server: &Value) -> Option<Self> {
        let text = |key: &str| server.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = match (text("light"), text("status")) {
            ("off", _) => "is switched off",
            (_, "starting") => "is still starting",
            ("red", _) => "is down",
            _ => return None,
        };
        let is_deliberate = text("light") == "off" && text("lastError").is_empty();
        Some(Self { id: text("id").to_owned(), project: text("project").to_owned(), is, is_deliberate })
    }

    /// Whether a tool of this name would be one of the server, going by the prefixes that names can have.
    fn would_have(&self, tool: &str) -> bool {
        let prefixes =
            [format!("{}__", self.id), format!("{}__", sanitised(&self.id)), format!("@{}/", self.id)];
        prefixes.iter().any(|prefix| tool.starts_with(prefix))
    }

    /// Says so, and who knows more about `what`.
    fn tell(&self, what: &str) {
        let (id, what) = (term::sanitize(&self.id), typed(what, &self.project));
        term::eprint(&format!("server {id} {}; see gantry doctor {what}", self.is));
    }
}

/// Names the servers whose tools are missing in a list.
pub(super) async fn warn_unavailable(client: &ApiClient, project: &str) -> anyhow::Result<()> {
    let absent = UnavailableServer::list(client, project).await?;
    absent.iter().filter(|server| !server.is_deliberate).for_each(|server| server.tell(&server.id));
    Ok(())
}

/// Names the servers that may be why a tool was not found: the one that its name begins with, or any of those whose
/// tools have their names unchanged.
pub(super) async fn warn_possible_owner(
    client: &ApiClient,
    project: &str,
    tool: &str,
    unprefixed: &[String],
) -> anyhow::Result<()> {
    let absent = UnavailableServer::list(client, project).await?;
    let meant = absent.iter().filter(|server| server.would_have(tool) || unprefixed.contains(&server.id));
    meant.for_each(|server| server.tell(tool));
    Ok(())
}
