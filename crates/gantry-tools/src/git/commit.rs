//! `git_commit`: commits what a person has seen.
//!
//! Looking builds the very tree that a commit would have, from a copy of the index and with new objects put aside, so
//! that nothing in the repository changes. The precondition names that tree, the commits below it and who commits. Committing
//! builds it again and lets the hooks see it; if it is still what was judged, the commit is made of exactly that, and the
//! branch goes to it only from where it was judged to be.

use super::arguments::{MAX_FILES, jail_paths};
use super::changes::{self, Change, Changes};
use super::script::{GitScript, HOOKS, NulFields, RepoRoot, Repository, short_id};
use super::{GitContext, fault};
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use gantry_sandbox::jail::Ran;
use serde_json::json;
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

/// What an approval rests on: where the commit goes, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        json!([Self::WORD, self]).to_string()
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        match serde_json::from_str::<(String, Self)>(text) {
            Ok((word, plan)) if word == Self::WORD => Ok(plan),
            Ok(_) | Err(_) => Err(failure::missing_precondition()),
        }
    }

    /// What a script says. A name that is no text could not be shown as it is, and an id is nothing but an id.
    fn read(fields: &mut NulFields<'_>) -> Result<Self, Fault> {
        let plan = Self {
            reference: utf8_field(fields, "the branch")?,
            head: utf8_field(fields, "the commit")?,
            merge: utf8_field(fields, "the merge")?,
            tree: utf8_field(fields, "the tree")?,
            author: utf8_field(fields, "the author")?,
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
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(600));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight, Fault> {
        let repository = Repository::at(&self.0.runner, &args.path)?;
        check_args(&args)?;
        let mut script = GitScript::read_only(Self::NAME, &[STAGE, include_str!("sh/look.sh")]);
        script.command = script.command.env(self.identity());
        let script = script.args([mode(&args)]).args(jail_paths(&args.files)?);
        let ran = repository.run_checked(script, "looking at what would be committed").await?;
        let mut fields = NulFields(&ran.stdout.bytes);
        let top = fields.repo_root()?;
        let plan = CommitPlan::read(&mut fields)?;
        let changes = parse_changes(&ran, &mut fields, &top)?;
        if changes.count == 0 && plan.merge.is_empty() {
            return Err(nothing_to_commit(&args));
        }
        Ok(Preflight { ask: Some(question(&plan, &changes)), precondition: Some(plan.to_text().into()) })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output, Fault> {
        let args = &call.args;
        let repository = Repository::at(&self.0.runner, &args.path)?;
        check_args(args)?;
        let plan = CommitPlan::parse(call.judged()?)?;
        let mut script = GitScript::writing(Self::NAME, &[STAGE, HOOKS, include_str!("sh/commit.sh")]);
        script.command = script.command.env(self.identity());
        script.command.files = vec![("message".to_owned(), args.message.clone().into_bytes())];
        let CommitPlan { reference, head, merge, tree, author } = plan.clone();
        let words = [mode(args).to_owned(), reference, head, merge, tree, author];
        let script = script.args(words).args(jail_paths(&args.files)?);
        parse_result(&repository.run_checked(script, "committing").await?, &plan)
    }
}

impl GitCommit {
    /// Who commits if the repository does not say.
    fn identity(&self) -> [(&str, &str); 2] {
        let author = self.0.options.author.as_ref();
        let (name, email) = author.map_or(DEFAULT_AUTHOR, |author| (&author.name, &author.email));
        [("GANTRY_NAME", name), ("GANTRY_EMAIL", email)]
    }
}

fn check_args(args: &Args) -> Result<(), Fault> {
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

fn utf8_field(fields: &mut NulFields<'_>, what: &str) -> Result<String, Fault> {
    String::from_utf8(fields.required(what)?.to_vec()).map_err(|_bytes| {
        failure::failed(format!(
            "{what} has a name that is not UTF-8, which cannot be shown as it is; let a person commit this"
        ))
    })
}

/// The list at the end of what a script answered. One that was cut is none: an approver could not see what would be committed.
fn parse_changes(ran: &Ran, fields: &mut NulFields<'_>, top: &RepoRoot) -> Result<Changes, Fault> {
    if ran.stdout.is_truncated() {
        return Err(failure::failed("there are too many changed files for one commit; commit them in parts"));
    }
    changes::parse(fields, top)
}

/// What a person is asked.
fn question(plan: &CommitPlan, changes: &Changes) -> String {
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
    let named: Vec<String> = changes.files.iter().take(ASKED_FILES).map(describe_change).collect();
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

fn describe_change(change: &Change) -> String {
    let Change { path, from, status, added, deleted, binary } = change;
    let path = match from {
        Some(from) => format!("{} → {}", display_text(from), display_text(path)),
        None => display_text(path),
    };
    let size = if *binary { "binary".to_owned() } else { format!("+{added} -{deleted}") };
    format!("{path} ({status}, {size})")
}

fn parse_result(ran: &Ran, plan: &CommitPlan) -> Result<Output, Fault> {
    let mut fields = NulFields(&ran.stdout.bytes);
    let mut read = || {
        let top = fields.repo_root()?;
        fields.required("the branch")?;
        let (hash, subject) = (fields.text("the commit")?, fields.text("the subject")?);
        let warning = fields.text("a warning")?;
        Ok((hash, subject, warning, parse_changes(ran, &mut fields, &top)?))
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

/// There is nothing to commit.
fn nothing_to_commit(args: &Args) -> Fault {
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
        let read = |bytes: &[u8]| CommitPlan::read(&mut NulFields(bytes));
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
        let plan = CommitPlan { head: "c".into(), merge, ..sample() };
        let text = question(&plan, &Changes::default());
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
        let text = question(&sample(), &changes);
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
            assert_eq!(
                check_args(&args(wrong)).unwrap_err().error.code.as_str(),
                "INVALID_ARGUMENTS",
                "{wrong}"
            );
        }
        assert!(check_args(&args(r#"{"message":"a","all":true}"#)).is_ok());
    }
}
