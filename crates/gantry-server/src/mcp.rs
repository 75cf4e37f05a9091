//! MCP in front of the projects, over HTTP and stdio: gantry-mcp speaks the protocol, the runtime runs the calls.

mod handler;
pub(crate) mod http;
mod result;
mod session;
mod tasks;
mod websocket;

use crate::Identity;
use gantry_mcp::Server;
use gantry_runtime::Projects;
use serde_json::json;
use session::CurrentSession;
use std::sync::{Arc, OnceLock};

#[must_use]
pub fn endpoint(projects: &Projects) -> Server {
    let info = json!({ "name": "gantry", "title": "Gantry", "version": env!("CARGO_PKG_VERSION") });
    Server::new(info.to_string(), projects.services().changes(), &gantry_mcp::Options::default())
}

/// The gateway for one MCP client at the endpoint of a project or of an agent.
///
/// Its calls are made as [`Identity::model_caller`], because the client acts for a model.
#[derive(Debug)]
pub struct Gateway {
    projects: Arc<Projects>,
    /// Not demoted: it says who the person behind the model is, and which keys are the same client.
    identity: Identity,
    project: Arc<str>,
    /// The agent as which the client acts; `None` means the active one, if there is one.
    agent: Option<Arc<str>>,
    session: OnceLock<CurrentSession>,
}

impl Gateway {
    #[must_use]
    pub fn new(
        projects: Arc<Projects>,
        identity: Identity,
        project: Arc<str>,
        agent: Option<Arc<str>>,
    ) -> Self {
        Self { projects, identity, project, agent, session: OnceLock::new() }
    }

    /// Waits until all tools of the client are there, so that its first list is complete.
    pub(crate) async fn settled(&self) {
        // If there is no such project, the response to the client's first request says why.
        if let Ok(context) = self.projects.context(&self.project, self.agent.as_deref()).await {
            context.runtime.settled().await;
        }
    }
}
