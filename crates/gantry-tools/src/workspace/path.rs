//! The paths that the tools take: relative, UTF-8, and read as they are written.
//!
//! There is no URL decoding, no `~`, no normalisation, and a backslash is a character of a name. `..` is left to the
//! kernel, which resolves it beneath the root; only a path that must leave by its spelling alone is refused here.

use crate::failure;
use crate::text::display_text;
use gantry_core::Fault;
use std::ffi::OsString;
use std::path::PathBuf;

/// A path; what Linux takes.
const PATH_BYTES: usize = 4096;
/// One name in a path; what file systems take.
const NAME_BYTES: usize = 255;

/// How a path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Name,
    Slash,
    Dot,
}

/// A path relative to the workspace root that does not leave it by its spelling.
#[derive(Debug, Clone)]
pub(crate) struct RelPath {
    names: Vec<String>,
    ending: Ending,
    shown: String,
}

impl RelPath {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
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
        let ending = match text.rsplit('/').next() {
            Some("") => Ending::Slash,
            Some("." | "..") => Ending::Dot,
            Some(_) | None => Ending::Name,
        };
        let names: Vec<String> =
            text.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect();
        if let Some(long) = names.iter().find(|name| name.len() > NAME_BYTES) {
            return Err(failure::invalid_path(format!(
                "a name in the path has {} bytes; at most {NAME_BYTES} are taken",
                long.len()
            )));
        }
        if leaves(&names) {
            return Err(failure::outside(&shown));
        }
        Ok(Self { names, ending, shown })
    }

    /// The path without redundant parts, as results have it.
    pub(crate) fn text(&self) -> String {
        if self.names.is_empty() { ".".to_owned() } else { self.names.join("/") }
    }

    /// The path as messages have it, with nothing in it that could mislead a reader.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The path as the kernel resolves it.
    pub(crate) fn whole(&self) -> PathBuf {
        self.text().into()
    }

    /// The directory and the name in it, for a path that must end in a name.
    pub(crate) fn entry(&self) -> Result<(PathBuf, OsString), Fault> {
        if self.ending == Ending::Slash {
            let shown = &self.shown;
            return Err(failure::invalid_path(format!("{shown} ends in a slash; end it in a name")));
        }
        self.entry_or_directory()
    }

    /// The same, where a slash at the end does no harm.
    pub(crate) fn entry_or_directory(&self) -> Result<(PathBuf, OsString), Fault> {
        match self.names.split_last() {
            Some((name, directory)) if self.ending != Ending::Dot && name != ".." => {
                let directory = if directory.is_empty() { ".".to_owned() } else { directory.join("/") };
                Ok((directory.into(), name.into()))
            }
            Some(_) | None => {
                let shown = &self.shown;
                Err(failure::invalid_path(format!("{shown} does not end in the name of a file or directory")))
            }
        }
    }
}

/// Whether the `..` in a path outnumber the names before them, so that it leaves the workspace for any names.
fn leaves(names: &[String]) -> bool {
    let mut depth = 0usize;
    names.iter().any(|name| match (name.as_str(), depth) {
        ("..", 0) => true,
        ("..", _) => {
            depth -= 1;
            false
        }
        _ => {
            depth += 1;
            false
        }
    })
}

/// A file name as results have it. Bytes that are no UTF-8 become `\xNN`, and so does a backslash beside them, so
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
