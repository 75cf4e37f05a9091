//! The endpoints of MCP clients: `/mcp` (Streamable HTTP), `/sse` with `/messages` (HTTP+SSE of 2024-11-05) and `/ws`
//! (WebSocket), all in front of the same server.

pub(crate) use super::websocket::open_socket;

use super::Gateway;
use crate::api::query::{self, Path, Query, Sender};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use gantry_core::id::KeyId;
use gantry_mcp::Handler;
use gantry_runtime::projects::DEFAULT;
use http::{Method, Request};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

/// Where clients of HTTP+SSE send their messages.
const MESSAGES: &str = "/messages";

/// The project and the agent that a path names.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Target {
    project: Option<String>,
    agent: Option<String>,
}

/// `/mcp/{project}`, and `/mcp/{project}/agents/{agent}`: the tools of this agent.
pub(crate) async fn serve(
    Sender(app, identity): Sender,
    Path(target): Path<Target>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    respond(&app, gateway(&app, identity, &target)?, request).await
}

/// `/mcp`.
pub(crate) async fn serve_default(app: &App, identity: Identity, request: Request<Body>) -> Response {
    match gateway(app, identity, &Target::default()) {
        Ok(gateway) => respond(app, gateway, request).await.into_response(),
        Err(error) => error.into_response(),
    }
}

/// The gateway for a client; refused if its key is not for the project or the agent.
pub(super) fn gateway(app: &App, identity: Identity, target: &Target) -> Result<Arc<Gateway>, ApiError> {
    static DEFAULT_PROJECT: LazyLock<Arc<str>> = LazyLock::new(|| DEFAULT.into());
    let project = match target.project.as_deref() {
        // It always exists, and most clients mean it.
        None if identity.projects.is_none() => Arc::clone(&DEFAULT_PROJECT),
        project => query::known_project(app, &identity, project)?,
    };
    let agent = identity.effective_agent(target.agent.as_deref())?;
    let projects = Arc::clone(&app.projects);
    Ok(Arc::new(Gateway::new(projects, identity, project, agent)))
}

/// Answers a request at `/mcp`.
async fn respond(app: &App, gateway: Arc<Gateway>, request: Request<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    // A request whose header says that it is a call does not wait until the servers have started. Others do: which methods
    // there are depends on the servers.
    if parts.headers.get("mcp-method").is_none_or(|method| method != "tools/call") {
        gateway.settled().await;
    }
    let (key, handler): (_, Arc<dyn Handler>) = (gateway.key(), gateway);
    let response = match parts.method {
        Method::POST => app.mcp.post(&parts.headers, &handler, query::bytes(body).await?).await,
        Method::DELETE => app.mcp.delete(&parts.headers, &handler),
        Method::GET => app.mcp.get(&parts.headers, &handler),
        _ => app.mcp.other_method(),
    };
    Ok(response.map(|body| into_body(app, key, body)))
}

/// `GET /sse`.
pub(crate) async fn open_sse(Sender(app, identity): Sender) -> Result<Response, ApiError> {
    let gateway = gateway(&app, identity, &Target::default())?;
    gateway.settled().await;
    let (key, handler): (_, Arc<dyn Handler>) = (gateway.key(), gateway);
    Ok(app.mcp.sse(&handler, MESSAGES).map(|body| into_body(&app, key, body)))
}

/// The query of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Stream {
    #[serde(rename = "sessionId")]
    session_id: String,
}

/// `POST /messages`.
pub(crate) async fn receive_message(
    Sender(app, identity): Sender,
    Query(stream): Query<Stream>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let gateway = gateway(&app, identity, &Target::default())?;
    let bytes = query::bytes(request.into_body()).await?;
    let (key, handler): (_, Arc<dyn Handler>) = (gateway.key(), gateway);
    let response = app.mcp.sse_message(&handler, &stream.session_id, bytes).await;
    Ok(response.map(|body| into_body(&app, key, body)))
}

fn into_body(app: &App, key: Option<KeyId>, body: gantry_mcp::Body) -> Body {
    match body {
        gantry_mcp::Body::Whole(bytes) => Body::from(bytes),
        gantry_mcp::Body::Events(events) => {
            // A stream can outlive the key that it was opened with.
            let wait_until_invalid = Arc::clone(&app.keys).wait_until_invalid(key);
            Body::from_stream(events.map(Ok::<_, Infallible>).take_until(wait_until_invalid))
        }
    }
}
