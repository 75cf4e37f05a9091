//! What the git tools say when something goes wrong, in one place so that they say it alike.

pub(super) use crate::failure::{denied, effect_unknown as perhaps, failed};

use super::words;
use crate::workshop::{self, Quota};
use gantry_core::{EffectState, ErrorCode, Fault, ToolError};
use gantry_sandbox::jail::{End, Ran};
use std::time::Duration;

/// What a shell answers when there is no such program.
const NO_PROGRAM: i32 = 127;

fn without_effect(code: ErrorCode, message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(code, message))
}

/// Git or a script printed something else than it always does.
pub(super) fn unreadable(what: &str) -> Fault {
    failed(format!("git answered something that Gantry does not understand ({what}); please report this"))
}

/// A run that a limit ended. What only looks has no effect, wherever it ended.
pub(super) fn of_limit(
    ran: &Ran,
    tool: &str,
    limits: (Duration, Quota),
    effect: EffectState,
) -> Option<Fault> {
    let fault = workshop::limit_fault(ran, tool, limits)?;
    Some(Fault { effect, ..fault })
}

/// Why git did not do what it was asked to, in words that say what to do next. Nothing was changed.
pub(super) fn of_git(ran: &Ran, doing: &str, folder: &str) -> Fault {
    let said = ran.stderr.text();
    if ran.end == End::Exited(NO_PROGRAM) {
        return failed("git is not installed where the sandbox can see it; ask a person to install git");
    }
    for (sign, code, advice) in SIGNS {
        if said.contains(sign) {
            let what = words::last_lines(&said);
            return without_effect(*code, advice.replace("{folder}", folder).replace("{git}", &what));
        }
    }
    let what = words::last_lines(&said);
    let what = if what.is_empty() { "it did not say why".to_owned() } else { what };
    failed(format!("{doing} in {folder} failed: {what}"))
}

/// What git says, and what that means for the caller. The first that fits counts.
const SIGNS: &[(&str, ErrorCode, &str)] = &[
    (
        "not a git repository: ",
        ErrorCode::ExecutionError,
        "the repository of {folder} is kept outside of the workspace, so the sandbox does not have it (a linked \
         worktree, or a submodule with an absolute path); use the workspace that has the whole repository",
    ),
    (
        "not a git repository",
        ErrorCode::ExecutionError,
        "{folder} is not in a git repository; name a folder of one with path, or make one with `git init`",
    ),
    (
        "must be run in a work tree",
        ErrorCode::ExecutionError,
        "{folder} is in a repository without files (bare); use one that has its files",
    ),
    (
        ".lock': File exists",
        ErrorCode::ExecutionError,
        "another git works in the repository of {folder}, or one crashed there; try again, and if no git runs, let a \
         person remove the lock: {git}",
    ),
    (
        "is outside repository",
        ErrorCode::InvalidPath,
        "a path in files is not in the repository of {folder}; paths are relative to the workspace: {git}",
    ),
    (
        "is beyond a symbolic link",
        ErrorCode::InvalidPath,
        "a path in files leads through a symbolic link, which git does not follow: {git}",
    ),
    (
        "did not match any file",
        ErrorCode::FileNotFound,
        "a path in files is neither a file nor known to git; git_status shows what there is: {git}",
    ),
    (
        "ignored by one of your .gitignore files",
        ErrorCode::ExecutionError,
        "a path in files is ignored by a .gitignore, so it is not committed; leave it out: {git}",
    ),
    (
        "No space left on device",
        ErrorCode::ExecutionError,
        "what is to be committed does not fit into the sandbox's temporary folder; commit it in parts: {git}",
    ),
    (
        "Read-only file system",
        ErrorCode::PermissionDenied,
        "a part of the repository of {folder} is protected, so tools cannot change it; let a person do this: {git}",
    ),
];
