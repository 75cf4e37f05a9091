//! `/api/v1/keys`: the keys of the store. A key is shown once, when it is made.

mod request;

use super::query::{self, Answer, Path, Query, Sender};
use crate::auth::{mint, now_us};
use crate::error::ApiError;
use crate::model::{Key, KeyState, List, MadeKey, NewKey, NoQuery, Revoked, Timestamp};
use axum::Json;
use axum::body::Body;
use gantry_core::ErrorCode;
use gantry_core::id::KeyId;
use gantry_runtime::ledger::{self, KeyRow};
use http::StatusCode;
use std::sync::Arc;

pub(super) async fn list(Sender(app, who): Sender, Query(NoQuery {}): Query<NoQuery>) -> Answer<List<Key>> {
    who.require_global_admin("looking at the keys")?;
    let keys = app.projects.store().keys().await?;
    Ok(Json(List::whole(keys.iter().map(Key::from).collect())))
}

pub(super) async fn create(
    Sender(app, who): Sender,
    Query(NoQuery {}): Query<NoQuery>,
    body: Body,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    who.require_global_admin("making a key")?;
    let new: NewKey = query::read("a key", body).await?;
    let (id, digest, secret) = mint();
    let row = request::row(new, &app, id, digest)?;
    let key = Key::from(&row);
    app.projects.store().add_key(row).await.map_err(not_made)?;
    app.keys.refresh().await?;
    Ok((StatusCode::CREATED, Json(MadeKey { key, secret })))
}

fn not_made(error: ledger::Error) -> ApiError {
    use ledger::Error::{NameTaken, NameUsed, TooManyKeys};
    if matches!(error, NameTaken { .. } | NameUsed { .. } | TooManyKeys { .. }) {
        return ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, error.to_string());
    }
    error.into()
}

/// The key may be named by its id, or by its name while it holds.
pub(super) async fn revoke(Sender(app, who): Sender, Path(named): Path<String>) -> Answer<Revoked> {
    who.require_global_admin("revoking a key")?;
    let store = app.projects.store();
    let keys = store.keys().await?;
    let id: Option<KeyId> = named.parse().ok();
    let found = keys.iter().find(|row| match id {
        Some(id) => row.id == id,
        None => *row.name == *named && state(row) == KeyState::Active,
    });
    let row = found.ok_or_else(|| {
        let shown: String = named.chars().take(64).collect();
        ApiError::not_found(format!("there is no key {shown:?}; /api/v1/keys lists them"))
    })?;
    let held = store.revoke_key(row.id, Arc::clone(&who.principal), now_us()).await?;
    app.keys.refresh().await?;
    // What is just being held is ended by the approvals worker, which looks again and again.
    app.projects.services().withdraw_ended(&row.name).await?;
    let (id, name) = (row.id.to_string(), Some(Arc::clone(&row.name)));
    Ok(Json(Revoked { id, name, revoked: true, held }))
}

fn state(row: &KeyRow) -> KeyState {
    match (row.revoked_us, row.expires_us) {
        (Some(_), _) => KeyState::Revoked,
        (None, Some(end)) if end <= now_us() => KeyState::Expired,
        (None, _) => KeyState::Active,
    }
}

impl From<&KeyRow> for Key {
    fn from(row: &KeyRow) -> Self {
        Self {
            id: row.id,
            name: Arc::clone(&row.name),
            role: row.role,
            projects: row.projects.clone(),
            agent: row.agent.clone(),
            tools: row.tools.clone(),
            state: state(row),
            created_at: Timestamp(row.created_us),
            expires_at: row.expires_us.map(Timestamp),
            revoked_at: row.revoked_us.map(Timestamp),
        }
    }
}
