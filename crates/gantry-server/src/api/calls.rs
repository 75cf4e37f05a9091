//! `/api/v1/calls`: make a call, look calls up, cancel one.

use super::long_poll::LongPoll;
use super::query::{self, Answer, Path, Query, Sender, json_response};
use crate::error::{ApiError, retry_later, status};
use crate::model::{self, CallQuery, CallRecord, CallReply, Canceled, List, Mode, NoQuery, Wait};
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use gantry_core::id::CallId;
use gantry_core::{CallRequest, ErrorCode, Refusal, ToolError};
use gantry_runtime::ledger::{self, ApprovalRow, CallFilter, CallRow};
use gantry_runtime::projects::MOVES;
use gantry_runtime::{Admitted, PipelineContext, Reply, Runtime, Session};
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn create(sender: Sender, _: NoQuery, body: Body) -> Result<Response, ApiError> {
    let body: model::CallRequest = query::read("a call", body).await?;
    if body.approve && !sender.owner {
        return Err(ApiError::forbidden("approving takes the key of the data folder"));
    }
    let poll = body.wait_ms.map(|wait| LongPoll::millis(&sender, wait)).transpose()?;
    let session = || sender.shared_session(body.project.as_deref(), body.agent.as_deref());
    let (rt, cx, entered) = admit(session).await?;
    let request = CallRequest {
        tool: body.tool,
        arguments: body.arguments.map(|raw| Box::<str>::from(raw).into()),
        priority: body.priority,
        idempotency_key: body.idempotency_key,
        timeout: body.timeout_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
        approver: body.approve.then(|| sender.principal.clone()),
        keep_result: body.mode == Mode::Defer,
        resumed: None,
    };
    let id = cx.id;
    if body.mode == Mode::Defer {
        rt.defer(entered?, cx, request);
        let reply = CallReply::unmeasured(id, ledger::State::Executing);
        return Ok((StatusCode::ACCEPTED, Json(reply)).into_response());
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
    {
        let record = until_over(&sender, held.call, &mut poll).await?;
        if record.as_ref().is_some_and(|(call, _)| call.state.is_over()) {
            let outcome = reply_from_record(&sender, held.call, record).await?;
            let status = outcome.error.as_ref().map_or(StatusCode::OK, |error| status(error.code));
            return Ok((status, Json(outcome)).into_response());
        }
    }
    Ok(reply_response(&reply))
}

/// Admits a call in the session that its caller has now.
pub(crate) async fn admit<E, F>(
    session: impl Fn() -> F,
) -> Result<(Arc<Runtime>, PipelineContext, Result<Admitted, Refusal>), E>
where
    F: Future<Output = Result<(Arc<Runtime>, Arc<Session>), E>>,
{
    let mut moves = 0;
    loop {
        let (runtime, session) = session().await?;
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

/// Only the sender's own calls, unless it may see all.
pub(super) async fn list(sender: Sender, Query(query): Query<CallQuery>) -> Answer<List<CallRecord>> {
    query.project.as_deref().map(|name| sender.check_project(name)).transpose()?;
    let filter = CallFilter {
        project: query.project.map(Into::into),
        principal: sender.visible_principal().or_else(|| query.principal.map(Into::into)),
        session: query.session,
        name: query.tool.map(Into::into),
        state: query.state,
        since_us: query::moment("since", query.since.as_deref())?,
        until_us: query::moment("until", query.until.as_deref())?,
        ..CallFilter::default()
    };
    let fetch = |cursor, limit| sender.store().calls(CallFilter { cursor, limit, ..filter.clone() });
    let keep = |row: &CallRow| sender.can_access_project(&row.head.caller.project);
    query::list(query.cursor, query.limit, fetch, |row| (row.head.id, 0), keep).await.map(Json)
}

/// Cancels a call that runs, or withdraws one that waits.
pub(super) async fn cancel(sender: Sender, Path(id): Path<String>) -> Answer<Canceled> {
    let id: CallId = query::id(&id)?;
    let (own, services) = (sender.visible_principal(), sender.app.projects.services());
    let may = may_cancel(&sender, id).await?;
    let canceled = may && services.cancel_call(id, own.as_deref());
    let why = format!("withdrawn by {}", sender.principal);
    if canceled || (may && services.withdraw(id, own.as_deref(), &why).await?) {
        return Ok(Json(Canceled { id: id.to_string(), canceled: true }));
    }
    Err(ApiError::not_found(format!("call {id} does not run or wait")))
}

/// Whether the sender may cancel a call, as far as its project decides that.
async fn may_cancel(sender: &Sender, id: CallId) -> Result<bool, ledger::Error> {
    if sender.projects.is_none() {
        return Ok(true);
    }
    let row = sender.store().call(id).await?;
    // A call of its own that is not on record yet is in one of its projects.
    Ok(row.map_or(sender.visible_principal().is_some(), |row| {
        sender.can_access_project(&row.head.caller.project)
    }))
}

pub(super) async fn show(
    sender: Sender,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Answer<CallReply> {
    let id: CallId = query::id(&id)?;
    let mut poll = LongPoll::seconds(&sender, query.wait)?;
    let record = until_over(&sender, id, &mut poll).await?;
    Ok(Json(reply_from_record(&sender, id, record).await?))
}

/// What the ledger has of a call, and the approval that it waits or has waited for.
type Record = (CallRow, Option<ApprovalRow>);

/// The call when it is over, or as it stands when the time is.
async fn until_over(
    sender: &Sender,
    id: CallId,
    poll: &mut LongPoll<'_>,
) -> Result<Option<Record>, ApiError> {
    loop {
        poll.mark_seen();
        let record = find(sender, id).await?;
        let is_over = record.as_ref().is_some_and(|(call, _)| call.state.is_over());
        if is_over || !poll.wait_for_change().await? {
            return Ok(record);
        }
    }
}

/// A call that the sender may see; none if it is deferred and waits for its turn.
async fn find(sender: &Sender, id: CallId) -> Result<Option<Record>, ApiError> {
    let own = sender.visible_principal();
    // Asked before the ledger: a call that has ended by now is found there.
    let running = sender.app.projects.services().is_running(id, own.as_deref());
    let found = sender.store().call(id).await?;
    let call = found
        .filter(|row| sender.can_access_project(&row.head.caller.project))
        .filter(|row| own.as_ref().is_none_or(|own| row.head.caller.principal == *own));
    match call {
        Some(call) => Ok(Some((call, sender.store().approval_of(id).await?))),
        // Only its record says in which project it is.
        None if running && (own.is_some() || sender.projects.is_none()) => Ok(None),
        None => Err(ApiError::not_found(format!("there is no call {id}"))),
    }
}

/// The reply to a call that was made before. A caller that gets the outcome of a held call has collected it: the same
/// request is a new call from now on.
async fn reply_from_record(
    sender: &Sender,
    id: CallId,
    record: Option<Record>,
) -> Result<CallReply, ApiError> {
    let Some((call, approval)) = record else {
        return Ok(CallReply::unmeasured(id, ledger::State::Executing));
    };
    if let Some(approval) = &approval
        && approval.state.is_over()
        && approval.principal == sender.principal
        && !approval.delivered
    {
        sender.store().mark_delivered(approval.id).await?;
    }
    let outcome = call.outcome.as_ref();
    // A kept reply is given as it was first given, with the record beside it.
    let kept = outcome.and_then(|outcome| serde_json::from_str(outcome.result.as_deref()?).ok());
    let reply = kept.unwrap_or_else(|| {
        let failed = outcome.and_then(|outcome| Some((outcome.code.as_deref()?, outcome.message.as_deref())));
        let failed = failed.and_then(|(code, message)| Some((ErrorCode::parse(code)?, message)));
        let waits = approval.as_ref().filter(|_| call.state.is_waiting());
        let waits = waits.map(|approval| (ErrorCode::ApprovalRequired, Some(&*approval.details.reason)));
        let error = waits.or(failed).map(|(code, message)| ToolError::new(code, message.unwrap_or_default()));
        CallReply { error, ..CallReply::unmeasured(id, call.state) }
    });
    let approval_id = approval.map(|approval| approval.id).or(reply.approval_id);
    Ok(CallReply { approval_id, record: Some(Box::new(CallRecord::from(&call))), ..reply })
}
