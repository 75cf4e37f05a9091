//! `git_status`: where a repository stands, and which files are not as committed.

use super::GitContext;
use super::changes::{FILES, status_word};
use super::script::{Answer, script, unreadable};
use crate::tool::prelude::*;

#[derive(Debug)]
pub(super) struct GitStatus(pub(super) Arc<GitContext>);

/// Shows the state of a git repository: its branch, its distance to the upstream branch, what is under way, and every
/// file that is not as committed. Use it before git_diff and git_commit. At most 1,000 files are returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A folder in the repository, relative to the workspace root; "." is the root itself.
    #[serde(default = "default_path")]
    path: String,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The branch; absent if none is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The commit that is checked out; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The branch that this one follows, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Commits that the upstream branch does not have, as far as is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    /// Commits of the upstream branch that this one does not have, as far as is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    /// What is under way, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["merge", "rebase", "cherry-pick", "revert", "bisect"]))]
    operation: Option<String>,
    /// Whether every file is as committed.
    clean: bool,
    /// The files that are not.
    files: Vec<ChangedFile>,
    /// True if there is more than what is returned; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ChangedFile {
    /// The file, relative to the workspace root. Bytes that are not UTF-8 stand as \xNN.
    path: String,
    /// What happened to it, on the whole.
    #[schemars(extend(
        "enum" = ["added", "modified", "deleted", "renamed", "copied", "untracked", "conflicted", "typechange"]
    ))]
    status: &'static str,
    /// What is staged, as git's letters have it: . (same), M, T, A, D, R, C, U, ?.
    index: char,
    /// What is changed but not staged, as git's letters have it: . (same), M, T, A, D, R, C, U, ?.
    worktree: char,
    /// What it was called before, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl Tool for GitStatus {
    const NAME: &'static str = "git_status";
    const TITLE: &'static str = "Git status";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let stdout = self.0.run(&call.args.path, script(&[include_str!("sh/status.sh")], &[])).await?;
        parse_output(Answer::of(&stdout)?)
    }
}

fn parse_output(mut answer: Answer<'_>) -> Result<Output> {
    let operation = Some(answer.text()?).filter(|operation| !operation.is_empty());
    let mut state = Output { operation, clean: true, truncated: answer.is_cut, ..Output::default() };
    while let Some(field) = answer.next() {
        if let Some(header) = field.strip_prefix(b"# ") {
            state.add_header(&String::from_utf8_lossy(header));
            continue;
        }
        state.clean = false;
        if state.files.len() == FILES {
            state.truncated = true;
            break;
        }
        match parse_file(field, &mut answer) {
            Some(file) => state.files.push(file),
            // The last entry may have been cut off.
            None if answer.is_cut => break,
            None => return Err(unreadable()),
        }
    }
    Ok(state)
}

impl Output {
    fn add_header(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(' ') else { return };
        match (key, value) {
            ("branch.oid", "(initial)") | ("branch.head", "(detached)") => {}
            ("branch.oid", hash) => self.head = Some(hash.to_owned()),
            ("branch.head", name) => self.branch = Some(name.to_owned()),
            ("branch.upstream", name) => self.upstream = Some(name.to_owned()),
            ("branch.ab", counts) => {
                let mut counts = counts.split(' ').map(|count| count.get(1..)?.parse().ok());
                self.ahead = counts.next().flatten();
                self.behind = counts.next().flatten();
            }
            _ => {}
        }
    }
}

/// An entry. The number of words before the name depends on its kind, and only the name can have spaces.
fn parse_file(field: &[u8], answer: &mut Answer<'_>) -> Option<ChangedFile> {
    let kind = *field.first()?;
    let words = match kind {
        b'1' => 8,
        b'2' => 9,
        b'u' => 10,
        b'?' | b'!' => 1,
        _ => return None,
    };
    let mut parts = field.splitn(words + 1, |byte| *byte == b' ').skip(1);
    if words == 1 {
        let path = answer.path(parts.next()?);
        return Some(ChangedFile { path, status: "untracked", index: '?', worktree: '?', from: None });
    }
    let &[index, worktree] = parts.next()? else { return None };
    let path = answer.path(parts.last()?);
    let from = if kind == b'2' { Some(answer.next()?) } else { None };
    let status = match (kind, index, worktree) {
        (b'u', ..) => "conflicted",
        (_, _, b'D') => "deleted",
        (_, b'.', worktree) => status_word(worktree)?,
        (_, index, _) => status_word(index)?,
    };
    Some(ChangedFile {
        path,
        status,
        index: index.into(),
        worktree: worktree.into(),
        from: from.map(|name| answer.path(name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::script::captured;
    use gantry_sandbox::jail::Captured;

    fn parsed(bytes: &[u8]) -> Result<Output, CallFailure> {
        parse_output(Answer::of(&captured(bytes))?)
    }

    fn file_of(path: &str, status: &'static str, letters: &str) -> ChangedFile {
        let mut letters = letters.chars();
        let (index, worktree) = (letters.next().unwrap(), letters.next().unwrap());
        ChangedFile { path: path.into(), status, index, worktree, from: None }
    }

    #[test]
    fn every_kind_of_entry_is_read_whatever_the_names() {
        let text =
            b"/workspace\0merge\0# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0\
            # branch.ab +2 -13\0\
            1 M. N... 100644 100644 100644 aaa bbb with space\0\
            1 .D N... 100644 100644 000000 aaa aaa new\nline\0\
            1 AM N... 000000 100644 100644 000 bbb \xff\\x\0\
            1 .T N... 100644 100644 120000 aaa aaa link\0\
            2 R. N... 100644 100644 100644 aaa aaa R100 to name\0from name\0\
            2 .C N... 100644 100644 100644 aaa aaa C75 copy\0orig\0\
            u UU N... 100644 100644 100644 100644 aaa bbb ccc fight\0\
            ? un tracked\0";
        let state = parsed(text).unwrap();
        let head = (state.branch.as_deref(), state.head.as_deref(), state.upstream.as_deref());
        assert_eq!(head, (Some("main"), Some("abc"), Some("origin/main")));
        assert_eq!(
            (state.ahead, state.behind, state.clean, state.truncated),
            (Some(2), Some(13), false, false)
        );
        assert_eq!(state.operation.as_deref(), Some("merge"));
        assert_eq!(
            state.files,
            [
                file_of("with space", "modified", "M."),
                file_of("new\nline", "deleted", ".D"),
                file_of("\\xff\\x5cx", "added", "AM"),
                file_of("link", "typechange", ".T"),
                ChangedFile { from: Some("from name".into()), ..file_of("to name", "renamed", "R.") },
                ChangedFile { from: Some("orig".into()), ..file_of("copy", "copied", ".C") },
                file_of("fight", "conflicted", "UU"),
                file_of("un tracked", "untracked", "??"),
            ]
        );
    }

    #[test]
    fn a_repository_without_commits_or_branch_is_read_too() {
        let state = parsed(b"/workspace\0\0# branch.oid (initial)\0# branch.head (detached)\0").unwrap();
        assert_eq!(state, Output { clean: true, ..Output::default() });
    }

    #[test]
    fn paths_are_relative_to_the_workspace() {
        let state = parsed(b"/workspace/a b\0\0# branch.oid x\0? c\0").unwrap();
        assert_eq!(state.files, [file_of("a b/c", "untracked", "??")]);
        assert!(parsed(b"/workspaces\0\0").is_err());
        assert!(parsed(b"/\0\0").is_err());
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let mut text = b"/workspace\0\0".to_vec();
        for n in 0..=FILES {
            text.extend(format!("? f{n}\0").bytes());
        }
        let state = parsed(&text).unwrap();
        assert_eq!((state.files.len(), state.truncated), (FILES, true));
        let cut = Captured { total: 99, ..captured(b"/workspace\0\0? a\x002 R. cut") };
        assert!(parse_output(Answer::of(&cut).unwrap()).unwrap().truncated);
        assert!(parsed(b"/workspace\0\x002 R. x\0").is_err());
    }
}
