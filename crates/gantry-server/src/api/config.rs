//! `/api/v1/config`: whether the configuration on the disk is the one that holds, and reading it again.

use super::query::Query;
use crate::error::ApiError;
use crate::model::{Configuration, NoQuery, Reloaded};
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::ErrorCode;
use http::StatusCode;

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Json<Configuration>, ApiError> {
    who.administers_all("looking at the configuration")?;
    Ok(Json(Configuration { refused: app.projects.refused() }))
}

pub(super) async fn reload(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Json<Reloaded>, ApiError> {
    who.administers_all("reading the configuration again")?;
    let reloaded = app.projects.reload().await.map_err(|reason| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::InvalidArguments, &*reason)
    })?;
    Ok(Json(reloaded))
}
