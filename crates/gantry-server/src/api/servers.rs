//! `/api/v1/servers`: the MCP servers, how they are doing, and which there are until the process ends.

use super::query::{self, Path};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gantry_core::{ErrorCode, Role};
use gantry_runtime::servers::ServerStatus;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) async fn list(State(app): State<App>, who: Identity) -> Json<Value> {
    let items: Vec<Value> = app.runtime.servers().iter().map(|server| shown(server, &who)).collect();
    query::list(&items, None)
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let found = find(&app, &id).ok_or_else(|| unknown(&id))?;
    Ok(Json(shown(&found, &who)))
}

pub(super) async fn add(State(app): State<App>, who: Identity, body: Body) -> Result<Response, ApiError> {
    administers(&who, "adding a server")?;
    let bytes = query::body(body).await?;
    let (id, entry) = split(query::json_text(&bytes)?)?;
    if find(&app, &id).is_some() {
        let message = format!("there is a server {id:?} already; remove it first, or choose another id");
        return Err(ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message));
    }
    let (settings, warnings) = (app.parse_server)(&id, &entry).map_err(ApiError::invalid)?;
    app.runtime.add_server(settings).await.map_err(ApiError::invalid)?;
    let mut server = find(&app, &id).map_or_else(|| json!({ "id": id }), |server| shown(&server, &who));
    if let Some(server) = server.as_object_mut().filter(|_| !warnings.is_empty()) {
        server.insert("warnings".into(), warnings.into());
    }
    Ok((StatusCode::CREATED, Json(server)).into_response())
}

pub(super) async fn remove(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    administers(&who, "removing a server")?;
    if !app.runtime.remove_server(&id).await {
        return Err(unknown(&id));
    }
    Ok(Json(json!({ "id": id, "removed": true })))
}

pub(super) async fn restart(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    administers(&who, "restarting a server")?;
    if !app.runtime.restart_server(&id).await {
        return Err(unknown(&id));
    }
    Ok(Json(find(&app, &id).map_or_else(|| json!({ "id": id }), |server| shown(&server, &who))))
}

/// Servers are programs with rights of their own, so they are for those who administer.
pub(super) fn administers(who: &Identity, what: &str) -> Result<(), ApiError> {
    if who.role == Role::Admin {
        return Ok(());
    }
    Err(ApiError::forbidden(format!("{what} takes the key of the data folder")))
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

fn find(app: &App, id: &str) -> Option<ServerStatus> {
    app.runtime.servers().into_iter().find(|server| &*server.id == id)
}

pub(super) fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no server {id:?}; gantry servers and /api/v1/servers list them"))
}

/// A server as somebody may see it: what went wrong and where it listens tell of the inside of the machine.
fn shown(server: &ServerStatus, who: &Identity) -> Value {
    let mut shown = json!(server);
    if who.role != Role::Admin
        && let Some(shown) = shown.as_object_mut()
    {
        shown.insert("lastError".into(), Value::Null);
        shown.shift_remove("replicas");
    }
    shown
}
