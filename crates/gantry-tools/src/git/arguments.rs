//! Arguments that several git tools take, checked before they come to a command line.

use crate::failure::{self, Result};
use crate::workspace::path::RelPath;
use gantry_sandbox::jail::WORKSPACE;

pub(super) const MAX_FILES: usize = 1000;
/// Bytes of all paths that one call names: they have to fit on a command line.
const FILES_BYTES: usize = 512 * 1024;
/// Bytes of a revision, a branch, a remote, or a condition of the log.
const WORD_BYTES: usize = 1024;

/// Paths in the workspace as git finds them in the jail, wherever it starts: pathspecs that stand for themselves.
pub(super) fn jail_paths(paths: &[String]) -> Result<Vec<String>> {
    if paths.iter().map(String::len).sum::<usize>() > FILES_BYTES {
        return Err(failure::invalid(format!(
            "files: at most {FILES_BYTES} bytes are taken; name folders instead"
        )));
    }
    let in_jail = |path: &String| {
        Ok(format!(":(literal){}", [&[WORKSPACE], &*RelPath::parse(path)?.plain_names()].concat().join("/")))
    };
    paths.iter().map(in_jail).collect()
}

/// A word that stands for itself on a command line: a revision, or the name of a branch or a remote. Empty if there is none.
pub(super) fn word<'a>(name: &str, text: Option<&'a String>) -> Result<&'a str> {
    let Some(text) = text else { return Ok("") };
    if text.starts_with('-') || text.contains(char::is_whitespace) {
        return Err(failure::invalid(format!("{name}: this is one word that does not begin with -")));
    }
    phrase(name, text)
}

/// A text that a condition of the log compares with.
pub(super) fn phrase<'a>(name: &str, text: &'a str) -> Result<&'a str> {
    if text.is_empty() || text.len() > WORD_BYTES || text.contains(char::is_control) {
        return Err(failure::invalid(format!("{name}: this is one line of at most {WORD_BYTES} bytes")));
    }
    Ok(text)
}
