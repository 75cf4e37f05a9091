//! The endpoints of MCP clients: `/mcp` (Streamable HTTP), `/sse` with `/messages` (HTTP+SSE of 2024-11-05) and `/ws`
//! (WebSocket), all in front of the same server.

pub(crate) use super::websocket::open_socket;

use super::Gateway;
use crate::api::query::{self, Path, Query, Sender};
use crate::error::ApiError;
use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt as _;
use gantry_mcp::Handler;
use http::{Method, Request};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;

/// Where clients of HTTP+SSE send their messages.
const MESSAGES: &str = "/messages";

/// The project and the agent that a path names.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Target {
    project: Option<String>,
    agent: Option<String>,
}

/// `/mcp`, `/mcp/{project}`, and `/mcp/{project}/agents/{agent}`: the tools of this agent.
pub(crate) async fn serve(
    sender: Sender,
    Path(target): Path<Target>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let gateway = gateway(&sender, &target)?;
    let (parts, body) = request.into_parts();
    // A request whose header says that it is a call does not wait until the servers have started. Others do: which methods
    // there are depends on the servers.
    if parts.headers.get("mcp-method").is_none_or(|method| method != "tools/call") {
        gateway.settled().await;
    }
    let (handler, mcp): (Arc<dyn Handler>, _) = (gateway, &sender.app.mcp);
    let response = match parts.method {
        Method::POST => mcp.post(&parts.headers, &handler, query::bytes(body).await?).await,
        Method::DELETE => mcp.delete(&parts.headers, &handler),
        Method::GET => mcp.get(&parts.headers, &handler),
        _ => mcp.other_method(),
    };
    Ok(response.map(|body| into_body(&sender, body)))
}

/// The gateway for a client; refused if its key is not for the project or the agent.
pub(super) fn gateway(sender: &Sender, target: &Target) -> Result<Arc<Gateway>, ApiError> {
    let project = sender.known_project(target.project.as_deref())?;
    let agent = sender.effective_agent(target.agent.as_deref())?;
    let projects = Arc::clone(&sender.app.projects);
    Ok(Arc::new(Gateway::new(projects, sender.identity.clone(), project, agent)))
}

/// `GET /sse`.
pub(crate) async fn open_sse(sender: Sender) -> Result<Response, ApiError> {
    let gateway = gateway(&sender, &Target::default())?;
    gateway.settled().await;
    let handler: Arc<dyn Handler> = gateway;
    Ok(sender.app.mcp.sse(&handler, MESSAGES).map(|body| into_body(&sender, body)))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Stream {
    #[serde(rename = "sessionId")]
    session_id: String,
}

/// `POST /messages`.
pub(crate) async fn receive_message(
    sender: Sender,
    Query(stream): Query<Stream>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let handler: Arc<dyn Handler> = gateway(&sender, &Target::default())?;
    let bytes = query::bytes(request.into_body()).await?;
    let response = sender.app.mcp.sse_message(&handler, &stream.session_id, bytes).await;
    Ok(response.map(|body| into_body(&sender, body)))
}

fn into_body(sender: &Sender, body: gantry_mcp::Body) -> Body {
    match body {
        gantry_mcp::Body::Whole(bytes) => Body::from(bytes),
        gantry_mcp::Body::Events(events) => {
            // A stream can outlive the key that it was opened with.
            let wait_until_invalid = Arc::clone(&sender.app.keys).wait_until_invalid(sender.key);
            Body::from_stream(events.map(Ok::<_, Infallible>).take_until(wait_until_invalid))
        }
    }
}
