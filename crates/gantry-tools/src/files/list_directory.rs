//! `list_directory`: what is in a directory, in order, up to a limit.

use super::FileTool;
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, modified, names, open_dir, size, stat_at};
use crate::workspace::path::{RelPath, printable};
use crate::workspace::protected::{FileId, Protection};
use crate::workspace::root::WorkspaceRoot;
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use tokio_util::sync::CancellationToken;

/// Entries in one answer.
pub(super) const LISTED: usize = 10_000;
/// Directories within directories that `recursive` enters.
pub(super) const DEPTH: usize = 16;
/// Names that one call reads to find the first [`LISTED`].
const SCANNED: usize = 2_000_000;

#[derive(Debug)]
pub(super) struct ListDirectory;

/// Lists the files and directories in a directory of the workspace, sorted by name. Use it to find out what exists
/// before reading or writing. With recursive, names are paths relative to the listed directory, up to 16 levels deep. At
/// most 10,000 entries are returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    /// The directory, relative to the workspace root; "." is the root itself.
    path: String,
    /// Whether to list the directories within as well. Symbolic links are not followed.
    #[serde(default)]
    recursive: bool,
    /// Whether to list entries whose name starts with a dot.
    #[serde(default)]
    include_hidden: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The entries, sorted by name.
    entries: Vec<Listed>,
    /// True if there is more than what is listed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// The name; with recursive, the path relative to the listed directory. Bytes that are not UTF-8 stand as \xNN.
    name: String,
    /// What it is.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["file", "directory", "symlink"]))]
    kind: &'static str,
    /// The size in bytes; 0 for directories.
    size: u64,
    /// When the content was last changed, in UTC.
    #[schemars(extend("format" = "date-time"))]
    modified: String,
}

impl FileTool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List directory";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    fn run(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output> {
        let (args, stop) = (&call.args, call.cancel());
        let path = RelPath::parse(&args.path)?;
        let shown = path.shown();
        let directory = match root.resolve_directory(path.text().as_ref(), None, shown)? {
            Some((directory, missing)) if missing.is_empty() => directory,
            Some(_) => return Err(failure::not_found(shown)),
            None => {
                return Err(failure::failed(format!("{shown} is not a directory; read_file reads files")));
            }
        };
        let mut listing = Listing {
            args,
            protection: &directory.protection,
            stop,
            unread: SCANNED,
            entries: Vec::new(),
            complete: true,
        };
        listing
            .add_directory(&directory.dir, "", 1)
            .map_err(|error| failure::os_error("listing", shown, error))?;
        if stop.is_cancelled() {
            return Err(failure::canceled());
        }
        listing.entries.sort_by(|a, b| a.0.cmp(&b.0));
        let entries = listing.entries.into_iter().map(|(name, stat)| describe_entry(name, &stat)).collect();
        Ok(Output { entries, truncated: !listing.complete })
    }
}

struct Listing<'a> {
    args: &'a Args,
    protection: &'a Protection,
    stop: &'a CancellationToken,
    /// Names that may still be read.
    unread: usize,
    entries: Vec<(String, Stat)>,
    complete: bool,
}

impl Listing<'_> {
    /// Lists a directory that is not hidden. One within that cannot be listed leaves the listing incomplete, not failed.
    fn add_directory(&mut self, dir: &OwnedFd, prefix: &str, depth: usize) -> Result<(), Errno> {
        if depth > DEPTH || self.protection.hides(FileId::of(&fstat(dir)?)) {
            return Err(Errno::ACCESS);
        }
        for name in self.first_names(dir)? {
            if self.entries.len() == LISTED || self.stop.is_cancelled() {
                self.complete = false;
                return Ok(());
            }
            // What is gone by now is not there.
            let Some(stat) = stat_at(dir, &name)? else { continue };
            if self.protection.hides(FileId::of(&stat)) {
                continue;
            }
            let shown = format!("{prefix}{}", printable(name.as_bytes()));
            self.entries.push((shown.clone(), stat));
            if self.args.recursive && Kind::of(&stat) == Kind::Directory {
                let listed = open_dir(dir, &name)
                    .and_then(|inner| self.add_directory(&inner, &format!("{shown}/"), depth + 1));
                self.complete &= listed.is_ok();
            }
        }
        Ok(())
    }

    /// The first names in order, as many as an answer can still take and one more. A directory with millions of
    /// entries costs time but no memory.
    fn first_names(&mut self, dir: &OwnedFd) -> Result<Vec<OsString>, Errno> {
        let limit = LISTED - self.entries.len() + 1;
        let mut first = BinaryHeap::new();
        for name in names(dir)? {
            if self.unread == 0 || self.stop.is_cancelled() {
                self.complete = false;
                break;
            }
            self.unread -= 1;
            let name = name?;
            if !self.args.include_hidden && name.as_bytes().starts_with(b".") {
                continue;
            }
            first.push(name);
            if first.len() > limit {
                first.pop();
            }
        }
        Ok(first.into_sorted_vec())
    }
}

fn describe_entry(name: String, stat: &Stat) -> Listed {
    let (kind, size) = match Kind::of(stat) {
        Kind::Directory => ("directory", 0),
        Kind::Link => ("symlink", size(stat)),
        Kind::File | Kind::Special => ("file", size(stat)),
    };
    Listed { name, kind, size, modified: modified(stat) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::ProtectedPaths;

    #[test]
    fn a_call_reads_so_many_names_of_all_directories() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a/b/c", "a/b/.d"] {
            std::fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let root = WorkspaceRoot::open(dir.path(), ProtectedPaths::default()).unwrap();
        let (directory, _) = root.resolve_directory("".as_ref(), None, ".").unwrap().unwrap();
        let args = &Args { path: ".".to_owned(), recursive: true, include_hidden: false };
        let (protection, stop) = (&directory.protection, &CancellationToken::new());
        for (unread, complete) in [(4, true), (3, false), (2, false), (0, false)] {
            let mut listing = Listing { args, protection, stop, unread, entries: Vec::new(), complete: true };
            listing.add_directory(&directory.dir, "", 1).unwrap();
            assert_eq!((listing.complete, listing.unread), (complete, 0));
            assert!(listing.entries.len() <= unread);
        }
    }
}
