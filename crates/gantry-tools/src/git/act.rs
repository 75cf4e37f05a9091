//! What a call asks for, read from its arguments once.

use super::fault;
use crate::own;
use crate::workspace::within::Way;
use gantry_core::Fault;
use gantry_sandbox::jail::WORKSPACE;
use serde::Deserialize;

/// Commits that one call of `git_log` gives, and how many without saying.
pub(super) const COMMITS: (u32, u32) = (500, 20);
/// Lines around a change that a diff shows, and how many without saying.
pub(super) const CONTEXT: (u32, u32) = (20, 3);
/// Paths that one call names.
pub(super) const FILES: usize = 1000;
/// Bytes of all paths that one call names: they have to fit on a command line.
const FILES_BYTES: usize = 512 * 1024;
/// Bytes of a revision, a branch, a remote, or a condition of the log.
const WORD_BYTES: usize = 1024;
/// Bytes of the message of a commit.
pub(super) const MESSAGE_BYTES: usize = 64 * 1024;

/// One call of one of the tools.
#[derive(Debug)]
pub(super) enum Act {
    Status(Status),
    Diff(Diff),
    Log(Log),
    Commit(Commit),
    Push(Push),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    #[serde(default = "root")]
    pub(super) path: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Diff {
    #[serde(default = "root")]
    pub(super) path: String,
    #[serde(default)]
    pub(super) staged: bool,
    #[serde(default)]
    pub(super) from: Option<String>,
    #[serde(default)]
    pub(super) to: Option<String>,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default = "context")]
    pub(super) context: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Log {
    #[serde(default = "root")]
    pub(super) path: String,
    #[serde(default = "commits")]
    pub(super) max_count: u32,
    #[serde(default)]
    pub(super) skip: u32,
    #[serde(default)]
    pub(super) rev: Option<String>,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) author: Option<String>,
    #[serde(default)]
    pub(super) since: Option<String>,
    #[serde(default)]
    pub(super) until: Option<String>,
    #[serde(default)]
    pub(super) grep: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Commit {
    #[serde(default = "root")]
    pub(super) path: String,
    pub(super) message: String,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) all: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Push {
    #[serde(default = "root")]
    pub(super) path: String,
    #[serde(default)]
    pub(super) remote: Option<String>,
    #[serde(default)]
    pub(super) branch: Option<String>,
    #[serde(default)]
    pub(super) force: Option<Force>,
}

/// How a push may replace what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Force {
    /// Only if that is still what was last seen there.
    #[serde(rename = "with-lease")]
    WithLease,
}

fn root() -> String {
    ".".to_owned()
}

fn context() -> u32 {
    CONTEXT.1
}

fn commits() -> u32 {
    COMMITS.1
}

impl Act {
    pub(super) fn parse(tool: &str, arguments: &str) -> Result<Self, Fault> {
        let act = match tool {
            "git_status" => own::arguments(arguments).map(Self::Status),
            "git_diff" => own::arguments(arguments).map(Self::Diff),
            "git_log" => own::arguments(arguments).map(Self::Log),
            "git_commit" => own::arguments(arguments).map(Self::Commit),
            "git_push" => own::arguments(arguments).map(Self::Push),
            _ => Err(own::missing(tool)),
        };
        act.map_err(Fault::without_effect)
    }
}

/// Paths in the workspace as git finds them in the jail, wherever it starts.
pub(super) fn files(paths: &[String]) -> Result<Vec<String>, Fault> {
    let bytes: usize = paths.iter().map(String::len).sum();
    if paths.len() > FILES || bytes > FILES_BYTES {
        return Err(fault::invalid_arguments(format!(
            "files: at most {FILES} paths of {FILES_BYTES} bytes together are taken; name folders instead"
        )));
    }
    let names = paths.iter().map(|path| Ok(Way::parse(path)?.names));
    names.map(|names| names.map(|names| [vec![WORKSPACE.to_owned()], names].concat().join("/"))).collect()
}

/// A word that stands for itself on a command line: a revision, or the name of a remote.
pub(super) fn word<'a>(name: &str, text: &'a str) -> Result<&'a str, Fault> {
    let is_plain = !text.is_empty()
        && text.len() <= WORD_BYTES
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_plain {
        return Ok(text);
    }
    Err(fault::invalid_arguments(format!(
        "{name}: this is a word of at most {WORD_BYTES} bytes that does not begin with -"
    )))
}

/// A text that a condition of the log compares with.
pub(super) fn phrase<'a>(name: &str, text: &'a str) -> Result<&'a str, Fault> {
    if text.is_empty() || text.len() > WORD_BYTES || text.contains(char::is_control) {
        return Err(fault::invalid_arguments(format!(
            "{name}: this is one line of at most {WORD_BYTES} bytes"
        )));
    }
    Ok(text)
}

/// The short name of a branch.
pub(super) fn branch(text: &str) -> Result<&str, Fault> {
    let name = word("branch", text.strip_prefix("refs/heads/").unwrap_or(text))?;
    let is_name = !name.contains(['~', '^', ':', '?', '*', '[', '\\'])
        && !name.contains("..")
        && !name.contains("@{")
        && !name.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock"))
        && !name.ends_with('.')
        && !matches!(name, "@" | "HEAD");
    if is_name {
        return Ok(name);
    }
    Err(fault::invalid_arguments("branch: this is not the name of a branch, such as main or feature/login"))
}
