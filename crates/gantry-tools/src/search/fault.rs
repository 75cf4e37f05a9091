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
