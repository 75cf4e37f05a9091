//! The doors that MCP clients come in by: `/mcp` (Streamable HTTP), `/sse` with `/messages` (HTTP+SSE of 2024-11-05) and
//! `/ws` (WebSocket). Behind each of them is the same server.

mod socket;

pub(crate) use socket::{open_agent_socket, open_project_socket, open_socket};

use crate::api::query::{self, Path, Query};
use crate::error::ApiError;
use crate::mcp::Client;
use crate::{App, Identity};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::{Method, Request};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;

/// Where clients of HTTP+SSE send their messages.
const MESSAGES: &str = "/messages";

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
    // The first client would otherwise be told of half of what there is, and then of every change. A call that says
    // that it is one waits for nobody but the server that it needs.
    if parts.headers.get("mcp-method").is_none_or(|method| method != "tools/call") {
        app.runtime.settled().await;
    }
    let answer = match parts.method {
        Method::POST => match query::body(body).await {
            Ok(bytes) => app.mcp.post(&parts.headers, &client, bytes).await,
            Err(error) => return error.into_response(),
        },
        Method::DELETE => app.mcp.delete(&parts.headers, &client),
        Method::GET => app.mcp.get(&parts.headers, &client),
        _ => app.mcp.other_method(),
    };
    answer.map(into_body)
}

/// `GET /sse`.
pub(crate) async fn open_sse(State(app): State<App>, identity: Identity) -> Response {
    let client = Client { identity: identity.into_model(), agent: None };
    app.runtime.settled().await;
    app.mcp.sse(&client, MESSAGES).map(into_body)
}

/// What leads from a message to its stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Stream {
    #[serde(rename = "sessionId")]
    session_id: String,
}

/// `POST /messages`.
pub(crate) async fn take_message(
    State(app): State<App>,
    Query(stream): Query<Stream>,
    identity: Identity,
    request: Request<Body>,
) -> Response {
    let client = Client { identity: identity.into_model(), agent: None };
    match query::body(request.into_body()).await {
        Ok(bytes) => app.mcp.sse_message(&client, &stream.session_id, bytes).await.map(into_body),
        Err(error) => error.into_response(),
    }
}

fn into_body(body: gantry_mcp::Body) -> Body {
    match body {
        gantry_mcp::Body::Whole(bytes) => Body::from(bytes),
        gantry_mcp::Body::Events(events) => Body::from_stream(events.map(Ok::<_, Infallible>)),
    }
}
