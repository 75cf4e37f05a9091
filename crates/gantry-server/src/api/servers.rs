//! `/api/v1/servers`: the MCP servers, how they are doing, and which there are until the process ends.

use super::query::{self, Path, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gantry_core::{ErrorCode, Role};
use gantry_provider::ProviderStatus;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The project that a request is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    project: Option<String>,
}

impl Of {
    /// The project, or else the one that the sender means.
    fn project(&self, app: &App, who: &Identity) -> Result<Arc<str>, ApiError> {
        query::known_project(app, who, self.project.as_deref())
    }
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    let project =
        of.project.as_deref().map(|name| query::known_project(&app, &who, Some(name))).transpose()?;
    let mut servers = app.projects.servers(project.as_deref());
    servers.retain(|server| who.reaches(&server.project));
    let items: Vec<Value> = servers.iter().map(|server| shown(server, &who)).collect();
    Ok(query::list(&items, None))
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    let project = of.project(&app, &who)?;
    let found = find(&app, &project, &id).ok_or_else(|| unknown(&id))?;
    Ok(Json(shown(&found, &who)))
}

pub(super) async fn add(
    State(app): State<App>,
    who: Identity,
    Query(of): Query<Of>,
    body: Body,
) -> Result<Response, ApiError> {
    // What a server runs can reach all that Gantry can.
    who.administers_all("adding a server")?;
    let bytes = query::body(body).await?;
    let (id, entry) = split(query::json_text(&bytes)?)?;
    let project = of.project(&app, &who)?;
    if find(&app, &project, &id).is_some() {
        let message = format!("there is a server {id:?} already; remove it first, or choose another id");
        return Err(ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message));
    }
    let (settings, warnings) = (app.parse_server)(&project, &id, &entry).map_err(ApiError::invalid)?;
    app.projects.add_server(&project, settings).await.map_err(ApiError::invalid)?;
    let mut server = found(&app, &project, &id, &who);
    if let Some(server) = server.as_object_mut().filter(|_| !warnings.is_empty()) {
        server.insert("warnings".into(), warnings.into());
    }
    Ok((StatusCode::CREATED, Json(server)).into_response())
}

pub(super) async fn remove(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("removing a server")?;
    if !app.projects.remove_server(&of.project(&app, &who)?, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(json!({ "id": id, "removed": true })))
}

pub(super) async fn restart(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("restarting a server")?;
    let project = of.project(&app, &who)?;
    if !app.projects.restart_server(&project, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(found(&app, &project, &id, &who)))
}

/// The id in a body, and the rest of it, as it was written, for the reader of configurations.
fn split(text: &str) -> Result<(String, String), ApiError> {
    let not_one = |error| ApiError::invalid(format!("the body is not a server: {error}"));
    let mut entry: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(not_one)?;
    let Some(Value::String(id)) = entry.shift_remove("id") else {
        return Err(ApiError::invalid("the body needs \"id\", the name of the server, beside its keys"));
    };
    Ok((id, Value::Object(entry).to_string()))
}

fn find(app: &App, project: &str, id: &str) -> Option<ProviderStatus> {
    app.projects.servers(Some(project)).into_iter().find(|server| &*server.id == id)
}

/// A server that was there just now; the active agent may have no use for it.
fn found(app: &App, project: &str, id: &str, who: &Identity) -> Value {
    let found = find(app, project, id);
    found.map_or_else(|| json!({ "id": id, "project": project }), |server| shown(&server, who))
}

pub(super) fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no server {id:?}; gantry servers and /api/v1/servers list them"))
}

/// A server as somebody may see it: what went wrong and where it listens tell of the inside of the machine.
fn shown(server: &ProviderStatus, who: &Identity) -> Value {
    let mut shown = json!(server);
    if who.role != Role::Admin
        && let Some(shown) = shown.as_object_mut()
    {
        shown.insert("lastError".into(), Value::Null);
        shown.shift_remove("replicas");
    }
    shown
}
