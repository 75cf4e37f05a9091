//! `/api/v1/runs`: sessions and their trees of operations.

use super::query::{self, Answer, Path, Query, Sender};
use crate::error::ApiError;
use crate::model::{Canceled, List, Run, RunQuery, RunTree};
use axum::Json;
use gantry_core::id::SessionId;
use gantry_provider::BoxFuture;
use gantry_runtime::ledger::{SessionFilter, SessionSummary, Store};
use gantry_runtime::ledger_view::Branch;

/// Limit: operations of one tree, those of the runs below it included.
const TREE_CALLS: u32 = 1000;

/// Limit: runs of a tree directly below any one of its runs.
const TREE_RUNS: u32 = 100;

pub(super) async fn list(sender: Sender, Query(query): Query<RunQuery>) -> Answer<List<Run>> {
    query.project.as_deref().map(|name| sender.check_project(name)).transpose()?;
    let filter = SessionFilter {
        project: query.project.map(Into::into),
        principal: sender.visible_principal(),
        agent: query.agent.map(Into::into),
        ..SessionFilter::default()
    };
    let store = sender.store();
    let fetch = |cursor, limit| store.sessions(SessionFilter { cursor, limit, ..filter.clone() });
    let keep = |run: &SessionSummary| sender.can_access_project(&run.session.key.project);
    query::list(query.cursor, query.limit, fetch, |run| (run.session.id, 0), keep).await.map(Json)
}

pub(super) async fn show(sender: Sender, Path(id): Path<String>) -> Answer<RunTree> {
    let summary = visible(&sender, query::id(&id)?).await?;
    let mut room = TREE_CALLS;
    Ok(Json(RunTree::from(&branch(sender.store(), summary, &mut room).await?)))
}

/// A run with all that is below it, as far as there is room for its calls. The depth is bounded by that of the agents.
fn branch<'a>(
    store: &'a Store,
    summary: SessionSummary,
    room: &'a mut u32,
) -> BoxFuture<'a, Result<Branch, ApiError>> {
    Box::pin(async move {
        let id = summary.session.id;
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
            below.push(branch(store, summary, room).await?);
        }
        Ok(Branch { summary, calls: calls.items, truncated, below })
    })
}

pub(super) async fn cancel(sender: Sender, Path(id): Path<String>) -> Answer<Canceled> {
    let id = query::id(&id)?;
    visible(&sender, id).await?;
    let canceled = sender.app.projects.cancel_session(id).await?;
    Ok(Json(Canceled { id: id.to_string(), canceled }))
}

/// A run that the sender may see; any other is answered like one that does not exist.
async fn visible(sender: &Sender, id: SessionId) -> Result<SessionSummary, ApiError> {
    let found = sender.store().session(id).await?;
    found
        .filter(|summary| sender.can_access_project(&summary.session.key.project))
        .filter(|summary| sender.visible_principal().is_none_or(|own| summary.session.key.principal == own))
        .ok_or_else(|| ApiError::not_found(format!("there is no run {id}")))
}
