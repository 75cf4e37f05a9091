//! What the tools for developers say when something goes wrong.

use crate::command::runner::{ResourceLimits, limit_fault};
use crate::own;
use gantry_core::{EffectState, ErrorCode, Fault, ToolError};
use gantry_sandbox::jail::{Captured, Ran};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::time::Duration;

fn without_effect(code: ErrorCode, message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(code, message))
}

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::InvalidArguments, message)
}

pub(super) fn failed(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::ExecutionError, message)
}

/// What a person said yes to is not what is there any more.
pub(super) fn outdated(message: impl Into<String>) -> Fault {
    without_effect(ErrorCode::ApprovalRequired, message)
}

/// A program that is needed and not there.
pub(super) fn no_program(program: &str, install: &str) -> Fault {
    failed(format!(
        "there is no program `{program}` in the sandbox, so nothing was run; ask a person to install {install} on the \
         machine that Gantry runs on, or to name its folder in code.toolchains"
    ))
}

/// A path that cannot be worked in, in the same words as the file tools have.
pub(super) fn path(given: &str, error: &io::Error) -> Fault {
    let shown = own::shown(given);
    let kind = error.kind();
    if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
        let message = format!("{shown} does not exist; list_directory shows what is there");
        return without_effect(ErrorCode::FileNotFound, message);
    }
    // The confined resolution says that a path leads outside by an error without a number.
    if kind == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return outside(given);
    }
    failed(format!("opening {shown} failed: {error}"))
}

pub(super) fn outside(given: &str) -> Fault {
    let shown = own::shown(given);
    without_effect(
        ErrorCode::InvalidPath,
        format!("{shown} leads outside of the workspace; use a path relative to the workspace root"),
    )
}

pub(super) fn hidden(given: &str) -> Fault {
    let shown = own::shown(given);
    without_effect(
        ErrorCode::PermissionDenied,
        format!("{shown} belongs to Gantry itself, which tools can neither read nor change"),
    )
}

pub(super) fn crashed(crash: &tokio::task::JoinError) -> Fault {
    without_effect(ErrorCode::InternalError, format!("looking at the workspace failed: {crash}"))
}

/// The same after a program has run, which may have changed something.
pub(super) fn crashed_after(crash: &tokio::task::JoinError) -> Fault {
    let message = format!("the program has run, but what it left and said could not be read: {crash}");
    Fault { error: ToolError::new(ErrorCode::InternalError, message), effect: EffectState::Done }
}

/// A file that a yes would rest on and that cannot be looked at.
pub(super) fn not_plain(path: &Path) -> Fault {
    failed(format!(
        "{} is too large or not a plain file; installing needs a plain file, so nothing was installed",
        own::shown(&path.display().to_string())
    ))
}

/// The error of a run that a limit ended, with what is known of it; none if it ended otherwise.
pub(super) fn limit(
    ran: &Ran,
    task: &str,
    limits: (Duration, ResourceLimits),
    details: Value,
) -> Option<Fault> {
    // What it said is among the details already.
    let silent = Ran { stdout: Captured::default(), stderr: Captured::default(), ..ran.clone() };
    let fault = limit_fault(&silent, task, limits)?;
    Some(Fault { error: fault.error.with_details(details), ..fault })
}
