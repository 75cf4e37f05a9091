//! `git_diff`: what differs between two states of the files.

use super::GitContext;
use super::arguments::{MAX_FILES, jail_paths, word};
use super::changes::{self, Change};
use super::script::{Answer, script};
use crate::command::runner::CommandSpec;
use crate::tool::prelude::*;

const DIFF_BYTES: usize = 1024 * 1024;

/// Lines around a change that a diff shows.
const MAX_CONTEXT: u32 = 20;

#[derive(Debug)]
pub(super) struct GitDiff(pub(super) Arc<GitContext>);

/// Shows what changed in a git repository. By default compares the files with what is staged; with staged, what is
/// staged with the last commit; with from, that revision with the files; with from and to, two revisions. Untracked files
/// are not shown. At most 1 MiB of text and 1,000 files are returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A folder in the repository, relative to the workspace root; "." is the root itself.
    #[serde(default = "default_path")]
    path: String,
    /// Whether to compare what is staged, with from or with the last commit.
    #[serde(default)]
    staged: bool,
    /// The revision to compare with, such as HEAD~1, main, v1.0 or a commit.
    from: Option<String>,
    /// The revision that is compared with from; the files as they are without it.
    to: Option<String>,
    /// Only these files and folders. Paths relative to the workspace root.
    #[serde(default)]
    #[schemars(length(max = MAX_FILES), inner(length(min = 1)))]
    files: Vec<String>,
    /// Lines to show around each change.
    #[serde(default = "default_context")]
    #[schemars(range(max = MAX_CONTEXT))]
    context: u32,
}

fn default_context() -> u32 {
    3
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The differences in git's format; its paths are relative to the repository. What is not UTF-8 is replaced.
    diff: String,
    /// The files that differ.
    files: Vec<Change>,
    /// True if there is more than what is returned; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Tool for GitDiff {
    const NAME: &'static str = "git_diff";
    const TITLE: &'static str = "Git diff";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let stdout = self.0.run(&call.args.path, diff_script(&call.args)?).await?;
        parse_output(Answer::of(&stdout)?)
    }
}

fn diff_script(args: &Args) -> Result<CommandSpec> {
    if args.to.is_some() && (args.from.is_none() || args.staged) {
        return Err(failure::invalid(
            "to: this goes with from, and not with staged; leave it out to compare with the files as they are",
        ));
    }
    let staged = if args.staged { "--cached" } else { "" };
    let (from, to) = (word("from", args.from.as_ref())?, word("to", args.to.as_ref())?);
    let script = script(&[include_str!("sh/diff.sh")], &[]);
    Ok(script.args([staged, &args.context.to_string(), from, to]).args(jail_paths(&args.files)?))
}

fn parse_output(mut answer: Answer<'_>) -> Result<Output> {
    let changes = changes::parse(&mut answer)?;
    let truncated = answer.is_cut || answer.rest.len() > DIFF_BYTES || changes.is_truncated();
    let diff = String::from_utf8_lossy(whole_lines(answer.rest)).into_owned();
    Ok(Output { diff, files: changes.files, truncated })
}

/// The beginning of a diff, up to the end of a line if it is too long.
fn whole_lines(text: &[u8]) -> &[u8] {
    let Some(kept) = text.get(..DIFF_BYTES) else { return text };
    let end = kept.iter().rposition(|byte| *byte == b'\n').map_or(DIFF_BYTES, |end| end + 1);
    kept.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::script::captured;

    fn parsed(bytes: &[u8]) -> Output {
        parse_output(Answer::of(&captured(bytes)).unwrap()).unwrap()
    }

    #[test]
    fn a_long_diff_is_cut_between_lines_and_says_so() {
        let mut text = b"/workspace\0:100644 100644 a b M\0a\x001\t1\ta\0\0".to_vec();
        let head = text.len();
        text.extend(b"0123456789\n".repeat(DIFF_BYTES / 11 + 2));
        let result = parsed(&text);
        assert!(result.truncated);
        assert_eq!(result.diff.len(), DIFF_BYTES / 11 * 11);
        let result = parsed(&text[..head + 22]);
        assert_eq!(result.diff, "0123456789\n0123456789\n");
        assert!(!result.truncated);
        assert_eq!(whole_lines(&vec![b'x'; DIFF_BYTES + 1]).len(), DIFF_BYTES);
    }

    #[test]
    fn two_ends_have_to_make_sense_together() {
        let args = |text: &str| serde_json::from_str::<Args>(text).unwrap();
        for wrong in [
            r#"{"to":"a"}"#,
            r#"{"staged":true,"from":"a","to":"b"}"#,
            r#"{"from":"-x"}"#,
            r#"{"from":"a b"}"#,
        ] {
            assert_eq!(
                diff_script(&args(wrong)).unwrap_err().error.code.as_str(),
                "INVALID_ARGUMENTS",
                "{wrong}"
            );
        }
        let right = diff_script(&args(r#"{"from":"main","staged":true,"files":["a/../b","."]}"#)).unwrap();
        assert_eq!(
            right.args[3..],
            ["--cached", "3", "main", "", ":(literal)/workspace/b", ":(literal)/workspace"]
        );
    }
}
