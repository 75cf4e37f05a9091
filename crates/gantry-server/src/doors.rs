//! The doors that MCP clients come in by: `/mcp` (Streamable HTTP), `/sse` with `/messages` (HTTP+SSE of 2024-11-05) and
//! `/ws` (WebSocket). Behind each of them is the same server.

mod socket;

pub(crate) use socket::{open_agent_socket, open_project_socket, open_socket};

use crate::api::query::{self, Path, Query};
use crate::mcp::Client;
use crate::{App, Identity};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use gantry_runtime::projects::DEFAULT;
use http::{Method, Request};
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

/// Where clients of HTTP+SSE send their messages.
const MESSAGES: &str = "/messages";

/// `/mcp/{project}`.
pub(crate) async fn serve_project(
    State(app): State<App>,
    Path(project): Path<String>,
    identity: Identity,
    request: Request<Body>,
) -> Response {
    match query::known_project(&app, Some(&project)) {
        Ok(project) => respond(&app, client(identity, project, None), request).await,
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
    match query::known_project(&app, Some(&project)) {
        Ok(project) => respond(&app, client(identity, project, Some(agent)), request).await,
        Err(error) => error.into_response(),
    }
}

/// The project of those who name none.
fn default_project() -> Arc<str> {
    static NAME: LazyLock<Arc<str>> = LazyLock::new(|| DEFAULT.into());
    Arc::clone(&NAME)
}

/// Somebody who speaks MCP at one of the doors.
fn client(identity: Identity, project: Arc<str>, agent: Option<String>) -> Client {
    Client { identity: identity.into_model(), project, agent: agent.map(Into::into) }
}

/// Waits until all that the client may see is there, so that it is not told of half of it and then of every change.
async fn settled(app: &App, client: &Client) {
    // Why there is nothing to wait for is told to its first request.
    if let Ok(context) = app.projects.context(&client.project, client.agent.as_deref()).await {
        context.runtime.settled().await;
    }
}

/// `/mcp`.
pub(crate) async fn serve_default(app: &App, identity: Identity, request: Request<Body>) -> Response {
    respond(app, client(identity, default_project(), None), request).await
}

/// Answers a request at `/mcp`.
async fn respond(app: &App, client: Client, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    // A call that says that it is one waits for nobody but the server that it needs.
    if parts.headers.get("mcp-method").is_none_or(|method| method != "tools/call") {
        settled(app, &client).await;
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
    let client = client(identity, default_project(), None);
    settled(&app, &client).await;
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
    let client = client(identity, default_project(), None);
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
