//! `/api/v1/config`: whether the configuration on the disk is the one that holds, and the word to read it again.

use super::query::{NoQuery, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::ErrorCode;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("looking at the configuration")?;
    Ok(Json(json!({ "refused": app.projects.refused().as_deref() })))
}

pub(super) async fn reload(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Json<Value>, ApiError> {
    who.administers_all("reading the configuration again")?;
    let reloaded = app.projects.reload().await.map_err(|reason| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::InvalidArguments, &*reason)
    })?;
    Ok(Json(json!(reloaded)))
}
