//! `/api/v1/approvals`: the calls that wait for a person or for their time, and decisions about them.

use super::long_poll::LongPoll;
use super::query::{self, Answer, Path, Query, Sender};
use super::short_id::ShortId;
use crate::Identity;
use crate::error::ApiError;
use crate::model::{Approval, ApprovalQuery, Decision, List, Wait};
use axum::Json;
use axum::body::Body;
use gantry_core::id::ApprovalId;
use gantry_core::{ErrorCode, Role};
use gantry_runtime::approvals::{DecisionError, DecisionInput};
use gantry_runtime::ledger::{ApprovalFilter, ApprovalRow, Scope};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// The header in which the command line and the page name themselves. It is shown and gives no right.
pub(super) const VIA: &str = "gantry-via";

pub(super) async fn list(sender: Sender, Query(query): Query<ApprovalQuery>) -> Answer<List<Approval>> {
    let mut poll = LongPoll::seconds(&sender, query.wait)?;
    let filter = ApprovalFilter {
        state: query.state,
        projects: sender.recorded_projects(query.project.as_deref())?,
        principal: (sender.role < Role::Approver).then(|| Arc::clone(&sender.principal)),
        name: query.tool.map(Into::into),
        session: query.session,
        call: query.call,
        ..ApprovalFilter::default()
    };
    let store = sender.store();
    let fetch = |cursor, limit| store.approvals(ApprovalFilter { cursor, limit, ..filter.clone() });
    let keep = |row: &ApprovalRow| is_shown_to(row, &sender);
    loop {
        poll.mark_seen();
        let place = |row: &ApprovalRow| (row.id, row.argument_bytes());
        let page: List<Approval> = query::list(query.cursor, query.limit, fetch, place, keep).await?;
        if page.items.is_empty() {
            sender.listed_project(query.project.as_deref())?;
        }
        if !page.items.is_empty() || !poll.wait_for_change().await? {
            return Ok(Json(page));
        }
    }
}

/// Whether the sender may see an approval: it may decide about it, or the call is its own.
fn is_shown_to(row: &ApprovalRow, who: &Identity) -> bool {
    let own = row.principal == who.principal && who.can_access_project(&row.project);
    own || who.approver("").is_some_and(|decider| decider.sees(row))
}

pub(super) async fn show(
    sender: Sender,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Answer<Approval> {
    let id = resolve(&sender, &id).await?;
    let mut poll = LongPoll::seconds(&sender, query.wait)?;
    poll.mark_seen();
    let mut row = visible(&sender, id).await?;
    let before = row.state;
    while row.state == before && !before.is_over() && poll.wait_for_change().await? {
        poll.mark_seen();
        row = visible(&sender, id).await?;
    }
    Ok(Json(Approval::from(&row)))
}

/// The id that a path names, whole or by its last digits: of what waits, or else of everything that the sender may see.
async fn resolve(sender: &Sender, text: &str) -> Result<ApprovalId, ApiError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let short = ShortId::parse(text, "appr_", "gantry approvals")?;
    let mut found = sender.store().approvals_ending(short.bytes()).await?;
    found.retain(|row| short.is_end_of(&row.id) && is_shown_to(row, sender));
    if found.iter().any(|row| row.state.is_waiting()) {
        found.retain(|row| row.state.is_waiting());
    }
    short.only(found.iter().map(|row| row.id).collect())?.ok_or_else(|| {
        ApiError::not_found(format!("there is no request {text}; gantry approvals --all lists them"))
    })
}

/// An approval that the sender may see; any other is answered like one that does not exist.
async fn visible(sender: &Sender, id: ApprovalId) -> Result<ApprovalRow, ApiError> {
    let found = sender.store().approval(id).await?;
    found.filter(|row| is_shown_to(row, sender)).ok_or_else(|| unknown(id))
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
    sender: Sender,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Approval> {
    let projects = &sender.app.projects;
    // Before anything else, so that an agent does not even learn what there is to decide.
    let Some(by) = sender.approver(via(&headers)) else {
        let why = "an agent cannot decide; it takes the key of an approver";
        if let Ok(id) = id.parse() {
            let by = (&*sender.principal, via(&headers));
            projects.services().record_refused_decision(id, by, None, why).await;
        }
        return Err(ApiError::forbidden(why));
    };
    let id = resolve(&sender, &id).await?;
    let decision = input(query::read("a decision", body).await?)?;
    let decided = projects.decide(id, &by, decision).await;
    decided.map(|row| Json(Approval::from(&row))).map_err(not_decided)
}

/// The name that the sender gives itself.
fn via(headers: &HeaderMap) -> &'static str {
    match headers.get(VIA).map(http::HeaderValue::as_bytes) {
        Some(b"cli") => "cli",
        Some(b"page") => "page",
        Some(_) | None => "http",
    }
}

fn not_decided(error: DecisionError) -> ApiError {
    let message = error.to_string();
    match error {
        DecisionError::Unknown(id) => unknown(id),
        DecisionError::Forbidden(message) => ApiError::forbidden(message),
        DecisionError::Invalid(error) => ApiError::of(StatusCode::BAD_REQUEST, error),
        DecisionError::Store(error) => error.into(),
        DecisionError::Decided(row) => {
            ApiError::too_late(StatusCode::CONFLICT, ErrorCode::AlreadyDecided, message, *row)
        }
        DecisionError::Expired(row) => {
            ApiError::too_late(StatusCode::GONE, ErrorCode::RejectedByTimeout, message, *row)
        }
    }
}

pub(super) async fn cancel(sender: Sender, Path(id): Path<String>) -> Answer<Approval> {
    let id = resolve(&sender, &id).await?;
    let row = visible(&sender, id).await?;
    let own = sender.visible_principal();
    if own.as_ref().is_some_and(|own| *own != row.principal) {
        return Err(ApiError::forbidden(
            "a call is withdrawn by its caller or by an administrator; an approver denies it instead",
        ));
    }
    let (services, why) = (sender.app.projects.services(), format!("withdrawn by {}", sender.principal));
    let withdrawn = row.state.is_waiting() && services.withdraw(row.call, own.as_deref(), &why).await?;
    let row = visible(&sender, id).await?;
    if withdrawn {
        return Ok(Json(Approval::from(&row)));
    }
    let message = format!("{id} is {} already; only a call that waits can be withdrawn", row.state);
    Err(ApiError::too_late(StatusCode::CONFLICT, ErrorCode::AlreadyDecided, message, row))
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
