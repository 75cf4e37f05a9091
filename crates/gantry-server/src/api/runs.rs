//! `/api/v1/runs`: sessions and their trees of operations.

use super::query::{self, Path, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::id::SessionId;
use gantry_runtime::ledger::{SessionFilter, SessionSummary};
use gantry_runtime::records;
use serde::Deserialize;
use serde_json::{Value, json};

/// Operations that one tree shows.
const TREE_CALLS: u32 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    agent: Option<String>,
    cursor: Option<i64>,
    limit: Option<u32>,
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    let filter = SessionFilter {
        project: Some(app.runtime.project().clone()),
        principal: who.sees(),
        agent: filter.agent.map(Into::into),
        parent: None,
        cursor: filter.cursor,
        limit: filter.limit.unwrap_or(0),
    };
    let page = app.runtime.store().sessions(filter).await?;
    let items: Vec<Value> = page.items.iter().map(records::run).collect();
    Ok(query::list(&items, page.next))
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = query::id(&id)?;
    let summary = visible(&app, &who, id).await?;
    let calls = app.runtime.store().calls_of_session(id, None, TREE_CALLS).await?;
    let mut tree = records::tree(&summary, &calls.items);
    if let Some(tree) = tree.as_object_mut() {
        tree.insert("truncated".into(), calls.next.is_some().into());
    }
    Ok(Json(tree))
}

pub(super) async fn cancel(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = query::id(&id)?;
    visible(&app, &who, id).await?;
    let running = app.runtime.cancel_session(id).await;
    Ok(Json(json!({ "id": id, "canceled": running })))
}

/// A run that the sender may see; any other is answered as if it were not there.
async fn visible(app: &App, who: &Identity, id: SessionId) -> Result<SessionSummary, ApiError> {
    let found = app.runtime.store().session(id).await?;
    found
        .filter(|summary| who.sees().is_none_or(|own| summary.session.key.principal == own))
        .ok_or_else(|| ApiError::not_found(format!("there is no run {id}")))
}
