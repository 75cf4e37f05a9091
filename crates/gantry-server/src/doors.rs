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
use gantry_mcp::Handler;
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
    match client(&app, identity, Some(&project), None) {
        Ok(client) => respond(&app, client, request).await,
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
    match client(&app, identity, Some(&project), Some(&agent)) {
        Ok(client) => respond(&app, client, request).await,
        Err(error) => error.into_response(),
    }
}

/// The project of those who name none.
fn default_project() -> Arc<str> {
    static NAME: LazyLock<Arc<str>> = LazyLock::new(|| DEFAULT.into());
    Arc::clone(&NAME)
}

/// Somebody who speaks MCP at one of the doors, where their key lets them.
fn client(
    app: &App,
    identity: Identity,
    project: Option<&str>,
    agent: Option<&str>,
) -> Result<Arc<Client>, ApiError> {
    let project = match project {
        // There always is one, and most clients mean it.
        None if identity.projects.is_none() => default_project(),
        project => query::known_project(app, &identity, project)?,
    };
    let agent = identity.acting_as(agent)?;
    let projects = Arc::clone(&app.projects);
    Ok(Arc::new(Client { projects, identity: identity.into_model(), project, agent }))
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
    match client(app, identity, None, None) {
        Ok(client) => respond(app, client, request).await,
        Err(error) => error.into_response(),
    }
}

/// Answers a request at `/mcp`.
async fn respond(app: &App, client: Arc<Client>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    // A call that says that it is one waits for nobody but the server that it needs.
    if parts.headers.get("mcp-method").is_none_or(|method| method != "tools/call") {
        settled(app, &client).await;
    }
    let handler: Arc<dyn Handler> = Arc::clone(&client) as _;
    let answer = match parts.method {
        Method::POST => match query::body(body).await {
            Ok(bytes) => app.mcp.post(&parts.headers, &handler, bytes).await,
            Err(error) => return error.into_response(),
        },
        Method::DELETE => app.mcp.delete(&parts.headers, &handler),
        Method::GET => app.mcp.get(&parts.headers, &handler),
        _ => app.mcp.other_method(),
    };
    answer.map(|body| into_body(app, &client, body))
}

/// `GET /sse`.
pub(crate) async fn open_sse(State(app): State<App>, identity: Identity) -> Response {
    let client = match client(&app, identity, None, None) {
        Ok(client) => client,
        Err(error) => return error.into_response(),
    };
    settled(&app, &client).await;
    let handler: Arc<dyn Handler> = Arc::clone(&client) as _;
    app.mcp.sse(&handler, MESSAGES).map(|body| into_body(&app, &client, body))
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
    let client = match client(&app, identity, None, None) {
        Ok(client) => client,
        Err(error) => return error.into_response(),
    };
    match query::body(request.into_body()).await {
        Ok(bytes) => {
            let handler: Arc<dyn Handler> = Arc::clone(&client) as _;
            let answer = app.mcp.sse_message(&handler, &stream.session_id, bytes).await;
            answer.map(|body| into_body(&app, &client, body))
        }
        Err(error) => error.into_response(),
    }
}

fn into_body(app: &App, client: &Client, body: gantry_mcp::Body) -> Body {
    match body {
        gantry_mcp::Body::Whole(bytes) => Body::from(bytes),
        gantry_mcp::Body::Events(events) => {
            // A stream can outlive the key that it was opened with.
            let voided = Arc::clone(&app.keys).voided(client.identity.clone());
            Body::from_stream(events.map(Ok::<_, Infallible>).take_until(voided))
        }
    }
}
