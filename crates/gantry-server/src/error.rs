//! Errors of the API: one mapping from codes to statuses, one shape.

use crate::model::Failure;
use axum::Json;
use axum::response::{IntoResponse, Response};
use gantry_core::error::{ErrorCode, Refusal, ToolError};
use http::{HeaderValue, StatusCode, header};

/// The error answer to a request.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    error: ToolError,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: ToolError::new(code, message) }
    }

    /// An error that is worded already.
    pub(crate) fn of(status: StatusCode, error: ToolError) -> Self {
        Self { status, error }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, message)
    }

    pub(crate) fn unauthorised(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::PermissionDenied, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::PermissionDenied, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self { status: status(refusal.error().code), error: refusal.error().clone() }
    }
}

impl From<gantry_runtime::ledger::Error> for ApiError {
    fn from(error: gantry_runtime::ledger::Error) -> Self {
        tracing::error!("the store failed: {error}");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::InternalError,
            format!("the store failed: {error}"),
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Failure { ok: false, error: self.error };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        retry_later(&mut response);
        response
    }
}

/// Says when to try again, where that can help.
pub(crate) fn retry_later(response: &mut Response) {
    if matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// The status of a reply with this code. A call that was tried and failed is an answer with status 200.
pub(crate) fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::ToolNotFound | ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::PermissionDenied
        | ErrorCode::ApprovalRequired
        | ErrorCode::RejectedByUser
        | ErrorCode::RejectedByTimeout => StatusCode::FORBIDDEN,
        ErrorCode::QueueFull => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::IdempotencyConflict | ErrorCode::AlreadyDecided => StatusCode::CONFLICT,
        ErrorCode::UpstreamUnavailable | ErrorCode::ToolQuarantined => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::InvalidPath
        | ErrorCode::FileNotFound
        | ErrorCode::Canceled
        | ErrorCode::Timeout
        | ErrorCode::ExecutionError
        | ErrorCode::BudgetExceeded
        | ErrorCode::OutcomeUnknown => StatusCode::OK,
    }
}
