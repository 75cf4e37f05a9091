//! `/api/v1/calls`: make a call, look calls up, cancel one.

use super::query::{self, NoQuery, Part, Path, Query};
use super::tools::door;
use crate::error::{ApiError, retry_later, status};
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gantry_core::id::CallId;
use gantry_core::{CallRequest, Priority, Refusal, Role};
use gantry_runtime::ledger::{self, CallFilter};
use gantry_runtime::projects::{Context, MOVES};
use gantry_runtime::{CallCx, Entered, Reply, Runtime, records};
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Wait,
    Defer,
}

/// The body of `POST /api/v1/calls`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallBody<'a> {
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    agent: Option<String>,
    project: Option<String>,
    #[serde(default)]
    mode: Mode,
    idempotency_key: Option<String>,
    #[serde(default)]
    priority: Priority,
    timeout_ms: Option<u64>,
    /// The sender's yes to whatever the call asks; only for those who may decide.
    #[serde(default)]
    approve: bool,
}

pub(super) async fn create(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = query::body(body).await?;
    let body: CallBody<'_> = serde_json::from_str(query::json_text(&bytes)?)
        .map_err(|error| ApiError::invalid(format!("the body is not a call: {error}")))?;
    if body.approve && who.role < Role::Approver {
        return Err(ApiError::forbidden("approving takes the key of the data folder"));
    }
    let (rt, cx, entered) = enter(&app, &who, body.project.as_deref(), body.agent.as_deref()).await?;
    let request = CallRequest {
        tool: body.tool,
        arguments: body.arguments.map(|raw| raw.get().into()),
        priority: body.priority,
        idempotency_key: body.idempotency_key,
        timeout: body.timeout_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
        approver: body.approve.then(|| who.principal.clone()),
        keep_result: body.mode == Mode::Defer,
    };
    let id = cx.id;
    if body.mode == Mode::Defer {
        rt.defer(entered?, cx, request);
        let body = json!({ "ok": false, "id": id, "state": "EXECUTING" }).to_string();
        return Ok(json_response(StatusCode::ACCEPTED, body));
    }
    Ok(reply_response(&match entered {
        Ok(entered) => rt.run(entered, cx, request).await,
        Err(refusal) => Reply::shed(id, &refusal),
    }))
}

/// Finds the place of a caller and lets his call in there.
async fn enter(
    app: &App,
    who: &Identity,
    project: Option<&str>,
    agent: Option<&str>,
) -> Result<(Arc<Runtime>, CallCx, Result<Entered, Refusal>), ApiError> {
    let mut moves = 0;
    loop {
        let Context { runtime, agent } = query::context(app, project, agent).await?;
        let caller = who.caller(runtime.project(), agent.as_deref());
        let session = runtime.standing_session(caller, door(who)).await?;
        let cx = CallCx::new(&session);
        let entered = runtime.enter(&cx);
        // The project may have turned to another agent in between. Nothing was run, and there is a new place.
        if entered.is_err() && session.is_displaced() && moves < MOVES {
            moves += 1;
            continue;
        }
        return Ok((runtime, cx, entered));
    }
}

fn reply_response(reply: &Reply) -> Response {
    let status = reply.outcome.as_ref().map_or_else(|error| status(error.code), |_| StatusCode::OK);
    let mut response = json_response(status, reply.to_json());
    retry_later(&mut response);
    response
}

fn json_response(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    project: Option<String>,
    tool: Option<String>,
    session: Option<String>,
    state: Option<String>,
    principal: Option<String>,
    since: Option<String>,
    until: Option<String>,
    cursor: Option<i64>,
    limit: Option<u32>,
}

impl Filter {
    /// What the store is asked for; the sender's own calls unless they may see all.
    pub(super) fn of(self, who: &Identity) -> Result<CallFilter, ApiError> {
        let part = Part { cursor: self.cursor, limit: self.limit };
        let state = self.state.as_deref().map(|word| {
            ledger::State::parse(word).ok_or_else(|| {
                let words = ledger::State::ALL.map(ledger::State::as_str).join(", ");
                ApiError::invalid(format!("state is one of {words}"))
            })
        });
        Ok(CallFilter {
            project: self.project.map(Into::into),
            principal: who.sees().or_else(|| self.principal.map(Into::into)),
            session: self.session.as_deref().map(query::id).transpose()?,
            name: self.tool.map(Into::into),
            state: state.transpose()?,
            since_us: query::moment("since", self.since.as_deref())?,
            until_us: query::moment("until", self.until.as_deref())?,
            cursor: part.cursor,
            limit: part.limit.unwrap_or(0),
        })
    }
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    let page = app.projects.store().calls(filter.of(&who)?).await?;
    let items: Vec<Value> = page.items.iter().map(records::call).collect();
    Ok(query::list(&items, page.next))
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id: CallId = query::id(&id)?;
    let own = who.sees();
    // Asked before the ledger: a call that has ended by now is found there.
    let running = app.projects.commons().is_running(id, own.as_deref());
    let found = app.projects.store().call(id).await?;
    let row = found.filter(|row| own.is_none_or(|own| row.head.caller.principal == own));
    let Some(row) = row else {
        // A deferred call that waits for its turn is not in the ledger yet.
        if running {
            return Ok(json_response(
                StatusCode::OK,
                json!({ "ok": false, "id": id, "state": "EXECUTING" }).to_string(),
            ));
        }
        return Err(ApiError::not_found(format!("there is no call {id}")));
    };
    let record = records::call(&row);
    // A kept reply is given as it was first given, with the record beside it.
    let kept = row
        .outcome
        .and_then(|outcome| outcome.result)
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let mut body = kept.unwrap_or_else(|| json!({ "id": id, "state": row.state.as_str() }));
    if let Some(body) = body.as_object_mut() {
        body.insert("record".into(), record);
    }
    Ok(json_response(StatusCode::OK, body.to_string()))
}

pub(super) async fn cancel(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id: CallId = query::id(&id)?;
    if !app.projects.commons().cancel_call(id, who.sees().as_deref()) {
        return Err(ApiError::not_found(format!("call {id} does not run")));
    }
    Ok(Json(json!({ "id": id, "canceled": true })))
}
