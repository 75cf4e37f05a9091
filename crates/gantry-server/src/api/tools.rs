//! `/api/v1/tools` and `/api/v1/explain`: what a caller may use, and why.

use super::query::{Query, list as listed};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::{Door, Role};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tools {
    agent: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(query): Query<Tools>,
) -> Result<Json<Value>, ApiError> {
    let caller = who.caller(app.runtime.project(), query.agent.as_deref());
    let session = app.runtime.standing_session(caller, door(&who)).await?;
    Ok(listed(&app.runtime.listing(&session), None))
}

/// A person's requests come by the command line; they share its session.
pub(super) fn door(who: &Identity) -> Door {
    if who.role == Role::Admin { Door::Cli } else { Door::Http }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Explain {
    tool: Option<String>,
    agent: Option<String>,
}

pub(super) async fn explain(
    State(app): State<App>,
    who: Identity,
    Query(query): Query<Explain>,
) -> Result<Json<Value>, ApiError> {
    if who.role != Role::Admin {
        return Err(ApiError::forbidden(
            "explaining says what others may use; it takes the key of the data folder",
        ));
    }
    Ok(Json(match &query.tool {
        Some(tool) => json!(app.runtime.explain(tool, query.agent.as_deref())),
        None => json!({ "warnings": app.runtime.warnings() }),
    }))
}
