//! MCP in front of the runtime, over HTTP and stdio: the protocol is gantry-mcp's, the work is the runtime's.

mod answer;
mod handler;

use crate::api::query::{self, Path};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use gantry_mcp::Server;
use gantry_runtime::Runtime;
use http::{Method, Request};
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

/// `/mcp/{project}`.
pub(crate) async fn serve_project(
    State(app): State<App>,
    Path(project): Path<String>,
    identity: Identity,
    request: Request<Body>,
) -> Response {
    match known_project(&app, &project) {
        Ok(()) => respond(&app, identity, None, request).await,
        Err(error) => error.into_response(),
    }
}

/// `/mcp/{project}/agents/{agent}`: what this agent sees.
pub(crate) async fn serve_agent(
    State(app): State<App>,
    Path((project, agent)): Path<(String, String)>,
    identity: Identity,
    request: Request<Body>,
) -> Response {
    match known_project(&app, &project) {
        Ok(()) => respond(&app, identity, Some(agent.into()), request).await,
        Err(error) => error.into_response(),
    }
}

fn known_project(app: &App, project: &str) -> Result<(), ApiError> {
    if project == &**app.runtime.project() {
        Ok(())
    } else {
        Err(ApiError::not_found("there is no such project"))
    }
}

/// Answers a request at `/mcp`, as an agent if one is named.
pub(crate) async fn respond(
    app: &App,
    identity: Identity,
    agent: Option<Arc<str>>,
    request: Request<Body>,
) -> Response {
    let client = Client { identity: identity.into_model(), agent };
    let (parts, body) = request.into_parts();
    let answer = match parts.method {
        Method::POST => match query::body(body).await {
            Ok(bytes) => app.mcp.post(&parts.headers, &client, bytes).await,
            Err(error) => return error.into_response(),
        },
        Method::DELETE => app.mcp.delete(&parts.headers, &client),
        _ => app.mcp.get(&parts.headers, &client),
    };
    answer.map(|body| match body {
        gantry_mcp::Body::Whole(bytes) => Body::from(bytes),
        gantry_mcp::Body::Events(events) => Body::from_stream(events.map(Ok::<_, std::convert::Infallible>)),
    })
}
