//! `delete_file`: a file, a link, or a directory with everything in it.
//!
//! A directory is surveyed before anything is deleted: what must not go, or is too much, is refused while everything
//! is still there. Links are removed, never followed.
//!
//! **Invariant:** only what was there when the call was judged is deleted. Somebody said yes to that, and to nothing that
//! was put in its place.

use super::act::{Delete, Precondition};
use super::path::{RelPath, printable};
use super::place::{Kind, Links, Place, Root, names, open_dir, stat_at, sync};
use super::protect::{Fences, Id, is_git};
use super::state::{bytes, identity, size};
use super::{fault, state};
use crate::own::shown;
use gantry_core::digest::Digest;
use gantry_core::policy::OwnVerdict;
use gantry_core::{ErrorCode, Fault, ToolError};
use rustix::fs::{AtFlags, fstat};
use rustix::io::Errno;
use serde_json::{Value, json};
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

pub(super) fn inspect(root: &Root, args: &Delete) -> Result<OwnVerdict, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let place = find(root, &path)?;
    let stat = place.existing(shown)?;
    let found = Found::at(&place, args, shown)?;
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

pub(super) fn run(
    root: &Root,
    args: &Delete,
    precondition: Option<&Precondition>,
    stop: &CancellationToken,
) -> Result<Value, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let place = find(root, &path)?;
    let Some(Precondition::Unchanged(judged)) = precondition else { return Err(fault::unjudged()) };
    let found = Found::at(&place, args, shown)?;
    if found.fingerprint != *judged {
        return Err(fault::outdated(format!(
            "{shown} has changed since the call was judged, and nothing was deleted; call again"
        )));
    }
    let fences = &place.ground.fences;
    let mut removal = Removal { fences, entries: &found.entries, stop, count: 0, deleted: Vec::new() };
    if Kind::of(place.existing(shown)?) == Kind::Directory {
        removal.directory((&place.ground.dir, &place.name), &path.text(), args.recursive).map_err(
            |fault| match removal.count {
                0 => fault,
                count => half_way(&fault, count, &removal.deleted),
            },
        )?;
    } else {
        rustix::fs::unlinkat(&place.ground.dir, &place.name, AtFlags::empty())
            .map_err(|error| fault::os(shown, "deleting", error))?;
        removal.note(path.text());
    }
    sync(&place.ground.dir).map_err(|error| fault::not_synced(shown, error))?;
    let Removal { mut deleted, count, .. } = removal;
    deleted.sort();
    Ok(match count > deleted.len() {
        false => json!({ "deleted": deleted }),
        true => json!({ "deleted": deleted, "truncated": true }),
    })
}

fn find(root: &Root, path: &RelPath) -> Result<Place, Fault> {
    let shown = path.shown();
    let place = root.place(path.entry_or_directory()?, Links::Keep, shown)?;
    place.ground.may_change(&place.name, Some(place.existing(shown)?), shown)?;
    Ok(place)
}

pub(super) fn half_way(fault: &Fault, count: usize, deleted: &[String]) -> Fault {
    let message = format!("{} ({count} entries were deleted before)", fault.error.message);
    let error = ToolError::new(fault.error.code, message);
    Fault::with_possible_effect(error.with_details(json!({ "deletedCount": count, "deleted": deleted })))
}

/// What would be deleted.
struct Found {
    /// Tells it from everything else.
    fingerprint: String,
    /// What is in the directory, if it is one; several names can be of one file.
    count: usize,
    entries: HashSet<Id>,
}

impl Found {
    /// Looks at what is there, and refuses what may not be deleted.
    fn at(place: &Place, args: &Delete, shown: &str) -> Result<Self, Fault> {
        let stat = place.existing(shown)?;
        if Kind::of(stat) != Kind::Directory {
            let existing = state::look(place, shown)?.ok_or_else(|| fault::missing(shown))?;
            return Ok(Self { fingerprint: existing.fingerprint, count: 0, entries: HashSet::new() });
        }
        let listing = |error| fault::os(shown, "listing", error);
        let dir = open_dir(&place.ground.dir, &place.name).map_err(listing)?;
        let mut survey = Survey {
            fences: &place.ground.fences,
            shown,
            count: 0,
            entries: HashSet::new(),
            hasher: Sha256::new_with_prefix(identity(&fstat(&dir).map_err(listing)?)),
        };
        if args.recursive {
            survey.add(&dir, 1)?;
        } else if let n @ 1.. = all_names(&dir).map_err(listing)?.len() {
            return Err(fault::failed(format!(
                "{shown} is a directory with {n} entries; pass recursive: true to delete it with everything in it"
            )));
        }
        let digest = Digest::from_bytes(survey.hasher.finalize().into());
        Ok(Self { fingerprint: digest.to_string(), count: survey.count, entries: survey.entries })
    }
}

struct Survey<'a> {
    fences: &'a Fences,
    shown: &'a str,
    count: usize,
    entries: HashSet<Id>,
    hasher: Sha256,
}

impl Survey<'_> {
    fn add(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Fault> {
        let shown = self.shown;
        let listing = |error| fault::os(shown, "listing", error);
        if depth > DEPTH {
            return Err(fault::failed(format!("{shown} has more than {DEPTH} levels of directories")));
        }
        let mut names = all_names(dir).map_err(listing)?;
        // A directory lists its names in no order that it promises to keep.
        names.sort_unstable();
        for name in names {
            self.count += 1;
            if self.count > DELETED {
                return Err(fault::failed(format!(
                    "{shown} has more than {DELETED} entries; delete parts of it first"
                )));
            }
            if is_git(&name) {
                return Err(fault::denied(format!(
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
        let failed = |error| fault::os(&shown(path), "deleting", error);
        if recursive {
            let dir = open_dir(parent, name).map_err(failed)?;
            self.content(&dir, path, 1)?;
        }
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|error| match error {
            Errno::NOTEMPTY => {
                fault::failed(format!("something was added to {} meanwhile; call again", shown(path)))
            }
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
        let listing = |error| fault::os(&shown(path), "listing", error);
        // The survey saw neither, but what it saw can have been swapped for something else.
        if depth > DEPTH || self.count > DELETED {
            return Err(fault::failed(format!("{} has grown while it was deleted; call again", shown(path))));
        }
        if self.fences.has(Id::of(&fstat(dir).map_err(listing)?)) {
            return Err(contains_protected(&shown(path)));
        }
        for name in all_names(dir).map_err(listing)? {
            if self.stop.is_cancelled() {
                return Err(fault::canceled());
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
        let failed = |error| fault::os(&shown(path), "deleting", error);
        let stat = stat_at(dir, name).map_err(failed)?.ok_or_else(|| fault::missing(&shown(path)))?;
        if self.fences.has(Id::of(&stat)) || is_git(name) {
            return Err(contains_protected(&shown(path)));
        }
        if !self.entries.contains(&Id::of(&stat)) {
            return Err(fault::outdated(format!(
                "{} appeared meanwhile and is left; call again",
                shown(path)
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
    fault::denied(format!("{shown} contains something that tools cannot delete; ask a person to"))
}

/// The names in a directory; one more than may be deleted is enough to refuse it.
fn all_names(dir: impl AsFd) -> Result<Vec<OsString>, Errno> {
    names(dir)?.take(DELETED + 1).collect()
}
