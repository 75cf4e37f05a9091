//! What came of a call, for those who come back for it.

use crate::api::query::{self, Path, Query, json_response};
use crate::api::waiting::Waiting;
use crate::error::{ApiError, status};
use crate::{App, Identity};
use axum::extract::State;
use axum::response::Response;
use gantry_core::ErrorCode;
use gantry_core::id::CallId;
use gantry_runtime::ledger::{self, ApprovalRow, CallRow};
use gantry_runtime::ledger_view;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A call as its reader may see it.
enum Seen {
    /// A deferred one that waits for its turn; the ledger has nothing of it yet.
    Queued(CallId),
    /// What the ledger has of it, and the approval that it waits or has waited for.
    Recorded(Box<CallRow>, Option<Box<ApprovalRow>>),
}

impl Seen {
    fn is_over(&self) -> bool {
        match self {
            Self::Queued(_) => false,
            Self::Recorded(row, _) => row.state.is_over(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Patience {
    wait: Option<u64>,
}

pub(in crate::api) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
    Query(patience): Query<Patience>,
) -> Result<Response, ApiError> {
    let id: CallId = query::id(&id)?;
    let mut waiting = Waiting::seconds(&app, &who, patience.wait)?;
    let seen = until_over(&app, &who, id, &mut waiting).await?;
    collect(&app, &who, &seen).await?;
    Ok(json_response(StatusCode::OK, body(seen).to_string()))
}

/// The outcome of a call that is held, if there is one in time.
pub(super) async fn within(
    app: &App,
    who: &Identity,
    id: CallId,
    waiting: &mut Waiting<'_>,
) -> Result<Option<Response>, ApiError> {
    let seen = until_over(app, who, id, waiting).await?;
    if !seen.is_over() {
        return Ok(None);
    }
    collect(app, who, &seen).await?;
    let body = body(seen);
    let code = body.pointer("/error/code").and_then(Value::as_str).and_then(ErrorCode::parse);
    Ok(Some(json_response(code.map_or(StatusCode::OK, status), body.to_string())))
}

/// The call when it is over, or as it stands when the time is.
async fn until_over(
    app: &App,
    who: &Identity,
    id: CallId,
    waiting: &mut Waiting<'_>,
) -> Result<Seen, ApiError> {
    loop {
        waiting.look();
        let seen = look(app, who, id).await?;
        if seen.is_over() || !waiting.more().await? {
            return Ok(seen);
        }
    }
}

async fn look(app: &App, who: &Identity, id: CallId) -> Result<Seen, ApiError> {
    let own = who.sees();
    // Asked before the ledger: a call that has ended by now is found there.
    let running = app.projects.services().is_running(id, own.as_deref());
    let store = app.projects.store();
    let found = store.call(id).await?;
    let row = found
        .filter(|row| who.reaches(&row.head.caller.project))
        .filter(|row| own.as_ref().is_none_or(|own| row.head.caller.principal == *own));
    match row {
        Some(row) => {
            let approval = store.approval_of(id).await?;
            Ok(Seen::Recorded(Box::new(row), approval.map(Box::new)))
        }
        // In which project it is only its record says.
        None if running && (own.is_some() || who.projects.is_none()) => Ok(Seen::Queued(id)),
        None => Err(ApiError::not_found(format!("there is no call {id}"))),
    }
}

/// Whether somebody who may cancel anybody's calls may cancel this one too.
pub(super) async fn reaches(app: &App, who: &Identity, id: CallId) -> Result<bool, ledger::Error> {
    if who.projects.is_none() {
        return Ok(true);
    }
    let row = app.projects.store().call(id).await?;
    // A call of their own that is not on record yet is in one of their projects.
    Ok(row.map_or(who.sees().is_some(), |row| who.reaches(&row.head.caller.project)))
}

/// Notes that the caller was given the outcome, so that the same request is a new call from now on.
async fn collect(app: &App, who: &Identity, seen: &Seen) -> Result<(), ledger::Error> {
    let Seen::Recorded(_, Some(approval)) = seen else { return Ok(()) };
    if approval.state.is_over() && approval.principal == who.principal && !approval.delivered {
        app.projects.store().mark_delivered(approval.id).await?;
    }
    Ok(())
}

fn body(seen: Seen) -> Value {
    let (row, approval) = match seen {
        Seen::Queued(id) => return json!({ "ok": false, "id": id, "state": "EXECUTING" }),
        Seen::Recorded(row, approval) => (row, approval),
    };
    let record = ledger_view::call(&row);
    // A kept reply is given as it was first given, with the record beside it.
    let kept = row.outcome.as_ref().and_then(|outcome| outcome.result.as_deref());
    let kept = kept.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let mut body = kept.unwrap_or_else(|| from_record(&row, approval.as_deref()));
    if let Some(approval) = approval {
        body.insert("approvalId".into(), approval.id.to_string().into());
    }
    body.insert("record".into(), record);
    body.into()
}

/// What can be said of a call of which no reply is kept.
fn from_record(row: &CallRow, approval: Option<&ApprovalRow>) -> Map<String, Value> {
    let outcome = row.outcome.as_ref();
    let failed = outcome.and_then(|outcome| Some((outcome.code.as_deref()?, outcome.message.as_deref())));
    let waits = approval.filter(|_| row.state.is_waiting());
    let waits = waits.map(|approval| (ErrorCode::ApprovalRequired.as_str(), Some(&*approval.details.reason)));
    let mut body = Map::new();
    body.insert("ok".into(), (row.state == ledger::State::CompletedSuccess).into());
    body.insert("id".into(), json!(row.head.id));
    body.insert("state".into(), row.state.as_str().into());
    if let Some((code, message)) = waits.or(failed) {
        body.insert("error".into(), json!({ "code": code, "message": message.unwrap_or_default() }));
    }
    body
}
