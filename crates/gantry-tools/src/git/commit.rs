//! `git_commit`: commits what a person has seen.
//!
//! Looking builds the very tree that a commit would have, from a copy of the index and with new objects put aside, so
//! that nothing in the repository changes. The precondition names that tree, the commits below it and who commits. Committing
//! builds it again and lets the hooks see it; if it is still what was judged, the commit is made of exactly that, and the
//! branch goes to it only from where it was judged to be.

use super::arguments::{MAX_FILES, default_path, jail_paths};
use super::changes::{self, Change, Changes};
use super::script::{GitScript, HOOKS, NulFields, RepoRoot, Repository, code, short_id};
use super::{GitContext, fault};
use crate::command::runner::exit_code;
use crate::failure;
use crate::text::{counted, display_text, last_lines};
use crate::tool::{CHANGES, Tool};
use crate::toolbox::PermittedCall;
use gantry_core::Fault;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use gantry_sandbox::jail::{End, Ran};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The script that both looking and committing begin with.
const STAGE: &str = include_str!("sh/stage.sh");
/// The author where neither the repository nor the configuration has one.
const DEFAULT_AUTHOR: (&str, &str) = ("Gantry", "gantry@localhost");
/// Files that a question names.
const ASKED_FILES: usize = 20;
/// Bytes of the message of a commit.
const MESSAGE_BYTES: usize = 64 * 1024;

/// The tool.
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

/// What would be committed.
#[derive(Debug)]
struct Preview {
    plan: CommitPlan,
    changes: Changes,
}

/// What an approval rests on: where the commit goes, and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommitPlan {
    /// The branch, in full; empty if none is checked out.
    reference: String,
    /// The commit below; empty for the first.
    head: String,
    /// Commits that are being merged, each with a comma after it.
    merge: String,
    tree: String,
    /// The name and the address of who wrote it and commits it.
    author: String,
}

impl CommitPlan {
    const WORD: &str = "commit";

    fn to_text(&self) -> String {
        let Self { reference, head, merge, tree, author } = self;
        json!([Self::WORD, reference, head, merge, tree, author]).to_string()
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        let parts: [String; 6] =
            serde_json::from_str(text).map_err(|_other| failure::missing_precondition())?;
        let [word, reference, head, merge, tree, author] = parts;
        if word != Self::WORD {
            return Err(failure::missing_precondition());
        }
        Ok(Self { reference, head, merge, tree, author })
    }

    /// What a script says. A name that is no text could not be shown as it is, and an id is nothing but an id.
    fn read(fields: &mut NulFields<'_>) -> Result<Self, Fault> {
        let plan = Self {
            reference: exact(fields, "the branch")?,
            head: exact(fields, "the commit")?,
            merge: exact(fields, "the merge")?,
            tree: exact(fields, "the tree")?,
            author: exact(fields, "the author")?,
        };
        let is_id = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let are_ids = is_id(&plan.head) && is_id(&plan.tree) && plan.merged().all(is_id);
        if are_ids { Ok(plan) } else { Err(fault::unreadable("the id of a commit")) }
    }

    fn merged(&self) -> impl Iterator<Item = &str> {
        self.merge.split_terminator(',')
    }

    fn branch(&self) -> Option<&str> {
        let name = self.reference.strip_prefix("refs/heads/").unwrap_or(&self.reference);
        (!name.is_empty()).then_some(name)
    }
}

impl Tool for GitCommit {
    const NAME: &'static str = "git_commit";
    const TITLE: &'static str = "Git commit";
    const HINTS: Annotations = CHANGES;
    /// It always asks; as `Depends` the question can say what would be committed.
    const APPROVAL: OwnRule = OwnRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(600));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<OwnVerdict, Fault> {
        let repository = self.0.repository(&args.path)?;
        check(&args)?;
        let mut script = GitScript::read_only(Self::NAME, &[STAGE, include_str!("sh/look.sh")]);
        script.env.extend(self.identity());
        let ran = repository.run(script.args([mode(&args)]).args(jail_paths(&args.files)?)).await?;
        match exit_code(ran.end) {
            0 => {}
            code::CONFLICT => return Err(conflict()),
            code::NO_MERGE => return Err(no_merge()),
            _ => return Err(fault::of_git(&ran, "looking at what would be committed", &repository.shown)),
        }
        let preview = preview(&ran)?;
        if preview.changes.count == 0 && preview.plan.merge.is_empty() {
            return Err(nothing(&args));
        }
        let precondition = Some(preview.plan.to_text().into());
        Ok(OwnVerdict { ask: Some(question(&preview)), precondition })
    }

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        let args = &call.args;
        let repository = self.0.repository(&args.path)?;
        check(args)?;
        let plan = CommitPlan::parse(call.precondition().ok_or_else(failure::missing_precondition)?)?;
        let mut script = GitScript::writing(Self::NAME, &[STAGE, HOOKS, include_str!("sh/commit.sh")]);
        script.env.extend(self.identity());
        script.files = vec![("message".to_owned(), args.message.clone().into_bytes())];
        let CommitPlan { reference, head, merge, tree, author } = plan.clone();
        let words = [mode(args).to_owned(), reference, head, merge, tree, author];
        let ran = repository.run(script.args(words).args(jail_paths(&args.files)?)).await?;
        if ran.end == End::Exited(0) { result(&ran, &plan) } else { Err(refused(&ran, &repository)) }
    }
}

impl GitCommit {
    /// Who commits if the repository does not say.
    fn identity(&self) -> [(String, String); 2] {
        let (name, email) =
            self.0.author.as_ref().map_or(DEFAULT_AUTHOR, |(name, email)| (name.as_str(), email.as_str()));
        [("GANTRY_NAME".to_owned(), name.to_owned()), ("GANTRY_EMAIL".to_owned(), email.to_owned())]
    }
}

fn check(args: &Args) -> Result<(), Fault> {
    let message = &args.message;
    if message.trim().is_empty() || message.contains('\0') || message.len() > MESSAGE_BYTES {
        return Err(failure::invalid(format!(
            "message: say what the commit does, in at most {MESSAGE_BYTES} bytes and without NUL characters"
        )));
    }
    if args.all && !args.files.is_empty() {
        return Err(failure::invalid("files: with all, everything is committed; leave one of them out"));
    }
    Ok(())
}

fn mode(args: &Args) -> &'static str {
    match (args.all, args.files.is_empty()) {
        (true, _) => "all",
        (false, false) => "files",
        (false, true) => "staged",
    }
}

fn preview(ran: &Ran) -> Result<Preview, Fault> {
    let mut fields = NulFields::of(&ran.stdout.bytes);
    let top = RepoRoot::of(fields.must("where the repository is")?)?;
    let plan = CommitPlan::read(&mut fields)?;
    Ok(Preview { plan, changes: listed(ran, &mut fields, &top)? })
}

fn exact(fields: &mut NulFields<'_>, what: &str) -> Result<String, Fault> {
    String::from_utf8(fields.must(what)?.to_vec()).map_err(|_bytes| {
        failure::failed(format!(
            "{what} has a name that is not UTF-8, which cannot be shown as it is; let a person commit this"
        ))
    })
}

/// The list at the end of what a script answered. One that was cut is none: an approver could not see what would be committed.
fn listed(ran: &Ran, fields: &mut NulFields<'_>, top: &RepoRoot) -> Result<Changes, Fault> {
    if ran.stdout.is_truncated() {
        return Err(failure::failed("there are too many changed files for one commit; commit them in parts"));
    }
    changes::read(fields, top)
}

/// What a person is asked.
fn question(preview: &Preview) -> String {
    let Preview { plan, changes } = preview;
    let to = plan.branch().map_or("no branch (a detached HEAD)".to_owned(), |branch| {
        format!("branch {}", display_text(branch))
    });
    let merged: Vec<&str> = plan.merged().map(short_id).collect();
    let kind = match (plan.head.is_empty(), merged.is_empty()) {
        (true, _) => " as its first commit".to_owned(),
        (false, false) => format!(" as a merge with {}", merged.join(", ")),
        (false, true) => String::new(),
    };
    let files = counted(changes.count, "file");
    let named: Vec<String> = changes.files.iter().take(ASKED_FILES).map(line).collect();
    let more = changes.count.saturating_sub(named.len() as u64);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!(
        "{files} (+{} -{}) would be committed to {to}{kind}, by {}: {}{more}",
        changes.added,
        changes.deleted,
        display_text(&plan.author),
        named.join(", ")
    )
}

fn line(change: &Change) -> String {
    let Change { path, from, status, added, deleted, binary } = change;
    let path = match from {
        Some(from) => format!("{} → {}", display_text(from), display_text(path)),
        None => display_text(path),
    };
    let size = if *binary { "binary".to_owned() } else { format!("+{added} -{deleted}") };
    format!("{path} ({status}, {size})")
}

fn result(ran: &Ran, plan: &CommitPlan) -> Result<Output, Fault> {
    let mut fields = NulFields::of(&ran.stdout.bytes);
    let mut read = || {
        let top = RepoRoot::of(fields.must("where the repository is")?)?;
        fields.must("the branch")?;
        let (hash, subject) = (fields.text("the commit")?, fields.text("the subject")?);
        let warning = fields.text("a warning")?;
        Ok((hash, subject, warning, listed(ran, &mut fields, &top)?))
    };
    let done =
        |fault: Fault| failure::effect_unknown(format!("the commit was made, but {}", fault.error.message));
    let (hash, subject, warning, changes) = read().map_err(done)?;
    Ok(Output {
        hash,
        branch: plan.branch().map(str::to_owned),
        subject,
        truncated: changes.is_truncated(),
        files: changes.files,
        insertions: changes.added,
        deletions: changes.deleted,
        warning: (!warning.is_empty()).then_some(warning),
    })
}

/// Why nothing was committed.
fn refused(ran: &Ran, repository: &Repository<'_>) -> Fault {
    let End::Exited(code) = ran.end else {
        return failure::effect_unknown(
            "git was ended while it committed; git_log and git_status show how far it got",
        );
    };
    let said = last_lines(&ran.stderr.text());
    match code {
        code::CONFLICT => conflict(),
        code::NO_MERGE => no_merge(),
        code::OUTDATED => failure::outdated(
            "the files or the branch have changed since the commit was approved, and nothing was committed; call again",
        ),
        code::NOT_COMMITTED => failure::effect_unknown(format!(
            "nothing was committed; a hook of the repository refused it, or git did, and hooks may have changed files: {said}"
        )),
        code::CHANGED => failure::effect_unknown(format!(
            "a hook of the repository changed what was approved, so nothing was committed; look at git_status and call \
             again with what the hook made: {said}"
        )),
        code::MOVED => failure::effect_unknown(format!(
            "what was approved was not committed: the branch was moved meanwhile, by a hook of the repository or by \
             another process, and it stays moved; let a person look at git_log: {said}"
        )),
        _ => fault::of_git(ran, "committing", &repository.shown),
    }
}

fn conflict() -> Fault {
    failure::failed("files are in conflict (git_status names them); resolve them and name them in files")
}

fn no_merge() -> Fault {
    failure::failed(
        "git's file MERGE_HEAD, which says what is being merged, does not list commits of this repository; let a person \
         look at it, and end the merge with `git merge --abort` or `git merge --quit`",
    )
}

fn nothing(args: &Args) -> Fault {
    failure::failed(match mode(args) {
        "staged" => "nothing is staged; name files, or commit everything with all: true",
        _ => "there is nothing to commit: what is named is as it was committed; git_status shows what is not",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> CommitPlan {
        CommitPlan {
            reference: "refs/heads/main".into(),
            head: String::new(),
            merge: "a,b,".into(),
            tree: "t".into(),
            author: "A <a@x>".into(),
        }
    }

    #[test]
    fn a_state_survives_its_text_and_nothing_else_is_one() {
        assert_eq!(CommitPlan::parse(&sample().to_text()).unwrap(), sample());
        let bare = CommitPlan { reference: String::new(), ..sample() };
        assert_eq!(CommitPlan::parse(&bare.to_text()).unwrap(), bare);
        let other = r#"["push","a","b","c","d","e"]"#;
        for wrong in ["", "commit a b c d e", other, r#"["commit","a","b","c","d"]"#] {
            assert_eq!(
                CommitPlan::parse(wrong).unwrap_err().error.code.as_str(),
                "INTERNAL_ERROR",
                "{wrong}"
            );
        }
    }

    #[test]
    fn no_two_states_have_the_same_text() {
        let shown =
            CommitPlan { merge: "5, ee".into(), tree: "60".into(), author: "Ann <a@x>".into(), ..sample() };
        let other =
            CommitPlan { merge: "5,".into(), tree: "ee".into(), author: "60 Ann <a@x>".into(), ..sample() };
        assert_ne!(shown.to_text(), other.to_text());
        let quoted = CommitPlan { author: r#"A","ee"#.into(), ..sample() };
        assert_eq!(CommitPlan::parse(&quoted.to_text()).unwrap(), quoted);
    }

    #[test]
    fn what_is_no_id_or_cannot_be_shown_is_no_sample() {
        let read = |bytes: &[u8]| CommitPlan::read(&mut NulFields::of(bytes));
        assert_eq!(read(b"r\0ab\0ab,12,\0ee\0A <a>\0").unwrap().merge, "ab,12,");
        for wrong in [
            b"r\0ab\0ab, ee\0ee\0A\0".as_slice(),
            b"r\0a b\0\0ee\0A\0",
            b"r\0ab\0\0e\ne\0A\0",
            b"r\xff\0ab\0\0ee\0A\0",
            b"r\0ab\0\0ee\0A\xff\0",
            b"r\0ab\0\0ee",
        ] {
            assert!(read(wrong).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn a_question_names_what_is_merged() {
        let merge = format!("{},{},", "a".repeat(40), "b".repeat(40));
        let preview =
            Preview { plan: CommitPlan { head: "c".into(), merge, ..sample() }, changes: Changes::default() };
        let text = question(&preview);
        assert!(text.contains("to branch main as a merge with aaaaaaaaaa, bbbbbbbbbb, by A <a@x>"), "{text}");
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
        let preview = Preview { plan: sample(), changes };
        let text = question(&preview);
        assert!(text.starts_with(
            "1200 files (+7 -8) would be committed to branch main as its first commit, by A <a@x>: "
        ));
        assert!(text.ends_with(", and 1180 more") && text.len() < 40_000);
        assert!(!text.contains(['\u{202e}', '\n']));
    }

    #[test]
    fn a_message_is_needed_and_one_way_to_choose_files() {
        let args = |text: &str| serde_json::from_str::<Args>(text).unwrap();
        for wrong in [
            r#"{"message":" \n"}"#,
            r#"{"message":"a\u0000"}"#,
            r#"{"message":"a","all":true,"files":["b"]}"#,
        ] {
            assert_eq!(check(&args(wrong)).unwrap_err().error.code.as_str(), "INVALID_ARGUMENTS", "{wrong}");
        }
        assert!(check(&args(r#"{"message":"a","all":true}"#)).is_ok());
    }
}
