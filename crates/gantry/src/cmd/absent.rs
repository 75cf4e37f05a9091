//! MCP servers whose tools are not there now, for the person at the command line. Models are never told of them.

use crate::desk::Desk;
use crate::output;
use gantry_core::names::sanitised;
use serde_json::Value;

/// A server that cannot be used now.
pub(super) struct Absent {
    pub(super) id: String,
    /// Why not, as the end of a sentence: `is down`.
    pub(super) is: &'static str,
    /// Whether its configuration wants it so.
    pub(super) is_deliberate: bool,
}

impl Absent {
    /// Every server that cannot be used now.
    pub(super) async fn all(desk: &Desk) -> anyhow::Result<Vec<Self>> {
        let body = desk.get("/api/v1/servers").await?.expect_ok()?;
        let servers = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(servers.iter().filter_map(Self::of).collect())
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
        Some(Self { id: text("id").to_owned(), is, is_deliberate })
    }

    /// Whether a tool of this name would be one of the server, going by the prefixes that names can have.
    fn would_have(&self, tool: &str) -> bool {
        let prefixes =
            [format!("{}__", self.id), format!("{}__", sanitised(&self.id)), format!("@{}/", self.id)];
        prefixes.iter().any(|prefix| tool.starts_with(prefix))
    }

    /// Says so, and who knows more about `what`.
    fn tell(&self, what: &str) {
        let (id, what) = (output::clean(&self.id), output::shell_word(what));
        output::talk(&format!("server {id} {}; see gantry doctor {what}", self.is));
    }
}

/// Names the servers whose tools are missing in a list.
pub(super) async fn tell_all(desk: &Desk) -> anyhow::Result<()> {
    let absent = Absent::all(desk).await?;
    absent.iter().filter(|server| !server.is_deliberate).for_each(|server| server.tell(&server.id));
    Ok(())
}

/// Names the servers that may be why a tool was not found: the one that its name begins with, or any of those whose
/// tools have their names unchanged.
pub(super) async fn tell_of(desk: &Desk, tool: &str, unprefixed: &[String]) -> anyhow::Result<()> {
    let absent = Absent::all(desk).await?;
    let meant = absent.iter().filter(|server| server.would_have(tool) || unprefixed.contains(&server.id));
    meant.for_each(|server| server.tell(tool));
    Ok(())
}
