//! Health, the configuration, the proof of the audit trail, metrics, queues, and the first page.

mod page;

use super::query::{self, Answer, Sender};
use crate::App;
use crate::error::ApiError;
use crate::model::{
    ApplyRequest, AuditVerification, BadEntry, Configuration, Health, List, NoQuery, Queue, Reloaded,
};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gantry_core::ErrorCode;
use http::{HeaderMap, StatusCode, header};

pub(super) async fn live() -> Json<Health> {
    Json(Health { status: "ok".into(), reason: None })
}

/// Ready means that a call could be put on record now.
pub(super) async fn ready(State(app): State<App>) -> Response {
    let (code, status, reason) = match app.projects.store().flush().await {
        Ok(()) => (StatusCode::OK, "ready", None),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", Some(error.to_string())),
    };
    (code, Json(Health { status: status.into(), reason })).into_response()
}

/// Whether the configuration on the disk is the one that holds.
pub(super) async fn show_config(sender: Sender, _: NoQuery) -> Answer<Configuration> {
    sender.require_global_admin("looking at the configuration")?;
    Ok(Json(Configuration { refused: sender.app.projects.refused(), held: sender.app.projects.held() }))
}

pub(super) async fn reload_config(sender: Sender, _: NoQuery) -> Answer<Reloaded> {
    sender.require_global_admin("reading the configuration again")?;
    let reloaded = sender.app.projects.reload(None).await.map_err(|reason| refused(&reason))?;
    Ok(Json(reloaded.unwrap_or_default()))
}

/// Applies a change that is held, and no other one.
pub(super) async fn apply_config(sender: Sender, _: NoQuery, body: Body) -> Answer<Reloaded> {
    sender.require_global_admin("applying a change of the configuration")?;
    let ApplyRequest { revision } = query::read("the change to apply", body).await?;
    let applied = sender.app.projects.reload(Some(&revision)).await.map_err(|reason| refused(&reason))?;
    let other = "this change is not the one that is held now, so nothing is applied; look again";
    applied.map(Json).ok_or_else(|| ApiError::conflict(other))
}

fn refused(reason: &str) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::InvalidArguments, reason)
}

/// Proves that the audit trail is whole. The trail itself is the list of calls.
pub(super) async fn verify_audit(sender: Sender) -> Answer<AuditVerification> {
    sender.require_global_admin("verifying the ledger")?;
    let found = sender.store().verify().await?;
    let first_bad = found.bad.map(|bad| BadEntry { node: bad.node, entry: bad.seq, what: bad.what.into() });
    Ok(Json(AuditVerification { ok: first_bad.is_none(), entries: found.entries, first_bad }))
}

/// The figures are those of all projects.
pub(super) async fn metrics(sender: Sender) -> Result<Response, ApiError> {
    sender.require_all_projects("reading the metrics")?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], sender.app.projects.metrics_page()).into_response())
}

pub(super) async fn queues(sender: Sender) -> Answer<List<Queue>> {
    sender.require_all_projects("looking at the queues")?;
    Ok(Json(List::whole(sender.app.projects.queues())))
}

pub(super) async fn page(sender: Sender, headers: HeaderMap) -> Response {
    crate::page::html(page::POLICY, page::render(&sender, &headers))
}
