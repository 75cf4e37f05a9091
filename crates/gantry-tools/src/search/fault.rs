//! What a search says when something goes wrong. It changes nothing, so nothing can have happened.

use gantry_core::{ErrorCode, Fault, ToolError};

fn without_effect(code: ErrorCode, message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(code, message))
}

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::InvalidArguments, message)
}

pub(super) fn failed(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::ExecutionError, message)
}

pub(super) fn canceled() -> Fault {
    without_effect(ErrorCode::Canceled, "the search was cancelled")
}

/// The index cannot be used, for the reason that the store gives.
pub(super) fn index(error: &gantry_store::Error) -> Fault {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    failed(format!(
        "the search index cannot be used: {error}{cause}. mode literal and mode regex work without it"
    ))
}
