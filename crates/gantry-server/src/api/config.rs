//! `/api/v1/config`: whether the configuration on the disk is the one that holds, and reading it again.

use super::query::{Answer, Sender};
use crate::error::ApiError;
use crate::model::{Configuration, NoQuery, Reloaded};
use axum::Json;
use gantry_core::ErrorCode;
use http::StatusCode;

pub(super) async fn show(sender: Sender, _: NoQuery) -> Answer<Configuration> {
    sender.require_global_admin("looking at the configuration")?;
    Ok(Json(Configuration { refused: sender.app.projects.refused() }))
}

pub(super) async fn reload(sender: Sender, _: NoQuery) -> Answer<Reloaded> {
    sender.require_global_admin("reading the configuration again")?;
    let reloaded = sender.app.projects.reload().await.map_err(|reason| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::InvalidArguments, &*reason)
    })?;
    Ok(Json(reloaded))
}
