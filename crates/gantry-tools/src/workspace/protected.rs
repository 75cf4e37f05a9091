//! What the tools leave alone although it is inside the workspace: Gantry's own files, and those parts of a git repository
//! that make git run programs.
//!
//! Both are recognised by what is opened, not by how it is spelled: from an opened directory the way up to the root
//! is walked by handle, and each directory on it is compared by device and inode. A link, a `..` or another spelling
//! of a name changes nothing about that, and neither does another name of the same file (a hard link).

use super::entry::{DIRECTORY, open_dir};
use super::{Error, ProtectedPaths};
use crate::failure::{self, Result};
use cap_std::fs::Dir;
use gantry_core::CallFailure;
pub(crate) use gantry_sandbox::protected::FileId;
use gantry_sandbox::protected::{EntryKind, GIT, GIT_FILES, GIT_FOLDERS, PathEntry, existing, repositories};
use rustix::fs::{AtFlags, Mode, Stat, fstat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Directories between a directory and the root; deeper ones are not worked in.
const LEVELS: usize = 4096;

/// Knows what is protected.
#[derive(Debug)]
pub(crate) struct Guard {
    root: FileId,
    /// Without links.
    path: PathBuf,
    paths: ProtectedPaths,
}

/// What is protected during one call.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// What is neither read nor changed: files, folders and the links to them.
    hidden: HashSet<FileId>,
    /// What is read, but not changed.
    read_only: HashSet<FileId>,
    /// The workspace's own repositories, wherever they are in it.
    repositories: HashSet<FileId>,
    /// The folders that lead to any of these.
    on_way: HashSet<FileId>,
}

/// Where in a repository a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GitPosition {
    /// In none, or where git runs nothing.
    Files,
    /// It is the `.git` itself.
    Top,
    /// In one of its sealed directories.
    Sealed,
}

/// An opened directory inside the workspace and outside of everything protected.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) dir: OwnedFd,
    pub(crate) id: FileId,
    pub(crate) protection: Protection,
    /// The directory itself and all above it, up to the root.
    pub(crate) ancestors: Vec<FileId>,
    git: GitPosition,
}

impl Guard {
    pub(crate) fn new(path: &Path, root: &Dir, paths: ProtectedPaths) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable { path: path.into(), source };
        let real = std::fs::canonicalize(path).map_err(unusable)?;
        let is_around = |entry: &PathEntry| {
            entry.kind == (EntryKind::End { is_dir: true }) && real.starts_with(&entry.path)
        };
        for hidden in &paths.hidden {
            let entries = existing(hidden).map_err(|(_, error)| unusable(error.into()))?;
            if entries.iter().any(is_around) {
                return Err(Error::Protected { path: path.into(), protected: hidden.clone() });
            }
        }
        let root = FileId::of(&fstat(root).map_err(|error| unusable(error.into()))?);
        Ok(Self { root, path: real, paths })
    }

    /// Walks from an opened directory up to the root.
    pub(crate) fn enter(&self, dir: OwnedFd, shown: &str) -> Result<OpenDir> {
        let protection = self.protection().map_err(|(at, error)| {
            failure::denied(format!(
                "{shown} is out of reach while it is unknown what belongs to Gantry: {} cannot be looked at ({error}); ask a \
                 person to repair it",
                at.display()
            ))
        })?;
        let failed = |error: Errno| failure::os_error("opening", shown, error);
        let id = FileId::of(&fstat(&dir).map_err(failed)?);
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
            let parent = FileId::of(&fstat(&up).map_err(failed)?);
            if parent == current {
                break;
            }
            if protection.repositories.contains(&current) || is_named(&up, GIT, current) {
                git = match below {
                    None => GitPosition::Top,
                    Some(below) if sealed().any(|name| is_named(at, name, below)) => GitPosition::Sealed,
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

    /// Finds what is protected at the moment: files come and go.
    fn protection(&self) -> Result<Protection, (PathBuf, Errno)> {
        let mut found = Protection::default();
        let Protection { hidden, read_only, repositories: git, on_way } = &mut found;
        let own = repositories(&self.path);
        for (paths, ends) in [(&self.paths.hidden, hidden), (&self.paths.read_only, read_only), (&own, git)] {
            for path in paths {
                let is_folder = |entry: &PathEntry| entry.kind == EntryKind::Folder;
                let (folders, others): (Vec<_>, Vec<_>) = existing(path)?.into_iter().partition(is_folder);
                on_way.extend(folders.iter().map(|entry| entry.id));
                ends.extend(others.iter().map(|entry| entry.id));
            }
        }
        Ok(found)
    }
}

/// Whether this name in the directory is that thing.
fn is_named(dir: impl AsFd, name: &str, id: FileId) -> bool {
    statat(dir, name, AtFlags::empty()).is_ok_and(|stat| FileId::of(&stat) == id)
}

/// The names in a repository that are sealed.
fn sealed() -> impl Iterator<Item = &'static str> {
    GIT_FOLDERS.into_iter().chain(GIT_FILES)
}

impl Protection {
    /// Whether this is hidden, so that a listing leaves it out.
    pub(crate) fn hides(&self, id: FileId) -> bool {
        self.hidden.contains(&id)
    }

    /// Refuses what is hidden.
    pub(crate) fn refuse_hidden(&self, id: FileId, shown: &str) -> Result<()> {
        if self.hides(id) { Err(protected(shown)) } else { Ok(()) }
    }
}

impl OpenDir {
    /// Refuses to change what has, or would get, this name in the directory.
    pub(crate) fn may_change(&self, name: &OsStr, stat: Option<&Stat>, shown: &str) -> Result<()> {
        let Protection { hidden, read_only, repositories, on_way } = &self.protection;
        let is_in = |set: &HashSet<FileId>| stat.is_some_and(|stat| set.contains(&FileId::of(stat)));
        if is_in(hidden) {
            return Err(protected(shown));
        }
        if is_in(read_only) || self.ancestors.iter().any(|id| read_only.contains(id)) {
            return Err(failure::denied(format!(
                "{shown} configures Gantry, so tools cannot change it; ask a person to edit it"
            )));
        }
        let is_sealed = match self.git {
            GitPosition::Files => false,
            GitPosition::Top => sealed().any(|sealed| name.eq_ignore_ascii_case(sealed)),
            GitPosition::Sealed => true,
        };
        if is_sealed || is_git(name) || is_in(repositories) {
            return Err(runs_programs(shown));
        }
        if is_in(on_way) {
            return Err(failure::denied(format!(
                "{shown} contains protected files, so tools cannot change it"
            )));
        }
        Ok(())
    }

    /// Refuses to make these directories, each in the one before and the first in this one, and the file in the last.
    pub(crate) fn may_make(&self, rest: &[OsString], name: &OsStr, shown: &str) -> Result<()> {
        if rest.iter().any(|name| is_git(name)) || is_git(name) {
            return Err(runs_programs(shown));
        }
        rest.first().map_or(Ok(()), |first| self.may_change(first, None, shown))
    }

    /// Goes into a directory of this one, whose name was checked by [`OpenDir::may_change`].
    pub(crate) fn enter_child(self, name: &OsStr, shown: &str) -> Result<Self> {
        let failed = |error: Errno| failure::os_error("opening", shown, error);
        let dir = open_dir(&self.dir, name).map_err(failed)?;
        let id = FileId::of(&fstat(&dir).map_err(failed)?);
        self.protection.refuse_hidden(id, shown)?;
        let git = if self.git == GitPosition::Top { GitPosition::Files } else { self.git };
        let mut ancestors = self.ancestors;
        ancestors.push(id);
        Ok(Self { dir, id, protection: self.protection, ancestors, git })
    }

    /// Whether this is the directory, or somewhere below it.
    pub(crate) fn is_in(&self, directory: FileId) -> bool {
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

fn protected(shown: &str) -> CallFailure {
    failure::denied(format!("{shown} belongs to Gantry itself, which tools can neither read nor change"))
}
