//! `/api/v1/lock`: pinned definitions of tools, the differences to those of now, and accepting these.

use super::query::{self, Answer, Query, Sender};
use super::servers::unknown;
use crate::error::ApiError;
use crate::model::{List, LockDiffs, LockQuery, LockRequest, NoQuery};
use axum::Json;
use axum::body::Body;
use gantry_core::ErrorCode;
use gantry_provider::{PinChoice, PinDiff};
use gantry_runtime::Runtime;
use http::StatusCode;
use std::sync::Arc;

pub(super) async fn diff(sender: Sender, Query(query): Query<LockQuery>) -> Answer<LockDiffs> {
    sender.require_admin("comparing definitions")?;
    let runtime = home(&sender, query.project.as_deref(), query.server.as_deref()).await?;
    let mut found = runtime.lock_diff(query.server.as_deref());
    found.retain(|diff| query.tool.is_none() || diff.tool == query.tool);
    Ok(listed(&runtime, found))
}

pub(super) async fn accept(sender: Sender, _: NoQuery, body: Body) -> Answer<LockDiffs> {
    sender.require_admin("accepting definitions")?;
    let accepted: LockRequest = query::read_optional("a choice of definitions to accept", body).await?;
    if accepted.tool.is_some() && accepted.server.is_none() {
        return Err(ApiError::invalid("\"tool\" needs \"server\": tools are accepted by their server"));
    }
    let runtime = home(&sender, accepted.project.as_deref(), accepted.server.as_deref()).await?;
    let LockRequest { project: _, server, tool, revision } = &accepted;
    let choice = PinChoice { server: server.clone(), tool: tool.clone(), seen: revision.clone() };
    let done = runtime.lock_accept(choice).await;
    // Other runtimes of the project use the same pins.
    sender.app.projects.look_at_pins(&runtime.project).await;
    Ok(listed(&runtime, done.map_err(|message| not_accepted(&runtime, &accepted, message))?))
}

/// Why nothing was accepted: the differences are others than those that were seen, the server was never ready, or the file
/// cannot be written.
fn not_accepted(runtime: &Runtime, accepted: &LockRequest, message: String) -> ApiError {
    let servers = runtime.servers();
    let (server, tool) = (accepted.server.as_deref(), accepted.tool.as_deref());
    let mut now = runtime.lock_diff(server);
    now.retain(|diff| tool.is_none() || diff.tool.as_deref() == tool);
    if accepted.revision.as_ref().is_some_and(|seen| *seen != PinDiff::revision(&now)) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::IdempotencyConflict, message);
    }
    let server = servers.iter().find(|known| server == Some(&*known.id));
    if server.is_some_and(|server| matches!(&*server.status, "starting" | "down" | "off")) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::UpstreamUnavailable, message);
    }
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError, message)
}

/// The runtime that has the server, of those that the project has.
async fn home(
    sender: &Sender,
    project: Option<&str>,
    server: Option<&str>,
) -> Result<Arc<Runtime>, ApiError> {
    let project = sender.known_project(project)?;
    let runtime = match sender.app.projects.with_server(&project, server) {
        Some(runtime) => runtime,
        None => sender.context(Some(&project), None).await?.runtime,
    };
    match server {
        Some(id) if !runtime.servers().iter().any(|server| *server.id == *id) => Err(unknown(id)),
        _ => Ok(runtime),
    }
}

fn listed(runtime: &Runtime, diffs: Vec<PinDiff>) -> Json<LockDiffs> {
    let revision = PinDiff::revision(&diffs);
    Json(LockDiffs { list: List::whole(diffs), revision, pinned: runtime.lock_pins() })
}
