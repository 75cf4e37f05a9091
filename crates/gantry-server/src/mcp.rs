//! MCP in front of the projects, over HTTP and stdio: the protocol is gantry-mcp's, the work is the runtime's.

mod answer;
mod handler;
mod seated;
mod tasks;

use crate::Identity;
use gantry_mcp::Server;
use gantry_runtime::Projects;
use std::sync::Arc;

/// An MCP server in front of the projects.
pub type Endpoint = Server<Tools>;

/// The MCP server in front of these projects.
#[must_use]
pub fn endpoint(projects: Arc<Projects>) -> Endpoint {
    Server::new(Tools { projects }, &gantry_mcp::Options::default())
}

/// Who speaks MCP, in which project, and as which agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Who.
    pub identity: Identity,
    /// In which project.
    pub project: Arc<str>,
    /// As which agent; as none in particular means as the active one, if one is.
    pub agent: Option<Arc<str>>,
}

/// The tools of the projects, for MCP.
#[derive(Debug)]
pub struct Tools {
    projects: Arc<Projects>,
}
