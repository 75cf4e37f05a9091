//! `git_commit`: commits what a person has seen.
//!
//! Looking builds the very tree that a commit would have, from a copy of the index and with new objects put aside, so
//! that nothing in the repository changes. The precondition names that tree, the commits below it and who commits. Committing
//! builds it again and lets the hooks see it; if it is still what was judged, the commit is made of exactly that, and the
//! branch goes to it only from where it was judged to be.

use super::GitContext;
use super::arguments::{MAX_FILES, jail_paths};
use super::changes::{self, Change, Changes};
use super::script::{Answer, HOOKS, script, short_id, unreadable, writing_script};
use crate::command::runner::CommandSpec;
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use gantry_sandbox::jail::Captured;
use std::time::Duration;

/// The script that both looking and committing begin with.
const STAGE: &str = include_str!("sh/stage.sh");
/// The author where neither the repository nor the configuration has one.
const DEFAULT_AUTHOR: (&str, &str) = ("Gantry", "gantry@localhost");
const ASKED_FILES: usize = 20;
const MESSAGE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct GitCommit(pub(super) Arc<GitContext>);

/// Commits changes of a git repository. Commits what is staged, and with files or all stages those first. Always waits
/// for a person's approval; if anything changes after that, nothing is committed. The repository's hooks run in the
/// sandbox; if one changes what is committed, or the message, nothing is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A folder in the repository, relative to the workspace root; "." is the root itself.
    #[serde(default = "default_path")]
    path: String,
    /// What the commit does: a short first line, then an empty line and more if need be.
    #[schemars(length(min = 1, max = MESSAGE_BYTES))]
    message: String,
    /// Files and folders to commit besides what is staged: new, changed or deleted. Paths relative to the workspace
    /// root.
    #[serde(default)]
    #[schemars(length(max = MAX_FILES), inner(length(min = 1)))]
    files: Vec<String>,
    /// Whether to commit every change in the repository, new files included.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The id of the new commit.
    hash: String,
    /// The branch that it is on; absent if none is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The first line of its message.
    subject: String,
    /// The files that it changed.
    files: Vec<Change>,
    /// Lines that it added.
    insertions: u64,
    /// Lines that it removed.
    deletions: u64,
    /// What did not go as it should after the commit was made, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// True if there is more than what is returned; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Tool for GitCommit {
    const NAME: &'static str = "git_commit";
    const TITLE: &'static str = "Git commit";
    const HINTS: Annotations = CHANGES;
    /// It always asks; as `Depends` the question can say what would be committed.
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(600));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight> {
        let script = self.script(&args, script(&[STAGE, include_str!("sh/look.sh")], &[]), None)?;
        let stdout = self.0.run(&args.path, script).await?;
        let mut answer = Answer::of(&stdout)?;
        let plan = answer.next().ok_or_else(unreadable)?;
        let plan = std::str::from_utf8(plan).map_err(|_bytes| {
            failure::failed("the branch or the author has a name that is not UTF-8; let a person commit this")
        })?;
        let ask = question(plan, &parse_changes(&mut answer)?)?;
        Ok(Preflight { ask: Some(ask), precondition: Some(plan.into()) })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let args = &call.args;
        let script = writing_script(&[STAGE, HOOKS, include_str!("sh/commit.sh")]);
        let mut script = self.script(args, script, Some(call.judged()?))?;
        script.files = vec![("message".to_owned(), args.message.clone())];
        let stdout = self.0.run(&args.path, script).await?;
        parse_result(&stdout).map_err(|fault| {
            failure::effect_unknown(format!("the commit was made, but {}", fault.error.message))
        })
    }
}

impl GitCommit {
    /// A script with what both looking and committing take, and the plan that was judged.
    fn script(&self, args: &Args, script: CommandSpec, judged: Option<&str>) -> Result<CommandSpec> {
        let message = &args.message;
        if message.trim().is_empty() || message.contains('\0') || message.len() > MESSAGE_BYTES {
            return Err(failure::invalid(format!(
                "message: say what the commit does, in at most {MESSAGE_BYTES} bytes and without NUL characters"
            )));
        }
        let mode = match (args.all, args.files.is_empty()) {
            (true, true) => "all",
            (false, false) => "files",
            (false, true) => "staged",
            (true, false) => {
                let message = "files: with all, everything is committed; leave one of them out";
                return Err(failure::invalid(message));
            }
        };
        let author = self.0.options.author.as_ref();
        let (name, email) = author.map_or(DEFAULT_AUTHOR, |author| (&author.name, &author.email));
        let script = script.env([("GANTRY_NAME", name), ("GANTRY_EMAIL", email)]);
        Ok(script.args([mode]).args(judged).args(jail_paths(&args.files)?))
    }
}

/// The list at the end of what a script answered. One that was cut is none: an approver could not see what would be committed.
fn parse_changes(answer: &mut Answer<'_>) -> Result<Changes> {
    if answer.is_cut {
        return Err(failure::failed("there are too many changed files for one commit; commit them in parts"));
    }
    changes::parse(answer)
}

/// The short name of a branch; none if none is checked out.
fn branch_name(reference: &str) -> Option<&str> {
    Some(reference.strip_prefix("refs/heads/").unwrap_or(reference)).filter(|name| !name.is_empty())
}

/// What a person is asked about a plan: lines with the branch, the commit below, the commits that are being merged (each
/// with a comma after it), the tree, and who commits.
fn question(plan: &str, changes: &Changes) -> Result<String> {
    let lines: Vec<&str> = plan.split('\n').collect();
    let &[reference, head, merge, _tree, author] = &*lines else { return Err(unreadable()) };
    if changes.count == 0 && merge.is_empty() {
        return Err(failure::failed(
            "there is nothing to commit; git_status shows what is not as committed: name it in files, or use all: true",
        ));
    }
    let to = branch_name(reference).map_or("no branch (a detached HEAD)".to_owned(), |branch| {
        format!("branch {}", display_text(branch))
    });
    let merged: Vec<&str> = merge.split_terminator(',').map(short_id).collect();
    let kind = match (head.is_empty(), merged.is_empty()) {
        (true, _) => " as its first commit".to_owned(),
        (false, false) => format!(" as a merge with {}", merged.join(", ")),
        (false, true) => String::new(),
    };
    let files = counted(changes.count, "file");
    let named: Vec<String> = changes.files.iter().take(ASKED_FILES).map(describe_change).collect();
    let more = changes.count.saturating_sub(named.len() as u64);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Ok(format!(
        "{files} (+{} -{}) would be committed to {to}{kind}, by {}: {}{more}",
        changes.added,
        changes.deleted,
        display_text(author),
        named.join(", ")
    ))
}

fn describe_change(change: &Change) -> String {
    let Change { path, from, status, added, deleted, binary } = change;
    let path = match from {
        Some(from) => format!("{} → {}", display_text(from), display_text(path)),
        None => display_text(path),
    };
    let size = if *binary { "binary".to_owned() } else { format!("+{added} -{deleted}") };
    format!("{path} ({status}, {size})")
}

fn parse_result(stdout: &Captured) -> Result<Output> {
    let mut answer = Answer::of(stdout)?;
    let (reference, hash) = (answer.text()?, answer.text()?);
    let (subject, warning) = (answer.text()?, answer.text()?);
    let changes = parse_changes(&mut answer)?;
    Ok(Output {
        hash,
        branch: branch_name(&reference).map(str::to_owned),
        subject,
        truncated: changes.is_truncated(),
        files: changes.files,
        insertions: changes.added,
        deletions: changes.deleted,
        warning: Some(warning).filter(|warning| !warning.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "refs/heads/main\n\n\nt\nA <a@x>";

    fn changes() -> Changes {
        Changes { count: 1, ..Changes::default() }
    }

    #[test]
    fn a_question_names_what_is_merged() {
        let plan = format!("refs/heads/main\nc\n{},{},\nt\nA <a@x>", "a".repeat(40), "b".repeat(40));
        let text = question(&plan, &Changes::default()).unwrap();
        assert!(text.contains("to branch main as a merge with aaaaaaaaaa, bbbbbbbbbb, by A <a@x>"), "{text}");
        let detached = question("\nc\n\nt\nA <a@x>", &changes()).unwrap();
        assert!(detached.contains("to no branch (a detached HEAD), by A <a@x>"), "{detached}");
    }

    #[test]
    fn nothing_is_asked_about_nothing_or_about_what_is_no_plan() {
        assert!(question(FIRST, &changes()).is_ok());
        assert!(question(FIRST, &Changes::default()).is_err());
        for wrong in ["", "r\nc\n\nt", &format!("{FIRST}\n"), &format!("{FIRST}\nBob <b@x>")] {
            assert!(question(wrong, &changes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_question_is_bounded_and_hides_nothing() {
        let change = Change {
            path: "a\u{202e}b\n".repeat(200),
            from: Some("old".into()),
            status: "renamed",
            added: 1,
            deleted: 2,
            binary: false,
        };
        let changes = Changes { files: vec![change; 40], count: 1200, added: 7, deleted: 8 };
        let text = question(FIRST, &changes).unwrap();
        assert!(text.starts_with(
            "1200 files (+7 -8) would be committed to branch main as its first commit, by A <a@x>: "
        ));
        assert!(text.ends_with(", and 1180 more") && text.len() < 40_000);
        assert!(!text.contains(['\u{202e}', '\n']));
    }
}
