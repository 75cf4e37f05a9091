//! The paths that the tools take: relative, UTF-8, and read as they are written.
//!
//! There is no URL decoding, no `~`, no normalisation, and a backslash is a character of a name. `..` is left to the
//! kernel, which resolves it beneath the root; only a path that must leave by its spelling alone is refused here.

use crate::failure::{self, Result};
use crate::text::display_text;
use std::ffi::OsString;
use std::path::PathBuf;

/// A path; what Linux takes.
const PATH_BYTES: usize = 4096;
/// One name in a path; what file systems take.
const NAME_BYTES: usize = 255;

/// A path relative to the workspace root that does not leave it by its spelling.
#[derive(Debug, Clone)]
pub(crate) struct RelPath {
    /// Without empty ones and `.`.
    names: Vec<String>,
    /// Whether it ends in a slash, or in a dot after one: only a directory can be meant.
    ends_in_slash: bool,
    shown: String,
}

impl RelPath {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let shown = display_text(text);
        if text.is_empty() {
            return Err(failure::invalid_path("the path is empty; \".\" is the workspace root"));
        }
        if text.contains('\0') {
            return Err(failure::invalid_path(format!("{shown} contains a NUL character")));
        }
        if text.len() > PATH_BYTES {
            return Err(failure::invalid_path(format!(
                "the path has {} bytes; at most {PATH_BYTES} are taken",
                text.len()
            )));
        }
        if text.starts_with('/') {
            return Err(failure::outside(&shown));
        }
        let names: Vec<String> =
            text.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect();
        if let Some(long) = names.iter().find(|name| name.len() > NAME_BYTES) {
            return Err(failure::invalid_path(format!(
                "a name in the path has {} bytes; at most {NAME_BYTES} are taken",
                long.len()
            )));
        }
        // A path leaves the workspace for any names if its `..` outnumber the names before them.
        let mut depth = 0usize;
        for name in &names {
            let below = if name == ".." { depth.checked_sub(1) } else { Some(depth + 1) };
            depth = below.ok_or_else(|| failure::outside(&shown))?;
        }
        Ok(Self { names, ends_in_slash: text.ends_with('/') || text.ends_with("/."), shown })
    }

    /// The path without redundant parts, as results have it and as the kernel resolves it.
    pub(crate) fn text(&self) -> String {
        if self.names.is_empty() { ".".to_owned() } else { self.names.join("/") }
    }

    /// The path as messages have it, with nothing in it that could mislead a reader.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The names to go down by, where no link is followed: then `..` only takes back the name before it.
    pub(crate) fn plain_names(&self) -> Vec<&str> {
        let mut plain = Vec::new();
        for name in &self.names {
            match name.as_str() {
                ".." => drop(plain.pop()),
                name => plain.push(name),
            }
        }
        plain
    }

    /// The directory and the name in it. Refuses a path that does not end in a name.
    pub(crate) fn split(&self) -> Result<(PathBuf, OsString)> {
        let shown = &self.shown;
        if self.ends_in_slash {
            return Err(failure::invalid_path(format!("{shown} ends in a slash or a dot; end it in a name")));
        }
        match self.names.split_last() {
            Some((name, directory)) if name != ".." => {
                let directory = if directory.is_empty() { ".".to_owned() } else { directory.join("/") };
                Ok((directory.into(), name.into()))
            }
            Some(_) | None => {
                Err(failure::invalid_path(format!("{shown} does not end in the name of a file or directory")))
            }
        }
    }
}

/// A file name, or a path, as results have it. Bytes that are no UTF-8 become `\xNN`, and so does a backslash beside them, so
/// that the bytes can be told from the text.
pub(crate) fn printable(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\x5c"));
        out.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    out
}
