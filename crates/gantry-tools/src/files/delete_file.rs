//! `delete_file`: a file, a link, or a directory with everything in it.
//!
//! A directory is surveyed before anything is deleted: what must not go, or is too much, is refused while everything
//! is still there. Links are removed, never followed.
//!
//! **Invariant:** only what was there when the call was judged is deleted. The approver said yes to that, and to nothing
//! that was put in its place.

use super::{preflight_blocking, run_blocking, unchanged, verdict};
use crate::text::{counted, display_text};
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, identity, names, open_dir, size, stat_at, sync};
use crate::workspace::path::{RelPath, printable};
use crate::workspace::protected::{Id, is_git};
use crate::workspace::root::{Entry, Links, WorkspaceRoot};
use gantry_core::digest::Digest;
use gantry_core::{EffectState, ErrorCode, ToolError};
use rustix::fs::{AtFlags, Stat, fstat};
use rustix::io::Errno;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use tokio_util::sync::CancellationToken;

/// Entries that one call may delete.
pub(super) const DELETED: usize = 100_000;
/// Deleted entries that the result names.
pub(super) const NAMED: usize = 10_000;
/// Directories within directories that are deleted; each keeps a handle open.
pub(super) const DEPTH: usize = 128;

/// The tool.
#[derive(Debug)]
pub(super) struct DeleteFile(pub(super) Arc<WorkspaceRoot>);

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

impl Tool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const TITLE: &'static str = "Delete file";
    const HINTS: Annotations = Annotations { destructive_hint: Some(true), ..CHANGES };
    /// It always asks; as `Depends` the question can say what would be deleted.
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight, Fault> {
        preflight_blocking(&self.0, args, preflight).await
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output, Fault> {
        run_blocking(&self.0, call, EffectState::Possible, delete).await
    }
}

pub(super) fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<Preflight, Fault> {
    let entry = find_entry(root, &RelPath::parse(&args.path)?.without_slash())?;
    let (stat, shown) = (entry.existing()?, &entry.shown);
    let stop = CancellationToken::new();
    let (fingerprint, survey) = survey(&entry, args, &stop)?;
    let ask = match Kind::of(stat) {
        Kind::Directory => match survey.count {
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

pub(super) fn delete(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output, Fault> {
    let (args, stop, judged) = (&call.args, call.cancel(), call.judged()?);
    let path = RelPath::parse(&args.path)?.without_slash();
    let entry = find_entry(root, &path)?;
    let (fingerprint, survey) = survey(&entry, args, stop)?;
    if unchanged(&fingerprint) != judged {
        return Err(failure::outdated(format!(
            "{} has changed since the call was judged, and nothing was deleted; call again",
            entry.shown
        )));
    }
    let mut removal = Walk::new(&entry, stop, Some(&survey.seen));
    let removed = removal.remove_all(&path.text(), args.recursive);
    let Walk { count, mut deleted, .. } = removal;
    removed.map_err(|fault| if count == 0 { fault } else { partly_deleted(&fault, count, &deleted) })?;
    sync(&entry.parent.dir).map_err(|error| failure::not_synced(&entry.shown, error))?;
    deleted.sort();
    Ok(Output { truncated: count > deleted.len(), deleted })
}

fn find_entry(root: &WorkspaceRoot, path: &RelPath) -> Result<Entry, Fault> {
    let entry = root.resolve_entry(path, Links::Keep)?;
    entry.existing()?;
    entry.may_change()?;
    Ok(entry)
}

pub(super) fn partly_deleted(fault: &Fault, count: usize, deleted: &[String]) -> Fault {
    let message = format!("{} ({count} entries were deleted before)", fault.error.message);
    let error = ToolError::new(fault.error.code, message);
    Fault::with_possible_effect(error.with_details(json!({ "deletedCount": count, "deleted": deleted })))
}

/// Looks at what is there, and refuses what may not be deleted. The fingerprint tells it from everything else.
fn survey<'a>(
    entry: &'a Entry,
    args: &Args,
    stop: &'a CancellationToken,
) -> Result<(String, Walk<'a>), Fault> {
    let shown = &entry.shown;
    let mut walk = Walk::new(entry, stop, None);
    if Kind::of(entry.existing()?) != Kind::Directory {
        let existing = entry.describe_target()?.ok_or_else(|| failure::not_found(shown))?;
        return Ok((existing.fingerprint, walk));
    }
    let listing = |error| entry.os_error("listing", error);
    let dir = open_dir(&entry.parent.dir, &entry.name).map_err(listing)?;
    walk.hasher.update(identity(&fstat(&dir).map_err(listing)?));
    if args.recursive {
        walk.walk_directory(&dir, shown, 1)?;
    } else if let n @ 1.. = all_names(&dir).map_err(listing)?.len() {
        return Err(failure::failed(format!(
            "{shown} is a directory with {n} entries; pass recursive: true to delete it with everything in it"
        )));
    }
    let digest = Digest::from_bytes(walk.hasher.clone().finalize().into());
    Ok((digest.to_string(), walk))
}

/// Goes through everything in a directory: once to survey it, and once more to delete it.
struct Walk<'a> {
    entry: &'a Entry,
    stop: &'a CancellationToken,
    /// What the survey saw, of a walk that deletes: nothing else goes.
    judged: Option<&'a HashSet<Id>>,
    /// Entries that were seen, or deleted; several names can be of one file.
    count: usize,
    hasher: Sha256,
    seen: HashSet<Id>,
    deleted: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(entry: &'a Entry, stop: &'a CancellationToken, judged: Option<&'a HashSet<Id>>) -> Self {
        let (seen, deleted) = (HashSet::new(), Vec::new());
        Self { entry, stop, judged, count: 0, hasher: Sha256::new(), seen, deleted }
    }

    /// Deletes the entry, a directory if `recursive` with what is in it.
    fn remove_all(&mut self, path: &str, recursive: bool) -> Result<(), Fault> {
        let entry = self.entry;
        let (parent, name) = entry.at();
        let deleting = |error| entry.os_error("deleting", error);
        let is_directory = Kind::of(entry.existing()?) == Kind::Directory;
        if is_directory && recursive {
            self.walk_directory(&open_dir(parent, name).map_err(deleting)?, path, 1)?;
        }
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(parent, name, flags).map_err(|error| match error {
            Errno::NOTEMPTY => {
                failure::failed(format!("something was added to {} meanwhile; call again", entry.shown))
            }
            _ => deleting(error),
        })?;
        // What was asked for is named even when the list is full.
        self.deleted.truncate(NAMED - 1);
        self.note_deleted(path);
        Ok(())
    }

    fn note_deleted(&mut self, path: &str) {
        self.count += 1;
        if self.deleted.len() < NAMED {
            self.deleted.push(path.to_owned());
        }
    }

    /// Everything in an opened directory.
    fn walk_directory(&mut self, dir: &OwnedFd, path: &str, depth: usize) -> Result<(), Fault> {
        let shown = &self.entry.shown;
        let listing = |error| failure::os_error("listing", &display_text(path), error);
        if depth > DEPTH {
            return Err(failure::failed(format!("{shown} has more than {DEPTH} levels of directories")));
        }
        // What is open counts, not what had the name a moment ago.
        self.refuse_protected(&fstat(dir).map_err(listing)?)?;
        let mut names = all_names(dir).map_err(listing)?;
        // A directory lists its names in no order that it promises to keep.
        names.sort_unstable();
        for name in names {
            if self.stop.is_cancelled() {
                return Err(failure::canceled());
            }
            let path = format!("{path}/{}", printable(name.as_bytes()));
            match self.walk_entry(dir, &name, &path, depth) {
                // Gone by now, which is what was asked for.
                Err(fault) if fault.error.code == ErrorCode::FileNotFound => {}
                walked => walked?,
            }
        }
        Ok(())
    }

    fn walk_entry(&mut self, dir: &OwnedFd, name: &OsStr, path: &str, depth: usize) -> Result<(), Fault> {
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
            Some(judged) if judged.contains(&Id::of(&stat)) => {}
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
        if self.judged.is_some() {
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            rustix::fs::unlinkat(dir, name, flags).map_err(deleting)?;
            self.note_deleted(path);
        }
        Ok(())
    }

    fn note_seen(&mut self, name: &OsStr, stat: &Stat, depth: usize) -> Result<(), Fault> {
        self.count += 1;
        if self.count > DELETED {
            return Err(failure::failed(format!(
                "{} has more than {DELETED} entries; delete parts of it first",
                self.entry.shown
            )));
        }
        self.seen.insert(Id::of(stat));
        let depth = (depth as u64).to_le_bytes();
        for part in [&depth[..], name.as_bytes(), b"\0", identity(stat).as_bytes(), b"\0"] {
            self.hasher.update(part);
        }
        Ok(())
    }

    fn refuse_protected(&self, stat: &Stat) -> Result<(), Fault> {
        if !self.entry.parent.protection.hides(Id::of(stat)) {
            return Ok(());
        }
        Err(failure::denied(format!(
            "{} contains something that tools cannot delete; ask a person to",
            self.entry.shown
        )))
    }
}

/// The names in a directory; one more than may be deleted is enough to refuse it.
fn all_names(dir: impl AsFd) -> Result<Vec<OsString>, Errno> {
    names(dir)?.take(DELETED + 1).collect()
}
