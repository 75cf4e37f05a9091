//! What Gantry's own tools say when something goes wrong, in one place so that they say it alike.
//!
//! A path that leads outside gets the same words whether or not something is there: a refusal must not tell what
//! exists beyond the workspace.

use gantry_core::{CallFailure, EffectState, ErrorCode, ToolError};
use rustix::io::Errno;
use serde::Serialize;
use std::io;

/// The result of work for a call.
pub(crate) type Result<T, E = CallFailure> = std::result::Result<T, E>;

fn without_effect(code: ErrorCode, message: impl Into<String>) -> CallFailure {
    CallFailure::without_effect(ToolError::new(code, message))
}

/// A fault with what is known about it besides.
pub(crate) fn with_details(fault: CallFailure, details: impl Serialize) -> CallFailure {
    let details = serde_json::to_value(details).unwrap_or_default();
    CallFailure { error: fault.error.with_details(details), ..fault }
}

pub(crate) fn invalid(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::InvalidArguments, message)
}

pub(crate) fn invalid_path(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::InvalidPath, message)
}

pub(crate) fn outside(path: &str) -> CallFailure {
    invalid_path(format!("{path} leads outside of the workspace; use a path relative to the workspace root"))
}

pub(crate) fn not_found(path: &str) -> CallFailure {
    without_effect(
        ErrorCode::FileNotFound,
        format!("{path} does not exist; list_directory shows what is there"),
    )
}

pub(crate) fn missing_parent(path: &str) -> CallFailure {
    without_effect(
        ErrorCode::FileNotFound,
        format!("the directory of {path} does not exist; write_file with createDirs: true creates it"),
    )
}

pub(crate) fn denied(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::PermissionDenied, message)
}

/// It was tried and did not work; nothing was changed.
pub(crate) fn failed(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::ExecutionError, message)
}

pub(crate) fn unavailable(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::UpstreamUnavailable, message)
}

/// It took too long; nothing was changed.
pub(crate) fn timeout(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::Timeout, message)
}

/// Gantry itself could not do it; nothing was changed.
pub(crate) fn internal(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::InternalError, message)
}

/// It was tried, and how far it got is not known.
pub(crate) fn effect_unknown(message: impl Into<String>) -> CallFailure {
    CallFailure::with_possible_effect(ToolError::new(ErrorCode::ExecutionError, message))
}

/// What is there is not what was judged, so no approver has said yes to it.
pub(crate) fn outdated(message: impl Into<String>) -> CallFailure {
    without_effect(ErrorCode::ApprovalRequired, message)
}

pub(crate) fn canceled() -> CallFailure {
    without_effect(ErrorCode::Canceled, "the call was cancelled")
}

/// A permit without the precondition that the preflight check would have given it: nothing was looked at, so nothing is
/// done.
pub(crate) fn missing_precondition() -> CallFailure {
    internal("the call was not inspected before it was permitted; call again")
}

/// A call of a tool that its provider or its family does not have.
pub(crate) fn unknown_tool(place: &str, tool: &str) -> CallFailure {
    without_effect(ErrorCode::ToolNotFound, format!("{place} has no tool {tool}"))
}

/// The tool has run, but its result is no JSON.
pub(crate) fn unwritable_result(tool: &str, error: &serde_json::Error) -> CallFailure {
    let message = format!("internal error: {tool} has run, but its result cannot be written: {error}");
    CallFailure::with_possible_effect(ToolError::new(ErrorCode::InternalError, message))
}

/// The change was made; only making it durable failed.
pub(crate) fn not_synced(path: &str, error: Errno) -> CallFailure {
    let message = format!("{path} was changed, but whether that outlives a power cut is not known: {error}");
    CallFailure { error: ToolError::new(ErrorCode::ExecutionError, message), effect: EffectState::Done }
}

/// The work of a tool ended in a panic or with the program.
pub(crate) fn crashed(crash: &tokio::task::JoinError, effect: EffectState) -> CallFailure {
    let message = match effect {
        EffectState::None => format!("the tool crashed and changed nothing: {crash}"),
        EffectState::Possible => format!("the tool crashed, and what it changed is not known: {crash}"),
        EffectState::Done => {
            format!("the program has run, but what it left and said could not be read: {crash}")
        }
    };
    CallFailure { error: ToolError::new(ErrorCode::ExecutionError, message), effect }
}

/// An error of the operating system, with what was being done.
pub(crate) fn os_error(doing: &str, path: &str, error: Errno) -> CallFailure {
    let words = io::Error::from(error);
    match error {
        Errno::NOENT => not_found(path),
        Errno::NOTDIR => without_effect(
            ErrorCode::FileNotFound,
            format!("{path} does not exist: a part of the path is not a directory"),
        ),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            denied(format!("the operating system does not allow {doing} {path}: {words}"))
        }
        Errno::LOOP => invalid_path(format!(
            "{path} leads through a symbolic link that is not followed, or through too many; use the path that it points to"
        )),
        Errno::NAMETOOLONG => invalid_path(format!("{path} is longer than the file system allows")),
        _ => failed(format!("{doing} {path} failed: {words}")),
    }
}

/// The same for an error of the standard library or of the confined resolution. The latter reports an escape as a denied
/// permission that the operating system has not denied: an error without a number.
pub(crate) fn io_error(doing: &str, path: &str, error: &io::Error) -> CallFailure {
    match Errno::from_io_error(error) {
        Some(errno) => os_error(doing, path, errno),
        None if error.kind() == io::ErrorKind::PermissionDenied => outside(path),
        None => failed(format!("{doing} {path} failed: {error}")),
    }
}
