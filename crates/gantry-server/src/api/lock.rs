//! `/api/v1/lock`: the definitions of tools that are pinned, what is different now, and a person's yes to it.

use super::query::{self, Query};
use super::servers::{administers, unknown};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use gantry_core::ErrorCode;
use gantry_runtime::servers::LockDiff;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    server: Option<String>,
    tool: Option<String>,
}

pub(super) async fn diff(
    State(app): State<App>,
    who: Identity,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    administers(&who, "comparing definitions")?;
    known(&app, of.server.as_deref())?;
    let mut found = app.runtime.lock_diff(of.server.as_deref());
    found.retain(|diff| of.tool.is_none() || diff.tool == of.tool);
    Ok(listed(&found))
}

/// The body of `POST /api/v1/lock`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    server: Option<String>,
    tool: Option<String>,
    /// The `revision` of the differences that the person has seen.
    revision: Option<String>,
}

pub(super) async fn accept(
    State(app): State<App>,
    who: Identity,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    administers(&who, "accepting definitions")?;
    let bytes = query::body(body).await?;
    let accepted: Accepted = if bytes.is_empty() {
        Accepted::default()
    } else {
        serde_json::from_str(query::json_text(&bytes)?)
            .map_err(|error| ApiError::invalid(format!("the body does not say what to accept: {error}")))?
    };
    if accepted.tool.is_some() && accepted.server.is_none() {
        return Err(ApiError::invalid("\"tool\" needs \"server\": tools are accepted by their server"));
    }
    known(&app, accepted.server.as_deref())?;
    let Accepted { server, tool, revision } = &accepted;
    let (server, tool, seen) = (server.as_deref(), tool.as_deref(), revision.as_deref());
    let done = app.runtime.lock_accept(server, tool, seen).await;
    Ok(listed(&done.map_err(|message| not_accepted(&app, &accepted, message))?))
}

/// What is there now may not be what was seen; a server that has never been ready has nothing to accept; anything else is
/// that the file cannot be written.
fn not_accepted(app: &App, accepted: &Accepted, message: String) -> ApiError {
    let servers = app.runtime.servers();
    let (server, tool) = (accepted.server.as_deref(), accepted.tool.as_deref());
    let mut now = app.runtime.lock_diff(server);
    now.retain(|diff| tool.is_none() || diff.tool.as_deref() == tool);
    if accepted.revision.as_ref().is_some_and(|seen| *seen != LockDiff::revision(&now)) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::IdempotencyConflict, message);
    }
    let meant = servers.iter().find(|known| server == Some(&*known.id));
    if meant.is_some_and(|server| matches!(server.status, "starting" | "down" | "off")) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::UpstreamUnavailable, message);
    }
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError, message)
}

/// Whether there is such a server.
fn known(app: &App, server: Option<&str>) -> Result<(), ApiError> {
    let Some(id) = server else { return Ok(()) };
    let runs = app.runtime.servers().iter().any(|server| &*server.id == id);
    if runs { Ok(()) } else { Err(unknown(id)) }
}

fn listed(diffs: &[LockDiff]) -> Json<Value> {
    let Json(mut list) = query::list(&diffs.iter().map(|diff| json!(diff)).collect::<Vec<_>>(), None);
    if let Some(list) = list.as_object_mut() {
        list.insert("revision".into(), LockDiff::revision(diffs).into());
    }
    Json(list)
}
