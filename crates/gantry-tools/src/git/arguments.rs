//! Arguments that several git tools take, checked before they come to a command line.

use crate::failure;
use crate::workspace::path::RelPath;
use gantry_core::Fault;
use gantry_sandbox::jail::WORKSPACE;

/// Paths that one call names.
pub(super) const MAX_FILES: usize = 1000;
/// Bytes of all paths that one call names: they have to fit on a command line.
const FILES_BYTES: usize = 512 * 1024;
/// Bytes of a revision, a branch, a remote, or a condition of the log.
const WORD_BYTES: usize = 1024;

/// Paths in the workspace as git finds them in the jail, wherever it starts.
pub(super) fn jail_paths(paths: &[String]) -> Result<Vec<String>, Fault> {
    let bytes: usize = paths.iter().map(String::len).sum();
    if paths.len() > MAX_FILES || bytes > FILES_BYTES {
        return Err(failure::invalid(format!(
            "files: at most {MAX_FILES} paths of {FILES_BYTES} bytes together are taken; name folders instead"
        )));
    }
    let in_jail =
        |path: &String| Ok([&[WORKSPACE], &*RelPath::parse(path)?.plain_names()].concat().join("/"));
    paths.iter().map(in_jail).collect()
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
    Err(failure::invalid(format!(
        "{name}: this is a word of at most {WORD_BYTES} bytes that does not begin with -"
    )))
}

/// A text that a condition of the log compares with.
pub(super) fn phrase<'a>(name: &str, text: &'a str) -> Result<&'a str, Fault> {
    if text.is_empty() || text.len() > WORD_BYTES || text.contains(char::is_control) {
        return Err(failure::invalid(format!("{name}: this is one line of at most {WORD_BYTES} bytes")));
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
    Err(failure::invalid("branch: this is not the name of a branch, such as main or feature/login"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_has_one_short_name() {
        assert_eq!(branch("refs/heads/feature/a.b").unwrap(), "feature/a.b");
    }
}
