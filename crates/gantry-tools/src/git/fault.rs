//! What the git tools say when something goes wrong, in one place so that they say it alike.

pub(super) use crate::failure::{denied, effect_unknown as perhaps, failed};

use super::words;
use crate::command::runner::{self, ResourceLimits};
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
    limits: (Duration, ResourceLimits),
    effect: EffectState,
) -> Option<Fault> {
    let fault = runner::limit_fault(ran, tool, limits)?;
    Some(Fault { effect, ..fault })
}

/// Why git did not do what it was asked to, in its own words. Nothing was changed.
pub(super) fn of_git(ran: &Ran, doing: &str, folder: &str) -> Fault {
    if ran.end == End::Exited(NO_PROGRAM) {
        return failed("git is not installed where the sandbox can see it; ask a person to install git");
    }
    let said = ran.stderr.text();
    let sign = SIGNS.iter().find(|(sign, ..)| said.contains(sign));
    let (code, advice) = sign.map_or((ErrorCode::ExecutionError, ""), |(_, code, advice)| (*code, *advice));
    let what = words::last_lines(&said);
    let what = if what.is_empty() { "it did not say why".to_owned() } else { what };
    without_effect(code, format!("{doing} in {folder} failed: {what}{advice}"))
}

/// What git says where the code is another one than usual, or where the caller needs to know what git does not say. The
/// first that fits counts.
const SIGNS: [(&str, ErrorCode, &str); 7] = [
    (
        "not a git repository: ",
        ErrorCode::ExecutionError,
        "; the repository is kept outside of the workspace (a linked worktree, or a submodule with an absolute path): use \
         the workspace that has the whole repository",
    ),
    (
        "not a git repository",
        ErrorCode::ExecutionError,
        "; name a folder of a repository with path, or make one with `git init`",
    ),
    ("is outside repository", ErrorCode::InvalidPath, "; paths are relative to the workspace"),
    ("is beyond a symbolic link", ErrorCode::InvalidPath, ""),
    ("did not match any file", ErrorCode::FileNotFound, "; git_status shows what there is"),
    (
        "No space left on device",
        ErrorCode::ExecutionError,
        "; it does not fit into the sandbox's temporary folder: commit it in parts",
    ),
    (
        "Read-only file system",
        ErrorCode::PermissionDenied,
        "; this part of the repository is protected from tools: let a person do this",
    ),
];
