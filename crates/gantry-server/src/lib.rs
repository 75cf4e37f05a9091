//! The HTTP endpoints: the API, MCP, metrics and health, each in front of the same projects.
//!
//! A request is checked three times: its Host and Origin (`host_check.rs`), its key (`auth.rs`) and, for calls, by the
//! pipeline itself. The command line uses the same API in its own process
//! ([`App::local`]), so there is one way to do each thing, whether a server runs or not.

pub mod api;
pub mod auth;
mod error;
mod host_check;
mod listen;
pub mod mcp;
pub mod model;
pub mod openapi;
mod page;
mod wait_slots;

pub use auth::Identity;
pub use listen::{Error, Options, reachable, serve};

use gantry_runtime::Projects;
use gantry_runtime::options::ServerPlan;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reads the entry of an MCP server: its project, its id and the text of a JSON object with the keys of the configuration.
/// Returns it with warnings, or what is wrong with it. The program brings it, because the configuration is the program's.
pub type ParseServer = dyn Fn(&str, &str, &str) -> Result<(ServerPlan, Vec<String>), String> + Send + Sync;

/// What the handlers share.
#[derive(Clone)]
pub struct App {
    pub(crate) projects: Arc<Projects>,
    pub(crate) mcp: gantry_mcp::Server,
    pub(crate) parse_server: Arc<ParseServer>,
    pub(crate) keys: Arc<auth::ApiKeyCache>,
    pub(crate) slots: wait_slots::WaitSlots,
    /// Fires when the server stops, so that endless answers end.
    pub(crate) stop: CancellationToken,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    /// The endpoints of these projects, open until `stop` fires.
    #[must_use]
    pub fn new(projects: Arc<Projects>, parse_server: Arc<ParseServer>, stop: CancellationToken) -> Self {
        let mcp = mcp::endpoint(&projects);
        let keys = auth::ApiKeyCache::new(Arc::clone(&projects));
        Self { projects, mcp, parse_server, keys, slots: wait_slots::WaitSlots::default(), stop }
    }

    /// Ends the sessions of connected clients, and with them what still runs for them.
    pub async fn close(&self) {
        self.mcp.shutdown().await;
    }

    #[must_use]
    pub fn projects(&self) -> &Arc<Projects> {
        &self.projects
    }
}
