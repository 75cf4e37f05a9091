//! Health, metrics, queues, and the first page.

mod page;

use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

pub(super) async fn live() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Ready means that a call could be put on record now.
pub(super) async fn ready(State(app): State<App>) -> Response {
    match app.projects.store().flush().await {
        Ok(()) => Json(json!({ "status": "ready" })).into_response(),
        Err(error) => {
            let body = Json(json!({ "status": "unavailable", "reason": error.to_string() }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

/// The figures are those of all projects.
pub(super) async fn metrics(State(app): State<App>, who: Identity) -> Result<Response, ApiError> {
    who.goes_everywhere("reading the metrics")?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.projects.metrics_page()).into_response())
}

pub(super) async fn queues(State(app): State<App>, who: Identity) -> Result<Json<Value>, ApiError> {
    who.goes_everywhere("looking at the queues")?;
    Ok(Json(json!({ "items": app.projects.queues(), "next": null })))
}

/// Whoever gets past the gates may see it.
pub(super) async fn page(State(app): State<App>, who: Identity, headers: HeaderMap) -> Response {
    (page::HEADERS, page::render(&app, &who, &headers)).into_response()
}
