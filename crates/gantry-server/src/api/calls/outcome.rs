//! The outcome of a call that is asked for by its id.

use crate::api::long_poll::LongPoll;
use crate::api::query::{self, Path, Query, Sender, json};
use crate::error::{ApiError, status};
use crate::model::{CallRecord, CallReply, Wait};
use crate::{App, Identity};
use axum::response::Response;
use gantry_core::id::CallId;
use gantry_core::{ErrorCode, ToolError};
use gantry_runtime::ledger::{self, ApprovalRow, CallRow};
use http::StatusCode;

/// A call as the sender may see it.
enum CallView {
    /// A deferred one that waits for its turn; the ledger has nothing of it yet.
    Queued(CallId),
    /// What the ledger has of it, and the approval that it waits or has waited for.
    Recorded(Box<CallRow>, Option<Box<ApprovalRow>>),
}

impl CallView {
    fn is_over(&self) -> bool {
        match self {
            Self::Queued(_) => false,
            Self::Recorded(row, _) => row.state.is_over(),
        }
    }
}

pub(in crate::api) async fn show(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Response, ApiError> {
    let id: CallId = query::id(&id)?;
    let mut poll = LongPoll::seconds(&app, &who, query.wait)?;
    let view = until_over(&app, &who, id, &mut poll).await?;
    mark_collected(&app, &who, &view).await?;
    Ok(json(StatusCode::OK, &reply(view)))
}

/// The outcome of a call that is held, if there is one in time.
pub(super) async fn within(
    app: &App,
    who: &Identity,
    id: CallId,
    poll: &mut LongPoll<'_>,
) -> Result<Option<Response>, ApiError> {
    let view = until_over(app, who, id, poll).await?;
    if !view.is_over() {
        return Ok(None);
    }
    mark_collected(app, who, &view).await?;
    let reply = reply(view);
    let status = reply.error.as_ref().map_or(StatusCode::OK, |error| status(error.code));
    Ok(Some(json(status, &reply)))
}

/// The call when it is over, or as it stands when the time is.
async fn until_over(
    app: &App,
    who: &Identity,
    id: CallId,
    poll: &mut LongPoll<'_>,
) -> Result<CallView, ApiError> {
    loop {
        poll.mark_seen();
        let view = find(app, who, id).await?;
        if view.is_over() || !poll.wait_for_change().await? {
            return Ok(view);
        }
    }
}

async fn find(app: &App, who: &Identity, id: CallId) -> Result<CallView, ApiError> {
    let own = who.visible_principal();
    // Asked before the ledger: a call that has ended by now is found there.
    let running = app.projects.services().is_running(id, own.as_deref());
    let store = app.projects.store();
    let found = store.call(id).await?;
    let row = found
        .filter(|row| who.can_access_project(&row.head.caller.project))
        .filter(|row| own.as_ref().is_none_or(|own| row.head.caller.principal == *own));
    match row {
        Some(row) => {
            let approval = store.approval_of(id).await?;
            Ok(CallView::Recorded(Box::new(row), approval.map(Box::new)))
        }
        // Only its record says in which project it is.
        None if running && (own.is_some() || who.projects.is_none()) => Ok(CallView::Queued(id)),
        None => Err(ApiError::not_found(format!("there is no call {id}"))),
    }
}

/// Whether the sender may cancel a call, as far as its project decides that.
pub(super) async fn may_cancel(app: &App, who: &Identity, id: CallId) -> Result<bool, ledger::Error> {
    if who.projects.is_none() {
        return Ok(true);
    }
    let row = app.projects.store().call(id).await?;
    // A call of its own that is not on record yet is in one of its projects.
    Ok(row.map_or(who.visible_principal().is_some(), |row| who.can_access_project(&row.head.caller.project)))
}

/// Notes that the caller was given the outcome, so that the same request is a new call from now on.
async fn mark_collected(app: &App, who: &Identity, view: &CallView) -> Result<(), ledger::Error> {
    let CallView::Recorded(_, Some(approval)) = view else { return Ok(()) };
    if approval.state.is_over() && approval.principal == who.principal && !approval.delivered {
        app.projects.store().mark_delivered(approval.id).await?;
    }
    Ok(())
}

fn reply(view: CallView) -> CallReply {
    let (row, approval) = match view {
        CallView::Queued(id) => return CallReply::unmeasured(id, ledger::State::Executing),
        CallView::Recorded(row, approval) => (row, approval),
    };
    // A kept reply is given as it was first given, with the record beside it.
    let kept = row.outcome.as_ref().and_then(|outcome| outcome.result.as_deref());
    let kept = kept.and_then(|text| serde_json::from_str(text).ok());
    let reply = kept.unwrap_or_else(|| from_record(&row, approval.as_deref()));
    let approval_id = approval.map(|approval| approval.id).or(reply.approval_id);
    CallReply { approval_id, record: Some(Box::new(CallRecord::from(&*row))), ..reply }
}

/// The reply to a call of which none is kept.
fn from_record(row: &CallRow, approval: Option<&ApprovalRow>) -> CallReply {
    let outcome = row.outcome.as_ref();
    let failed = outcome.and_then(|outcome| Some((outcome.code.as_deref()?, outcome.message.as_deref())));
    let failed = failed.and_then(|(code, message)| Some((ErrorCode::parse(code)?, message)));
    let waits = approval.filter(|_| row.state.is_waiting());
    let waits = waits.map(|approval| (ErrorCode::ApprovalRequired, Some(&*approval.details.reason)));
    let error = waits.or(failed).map(|(code, message)| ToolError::new(code, message.unwrap_or_default()));
    CallReply { error, ..CallReply::unmeasured(row.head.id, row.state) }
}
