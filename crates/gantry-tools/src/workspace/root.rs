//! The handle on the workspace, and the way from a path to an opened directory and one name in it.
//!
//! The root is opened once, so replacing the folder's path by something else later changes nothing. What is behind a
//! path is always reached in two steps: the directory, resolved beneath the root by the kernel, and the
//! name, used on that directory without following links. A link as the last name is followed here, by resolving
//! what it says beneath the root again.

use super::allow::Allowed;
use super::entry::{Kind, link_target, stat_at};
use super::path::RelPath;
use super::protected::{Guard, OpenDir};
use super::{Error, ProtectedPaths};
use crate::failure;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use gantry_core::Fault;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Links that are followed one after the other; what Linux follows.
pub(super) const LINKS_FOLLOWED: usize = 40;

/// The opened workspace folder.
#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    dir: Dir,
    guard: Guard,
    /// Where the tools may work; anywhere if nothing is said.
    allowed: Option<Allowed>,
}

/// How far the directory part of a path leads.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// To a directory.
    Reached(OpenDir),
    /// To `base`, in which the first of `rest` does not exist.
    Missing { base: OpenDir, rest: Vec<OsString> },
    /// To something else.
    NotADirectory,
}

/// What is at a path.
#[derive(Debug)]
pub(crate) enum Target {
    /// A name in a directory that exists.
    Entry(Entry),
    /// Not even the directory exists; `rest` ends in the directory that is missing last.
    NoParent { base: OpenDir, rest: Vec<OsString>, name: OsString },
}

/// A name in an opened directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) parent: OpenDir,
    pub(crate) name: OsString,
    /// What has the name, if anything has. A link is itself here, not what it points at.
    pub(crate) stat: Option<Stat>,
    /// The path as messages have it.
    pub(crate) shown: String,
}

/// What is done with a link that has the last name of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// It means what it points at.
    Follow,
    /// It means itself.
    Keep,
}

impl WorkspaceRoot {
    pub(crate) fn open(path: &Path, protected: ProtectedPaths) -> Result<Self, Error> {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|source| {
            let path = path.into();
            match Errno::from_io_error(&source) {
                Some(Errno::NOENT) => Error::Missing { path },
                Some(Errno::NOTDIR) => Error::NotAFolder { path },
                Some(_) | None => Error::Unusable { path, source },
            }
        })?;
        let guard = Guard::new(path, &dir, protected)?;
        Ok(Self { dir, guard, allowed: None })
    }

    /// The same folder, to be worked in at these paths only.
    pub(crate) fn confined(self, allowed: Option<Allowed>) -> Self {
        Self { allowed, ..self }
    }

    /// Where the tools may work, in words, if that is not everywhere.
    pub(crate) fn allowed(&self) -> Option<&str> {
        self.allowed.as_ref().map(Allowed::description)
    }

    /// Opens a directory beneath the root, or as much of the way as there is; `name` is what is meant in it, if not
    /// the directory itself. `shown` is the path as messages have it.
    pub(crate) fn resolve_directory(
        &self,
        directory: &Path,
        name: Option<&OsStr>,
        shown: &str,
    ) -> Result<Resolved, Fault> {
        let mut rest = Vec::new();
        let mut obstacle: Option<io::Error> = None;
        for reached in directory.ancestors() {
            let is_root = reached.as_os_str().is_empty();
            let error = match self.dir.open_dir(if is_root { Path::new(".") } else { reached }) {
                Ok(dir) => {
                    // Checked in every case, so that no answer tells what is protected or out of reach.
                    let base = self.guard.enter(dir.into_std_file().into(), shown)?;
                    rest.reverse();
                    self.refuse_not_allowed(&base, rest.iter().map(OsString::as_os_str).chain(name), shown)?;
                    return match obstacle {
                        Some(error) if Errno::from_io_error(&error) == Some(Errno::NOTDIR) => {
                            Ok(Resolved::NotADirectory)
                        }
                        Some(error) => Err(failure::io_error("opening", shown, &error)),
                        None if rest.is_empty() => Ok(Resolved::Reached(base)),
                        None => Ok(Resolved::Missing { base, rest }),
                    };
                }
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                // It is outside of the root.
                None => return Err(failure::io_error("opening", shown, &error)),
                Some(Errno::NOENT) => {}
                Some(_) => obstacle = Some(error),
            }
            let last = reached.components().next_back().filter(|last| *last != Component::CurDir);
            rest.extend(last.map(|last| last.as_os_str().to_owned()));
        }
        // The root itself cannot be opened any more.
        Err(obstacle.map_or_else(|| failure::not_found(shown), |it| failure::io_error("opening", shown, &it)))
    }

    /// Refuses what is reached by these names from a directory, if the tools may not work there.
    fn refuse_not_allowed<'a>(
        &self,
        base: &OpenDir,
        names: impl Iterator<Item = &'a OsStr>,
        shown: &str,
    ) -> Result<(), Fault> {
        match &self.allowed {
            Some(allowed) => allowed.check((&self.dir, base.id, &base.ancestors), names, shown),
            None => Ok(()),
        }
    }

    /// Finds what is at a path that ends in a name.
    pub(crate) fn resolve(&self, path: &RelPath, links: Links) -> Result<Target, Fault> {
        let shown = path.shown();
        let (mut directory, mut name) = path.split()?;
        for _ in 0..LINKS_FOLLOWED {
            let parent = match self.resolve_directory(&directory, Some(&name), shown)? {
                Resolved::Reached(parent) => parent,
                Resolved::Missing { base, rest } => return Ok(Target::NoParent { base, rest, name }),
                Resolved::NotADirectory => return Err(failure::os_error("opening", shown, Errno::NOTDIR)),
            };
            let entry = Entry::find(parent, name, shown)?;
            if links == Links::Keep || entry.stat.as_ref().map(Kind::of) != Some(Kind::Link) {
                return Ok(Target::Entry(entry));
            }
            match link_target(&entry.parent.dir, &entry.name) {
                Ok(target) => (directory, name) = self.follow(&directory, &target, shown)?,
                // It is no link any more, so look again at what it is.
                Err(Errno::INVAL | Errno::NOENT) => name = entry.name,
                Err(error) => return Err(entry.os_error("following", error)),
            }
        }
        Err(failure::os_error("following", shown, Errno::LOOP))
    }

    /// The same where a missing directory is a missing file.
    pub(crate) fn resolve_entry(&self, path: &RelPath, links: Links) -> Result<Entry, Fault> {
        match self.resolve(path, links)? {
            Target::Entry(entry) => Ok(entry),
            Target::NoParent { .. } => Err(failure::not_found(path.shown())),
        }
    }

    /// Where a link in a directory leads. The kernel resolves the joined path, so `..` in it means what it means to
    /// every other program that follows the link.
    fn follow(&self, directory: &Path, target: &[u8], shown: &str) -> Result<(PathBuf, OsString), Fault> {
        let target = Path::new(OsStr::from_bytes(target));
        if target.is_absolute() || target.as_os_str().is_empty() {
            return Err(failure::outside(shown));
        }
        let joined = directory.join(target);
        let bytes = target.as_os_str().as_bytes();
        let names_a_directory = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        if let (Some(directory), Some(name)) = (joined.parent(), joined.file_name())
            && !names_a_directory
        {
            return Ok((directory.into(), name.into()));
        }
        // It ends in `..`, a dot or a slash, so it is a directory if it does not lead outside.
        Err(match self.resolve_directory(&joined, None, shown)? {
            Resolved::Reached(_) => failure::failed(format!("{shown} is a directory")),
            Resolved::Missing { .. } => failure::not_found(shown),
            Resolved::NotADirectory => failure::os_error("following", shown, Errno::NOTDIR),
        })
    }
}

impl Entry {
    /// Looks at what has a name in a directory.
    pub(crate) fn find(parent: OpenDir, name: OsString, shown: &str) -> Result<Self, Fault> {
        let stat = stat_at(&parent.dir, &name);
        let stat = stat.map_err(|error| failure::os_error("looking at", shown, error))?;
        Ok(Self { parent, name, stat, shown: shown.to_owned() })
    }

    /// The directory and the name in it.
    pub(crate) fn at(&self) -> (&OwnedFd, &OsStr) {
        (&self.parent.dir, &self.name)
    }

    /// What has the name, or that nothing has.
    pub(crate) fn existing(&self) -> Result<&Stat, Fault> {
        self.stat.as_ref().ok_or_else(|| failure::not_found(&self.shown))
    }

    /// Refuses to change what has, or would get, the name.
    pub(crate) fn may_change(&self) -> Result<(), Fault> {
        self.parent.may_change(&self.name, self.stat.as_ref(), &self.shown)
    }

    /// An error of the operating system, with what was being done.
    pub(crate) fn os_error(&self, doing: &str, error: Errno) -> Fault {
        failure::os_error(doing, &self.shown, error)
    }
}
