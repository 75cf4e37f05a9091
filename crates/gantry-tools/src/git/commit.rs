//! `git_commit`: commits what a person has seen.
//!
//! Looking builds the very tree that a commit would have, from a copy of the index and with new objects put aside, so
//! that nothing in the repository changes. The precondition names that tree, the commits below it and who commits. Committing
//! builds it again and lets the hooks see it; if it is still what was judged, the commit is made of exactly that, and the
//! branch goes to it only from where it was judged to be.

use super::act::{self, Commit, MESSAGE_BYTES};
use super::changes::{self, Change, Changes};
use super::fault;
use super::repository::{Fields, HOOKS, Repository, Script, Top, code};
use super::words::{self, counted};
use crate::own::shown;
use crate::workshop::exit_code;
use gantry_core::Fault;
use gantry_core::policy::OwnVerdict;
use gantry_sandbox::jail::{End, Ran};
use serde_json::{Value, json};

const TOOL: &str = "git_commit";
/// The script that both looking and committing begin with.
const STAGE: &str = include_str!("sh/stage.sh");
/// Who commits if nobody said who.
const NOBODY: (&str, &str) = ("Gantry", "gantry@localhost");
/// Files that a question names.
const ASKED_FILES: usize = 20;

/// What would be committed.
#[derive(Debug)]
struct Plan {
    state: State,
    changes: Changes,
}

/// What an answer rests on: where the commit goes, and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
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

impl State {
    const WORD: &str = "commit";

    fn to_text(&self) -> String {
        let Self { reference, head, merge, tree, author } = self;
        json!([Self::WORD, reference, head, merge, tree, author]).to_string()
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        let parts: [String; 6] = serde_json::from_str(text).map_err(|_other| fault::unjudged())?;
        let [word, reference, head, merge, tree, author] = parts;
        if word != Self::WORD {
            return Err(fault::unjudged());
        }
        Ok(Self { reference, head, merge, tree, author })
    }

    /// What a script says. A name that is no text could not be shown as it is, and an id is nothing but an id.
    fn read(fields: &mut Fields<'_>) -> Result<Self, Fault> {
        let state = Self {
            reference: exact(fields, "the branch")?,
            head: exact(fields, "the commit")?,
            merge: exact(fields, "the merge")?,
            tree: exact(fields, "the tree")?,
            author: exact(fields, "the author")?,
        };
        let is_id = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let are_ids = is_id(&state.head) && is_id(&state.tree) && state.merged().all(is_id);
        if are_ids { Ok(state) } else { Err(fault::unreadable("the id of a commit")) }
    }

    fn merged(&self) -> impl Iterator<Item = &str> {
        self.merge.split_terminator(',')
    }

    fn branch(&self) -> Option<&str> {
        let name = self.reference.strip_prefix("refs/heads/").unwrap_or(&self.reference);
        (!name.is_empty()).then_some(name)
    }
}

pub(super) async fn inspect(
    repository: &Repository<'_>,
    args: &Commit,
    author: Option<&(String, String)>,
) -> Result<OwnVerdict, Fault> {
    check(args)?;
    let mut script = Script::looks(TOOL, &[STAGE, include_str!("sh/look.sh")]);
    script.env.extend(identity(author));
    let ran = repository.run(script.args([mode(args)]).args(act::files(&args.files)?)).await?;
    match exit_code(ran.end) {
        0 => {}
        code::CONFLICT => return Err(conflict()),
        code::NO_MERGE => return Err(no_merge()),
        _ => return Err(fault::of_git(&ran, "looking at what would be committed", &repository.shown)),
    }
    let plan = plan(&ran)?;
    if plan.changes.count == 0 && plan.state.merge.is_empty() {
        return Err(nothing(args));
    }
    Ok(OwnVerdict { ask: Some(question(&plan)), precondition: Some(plan.state.to_text().into()) })
}

pub(super) async fn run(
    repository: &Repository<'_>,
    args: &Commit,
    author: Option<&(String, String)>,
    judged: Option<&str>,
) -> Result<Value, Fault> {
    check(args)?;
    let state = State::parse(judged.ok_or_else(fault::unjudged)?)?;
    let mut script = Script::works(TOOL, &[STAGE, HOOKS, include_str!("sh/commit.sh")]);
    script.env.extend(identity(author));
    script.files = vec![("message".to_owned(), args.message.clone().into_bytes())];
    let State { reference, head, merge, tree, author } = state.clone();
    let words = [mode(args).to_owned(), reference, head, merge, tree, author];
    let ran = repository.run(script.args(words).args(act::files(&args.files)?)).await?;
    if ran.end == End::Exited(0) { result(&ran, &state) } else { Err(refused(&ran, repository)) }
}

fn check(args: &Commit) -> Result<(), Fault> {
    let message = &args.message;
    if message.trim().is_empty() || message.contains('\0') || message.len() > MESSAGE_BYTES {
        return Err(fault::invalid_arguments(format!(
            "message: say what the commit does, in at most {MESSAGE_BYTES} bytes and without NUL characters"
        )));
    }
    if args.all && !args.files.is_empty() {
        return Err(fault::invalid_arguments(
            "files: with all, everything is committed; leave one of them out",
        ));
    }
    Ok(())
}

fn mode(args: &Commit) -> &'static str {
    match (args.all, args.files.is_empty()) {
        (true, _) => "all",
        (false, false) => "files",
        (false, true) => "staged",
    }
}

fn identity(author: Option<&(String, String)>) -> [(String, String); 2] {
    let (name, email) = author.map_or(NOBODY, |(name, email)| (name, email));
    [("GANTRY_NAME".to_owned(), name.to_owned()), ("GANTRY_EMAIL".to_owned(), email.to_owned())]
}

fn plan(ran: &Ran) -> Result<Plan, Fault> {
    let mut fields = Fields::of(&ran.stdout.bytes);
    let top = Top::of(fields.must("where the repository is")?)?;
    let state = State::read(&mut fields)?;
    Ok(Plan { state, changes: listed(ran, &mut fields, &top)? })
}

fn exact(fields: &mut Fields<'_>, what: &str) -> Result<String, Fault> {
    String::from_utf8(fields.must(what)?.to_vec()).map_err(|_bytes| {
        fault::failed(format!(
            "{what} has a name that is not UTF-8, which cannot be shown as it is; let a person commit this"
        ))
    })
}

/// The list at the end of what a script answered. One that was cut is none: nobody could see what would be committed.
fn listed(ran: &Ran, fields: &mut Fields<'_>, top: &Top) -> Result<Changes, Fault> {
    if ran.stdout.is_truncated() {
        return Err(fault::failed("there are too many changed files for one commit; commit them in parts"));
    }
    changes::read(fields, top)
}

/// What a person is asked.
fn question(plan: &Plan) -> String {
    let Plan { state, changes } = plan;
    let to = state
        .branch()
        .map_or("no branch (a detached HEAD)".to_owned(), |branch| format!("branch {}", shown(branch)));
    let merged: Vec<&str> = state.merged().map(words::short).collect();
    let kind = match (state.head.is_empty(), merged.is_empty()) {
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
        shown(&state.author),
        named.join(", ")
    )
}

fn line(change: &Change) -> String {
    let Change { path, from, status, added, deleted, binary } = change;
    let path = match from {
        Some(from) => format!("{} → {}", shown(from), shown(path)),
        None => shown(path),
    };
    let size = if *binary { "binary".to_owned() } else { format!("+{added} -{deleted}") };
    format!("{path} ({status}, {size})")
}

fn result(ran: &Ran, state: &State) -> Result<Value, Fault> {
    let mut fields = Fields::of(&ran.stdout.bytes);
    let mut read = || {
        let top = Top::of(fields.must("where the repository is")?)?;
        fields.must("the branch")?;
        let (hash, subject) = (fields.text("the commit")?, fields.text("the subject")?);
        let warning = fields.text("a warning")?;
        Ok((hash, subject, warning, listed(ran, &mut fields, &top)?))
    };
    let done = |fault: Fault| fault::perhaps(format!("the commit was made, but {}", fault.error.message));
    let (hash, subject, warning, changes) = read().map_err(done)?;
    let mut result = json!({
        "hash": hash,
        "subject": subject,
        "files": changes.files,
        "insertions": changes.added,
        "deletions": changes.deleted,
    });
    if let Some(branch) = state.branch() {
        result["branch"] = branch.into();
    }
    if !warning.is_empty() {
        result["warning"] = warning.into();
    }
    if changes.is_truncated() {
        result["truncated"] = true.into();
    }
    Ok(result)
}

/// Why nothing was committed.
fn refused(ran: &Ran, repository: &Repository<'_>) -> Fault {
    let End::Exited(code) = ran.end else {
        return fault::perhaps(
            "git was ended while it committed; git_log and git_status show how far it got",
        );
    };
    let said = words::last_lines(&ran.stderr.text());
    match code {
        code::CONFLICT => conflict(),
        code::NO_MERGE => no_merge(),
        code::OUTDATED => fault::outdated(
            "the files or the branch have changed since the commit was approved, and nothing was committed; call again",
        ),
        code::NOT_COMMITTED => fault::perhaps(format!(
            "nothing was committed; a hook of the repository refused it, or git did, and hooks may have changed files: {said}"
        )),
        code::CHANGED => fault::perhaps(format!(
            "a hook of the repository changed what was approved, so nothing was committed; look at git_status and call \
             again with what the hook made: {said}"
        )),
        code::MOVED => fault::perhaps(format!(
            "what was approved was not committed: the branch was moved meanwhile, by a hook of the repository or by \
             somebody else, and it stays moved; let a person look at git_log: {said}"
        )),
        _ => fault::of_git(ran, "committing", &repository.shown),
    }
}

fn conflict() -> Fault {
    fault::failed("files are in conflict (git_status names them); resolve them and name them in files")
}

fn no_merge() -> Fault {
    fault::failed(
        "git's file MERGE_HEAD, which says what is being merged, does not list commits of this repository; let a person \
         look at it, and end the merge with `git merge --abort` or `git merge --quit`",
    )
}

fn nothing(args: &Commit) -> Fault {
    fault::failed(match mode(args) {
        "staged" => "nothing is staged; name files, or commit everything with all: true",
        _ => "there is nothing to commit: what is named is as it was committed; git_status shows what is not",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            reference: "refs/heads/main".into(),
            head: String::new(),
            merge: "a,b,".into(),
            tree: "t".into(),
            author: "A <a@x>".into(),
        }
    }

    #[test]
    fn a_state_survives_its_text_and_nothing_else_is_one() {
        assert_eq!(State::parse(&state().to_text()).unwrap(), state());
        let bare = State { reference: String::new(), ..state() };
        assert_eq!(State::parse(&bare.to_text()).unwrap(), bare);
        let other = r#"["push","a","b","c","d","e"]"#;
        for wrong in ["", "commit a b c d e", other, r#"["commit","a","b","c","d"]"#] {
            assert_eq!(State::parse(wrong).unwrap_err().error.code.as_str(), "INTERNAL_ERROR", "{wrong}");
        }
    }

    #[test]
    fn no_two_states_have_the_same_text() {
        let shown = State { merge: "5, ee".into(), tree: "60".into(), author: "Ann <a@x>".into(), ..state() };
        let meant = State { merge: "5,".into(), tree: "ee".into(), author: "60 Ann <a@x>".into(), ..state() };
        assert_ne!(shown.to_text(), meant.to_text());
        let quoted = State { author: r#"A","ee"#.into(), ..state() };
        assert_eq!(State::parse(&quoted.to_text()).unwrap(), quoted);
    }

    #[test]
    fn what_is_no_id_or_cannot_be_shown_is_no_state() {
        let read = |bytes: &[u8]| State::read(&mut Fields::of(bytes));
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
        let plan = Plan { state: State { head: "c".into(), merge, ..state() }, changes: Changes::default() };
        let text = question(&plan);
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
        let plan = Plan { state: state(), changes };
        let text = question(&plan);
        assert!(text.starts_with(
            "1200 files (+7 -8) would be committed to branch main as its first commit, by A <a@x>: "
        ));
        assert!(text.ends_with(", and 1180 more") && text.len() < 40_000);
        assert!(!text.contains(['\u{202e}', '\n']));
    }

    #[test]
    fn a_message_is_needed_and_one_way_to_choose_files() {
        let args = |text: &str| serde_json::from_str::<Commit>(text).unwrap();
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
