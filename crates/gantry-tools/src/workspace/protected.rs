//! What the tools must leave alone although it is inside the workspace: Gantry's own data and configuration, and those
//! parts of a git repository that make git run programs.
//!
//! Both are recognised by what is opened, not by how it is spelled: from an opened directory the way up to the root
//! is walked by handle, and each directory on it is compared by device and inode. A link, a `..` or another spelling
//! of a name changes nothing about that.

use super::definitions::Definitions;
use super::entry::{DIRECTORY, Kind, open_dir};
use super::root::Entry;
use super::{Error, ProtectedPaths};
use crate::failure::{self, Result};
use cap_std::fs::Dir;
use gantry_core::CallFailure;
use rustix::fs::{AtFlags, Mode, Stat, fstat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories between a directory and the root; deeper ones are not worked in.
const LEVELS: usize = 4096;
/// Where a repository keeps its own things.
const GIT: &str = ".git";
/// What in there makes git run programs, or makes it look for that elsewhere.
const GIT_SEALED: [&str; 6] = ["hooks", "config", "config.worktree", "commondir", "modules", "worktrees"];

/// A file or directory, under any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id(rustix::fs::Dev, u64);

impl Id {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// Knows what is protected.
#[derive(Debug)]
pub(crate) struct Guard {
    root: Id,
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    definition_dirs: Arc<[PathBuf]>,
}

/// What is protected at the moment. Found anew for each call, because a data folder may come and go.
#[derive(Debug)]
pub(crate) struct Protection {
    /// What is neither read nor changed.
    hidden: FoundPaths,
    /// What is read, but not changed.
    read_only: FoundPaths,
    /// Where definitions are, which are read-only as well; only a change looks for them.
    definition_dirs: Arc<[PathBuf]>,
}

/// Some protected paths, as they are on the disk.
#[derive(Debug, Default)]
pub(crate) struct FoundPaths {
    pub(crate) existing: Vec<Id>,
    /// Where something protected would come to be: the directory, and the name in it.
    missing: Vec<(Id, OsString)>,
    /// Directories with something protected below them, and links to such directories.
    pub(crate) holding: Vec<Id>,
    /// What was found on the ways to protected paths, which have most of their way in common.
    seen: HashMap<PathBuf, Option<Id>>,
}

/// Where in a repository a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GitPosition {
    /// In none, or among its files.
    Files,
    /// It is the `.git` itself.
    Top,
    /// In one of its sealed directories.
    Sealed,
    /// Elsewhere below it.
    Below,
}

/// An opened directory inside the workspace and outside of everything protected.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) dir: OwnedFd,
    pub(crate) id: Id,
    pub(crate) protection: Protection,
    /// The directory itself and all above it, up to the root.
    pub(crate) ancestors: Vec<Id>,
    git: GitPosition,
}

impl Guard {
    pub(crate) fn new(path: &Path, root: &Dir, paths: ProtectedPaths) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable { path: path.into(), source };
        let real = std::fs::canonicalize(path).map_err(unusable)?;
        let hidden = both_spellings(paths.hidden).map_err(unusable)?;
        if let Some(protected) = hidden.iter().find(|hidden| real.starts_with(hidden)) {
            return Err(Error::Protected { path: path.into(), protected: protected.clone() });
        }
        let read_only = both_spellings(paths.read_only).map_err(unusable)?;
        let root = Id::of(&fstat(root).map_err(|error| unusable(error.into()))?);
        let definition_dirs = both_spellings(paths.definition_dirs).map_err(unusable)?.into();
        Ok(Self { root, hidden, read_only, definition_dirs })
    }

    /// Walks from an opened directory up to the root.
    pub(crate) fn enter(&self, dir: OwnedFd, shown: &str) -> Result<OpenDir> {
        let protection = self.protection();
        let failed = |error: Errno| failure::os_error("opening", shown, error);
        let id = Id::of(&fstat(&dir).map_err(failed)?);
        let mut git = GitPosition::Files;
        let (mut current, mut below) = (id, None);
        let mut handle: Option<OwnedFd> = None;
        let mut ancestors = Vec::new();
        for _ in 0..LEVELS {
            protection.refuse_hidden(current, shown)?;
            ancestors.push(current);
            if current == self.root {
                return Ok(OpenDir { dir, id, protection, ancestors, git });
            }
            let at = handle.as_ref().unwrap_or(&dir);
            let up = rustix::fs::openat(at, "..", DIRECTORY, Mode::empty()).map_err(failed)?;
            let parent = Id::of(&fstat(&up).map_err(failed)?);
            if parent == current {
                break;
            }
            if is_named(&up, GIT, current) {
                git = match below {
                    None => GitPosition::Top,
                    Some(below) if GIT_SEALED.iter().any(|name| is_named(at, name, below)) => {
                        GitPosition::Sealed
                    }
                    Some(_) if git == GitPosition::Files => GitPosition::Below,
                    Some(_) => git,
                };
            }
            below = Some(current);
            current = parent;
            handle = Some(up);
        }
        // The way up does not pass the root: the directory was moved out of the workspace meanwhile.
        Err(failure::outside(shown))
    }

    fn protection(&self) -> Protection {
        Protection {
            hidden: FoundPaths::find(&self.hidden),
            read_only: FoundPaths::find(&self.read_only),
            definition_dirs: Arc::clone(&self.definition_dirs),
        }
    }
}

impl FoundPaths {
    fn find(paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for path in paths {
            found.add(path);
        }
        found
    }

    pub(crate) fn add(&mut self, path: &Path) {
        let found = rustix::fs::stat(path).ok();
        self.existing.extend(found.as_ref().map(Id::of));
        // The entry itself counts too, if it is a link.
        self.existing.extend(rustix::fs::lstat(path).ok().as_ref().map(Id::of));
        self.add_ancestors(path, if found.is_none() { path.file_name() } else { None });
    }

    /// Adds the directories that lead to a path. What is missing of it is `missing`, or else a name further up.
    pub(crate) fn add_ancestors<'a>(&mut self, path: &'a Path, mut missing: Option<&'a OsStr>) {
        for ancestor in path.ancestors().skip(1) {
            let seen = self.seen.get(ancestor).copied();
            match seen.unwrap_or_else(|| self.add_ancestor(ancestor)) {
                None => missing = ancestor.file_name(),
                Some(id) => {
                    self.missing.extend(missing.take().map(|name| (id, name.to_owned())));
                    if seen.is_some() {
                        // So all above it was seen as well.
                        return;
                    }
                }
            }
        }
    }

    /// Adds one of these directories, if it exists.
    fn add_ancestor(&mut self, directory: &Path) -> Option<Id> {
        let id = rustix::fs::stat(directory).ok().as_ref().map(Id::of);
        if let Some(id) = id {
            // A link on the way leads there as long as it stays.
            let link = rustix::fs::lstat(directory).ok().as_ref().map(Id::of).filter(|link| *link != id);
            self.holding.extend(link.into_iter().chain([id]));
        }
        self.seen.insert(directory.to_owned(), id);
        id
    }

    /// Whether changing this name in that directory would change one of the paths.
    pub(crate) fn covers(&self, directory: Id, name: &OsStr, stat: Option<&Stat>) -> bool {
        let found = stat.map(Id::of).is_some_and(|id| self.existing.contains(&id));
        let appears = |(id, missing): &(Id, OsString)| *id == directory && missing.eq_ignore_ascii_case(name);
        found || self.missing.iter().any(appears)
    }

    /// Whether this is a directory with one of the paths below it, or a link to one.
    pub(crate) fn is_above(&self, stat: Option<&Stat>) -> bool {
        stat.is_some_and(|stat| self.holding.contains(&Id::of(stat)))
    }
}

/// The paths as they were given, and with their links resolved.
fn both_spellings(given: Vec<PathBuf>) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in given {
        let absolute = std::path::absolute(path)?;
        let resolved = resolved(&absolute);
        if resolved != absolute {
            all.push(resolved);
        }
        all.push(absolute);
    }
    Ok(all)
}

/// Whether this name in the directory is that thing.
fn is_named(dir: impl AsFd, name: &str, id: Id) -> bool {
    statat(dir, name, AtFlags::empty()).is_ok_and(|stat| Id::of(&stat) == id)
}

/// The path with the links in it resolved as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|ancestor| {
        let real = std::fs::canonicalize(ancestor).ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    });
    real.unwrap_or_else(|| path.to_owned())
}

impl Protection {
    /// Whether this is hidden, so that a listing leaves it out.
    pub(crate) fn hides(&self, id: Id) -> bool {
        self.hidden.existing.contains(&id)
    }

    /// Refuses what is hidden.
    pub(crate) fn refuse_hidden(&self, id: Id, shown: &str) -> Result<()> {
        if self.hides(id) { Err(protected(shown)) } else { Ok(()) }
    }

    /// What defines agents and tools at the moment. Without knowing that, nothing is changed.
    fn definitions(&self, shown: &str) -> Result<Definitions> {
        Definitions::find(&self.definition_dirs).map_err(|unknown| {
            failure::denied(format!(
                "{shown} is not changed while it is unknown what configures Gantry: {unknown}"
            ))
        })
    }
}

impl OpenDir {
    /// Refuses to change what has, or would get, this name in the directory.
    pub(crate) fn may_change(&self, name: &OsStr, stat: Option<&Stat>, shown: &str) -> Result<()> {
        let Protection { hidden, read_only, definition_dirs: _ } = &self.protection;
        let defined = self.protection.definitions(shown)?;
        if hidden.covers(self.id, name, stat) {
            return Err(protected(shown));
        }
        if read_only.covers(self.id, name, stat) || defined.covers(self.id, name, stat) {
            return Err(configures(shown));
        }
        if hidden.is_above(stat) || read_only.is_above(stat) || defined.is_above(stat) {
            return Err(failure::denied(format!(
                "{shown} contains files of Gantry itself, which tools cannot change"
            )));
        }
        let is_sealed = match self.git {
            GitPosition::Files | GitPosition::Below => false,
            GitPosition::Top => GIT_SEALED.iter().any(|sealed| name.eq_ignore_ascii_case(sealed)),
            GitPosition::Sealed => true,
        };
        if is_sealed || is_git(name) { Err(runs_programs(shown)) } else { Ok(()) }
    }

    /// Refuses to make these directories, each in the one before and the first in this one, and the file in the last.
    pub(crate) fn may_make(&self, rest: &[OsString], name: &OsStr, shown: &str) -> Result<()> {
        if rest.iter().any(|name| is_git(name)) || is_git(name) {
            return Err(runs_programs(shown));
        }
        let names = rest.iter().map(OsString::as_os_str).chain([name]);
        if self.protection.definitions(shown)?.would_define(self.id, names) {
            return Err(configures(shown));
        }
        rest.first().map_or(Ok(()), |first| self.may_change(first, None, shown))
    }

    /// Refuses to move an entry to this name in the directory if it would define agents or tools from there.
    pub(crate) fn may_receive(&self, name: &OsStr, moved: &Entry, shown: &str) -> Result<()> {
        let Some(stat) = &moved.stat else { return Ok(()) };
        let moved = (&moved.parent.dir, moved.name.as_os_str(), Kind::of(stat));
        match self.protection.definitions(shown)?.brings_definitions(moved, (self.id, name)) {
            Ok(false) => Ok(()),
            Ok(true) => Err(configures(shown)),
            Err(error) => Err(failure::os_error("looking at what would come to", shown, error)),
        }
    }

    /// Goes into a directory of this one, whose name was checked by [`OpenDir::may_change`].
    pub(crate) fn enter_child(self, name: &OsStr, shown: &str) -> Result<Self> {
        let failed = |error: Errno| failure::os_error("opening", shown, error);
        let dir = open_dir(&self.dir, name).map_err(failed)?;
        let id = Id::of(&fstat(&dir).map_err(failed)?);
        self.protection.refuse_hidden(id, shown)?;
        let git = if self.git == GitPosition::Top { GitPosition::Below } else { self.git };
        let mut ancestors = self.ancestors;
        ancestors.push(id);
        Ok(Self { dir, id, protection: self.protection, ancestors, git })
    }

    /// Whether this is the directory, or somewhere below it.
    pub(crate) fn is_in(&self, directory: Id) -> bool {
        self.ancestors.contains(&directory)
    }
}

/// Whether this is the name of a repository's own directory, on any file system.
pub(crate) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

fn runs_programs(shown: &str) -> CallFailure {
    failure::denied(format!(
        "{shown} can make git run programs, so tools cannot change it; use git itself, or ask a person to"
    ))
}

fn configures(shown: &str) -> CallFailure {
    failure::denied(format!(
        "{shown} configures Gantry, or would, so tools cannot change it; ask a person to edit it"
    ))
}

fn protected(shown: &str) -> CallFailure {
    failure::denied(format!("{shown} belongs to Gantry itself, which tools can neither read nor change"))
}
