//! `/api/v1/approvals`: the calls that wait for a person or for their time, and decisions about them.

use super::long_poll::LongPoll;
use super::query::{self, Answer, PageParams, Path, Query, Sender, json};
use super::short_id::ShortId;
use crate::error::ApiError;
use crate::model::{Approval, ApprovalQuery, Conflict, ConflictDetails, ConflictError, Decision, List, Wait};
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::response::Response;
use gantry_core::id::ApprovalId;
use gantry_core::{ErrorCode, Role};
use gantry_runtime::approvals::{DecisionError, DecisionInput};
use gantry_runtime::ledger::{ApprovalFilter, ApprovalRow, Scope};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// The header in which the command line and the page name themselves. It is shown and gives no right.
pub(super) const VIA: &str = "gantry-via";

/// What the store is asked for; only the sender's own approvals unless they may decide.
fn filter(query: ApprovalQuery, who: &Identity) -> Result<ApprovalFilter, ApiError> {
    query.project.as_deref().map(|name| who.check_project(name)).transpose()?;
    let project = query.project.map(|name| vec![name.into()]);
    Ok(ApprovalFilter {
        state: query.state,
        projects: project.or_else(|| who.projects.as_ref().map(|projects| projects.to_vec())),
        principal: (who.role < Role::Approver).then(|| Arc::clone(&who.principal)),
        name: query.tool.map(Into::into),
        session: query.session,
        call: query.call,
        cursor: None,
        limit: 0,
    })
}

pub(super) async fn list(
    Sender(app, who): Sender,
    Query(query): Query<ApprovalQuery>,
) -> Answer<List<Approval>> {
    let mut poll = LongPoll::seconds(&app, &who, query.wait)?;
    let part = PageParams { cursor: query.cursor, limit: query.limit };
    let project = query.project.clone();
    let filter = filter(query, &who)?;
    let store = app.projects.store();
    let fetch = |cursor, limit| store.approvals(ApprovalFilter { cursor, limit, ..filter.clone() });
    loop {
        poll.mark_seen();
        let page = query::paginate_filtered(
            part,
            fetch,
            |row| row.id,
            ApprovalRow::argument_bytes,
            |row| is_shown_to(row, &who),
        )
        .await?;
        // The records of a project that was removed can still be read.
        if let Some(project) = project.as_deref().filter(|_| page.items.is_empty()) {
            query::known_project(&app, &who, Some(project))?;
        }
        if !page.items.is_empty() || !poll.wait_for_change().await? {
            return Ok(query::list(page));
        }
    }
}

/// Whether the sender may see an approval: it may decide about it, or the call is its own.
fn is_shown_to(row: &ApprovalRow, who: &Identity) -> bool {
    let own = row.principal == who.principal && who.can_access_project(&row.project);
    own || who.approver("").is_some_and(|decider| decider.sees(row))
}

pub(super) async fn show(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Answer<Approval> {
    let id = resolve(&app, &who, &id).await?;
    let mut poll = LongPoll::seconds(&app, &who, query.wait)?;
    poll.mark_seen();
    let first = visible(&app, &who, id).await?;
    let (mut row, before) = (first.clone(), first.state);
    while row.state == before && !before.is_over() && poll.wait_for_change().await? {
        poll.mark_seen();
        row = visible(&app, &who, id).await?;
    }
    Ok(Json(Approval::from(&row)))
}

/// The id that a path names, whole or by its last digits: of what waits, or else of everything that the sender may see.
async fn resolve(app: &App, who: &Identity, text: &str) -> Result<ApprovalId, ApiError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let short = ShortId::parse(text, "appr_", "gantry approvals")?;
    let mut found = app.projects.store().approvals_ending(short.bytes()).await?;
    found.retain(|row| short.is_end_of(&row.id) && is_shown_to(row, who));
    let waiting: Vec<ApprovalId> =
        found.iter().filter(|row| row.state.is_waiting()).map(|row| row.id).collect();
    let every: Vec<ApprovalId> = found.iter().map(|row| row.id).collect();
    short.only(if waiting.is_empty() { &every } else { &waiting })?.ok_or_else(|| {
        ApiError::not_found(format!("there is no request {text}; gantry approvals --all lists them"))
    })
}

/// An approval that the sender may see; any other is answered like one that does not exist.
async fn visible(app: &App, who: &Identity, id: ApprovalId) -> Result<ApprovalRow, ApiError> {
    let found = app.projects.store().approval(id).await?;
    found.filter(|row| is_shown_to(row, who)).ok_or_else(|| unknown(id))
}

fn unknown(id: ApprovalId) -> ApiError {
    ApiError::not_found(format!(
        "there is no approval {id}; gantry approvals --all or /api/v1/approvals lists them"
    ))
}

/// Checks a decision.
fn input(decision: Decision) -> Result<DecisionInput, ApiError> {
    let Decision { approved, modified_args, reason, scope } = decision;
    let modified = modified_args.map(Box::<str>::from);
    if modified.as_ref().is_some_and(|text| !text.starts_with('{')) {
        return Err(ApiError::invalid("modifiedArgs is an object: the arguments to run the call with"));
    }
    if !approved && modified.is_some() {
        return Err(ApiError::invalid("modifiedArgs is for approving; a denied call is not run"));
    }
    if !approved && scope != Scope::Once {
        return Err(ApiError::invalid(
            "a denial is for this call alone; write a policy that denies to refuse more",
        ));
    }
    Ok(DecisionInput { approved, modified_args: modified.map(Into::into), reason, scope })
}

pub(super) async fn decide(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    // Before anything else, so that an agent does not even learn what there is to decide.
    let Some(by) = who.approver(via(&headers)) else {
        let why = "an agent cannot decide; it takes the key of an approver";
        if let Ok(id) = id.parse() {
            app.projects
                .services()
                .record_refused_decision(id, (&who.principal, via(&headers)), None, why)
                .await;
        }
        return Err(ApiError::forbidden(why));
    };
    let id = resolve(&app, &who, &id).await?;
    let decision = input(query::read("a decision", body).await?)?;
    match app.projects.decide(id, &by, decision).await {
        Ok(row) => Ok(json(StatusCode::OK, &Approval::from(&row))),
        Err(error) => not_decided(error),
    }
}

/// The name that the sender gives itself.
fn via(headers: &HeaderMap) -> &'static str {
    match headers.get(VIA).map(http::HeaderValue::as_bytes) {
        Some(b"cli") => "cli",
        Some(b"page") => "page",
        Some(_) | None => "http",
    }
}

fn not_decided(error: DecisionError) -> Result<Response, ApiError> {
    let message = error.to_string();
    match error {
        DecisionError::Unknown(id) => Err(unknown(id)),
        DecisionError::Forbidden(message) => Err(ApiError::forbidden(message)),
        DecisionError::Invalid(error) => Err(ApiError::of(StatusCode::BAD_REQUEST, error)),
        DecisionError::Store(error) => Err(error.into()),
        DecisionError::Decided(row) => {
            Ok(stands(StatusCode::CONFLICT, ErrorCode::AlreadyDecided, message, &row))
        }
        DecisionError::Expired(row) => {
            Ok(stands(StatusCode::GONE, ErrorCode::RejectedByTimeout, message, &row))
        }
    }
}

/// An error that shows how the approval stands.
fn stands(status: StatusCode, code: ErrorCode, message: String, row: &ApprovalRow) -> Response {
    let details = ConflictDetails { approval: row.into() };
    json(status, &Conflict { ok: false, error: ConflictError { code, message, details } })
}

pub(super) async fn cancel(Sender(app, who): Sender, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = resolve(&app, &who, &id).await?;
    let row = visible(&app, &who, id).await?;
    let own = who.visible_principal();
    if own.as_ref().is_some_and(|own| *own != row.principal) {
        return Err(ApiError::forbidden(
            "a call is withdrawn by its caller or by an administrator; an approver denies it instead",
        ));
    }
    let why = format!("withdrawn by {}", who.principal);
    let withdrawn =
        row.state.is_waiting() && app.projects.services().withdraw(row.call, own.as_deref(), &why).await?;
    let row = visible(&app, &who, id).await?;
    if withdrawn {
        return Ok(json(StatusCode::OK, &Approval::from(&row)));
    }
    let message = format!("{id} is {} already; only a call that waits can be withdrawn", row.state);
    Ok(stands(StatusCode::CONFLICT, ErrorCode::AlreadyDecided, message, &row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Result<DecisionInput, ApiError> {
        input(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn arguments_are_taken_word_for_word() {
        let text =
            r#"{"approved":true,"modifiedArgs":{"n":1.50, "big":12345678901234567890123},"scope":"always"}"#;
        let given = given(text).unwrap();
        assert_eq!(given.modified_args.as_deref(), Some(r#"{"n":1.50, "big":12345678901234567890123}"#));
        assert_eq!((given.approved, given.scope), (true, Scope::Always));
    }

    #[test]
    fn decisions_that_contradict_themselves_are_refused() {
        for bad in [
            r#"{"approved":true,"modifiedArgs":[1]}"#,
            r#"{"approved":true,"modifiedArgs":"{}"}"#,
            r#"{"approved":false,"modifiedArgs":{}}"#,
            r#"{"approved":false,"scope":"always"}"#,
        ] {
            assert!(given(bad).is_err(), "{bad}");
        }
        assert!(given(r#"{"approved":false,"modifiedArgs":null,"scope":"once"}"#).is_ok());
        for bad in [r#"{"approved":"yes"}"#, "{}", r#"{"approved":true,"via":"cli"}"#] {
            assert!(serde_json::from_str::<Decision>(bad).is_err(), "{bad}");
        }
    }
}
