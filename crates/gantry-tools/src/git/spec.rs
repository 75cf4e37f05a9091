//! How the git tools present themselves: names, schemas, hints.

use super::act::{COMMITS, CONTEXT, FILES, MESSAGE_BYTES};
use crate::schema::{CHANGES, READS, count, flag, list, object, part, text, texts};
use gantry_core::tool::{Annotations, OwnRule, ToolSpec};
use serde_json::{Value, json};

/// What an agent should know before it uses any of them.
pub(super) const INSTRUCTIONS: &str = "The git tools work on the repository that path is in (the workspace itself by \
default). Paths in their arguments and results are relative to the workspace root. git_commit and git_push always wait \
for a person's approval, and are bound to what that person saw.";

/// The tools.
pub(super) fn tools() -> Vec<ToolSpec> {
    vec![git_status(), git_diff(), git_log(), git_commit(), git_push()]
}

fn git_status() -> ToolSpec {
    ToolSpec {
        name: "git_status".into(),
        title: Some("Git status".into()),
        description: "Shows the state of a git repository: its branch, its distance to the upstream branch, what is \
                      under way, and every file that is not as committed. Use it before git_diff and git_commit. At \
                      most 1,000 files are returned."
            .into(),
        input_schema: object(&[], &json!({ "path": path() })),
        output_schema: Some(object(
            &["clean", "files"],
            &json!({
                "branch": text("The branch; absent if none is checked out."),
                "head": text("The commit that is checked out; absent before the first."),
                "upstream": text("The branch that this one follows, if any."),
                "ahead": count("Commits that the upstream branch does not have, as far as is known here."),
                "behind": count("Commits of the upstream branch that this one does not have, as far as is known here."),
                "operation": {
                    "type": "string",
                    "enum": ["merge", "rebase", "cherry-pick", "revert", "bisect"],
                    "description": "What is under way, if anything.",
                },
                "clean": { "type": "boolean", "description": "Whether every file is as committed." },
                "files": list(&file(), "The files that are not."),
                "truncated": truncated(),
            }),
        )),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn file() -> Value {
    let letter = "as git's letters have it: . (same), M, T, A, D, R, C, U, ?";
    part(
        &["path", "status", "index", "worktree"],
        &json!({
            "path": text("The file, relative to the workspace root. Bytes that are not UTF-8 stand as \\xNN."),
            "status": {
                "type": "string",
                "enum": [
                    "added", "modified", "deleted", "renamed", "copied", "untracked", "conflicted", "typechange",
                ],
                "description": "What happened to it, on the whole.",
            },
            "index": text(&format!("What is staged, {letter}.")),
            "worktree": text(&format!("What is changed but not staged, {letter}.")),
            "from": text("What it was called before, if it was renamed or copied."),
        }),
    )
}

fn git_diff() -> ToolSpec {
    ToolSpec {
        name: "git_diff".into(),
        title: Some("Git diff".into()),
        description: "Shows what changed in a git repository. By default compares the files with what is staged; with \
                      staged, what is staged with the last commit; with from, that revision with the files; with from \
                      and to, two revisions. Untracked files are not shown. At most 1 MiB of text and 1,000 files are \
                      returned."
            .into(),
        input_schema: object(
            &[],
            &json!({
                "path": path(),
                "staged": flag("Whether to compare what is staged, with from or with the last commit."),
                "from": text("The revision to compare with, such as HEAD~1, main, v1.0 or a commit."),
                "to": text("The revision that is compared with from; the files as they are without it."),
                "files": files("Only these files and folders."),
                "context": {
                    "type": "integer", "minimum": 0, "maximum": CONTEXT.0, "default": CONTEXT.1,
                    "description": "Lines to show around each change.",
                },
            }),
        ),
        output_schema: Some(object(
            &["diff", "files"],
            &json!({
                "diff": text(
                    "The differences in git's format; its paths are relative to the repository. What is not UTF-8 is \
                     replaced."
                ),
                "files": list(&change(), "The files that differ."),
                "truncated": truncated(),
            }),
        )),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn git_log() -> ToolSpec {
    ToolSpec {
        name: "git_log".into(),
        title: Some("Git log".into()),
        description: "Lists commits of a git repository, the newest first. Use it to find out what was done, by whom and \
                      why; narrow it by revision, files, author, time or words of the message. git_diff with from and \
                      to shows what a commit changed."
            .into(),
        input_schema: object(
            &[],
            &json!({
                "path": path(),
                "maxCount": {
                    "type": "integer", "minimum": 1, "maximum": COMMITS.0, "default": COMMITS.1,
                    "description": "How many commits to return.",
                },
                "skip": {
                    "type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 0,
                    "description": "How many commits to leave out before the first.",
                },
                "rev": text("Where to begin, such as main or v1.0; or a range such as main..topic. HEAD by default."),
                "files": files("Only commits that changed these files and folders."),
                "author": text("Only commits whose author's name or address contains this."),
                "since": text("Only commits after this time, such as 2025-01-31 or \"2 weeks ago\"."),
                "until": text("Only commits before this time."),
                "grep": text("Only commits whose message contains this."),
            }),
        ),
        output_schema: Some(object(
            &["commits"],
            &json!({
                "commits": list(&commit(), "The commits, the newest first."),
                "truncated": truncated(),
            }),
        )),
        annotations: READS,
        own_rule: OwnRule::Never,
        raw: None,
        target: None,
    }
}

fn commit() -> Value {
    part(
        &["hash", "short", "author", "date", "subject", "body", "parents"],
        &json!({
            "hash": text("The id of the commit."),
            "short": text("The beginning of the id, which is enough here."),
            "author": part(
                &["name", "email"],
                &json!({ "name": text("The author's name."), "email": text("The author's address.") }),
            ),
            "date": text("When it was written, as in RFC 3339."),
            "subject": text("The first line of the message."),
            "body": text("The rest of the message; may be empty."),
            "parents": texts("The ids of the commits below it; two or more for a merge."),
            "refs": texts("The branches and tags that are at it, if any."),
        }),
    )
}

fn git_commit() -> ToolSpec {
    ToolSpec {
        name: "git_commit".into(),
        title: Some("Git commit".into()),
        description: "Commits changes of a git repository. Commits what is staged, and with files or all stages those \
                      first. Always waits for a person's approval; if anything changes after that, nothing is committed. \
                      The repository's hooks run in the sandbox; if one changes what is committed, or the message, nothing is."
            .into(),
        input_schema: object(
            &["message"],
            &json!({
                "path": path(),
                "message": {
                    "type": "string", "minLength": 1, "maxLength": MESSAGE_BYTES,
                    "description": "What the commit does: a short first line, then an empty line and more if need be.",
                },
                "files": files("Files and folders to commit besides what is staged: new, changed or deleted."),
                "all": flag("Whether to commit every change in the repository, new files included."),
            }),
        ),
        output_schema: Some(object(
            &["hash", "subject", "files", "insertions", "deletions"],
            &json!({
                "hash": text("The id of the new commit."),
                "branch": text("The branch that it is on; absent if none is checked out."),
                "subject": text("The first line of its message."),
                "files": list(&change(), "The files that it changed."),
                "insertions": count("Lines that it added."),
                "deletions": count("Lines that it removed."),
                "warning": text("What did not go as it should after the commit was made, if anything."),
                "truncated": truncated(),
            }),
        )),
        annotations: CHANGES,
        // It always asks; as `Depends` the question can say what would be committed.
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

fn git_push() -> ToolSpec {
    ToolSpec {
        name: "git_push".into(),
        title: Some("Git push".into()),
        description: "Pushes one branch of a git repository to the branch of the same name of a remote, over https or \
                      http. Always waits for a person's approval, and pushes exactly the commit that was approved. \
                      Credentials come from Gantry's configuration (git.credentials)."
            .into(),
        input_schema: object(
            &[],
            &json!({
                "path": path(),
                "remote": text("The name of a remote of the repository; by default the branch's own, else origin."),
                "branch": text("The branch; the one that is checked out by default."),
                "force": {
                    "type": "string",
                    "enum": ["with-lease"],
                    "description": "Replaces what is there, if that is what was last seen there.",
                },
            }),
        ),
        output_schema: Some(object(
            &["remote", "url", "ref", "to", "created", "forced", "output"],
            &json!({
                "remote": text("The name of the remote."),
                "url": text("Its address, without secrets."),
                "ref": text("The branch there, in full."),
                "from": text("The commit that it was at; absent for a new branch."),
                "to": text("The commit that it is at now."),
                "created": { "type": "boolean", "description": "Whether the branch is new there." },
                "forced": { "type": "boolean", "description": "Whether commits that were there have been replaced." },
                "output": text("What the server said; may be empty."),
                "warning": text("What did not go as it should after the push, if anything."),
            }),
        )),
        annotations: Annotations {
            destructive_hint: Some(true),
            open_world_hint: Some(true),
            idempotent_hint: Some(true),
            ..CHANGES
        },
        own_rule: OwnRule::Depends,
        raw: None,
        target: None,
    }
}

/// A file that differs.
fn change() -> Value {
    part(
        &["path", "status", "added", "deleted", "binary"],
        &json!({
            "path": text("The file, relative to the workspace root."),
            "from": text("What it was called before, if it was renamed or copied."),
            "status": {
                "type": "string",
                "enum": ["added", "modified", "deleted", "renamed", "copied", "conflicted", "typechange"],
                "description": "What happened to it.",
            },
            "added": count("Lines that came; 0 for a binary file."),
            "deleted": count("Lines that went; 0 for a binary file."),
            "binary": { "type": "boolean", "description": "Whether it has no lines." },
        }),
    )
}

fn path() -> Value {
    json!({
        "type": "string",
        "default": ".",
        "description": "A folder in the repository, relative to the workspace root; \".\" is the root itself.",
    })
}

fn files(what: &str) -> Value {
    json!({
        "type": "array",
        "items": { "type": "string", "minLength": 1 },
        "maxItems": FILES,
        "description": format!("{what} Paths relative to the workspace root."),
    })
}

fn truncated() -> Value {
    json!({ "type": "boolean", "description": "True if there is more than what is returned; absent otherwise." })
}
