//! Errors of the API: one mapping from codes to statuses, one shape.

use crate::model::{Conflict, ConflictDetails, ConflictError, Failure};
use axum::Json;
use axum::response::{IntoResponse, Response};
use gantry_core::error::{ErrorCode, Refusal, ToolError};
use gantry_runtime::ledger::{self, ApprovalRow};
use http::{HeaderValue, StatusCode, header};

#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    error: Box<ToolError>,
    /// How the approval stands instead, after a decision that came too late.
    approval: Option<Box<ApprovalRow>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self::of(status, ToolError::new(code, message))
    }

    /// An error that is worded already.
    pub(crate) fn of(status: StatusCode, error: ToolError) -> Self {
        Self { status, error: Box::new(error), approval: None }
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

    /// What is asked for does not fit what is there now.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message)
    }

    /// A decision that came too late: the answer shows how the approval stands.
    pub(crate) fn too_late(status: StatusCode, code: ErrorCode, message: String, row: ApprovalRow) -> Self {
        Self { approval: Some(Box::new(row)), ..Self::new(status, code, message) }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::of(status(refusal.error().code), refusal.error().clone())
    }
}

impl From<ledger::Error> for ApiError {
    fn from(error: ledger::Error) -> Self {
        let message = format!("the store failed: {error}");
        tracing::error!("{message}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, error, approval } = self;
        let mut response = match approval {
            None => (status, Json(Failure { ok: false, error: *error })).into_response(),
            Some(row) => {
                let details = ConflictDetails { approval: (&*row).into() };
                let error = ConflictError { code: error.code, message: error.message, details };
                (status, Json(Conflict { ok: false, error })).into_response()
            }
        };
        if status == StatusCode::UNAUTHORIZED {
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
