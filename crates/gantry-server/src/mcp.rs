//! MCP in front of the runtime, over HTTP and stdio: the protocol is gantry-mcp's, the work is the runtime's.

mod answer;
mod handler;

use crate::Identity;
use gantry_mcp::Server;
use gantry_runtime::Runtime;
use std::sync::Arc;

/// An MCP server in front of a runtime.
pub type Endpoint = Server<Tools>;

/// The MCP server in front of this runtime.
#[must_use]
pub fn endpoint(runtime: Arc<Runtime>) -> Endpoint {
    Server::new(Tools { runtime }, &gantry_mcp::Options::default())
}

/// Who speaks MCP, and as which agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Who.
    pub identity: Identity,
    /// As which agent.
    pub agent: Option<Arc<str>>,
}

/// The runtime's tools, for MCP.
#[derive(Debug)]
pub struct Tools {
    runtime: Arc<Runtime>,
}
