//! MCP in front of the projects, over HTTP and stdio: gantry-mcp speaks the protocol, the runtime runs the calls.

mod call;
mod result;
mod session;
mod tasks;

use crate::Identity;
use gantry_mcp::exchange::BoxFuture;
use gantry_mcp::{ErrorObject, Features, Handler, Server};
use gantry_runtime::Projects;
use serde_json::json;
use session::ClientSession;
use std::any::Any;
use std::sync::Arc;

/// The MCP server in front of these projects.
#[must_use]
pub fn endpoint(projects: &Projects) -> Server {
    let info = json!({ "name": "gantry", "title": "Gantry", "version": env!("CARGO_PKG_VERSION") });
    Server::new(info.to_string(), projects.services().changes(), &gantry_mcp::Options::default())
}

/// A client of the MCP endpoint of a project or of an agent.
#[derive(Debug, Clone)]
pub struct Client {
    pub projects: Arc<Projects>,
    pub identity: Identity,
    pub project: Arc<str>,
    /// The agent as which it acts; `None` means the active one, if there is one.
    pub agent: Option<Arc<str>>,
}

impl Handler for Client {
    fn is_same(&self, other: &dyn Handler) -> bool {
        (other as &dyn Any).downcast_ref::<Self>().is_some_and(|other| {
            self.identity == other.identity && self.project == other.project && self.agent == other.agent
        })
    }

    fn instructions(&self) -> Option<String> {
        let context = self.projects.peek(&self.project, self.agent.as_deref())?;
        context.runtime.instructions(context.agent.as_deref())
    }

    fn features(&self) -> Features {
        let context = self.projects.peek(&self.project, self.agent.as_deref());
        context.map(|context| context.runtime.features(context.agent.as_deref())).unwrap_or_default()
    }

    fn open_session(&self) -> BoxFuture<'_, Result<Arc<dyn gantry_mcp::Session>, ErrorObject>> {
        Box::pin(async { Ok(Arc::new(ClientSession::open(self, false).await?) as _) })
    }

    fn shared_session(&self) -> BoxFuture<'_, Result<Arc<dyn gantry_mcp::Session>, ErrorObject>> {
        Box::pin(async { Ok(Arc::new(ClientSession::open(self, true).await?) as _) })
    }
}
