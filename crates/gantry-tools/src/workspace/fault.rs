//! What the file tools say when something goes wrong, in one place so that they say it alike.
//!
//! A path that leads outside gets the same words whether or not something is there: a refusal must not tell what
//! exists beyond the workspace.

use gantry_core::{EffectState, ErrorCode, Fault, ToolError};
use rustix::io::Errno;
use std::io;

fn without_effect(code: ErrorCode, message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(code, message))
}

pub(super) fn invalid_path(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::InvalidPath, message)
}

pub(super) fn outside(shown: &str) -> Fault {
    invalid_path(format!("{shown} leads outside of the workspace; use a path relative to the workspace root"))
}

pub(super) fn missing(shown: &str) -> Fault {
    without_effect(
        ErrorCode::FileNotFound,
        format!("{shown} does not exist; list_directory shows what is there"),
    )
}

pub(super) fn missing_parent(shown: &str) -> Fault {
    without_effect(
        ErrorCode::FileNotFound,
        format!("the directory of {shown} does not exist; write_file with createDirs: true creates it"),
    )
}

pub(super) fn denied(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::PermissionDenied, message)
}

pub(super) fn invalid_arguments(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::InvalidArguments, message)
}

pub(super) fn failed(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::ExecutionError, message)
}

/// What was judged is not what is there any more, so nobody has said yes to it.
pub(super) fn outdated(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::ApprovalRequired, message)
}

pub(super) fn canceled() -> Fault {
    without_effect(ErrorCode::Canceled, "the call was cancelled")
}

/// A permit without the precondition that `inspect` would have given it: nothing was looked at, so nothing is done.
pub(super) fn unjudged() -> Fault {
    without_effect(ErrorCode::InternalError, "the call was not inspected before it was permitted; call again")
}

/// The change was made; only making it durable failed.
pub(super) fn not_synced(shown: &str, error: Errno) -> Fault {
    let message = format!("{shown} was changed, but whether that outlives a power cut is not known: {error}");
    Fault { error: ToolError::new(ErrorCode::ExecutionError, message), effect: EffectState::Done }
}

/// The work ended in a panic or with the program.
pub(super) fn crashed(crash: &tokio::task::JoinError, changes: bool) -> Fault {
    let error = ToolError::new(ErrorCode::ExecutionError, format!("the file tool crashed: {crash}"));
    if changes { Fault::with_possible_effect(error) } else { Fault::without_effect(error) }
}

/// An error of the operating system, with what was being done.
pub(super) fn os(shown: &str, doing: &str, error: Errno) -> Fault {
    let words = io::Error::from(error);
    match error {
        Errno::NOENT => missing(shown),
        Errno::NOTDIR => without_effect(
            ErrorCode::FileNotFound,
            format!("{shown} does not exist: a part of the path is not a directory"),
        ),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            denied(format!("the operating system does not allow {doing} {shown}: {words}"))
        }
        Errno::LOOP => invalid_path(format!("{shown} leads through too many symbolic links")),
        Errno::NAMETOOLONG => invalid_path(format!("{shown} is longer than the file system allows")),
        _ => failed(format!("{doing} {shown} failed: {words}")),
    }
}

/// The same for an error of the standard library or of the confined resolution. The latter reports an escape as a
/// permission denied by nobody: an error without a number.
pub(super) fn io(shown: &str, doing: &str, error: &io::Error) -> Fault {
    match Errno::from_io_error(error) {
        Some(errno) => os(shown, doing, errno),
        None if error.kind() == io::ErrorKind::PermissionDenied => outside(shown),
        None => failed(format!("{doing} {shown} failed: {error}")),
    }
}
