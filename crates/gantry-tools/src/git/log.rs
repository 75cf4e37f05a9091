//! `git_log`: commits, the newest first.

use super::GitContext;
use super::arguments::{MAX_FILES, jail_paths, phrase, word};
use super::script::{Answer, script, unreadable};
use crate::command::runner::CommandSpec;
use crate::tool::prelude::*;

const MAX_COMMITS: u32 = 500;

#[derive(Debug)]
pub(super) struct GitLog(pub(super) Arc<GitContext>);

/// Lists commits of a git repository, the newest first. Use it to find out what was done, by whom and why; narrow it by
/// revision, files, author, time or words of the message. git_diff with from and to shows what a commit changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    /// A folder in the repository, relative to the workspace root; "." is the root itself.
    #[serde(default = "default_path")]
    path: String,
    /// How many commits to return.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = MAX_COMMITS))]
    max_count: u32,
    /// How many commits to leave out before the first.
    #[serde(default)]
    #[schemars(range(max = u32::MAX))]
    skip: u32,
    /// Where to begin, such as main or v1.0; or a range such as main..topic. HEAD by default.
    rev: Option<String>,
    /// Only commits that changed these files and folders. Paths relative to the workspace root.
    #[serde(default)]
    #[schemars(length(max = MAX_FILES), inner(length(min = 1)))]
    files: Vec<String>,
    /// Only commits whose author's name or address contains this.
    author: Option<String>,
    /// Only commits after this time, such as 2025-01-31 or "2 weeks ago".
    since: Option<String>,
    /// Only commits before this time.
    until: Option<String>,
    /// Only commits whose message contains this.
    grep: Option<String>,
}

fn default_count() -> u32 {
    20
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The commits, the newest first.
    commits: Vec<Commit>,
    /// True if there is more than what is returned; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Commit {
    /// The id of the commit.
    hash: String,
    /// The beginning of the id, which is enough here.
    short: String,
    /// Who wrote it.
    author: Author,
    /// When it was written, as in RFC 3339.
    date: String,
    /// The first line of the message.
    subject: String,
    /// The rest of the message; may be empty.
    body: String,
    /// The ids of the commits below it; two or more for a merge.
    parents: Vec<String>,
    /// The branches and tags that are at it, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refs: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Author {
    /// The author's name.
    name: String,
    /// The author's address.
    email: String,
}

impl Tool for GitLog {
    const NAME: &'static str = "git_log";
    const TITLE: &'static str = "Git log";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let stdout = self.0.run(&call.args.path, log_script(&call.args)?).await?;
        parse_output(Answer::of(&stdout)?, call.args.max_count)
    }
}

fn log_script(args: &Args) -> Result<CommandSpec> {
    let rev = word("rev", args.rev.as_ref())?;
    // One more than asked for tells whether there are more.
    let mut options = vec![format!("--max-count={}", args.max_count + 1), format!("--skip={}", args.skip)];
    let conditions =
        [("author", &args.author), ("since", &args.since), ("until", &args.until), ("grep", &args.grep)];
    for (name, text) in conditions {
        if let Some(text) = text {
            options.push(format!("--{name}={}", phrase(name, text)?));
        }
    }
    options.extend(["--fixed-strings", "--regexp-ignore-case", "--"].map(str::to_owned));
    let script = script(&[include_str!("sh/log.sh")], &[]);
    Ok(script.args([rev]).args(options).args(jail_paths(&args.files)?))
}

fn parse_output(mut answer: Answer<'_>, most: u32) -> Result<Output> {
    let mut commits = Vec::new();
    while !answer.rest.is_empty() {
        match parse_commit(&mut answer) {
            Some(commit) => commits.push(commit),
            None if answer.is_cut => break,
            None => return Err(unreadable()),
        }
    }
    let truncated = answer.is_cut || commits.len() > most as usize;
    commits.truncate(most as usize);
    Ok(Output { commits, truncated })
}

/// The fields of one commit, in the order of the script.
fn parse_commit(answer: &mut Answer<'_>) -> Option<Commit> {
    let mut next = || answer.text().ok();
    let (hash, short, parents) = (next()?, next()?, next()?);
    let (name, email, date) = (next()?, next()?, next()?);
    let (refs, subject, body) = (next()?, next()?, next()?);
    Some(Commit {
        hash,
        short,
        author: Author { name, email },
        date,
        subject,
        body: body.trim_end().to_owned(),
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        refs: split_refs(&refs),
    })
}

/// `HEAD -> main, tag: v1, origin/main` as a list of names. A name has no space in it.
fn split_refs(text: &str) -> Vec<String> {
    let names = text.split(", ").flat_map(|name| name.split(" -> "));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::script::captured;
    use gantry_sandbox::jail::Captured;
    use serde_json::json;

    const TWO: &[u8] = b"/workspace\0h1\0s1\0p1 p2\0Ann \xc3\x84\0a@x\x002024-01-02T03:04:05+02:00\0\
        HEAD -> main, tag: v1, origin/main\0Subject\0Body\n\nmore\n\0\
        h2\0s2\0\0Bob\0b@x\x002024-01-01T00:00:00Z\0\0One line\0\0";

    fn parsed(bytes: &[u8], most: u32) -> Result<Output, CallFailure> {
        parse_output(Answer::of(&captured(bytes))?, most)
    }

    #[test]
    fn commits_are_read_field_by_field() {
        let log = json!(parsed(TWO, 20).unwrap());
        assert_eq!(
            log,
            json!({ "commits": [
            { "hash": "h1", "short": "s1", "author": { "name": "Ann Ä", "email": "a@x" },
              "date": "2024-01-02T03:04:05+02:00", "subject": "Subject", "body": "Body\n\nmore",
              "parents": ["p1", "p2"], "refs": ["HEAD", "main", "tag: v1", "origin/main"] },
            { "hash": "h2", "short": "s2", "author": { "name": "Bob", "email": "b@x" },
              "date": "2024-01-01T00:00:00Z", "subject": "One line", "body": "", "parents": [] },
        ] })
        );
    }

    #[test]
    fn more_than_asked_for_is_cut_and_says_so() {
        let log = json!(parsed(TWO, 1).unwrap());
        assert_eq!((log["commits"].as_array().unwrap().len(), &log["truncated"]), (1, &json!(true)));
        let cut = &TWO[..TWO.len() - 3];
        assert!(parsed(cut, 20).is_err());
        let cut = Captured { total: 9999, ..captured(cut) };
        assert!(parse_output(Answer::of(&cut).unwrap(), 20).unwrap().truncated);
        assert_eq!(json!(parsed(b"/workspace\0", 20).unwrap()), json!({ "commits": [] }));
    }

    #[test]
    fn conditions_stay_in_their_place_on_the_command_line() {
        let args = |text: &str| serde_json::from_str::<Args>(text).unwrap();
        let one =
            log_script(&args(r#"{"author":"--all","grep":"a b","rev":"main..x","files":["-f"]}"#)).unwrap();
        let words = &one.args[3..];
        assert_eq!(words[0], "main..x");
        assert!(words.contains(&"--author=--all".to_owned()) && words.contains(&"--grep=a b".to_owned()));
        let end = words.iter().position(|arg| *arg == "--").unwrap();
        assert_eq!(words[end + 1..], [":(literal)/workspace/-f"]);
        for wrong in [r#"{"rev":"--all"}"#, r#"{"rev":""}"#, r#"{"since":"a\nb"}"#, r#"{"author":""}"#] {
            assert!(log_script(&args(wrong)).is_err(), "{wrong}");
        }
    }
}
