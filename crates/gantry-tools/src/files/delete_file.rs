//! `delete_file`: a file, a link, or a directory with everything in it.
//!
//! A directory is surveyed before anything is deleted: what must not go, or is too much, is refused while everything
//! is still there. Links are removed, never followed.
//!
//! **Invariant:** only what was there when the call was judged is deleted. The approver said yes to that, and to nothing
//! that was put in its place.

use super::{FileCall, Precondition, preflight_blocking, run_blocking};
use crate::failure;
use crate::text::display_text;
use crate::tool::{CHANGES, Tool};
use crate::toolbox::PermittedCall;
use crate::workspace::path::{RelPath, printable};
use crate::workspace::protected::{Fences, Id, is_git};
use crate::workspace::root::{Entry, Kind, Links, WorkspaceRoot, names, open_dir, stat_at, sync};
use crate::workspace::state::{bytes, describe_target, identity, size};
use gantry_core::digest::Digest;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use gantry_core::{EffectState, ErrorCode, Fault, ToolError};
use rustix::fs::{AtFlags, fstat};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
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
    const APPROVAL: OwnRule = OwnRule::Depends;
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<OwnVerdict, Fault> {
        preflight_blocking(&self.0, args, preflight).await
    }

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        run_blocking(&self.0, call, EffectState::Possible, delete).await
    }
}

pub(super) fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<OwnVerdict, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let entry = find(root, &path)?;
    let stat = entry.existing(shown)?;
    let found = Survey::at(&entry, args, shown)?;
    let ask = match Kind::of(stat) {
        Kind::Directory => match found.count {
            0 => format!("the empty directory {shown} would be deleted"),
            1 => format!("the directory {shown} and the 1 entry in it would be deleted"),
            n => format!("the directory {shown} and the {n} entries in it would be deleted"),
        },
        Kind::Link => {
            format!("the symbolic link {shown} would be deleted; what it points at stays")
        }
        Kind::File | Kind::Special => format!("the file {shown} ({}) would be deleted", bytes(size(stat))),
    };
    Ok(OwnVerdict {
        ask: Some(ask),
        precondition: Some(Precondition::Unchanged(found.fingerprint).to_text()),
    })
}

pub(super) fn delete(root: &WorkspaceRoot, call: &FileCall<Args>) -> Result<Output, Fault> {
    let FileCall { args, precondition, stop } = call;
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let entry = find(root, &path)?;
    let Some(Precondition::Unchanged(judged)) = precondition else {
        return Err(failure::missing_precondition());
    };
    let found = Survey::at(&entry, args, shown)?;
    if found.fingerprint != *judged {
        return Err(failure::outdated(format!(
            "{shown} has changed since the call was judged, and nothing was deleted; call again"
        )));
    }
    let fences = &entry.parent.fences;
    let mut removal = Removal { fences, entries: &found.entries, stop, count: 0, deleted: Vec::new() };
    if Kind::of(entry.existing(shown)?) == Kind::Directory {
        removal.directory((&entry.parent.dir, &entry.name), &path.text(), args.recursive).map_err(
            |fault| match removal.count {
                0 => fault,
                count => half_way(&fault, count, &removal.deleted),
            },
        )?;
    } else {
        rustix::fs::unlinkat(&entry.parent.dir, &entry.name, AtFlags::empty())
            .map_err(|error| failure::os_error("deleting", shown, error))?;
        removal.note(path.text());
    }
    sync(&entry.parent.dir).map_err(|error| failure::not_synced(shown, error))?;
    let Removal { mut deleted, count, .. } = removal;
    deleted.sort();
    Ok(Output { truncated: count > deleted.len(), deleted })
}

fn find(root: &WorkspaceRoot, path: &RelPath) -> Result<Entry, Fault> {
    let shown = path.shown();
    let entry = root.entry(path.entry_or_directory()?, Links::Keep, shown)?;
    entry.parent.may_change(&entry.name, Some(entry.existing(shown)?), shown)?;
    Ok(entry)
}

pub(super) fn half_way(fault: &Fault, count: usize, deleted: &[String]) -> Fault {
    let message = format!("{} ({count} entries were deleted before)", fault.error.message);
    let error = ToolError::new(fault.error.code, message);
    Fault::with_possible_effect(error.with_details(json!({ "deletedCount": count, "deleted": deleted })))
}

/// What would be deleted.
struct Survey {
    /// Tells it from everything else.
    fingerprint: String,
    /// What is in the directory, if it is one; several names can be of one file.
    count: usize,
    entries: HashSet<Id>,
}

impl Survey {
    /// Looks at what is there, and refuses what may not be deleted.
    fn at(entry: &Entry, args: &Args, shown: &str) -> Result<Self, Fault> {
        let stat = entry.existing(shown)?;
        if Kind::of(stat) != Kind::Directory {
            let existing = describe_target(entry, shown)?.ok_or_else(|| failure::not_found(shown))?;
            return Ok(Self { fingerprint: existing.fingerprint, count: 0, entries: HashSet::new() });
        }
        let listing = |error| failure::os_error("listing", shown, error);
        let dir = open_dir(&entry.parent.dir, &entry.name).map_err(listing)?;
        let mut survey = Surveyor {
            fences: &entry.parent.fences,
            shown,
            count: 0,
            entries: HashSet::new(),
            hasher: Sha256::new_with_prefix(identity(&fstat(&dir).map_err(listing)?)),
        };
        if args.recursive {
            survey.add(&dir, 1)?;
        } else if let n @ 1.. = all_names(&dir).map_err(listing)?.len() {
            return Err(failure::failed(format!(
                "{shown} is a directory with {n} entries; pass recursive: true to delete it with everything in it"
            )));
        }
        let digest = Digest::from_bytes(survey.hasher.finalize().into());
        Ok(Self { fingerprint: digest.to_string(), count: survey.count, entries: survey.entries })
    }
}

struct Surveyor<'a> {
    fences: &'a Fences,
    shown: &'a str,
    count: usize,
    entries: HashSet<Id>,
    hasher: Sha256,
}

impl Surveyor<'_> {
    fn add(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Fault> {
        let shown = self.shown;
        let listing = |error| failure::os_error("listing", shown, error);
        if depth > DEPTH {
            return Err(failure::failed(format!("{shown} has more than {DEPTH} levels of directories")));
        }
        let mut names = all_names(dir).map_err(listing)?;
        // A directory lists its names in no order that it promises to keep.
        names.sort_unstable();
        for name in names {
            self.count += 1;
            if self.count > DELETED {
                return Err(failure::failed(format!(
                    "{shown} has more than {DELETED} entries; delete parts of it first"
                )));
            }
            if is_git(&name) {
                return Err(failure::denied(format!(
                    "{shown} contains a git repository, which tools cannot delete; ask a person to"
                )));
            }
            let Some(stat) = stat_at(dir, &name).map_err(listing)? else { continue };
            if self.fences.has(Id::of(&stat)) {
                return Err(contains_protected(shown));
            }
            self.entries.insert(Id::of(&stat));
            for part in
                [&(depth as u64).to_le_bytes()[..], name.as_bytes(), b"\0", identity(&stat).as_bytes(), b"\0"]
            {
                self.hasher.update(part);
            }
            if Kind::of(&stat) == Kind::Directory {
                self.add(&open_dir(dir, &name).map_err(listing)?, depth + 1)?;
            }
        }
        Ok(())
    }
}

struct Removal<'a> {
    fences: &'a Fences,
    /// What was judged: nothing else goes.
    entries: &'a HashSet<Id>,
    stop: &'a CancellationToken,
    count: usize,
    deleted: Vec<String>,
}

impl Removal<'_> {
    fn note(&mut self, path: String) {
        self.count += 1;
        if self.deleted.len() < NAMED {
            self.deleted.push(path);
        }
    }

    /// Deletes a directory, if `recursive` with what is in it.
    fn directory(
        &mut self,
        (parent, name): (&OwnedFd, &OsStr),
        path: &str,
        recursive: bool,
    ) -> Result<(), Fault> {
        let failed = |error| failure::os_error("deleting", &display_text(path), error);
        if recursive {
            let dir = open_dir(parent, name).map_err(failed)?;
            self.content(&dir, path, 1)?;
        }
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|error| match error {
            Errno::NOTEMPTY => failure::failed(format!(
                "something was added to {} meanwhile; call again",
                display_text(path)
            )),
            _ => failed(error),
        })?;
        // The directory that was asked for is named even when the list is full.
        if self.deleted.len() >= NAMED {
            self.deleted.pop();
        }
        self.note(path.to_owned());
        Ok(())
    }

    fn content(&mut self, dir: &OwnedFd, path: &str, depth: usize) -> Result<(), Fault> {
        let listing = |error| failure::os_error("listing", &display_text(path), error);
        // The survey saw neither, but what it saw can have been swapped for something else.
        if depth > DEPTH || self.count > DELETED {
            return Err(failure::failed(format!(
                "{} has grown while it was deleted; call again",
                display_text(path)
            )));
        }
        if self.fences.has(Id::of(&fstat(dir).map_err(listing)?)) {
            return Err(contains_protected(&display_text(path)));
        }
        for name in all_names(dir).map_err(listing)? {
            if self.stop.is_cancelled() {
                return Err(failure::canceled());
            }
            let path = format!("{path}/{}", printable(name.as_bytes()));
            match self.entry(dir, &name, &path, depth) {
                // Gone already, which is what was asked for.
                Err(fault) if fault.error.code == ErrorCode::FileNotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    fn entry(&mut self, dir: &OwnedFd, name: &OsStr, path: &str, depth: usize) -> Result<(), Fault> {
        let failed = |error| failure::os_error("deleting", &display_text(path), error);
        let stat =
            stat_at(dir, name).map_err(failed)?.ok_or_else(|| failure::not_found(&display_text(path)))?;
        if self.fences.has(Id::of(&stat)) || is_git(name) {
            return Err(contains_protected(&display_text(path)));
        }
        if !self.entries.contains(&Id::of(&stat)) {
            return Err(failure::outdated(format!(
                "{} appeared meanwhile and is left; call again",
                display_text(path)
            )));
        }
        let flags = if Kind::of(&stat) == Kind::Directory {
            self.content(&open_dir(dir, name).map_err(failed)?, path, depth + 1)?;
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        rustix::fs::unlinkat(dir, name, flags).map_err(failed)?;
        self.note(path.to_owned());
        Ok(())
    }
}

fn contains_protected(shown: &str) -> Fault {
    failure::denied(format!("{shown} contains something that tools cannot delete; ask a person to"))
}

/// The names in a directory; one more than may be deleted is enough to refuse it.
fn all_names(dir: impl AsFd) -> Result<Vec<OsString>, Errno> {
    names(dir)?.take(DELETED + 1).collect()
}
