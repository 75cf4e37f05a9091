//! What the git tools say when a script fails.

use crate::failure::{self, failed};
use crate::text::last_lines;
use gantry_core::{ErrorCode, Fault, ToolError};

/// What a shell answers when there is no such program.
const NO_PROGRAM: i32 = 127;

/// Git or a script printed something else than it always does.
pub(super) fn unreadable(what: &str) -> Fault {
    failed(format!("git answered something that Gantry does not understand ({what}); please report this"))
}

/// Why a script that ended with this code did not do what it was asked to.
pub(super) fn of_script(code: i32, stderr: &str, doing: &str, folder: &str) -> Fault {
    let said = last_lines(stderr);
    if let Some((_, fault, text)) = KNOWN_CODES.iter().find(|(known, ..)| *known == code) {
        let subject = said.lines().next_back().unwrap_or_default();
        return fault(text.replace("{subject}", subject).replace("{said}", &said));
    }
    if code == NO_PROGRAM {
        return failed("git is not installed where the sandbox can see it; ask a person to install git");
    }
    let sign = SIGNS.iter().find(|(sign, ..)| stderr.contains(sign));
    let (code, advice) = sign.map_or((ErrorCode::ExecutionError, ""), |(_, code, advice)| (*code, *advice));
    let said = if said.is_empty() { "it did not say why" } else { &said };
    Fault::without_effect(ToolError::new(code, format!("{doing} in {folder} failed: {said}{advice}")))
}

type MakeFault = fn(String) -> Fault;

/// The codes by which scripts say what they know to be wrong. `{said}` is the end of what they printed, and `{subject}` its
/// last line, which names what it is about. All other codes are git's own, and with those nothing was changed.
const KNOWN_CODES: [(i32, MakeFault, &str); 12] = [
    (
        41,
        failure::invalid,
        "{subject} is not a revision of this repository, nor a range such as main..topic where git_log takes one; \
         git_log shows commits",
    ),
    (42, failed, "files are in conflict (git_status names them); resolve them and name them in files"),
    (
        43,
        failure::outdated,
        "the files or the branch have changed since the commit was approved, and nothing was committed; call again",
    ),
    (
        44,
        failure::effect_unknown,
        "nothing was committed; a hook of the repository refused it, or git did, and hooks may have changed files: {said}",
    ),
    (
        45,
        failure::effect_unknown,
        "a hook of the repository changed what was approved, so nothing was committed; look at git_status and call again \
         with what the hook made: {said}",
    ),
    (
        46,
        failure::effect_unknown,
        "what was approved was not committed: the branch was moved meanwhile, by a hook of the repository or by another \
         process, and it stays moved; let a person look at git_log: {said}",
    ),
    (47, failed, "no branch is checked out; name the branch to push with branch"),
    (48, failed, "there is no branch {subject} with a commit"),
    (
        49,
        failed,
        "there is no remote {subject}; name one that the repository has, or let a person add one with `git remote add`",
    ),
    (
        50,
        failure::effect_unknown,
        "nothing was pushed: the repository's pre-push hook refused it (it runs without a network): {said}",
    ),
    (
        51,
        failed,
        "git's file MERGE_HEAD, which says what is being merged, does not list commits of this repository; let a person \
         look at it, and end the merge with `git merge --abort` or `git merge --quit`",
    ),
    (52, failed, "the current branch has no commit yet; commit something first"),
];

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
