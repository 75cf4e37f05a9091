//! `/api/v1/runs`: sessions and their trees of operations.

use super::query::{self, Part, Path, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::id::SessionId;
use gantry_provider::BoxFuture;
use gantry_runtime::ledger::{SessionFilter, SessionSummary};
use gantry_runtime::ledger_view::{self, Branch};
use serde::Deserialize;
use serde_json::{Value, json};

/// Operations that one tree shows, those of the runs below it included.
const TREE_CALLS: u32 = 1000;

/// Runs that a tree shows below any one of its runs.
const TREE_RUNS: u32 = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    project: Option<String>,
    agent: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    filter.project.as_deref().map(|name| who.check_project(name)).transpose()?;
    let part = Part::new(filter.cursor.as_deref(), filter.limit)?;
    let filter = SessionFilter {
        project: filter.project.map(Into::into),
        principal: who.sees(),
        agent: filter.agent.map(Into::into),
        ..SessionFilter::default()
    };
    let store = app.projects.store();
    let fetch = |cursor, limit| store.sessions(SessionFilter { cursor, limit, ..filter.clone() });
    let keep = |run: &SessionSummary| who.reaches(&run.session.key.project);
    let page = query::gather(part, fetch, |run| run.session.id, |_| 0, keep).await?;
    let items: Vec<Value> = page.items.iter().map(ledger_view::run).collect();
    Ok(query::list(&items, page.next.map(|next| next.to_string()).as_deref()))
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = query::id(&id)?;
    let summary = visible(&app, &who, id).await?;
    let mut room = TREE_CALLS;
    Ok(Json(ledger_view::tree(&branch(&app, summary, &mut room).await?)))
}

/// A run with all that is below it, as far as there is room for its calls. The depth is bounded by that of the agents.
fn branch<'a>(
    app: &'a App,
    summary: SessionSummary,
    room: &'a mut u32,
) -> BoxFuture<'a, Result<Branch, ApiError>> {
    Box::pin(async move {
        let (store, id) = (app.projects.store(), summary.session.id);
        let calls = store.calls_of_session(id, (*room).max(1)).await?;
        *room = room.saturating_sub(u32::try_from(calls.items.len()).unwrap_or(u32::MAX));
        let filter = SessionFilter { below: Some(id), limit: TREE_RUNS, ..SessionFilter::default() };
        let started = store.sessions(filter).await?;
        let mut truncated = calls.next.is_some() || started.next.is_some();
        let mut below = Vec::new();
        for summary in started.items.into_iter().rev() {
            if *room == 0 {
                truncated = true;
                break;
            }
            below.push(branch(app, summary, room).await?);
        }
        Ok(Branch { summary, calls: calls.items, truncated, below })
    })
}

pub(super) async fn cancel(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = query::id(&id)?;
    visible(&app, &who, id).await?;
    let canceled = app.projects.cancel_session(id).await?;
    Ok(Json(json!({ "id": id, "canceled": canceled })))
}

/// A run that the sender may see; any other is answered as if it were not there.
async fn visible(app: &App, who: &Identity, id: SessionId) -> Result<SessionSummary, ApiError> {
    let found = app.projects.store().session(id).await?;
    found
        .filter(|summary| who.reaches(&summary.session.key.project))
        .filter(|summary| who.sees().is_none_or(|own| summary.session.key.principal == own))
        .ok_or_else(|| ApiError::not_found(format!("there is no run {id}")))
}
