//! `/api/v1/calls`: make a call, look calls up, cancel one.

mod outcome;

pub(super) use outcome::show;

use super::long_poll::LongPoll;
use super::query::{self, Answer, PageParams, Path, Query, Sender, json, json_response};
use super::tools::entry_point;
use crate::error::{ApiError, retry_later, status};
use crate::model::{self, CallQuery, CallRecord, Canceled, List, Mode, NoQuery};
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::response::Response;
use gantry_core::id::CallId;
use gantry_core::{CallRequest, Refusal};
use gantry_runtime::ledger::{CallFilter, CallRow};
use gantry_runtime::projects::{Context, MOVES};
use gantry_runtime::{Admitted, PipelineContext, Reply, Runtime};
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn create(
    Sender(app, who): Sender,
    Query(NoQuery {}): Query<NoQuery>,
    body: Body,
) -> Result<Response, ApiError> {
    let body: model::CallRequest = query::read("a call", body).await?;
    if body.approve && !who.owner {
        return Err(ApiError::forbidden("approving takes the key of the data folder"));
    }
    let poll = body.wait_ms.map(|wait| LongPoll::millis(&app, &who, wait)).transpose()?;
    let (rt, cx, entered) = admit_call(&app, &who, body.project.as_deref(), body.agent.as_deref()).await?;
    let request = CallRequest {
        tool: body.tool,
        arguments: body.arguments.map(|raw| Box::<str>::from(raw).into()),
        priority: body.priority,
        idempotency_key: body.idempotency_key,
        timeout: body.timeout_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
        approver: body.approve.then(|| who.principal.clone()),
        keep_result: body.mode == Mode::Defer,
        resumed: None,
    };
    let id = cx.id;
    if body.mode == Mode::Defer {
        rt.defer(entered?, cx, request);
        return Ok(json(StatusCode::ACCEPTED, &model::CallReply::unmeasured(id, model::State::Executing)));
    }
    let reply = match entered {
        Ok(entered) => rt.run(entered, cx, request).await,
        Err(refusal) => Reply::rejected_before_entry(id, &refusal),
    };
    rt.collect(&reply).await;
    let held = reply.approval.as_ref().filter(|_| reply.is_held());
    // Without a free slot to wait in, the answer is the one without waiting.
    if let (Some(held), Some(mut poll)) = (held, poll)
        && poll.acquire_slot().is_ok()
        && let Some(outcome) = outcome::within(&app, &who, held.call, &mut poll).await?
    {
        return Ok(outcome);
    }
    Ok(reply_response(&reply))
}

/// Admits a call in the shared session of its caller.
async fn admit_call(
    app: &App,
    who: &Identity,
    project: Option<&str>,
    agent: Option<&str>,
) -> Result<(Arc<Runtime>, PipelineContext, Result<Admitted, Refusal>), ApiError> {
    let mut moves = 0;
    loop {
        let Context { runtime, agent } = query::context(app, who, project, agent).await?;
        let caller = who.caller(&runtime.project, agent);
        let session = runtime.shared_session(caller, entry_point(who)).await?;
        let cx = PipelineContext::new(&session);
        let entered = runtime.enter(&cx);
        // The project may have switched to another agent meanwhile. Nothing was run, and there is a new session.
        if entered.is_err() && session.is_evicted() && moves < MOVES {
            moves += 1;
            continue;
        }
        return Ok((runtime, cx, entered));
    }
}

fn reply_response(reply: &Reply) -> Response {
    let status = match &reply.outcome {
        _ if reply.is_held() => StatusCode::ACCEPTED,
        Ok(_) => StatusCode::OK,
        Err(error) => status(error.code),
    };
    let mut response = json_response(status, reply.to_json());
    retry_later(&mut response);
    response
}

/// What the store is asked for; only the sender's own calls unless they may see all.
fn filter(query: CallQuery, who: &Identity) -> Result<CallFilter, ApiError> {
    query.project.as_deref().map(|name| who.check_project(name)).transpose()?;
    Ok(CallFilter {
        project: query.project.map(Into::into),
        principal: who.visible_principal().or_else(|| query.principal.map(Into::into)),
        session: query.session,
        name: query.tool.map(Into::into),
        state: query.state,
        since_us: query::moment("since", query.since.as_deref())?,
        until_us: query::moment("until", query.until.as_deref())?,
        cursor: None,
        limit: 0,
    })
}

pub(super) async fn list(
    Sender(app, who): Sender,
    Query(query): Query<CallQuery>,
) -> Answer<List<CallRecord>> {
    let part = PageParams { cursor: query.cursor, limit: query.limit };
    let (store, filter) = (app.projects.store(), filter(query, &who)?);
    let fetch = |cursor, limit| store.calls(CallFilter { cursor, limit, ..filter.clone() });
    let keep = |row: &CallRow| who.can_access_project(&row.head.caller.project);
    let page = query::paginate_filtered(part, fetch, |row| row.head.id, |_| 0, keep).await?;
    Ok(query::list(page))
}

/// Cancels a call that runs, or withdraws one that waits.
pub(super) async fn cancel(Sender(app, who): Sender, Path(id): Path<String>) -> Answer<Canceled> {
    let id: CallId = query::id(&id)?;
    let (own, services) = (who.visible_principal(), app.projects.services());
    let may = outcome::may_cancel(&app, &who, id).await?;
    let canceled = may && services.cancel_call(id, own.as_deref());
    let why = format!("withdrawn by {}", who.principal);
    if canceled || (may && services.withdraw(id, own.as_deref(), &why).await?) {
        return Ok(Json(Canceled { id: id.to_string(), canceled: true }));
    }
    Err(ApiError::not_found(format!("call {id} does not run or wait")))
}
