//! Reading what a request says: bodies, ids, times and lists, each with an error that names the field.

use crate::App;
use crate::error::ApiError;
use axum::body::{Body, to_bytes};
use axum::extract::FromRequestParts;
use bytes::Bytes;
use gantry_core::ErrorCode;
use gantry_runtime::projects::{Context, DEFAULT};
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::str::FromStr;
use std::sync::Arc;

/// Reads a whole body, bounded in size and time.
pub(crate) async fn body(body: Body) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the body is larger than {} bytes", super::BODY_BYTES);
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidArguments, message)
    };
    match tokio::time::timeout(super::BODY_TIME, to_bytes(body, super::BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.to_string().contains("length limit") => Err(too_large()),
        Ok(Err(error)) => Err(ApiError::invalid(format!("the body did not arrive whole: {error}"))),
        Err(_) => {
            let message = "the body did not arrive in time";
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::InvalidArguments, message))
        }
    }
}

/// The query of a request; a mistake in it is answered in the shape of every error.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(ApiError::invalid(rejection.body_text())),
        }
    }
}

/// The query of a request that has none: what would be ignored may have been meant, a project above all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

/// What the path of a request names; a mistake in it is answered in the shape of every error.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(named)) => Ok(Self(named)),
            Err(rejection) => Err(ApiError::invalid(rejection.body_text())),
        }
    }
}

/// The text of a JSON body that every reader reads alike.
pub(crate) fn json_text(bytes: &Bytes) -> Result<&str, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|_invalid| ApiError::invalid("the body is not UTF-8"))?;
    gantry_core::json::check(text)
        .map_err(|error| ApiError::invalid(format!("the body is unusable: {error}")))?;
    Ok(text)
}

/// An id from the path.
pub(crate) fn id<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|error: T::Err| ApiError::invalid(error.to_string()))
}

/// A moment, as RFC 3339 or as a span back from now such as `15m`, in microseconds.
pub(crate) fn moment(name: &str, text: Option<&str>) -> Result<Option<i64>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    gantry_runtime::clock::parse(text).map(Some).ok_or_else(|| {
        ApiError::invalid(format!(
            "{name} is a time such as 2026-11-15T09:00:00Z or a span back from now such as 15m, not {text:?}"
        ))
    })
}

/// The runtime that a request is for: of the project that it names, or else of the default one.
pub(crate) async fn context(
    app: &App,
    project: Option<&str>,
    agent: Option<&str>,
) -> Result<Context, ApiError> {
    let project = known_project(app, project)?;
    Ok(app.projects.context(&project, agent).await?)
}

/// The project that a request names, or else the default one.
pub(crate) fn known_project(app: &App, project: Option<&str>) -> Result<Arc<str>, ApiError> {
    let wanted = project.unwrap_or(DEFAULT);
    let known = app.projects.names().into_iter().find(|known| **known == *wanted);
    known.ok_or_else(|| ApiError::not_found("there is no such project"))
}

/// The part of a list that is asked for.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Part {
    pub(crate) cursor: Option<i64>,
    pub(crate) limit: Option<u32>,
}

/// A list as every endpoint gives it.
pub(crate) fn list(items: &[Value], next: Option<i64>) -> axum::Json<Value> {
    axum::Json(json!({ "items": items, "next": next.map(|next| next.to_string()) }))
}
