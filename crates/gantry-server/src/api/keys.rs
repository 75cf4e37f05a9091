//! `/api/v1/keys`: the keys of the store. A key is shown once, when it is made.

mod request;

use super::query::{self, NoQuery, Path, Query};
use crate::auth::{mint, now_us};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gantry_core::ErrorCode;
use gantry_core::id::KeyId;
use gantry_runtime::clock::iso;
use gantry_runtime::ledger::{self, KeyRow};
use http::StatusCode;
use request::NewKey;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("looking at the keys")?;
    let keys = app.projects.store().keys().await?;
    Ok(query::list(&keys.iter().map(item).collect::<Vec<_>>(), None))
}

pub(super) async fn create(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
    body: Body,
) -> Result<Response, ApiError> {
    who.administers_all("making a key")?;
    let bytes = query::body(body).await?;
    let new: NewKey = serde_json::from_str(query::json_text(&bytes)?)
        .map_err(|error| ApiError::invalid(format!("the body is not a key: {error}")))?;
    let (id, secret, text) = mint();
    let row = new.row(&app, id, secret)?;
    let mut shown = item(&row);
    app.projects.store().add_key(row).await.map_err(not_made)?;
    app.keys.refresh().await?;
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("key".into(), text.into());
    }
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

fn not_made(error: ledger::Error) -> ApiError {
    use ledger::Error::{NameTaken, NameUsed, TooManyKeys};
    if matches!(error, NameTaken { .. } | NameUsed { .. } | TooManyKeys { .. }) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, error.to_string());
    }
    error.into()
}

/// The key may be named by its id, or by its name while it holds.
pub(super) async fn revoke(
    State(app): State<App>,
    who: Identity,
    Path(named): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("revoking a key")?;
    let store = app.projects.store();
    let keys = store.keys().await?;
    let id: Option<KeyId> = named.parse().ok();
    let found = keys.iter().find(|row| match id {
        Some(id) => row.id == id,
        None => *row.name == *named && state(row) == "active",
    });
    let row = found.ok_or_else(|| {
        let shown: String = named.chars().take(64).collect();
        ApiError::not_found(format!("there is no key {shown:?}; /api/v1/keys lists them"))
    })?;
    let held = store.revoke_key(row.id, Arc::clone(&who.principal), now_us()).await?;
    app.keys.refresh().await?;
    // What is just being held is ended by the approvals worker, which looks again and again.
    app.projects.services().withdraw_ended(&row.name).await?;
    Ok(Json(json!({ "id": row.id, "name": &*row.name, "revoked": true, "held": held })))
}

fn state(row: &KeyRow) -> &'static str {
    match (row.revoked_us, row.expires_us) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now_us() => "expired",
        (None, _) => "active",
    }
}

fn item(row: &KeyRow) -> Value {
    json!({
        "id": row.id,
        "name": &*row.name,
        "role": row.role,
        "projects": row.projects,
        "agent": row.agent,
        "tools": row.tools,
        "state": state(row),
        "createdAt": iso(row.created_us),
        "expiresAt": row.expires_us.map(iso),
        "revokedAt": row.revoked_us.map(iso),
    })
}
