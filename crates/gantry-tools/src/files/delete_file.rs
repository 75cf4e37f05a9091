//! `delete_file`: a file, a link, or a directory with everything in it.
//!
//! A directory is surveyed before anything is deleted: what must not go, or is too much, is refused while everything
//! is still there. Links are removed, never followed.
//!
//! **Invariant:** only what was there when the call was judged is deleted. The approver said yes to that, and to nothing
//! that was put in its place.

use super::{FileTool, unchanged, verdict};
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, identity, names, open_dir, size, stat_at, sync};
use crate::workspace::path::{RelPath, printable};
use crate::workspace::protected::{FileId, is_git};
use crate::workspace::root::{Entry, Links, WorkspaceRoot};
use gantry_core::digest::Digest;
use gantry_core::{ErrorCode, ToolError};
use rustix::fs::{AtFlags, Stat, fstat};
use rustix::io::Errno;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use tokio_util::sync::CancellationToken;

/// Entries that one call may delete.
pub(super) const DELETED: usize = 100_000;
/// Deleted entries that the result names.
pub(super) const NAMED: usize = 10_000;
/// Directories within directories that are deleted; each keeps a handle open.
pub(super) const DEPTH: usize = 128;

#[derive(Debug)]
pub(super) struct DeleteFile;

/// Deletes a file, a symbolic link or a directory of the workspace for good. Always waits for a person's approval. Use
/// move_file instead to keep the content under another name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file or directory, relative to the workspace root.
    path: String,
    /// Whether to delete a directory with everything in it; without, only an empty one is deleted.
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// What was deleted: paths relative to the workspace root, sorted; at most 10,000.
    deleted: Vec<String>,
    /// True if more was deleted than is named; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl FileTool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const TITLE: &'static str = "Delete file";
    const HINTS: Annotations = Annotations { destructive_hint: Some(true), ..CHANGES };
    /// It always asks; as `Depends` the question can say what would be deleted.
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    type Args = Args;
    type Output = Output;

    fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<Preflight> {
        let (entry, path) = find_entry(root, args)?;
        let (stat, shown) = (entry.existing()?, &entry.shown);
        let stop = CancellationToken::new();
        let mut survey = Walk::new(&entry, args, &stop);
        let fingerprint = survey.survey(&path)?;
        let ask = match Kind::of(stat) {
            Kind::Directory => match survey.count - 1 {
                0 => format!("the empty directory {shown} would be deleted"),
                1 => format!("the directory {shown} and the 1 entry in it would be deleted"),
                n => format!("the directory {shown} and the {n} entries in it would be deleted"),
            },
            Kind::Link => {
                format!("the symbolic link {shown} would be deleted; what it points at stays")
            }
            Kind::File | Kind::Special => {
                format!("the file {shown} ({}) would be deleted", counted(size(stat), "byte"))
            }
        };
        Ok(verdict(Some(ask), unchanged(&fingerprint)))
    }

    fn run(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output> {
        let (args, stop, judged) = (&call.args, call.cancel(), call.judged()?);
        let (entry, path) = find_entry(root, args)?;
        let mut survey = Walk::new(&entry, args, stop);
        if unchanged(&survey.survey(&path)?) != judged {
            return Err(failure::outdated(format!(
                "{} has changed since the call was judged, and nothing was deleted; call again",
                entry.shown
            )));
        }
        let mut removal = Walk { judged: Some(&survey.seen), ..Walk::new(&entry, args, stop) };
        let removed = removal.walk_entry(entry.at()?, &path, 0);
        let Walk { count, mut deleted, .. } = removal;
        removed.map_err(|fault| if count == 0 { fault } else { partly_deleted(&fault, count, &deleted) })?;
        sync(&entry.parent.dir).map_err(|error| failure::not_synced(&entry.shown, error))?;
        deleted.sort();
        Ok(Output { truncated: count > deleted.len(), deleted })
    }
}

/// What a call is to delete, and its path as results have it.
fn find_entry(root: &WorkspaceRoot, args: &Args) -> Result<(Entry, String)> {
    // A slash at the end says that it is a directory, which is known.
    let path = RelPath::parse(args.path.trim_end_matches('/'))?;
    let entry = root.resolve(&path, Links::Keep)?;
    entry.existing()?;
    entry.may_change()?;
    Ok((entry, path.text()))
}

pub(super) fn partly_deleted(fault: &CallFailure, count: usize, deleted: &[String]) -> CallFailure {
    let message = format!("{} ({count} entries were deleted before)", fault.error.message);
    let error = ToolError::new(fault.error.code, message);
    CallFailure::with_possible_effect(
        error.with_details(json!({ "deletedCount": count, "deleted": deleted })),
    )
}

/// Goes through an entry and everything in it: once to survey it, and once more to delete it.
struct Walk<'a> {
    entry: &'a Entry,
    args: &'a Args,
    stop: &'a CancellationToken,
    /// What the survey saw, of a walk that deletes: nothing else goes.
    judged: Option<&'a HashSet<FileId>>,
    /// Entries that were seen, or deleted; several names can be of one file.
    count: usize,
    hasher: Sha256,
    seen: HashSet<FileId>,
    deleted: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(entry: &'a Entry, args: &'a Args, stop: &'a CancellationToken) -> Self {
        let (hasher, seen, deleted) = (Sha256::new(), HashSet::new(), Vec::new());
        Self { entry, args, stop, judged: None, count: 0, hasher, seen, deleted }
    }

    /// Looks at what is there, and refuses what may not be deleted. The fingerprint tells it from everything else.
    fn survey(&mut self, path: &str) -> Result<String> {
        self.walk_entry(self.entry.at()?, path, 0)?;
        if Kind::of(self.entry.existing()?) == Kind::Directory {
            return Ok(Digest::from_bytes(self.hasher.clone().finalize().into()).to_string());
        }
        let existing = self.entry.describe_target()?;
        Ok(existing.ok_or_else(|| failure::not_found(&self.entry.shown))?.fingerprint)
    }

    /// Everything in an opened directory.
    fn walk_directory(&mut self, dir: &OwnedFd, path: &str, depth: usize) -> Result<()> {
        let shown = &self.entry.shown;
        let listing = |error| failure::os_error("listing", &display_text(path), error);
        if depth > DEPTH {
            return Err(failure::failed(format!("{shown} has more than {DEPTH} levels of directories")));
        }
        // What is open counts, not what had the name a moment ago.
        self.refuse_protected(&fstat(dir).map_err(listing)?)?;
        // One name more than may be deleted is enough to refuse the directory.
        let all_names = names(dir).and_then(|names| names.take(DELETED + 1).collect());
        let mut names: Vec<OsString> = all_names.map_err(listing)?;
        if let (false, n @ 1..) = (self.args.recursive, names.len()) {
            return Err(failure::failed(format!(
                "{shown} is a directory with {n} entries; pass recursive: true to delete it with everything in it"
            )));
        }
        // A directory lists its names in no order that it promises to keep.
        names.sort_unstable();
        for name in names {
            if self.stop.is_cancelled() {
                return Err(failure::canceled());
            }
            let path = format!("{path}/{}", printable(name.as_bytes()));
            match self.walk_entry((dir, &name), &path, depth) {
                // Gone by now, which is what was asked for.
                Err(fault) if fault.error.code == ErrorCode::FileNotFound => {}
                walked => walked?,
            }
        }
        Ok(())
    }

    fn walk_entry(&mut self, (dir, name): (&OwnedFd, &OsStr), path: &str, depth: usize) -> Result<()> {
        let deleting = |error| failure::os_error("deleting", &display_text(path), error);
        let stat = stat_at(dir, name).map_err(deleting)?.ok_or_else(|| deleting(Errno::NOENT))?;
        if is_git(name) {
            return Err(failure::denied(format!(
                "{} contains a git repository, which tools cannot delete; ask a person to",
                self.entry.shown
            )));
        }
        self.refuse_protected(&stat)?;
        match self.judged {
            None => self.note_seen(name, &stat, depth)?,
            Some(judged) if judged.contains(&FileId::of(&stat)) => {}
            Some(_) => {
                return Err(failure::outdated(format!(
                    "{} appeared meanwhile and is left; call again",
                    display_text(path)
                )));
            }
        }
        let is_directory = Kind::of(&stat) == Kind::Directory;
        if is_directory {
            self.walk_directory(&open_dir(dir, name).map_err(deleting)?, path, depth + 1)?;
        }
        if self.judged.is_none() {
            return Ok(());
        }
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(dir, name, flags).map_err(|error| match error {
            Errno::NOTEMPTY => failure::failed(format!(
                "something was added to {} meanwhile; call again",
                display_text(path)
            )),
            _ => deleting(error),
        })?;
        self.count += 1;
        // What was asked for is named even when the list is full.
        if depth == 0 || self.deleted.len() < NAMED - 1 {
            self.deleted.push(path.to_owned());
        }
        Ok(())
    }

    fn note_seen(&mut self, name: &OsStr, stat: &Stat, depth: usize) -> Result<()> {
        self.count += 1;
        if self.count > DELETED {
            return Err(failure::failed(format!(
                "{} has more than {DELETED} entries; delete parts of it first",
                self.entry.shown
            )));
        }
        self.seen.insert(FileId::of(stat));
        let depth = (depth as u64).to_le_bytes();
        for part in [&depth[..], name.as_bytes(), b"\0", identity(stat).as_bytes(), b"\0"] {
            self.hasher.update(part);
        }
        Ok(())
    }

    fn refuse_protected(&self, stat: &Stat) -> Result<()> {
        if !self.entry.parent.protection.hides(FileId::of(stat)) {
            return Ok(());
        }
        Err(failure::denied(format!(
            "{} contains something that tools cannot delete; ask a person to",
            self.entry.shown
        )))
    }
}
