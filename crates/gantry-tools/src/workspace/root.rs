//! From a path to an opened directory and one name in it.
//!
//! The workspace root is a handle, so replacing the folder's path by something else later changes nothing. What is
//! behind a path is always reached in two steps: the directory, resolved beneath the root by the kernel, and the
//! name, used on that directory without following links. A link as the last name is followed here, by resolving
//! what it says beneath the root again.

use super::allow::Allowed;
use super::protected::{Guard, OpenDir};
use super::{Error, ProtectedPaths};
use crate::failure;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use gantry_core::Fault;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Links that are followed from the last name of a path; what Linux follows.
const LINKS_FOLLOWED: usize = 40;

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
    pub(crate) fn open(path: &Path, fenced: ProtectedPaths) -> Result<Self, Error> {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|source| {
            let path = path.into();
            match Errno::from_io_error(&source) {
                Some(Errno::NOENT) => Error::Missing { path },
                Some(Errno::NOTDIR) => Error::NotAFolder { path },
                Some(_) | None => Error::Unusable { path, source },
            }
        })?;
        let guard = Guard::new(path, &dir, fenced)?;
        Ok(Self { dir, guard, allowed: None })
    }

    /// The same folder, to be worked in at these paths only.
    pub(crate) fn confined(self, allowed: Option<Allowed>) -> Self {
        Self { allowed, ..self }
    }

    /// Opens a directory beneath the root, or as much of the way as there is; `name` is what is meant in it, if not
    /// the directory itself.
    pub(crate) fn descend(
        &self,
        directory: &Path,
        name: Option<&OsStr>,
        shown: &str,
    ) -> Result<Resolved, Fault> {
        let mut rest = Vec::new();
        let mut reached = directory.as_os_str().as_bytes();
        let mut obstacle: Option<io::Error> = None;
        loop {
            let error = match self.dir.open_dir(OsStr::from_bytes(reached)) {
                Ok(dir) => {
                    // Checked in every case, so that no answer tells what is protected or out of reach.
                    let parent = self.guard.enter(dir.into_std_file().into(), shown)?;
                    rest.reverse();
                    self.allow(&parent, rest.iter().map(OsString::as_os_str).chain(name), shown)?;
                    return match obstacle {
                        Some(error) if Errno::from_io_error(&error) == Some(Errno::NOTDIR) => {
                            Ok(Resolved::NotADirectory)
                        }
                        Some(error) => Err(failure::io_error("opening", shown, &error)),
                        None if rest.is_empty() => Ok(Resolved::Reached(parent)),
                        None => Ok(Resolved::Missing { base: parent, rest }),
                    };
                }
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::NOENT) if reached != b"." => {}
                Some(_) if reached != b"." => obstacle = Some(error),
                Some(_) | None => return Err(failure::io_error("opening", shown, &error)),
            }
            let (above, name) = split(reached);
            // What a link says may have redundant parts.
            if !matches!(name, b"" | b".") {
                rest.push(OsStr::from_bytes(name).to_owned());
            }
            reached = above;
        }
    }

    /// Refuses what is reached by these names from a directory, if the tools may not work there.
    fn allow<'a>(
        &self,
        parent: &OpenDir,
        names: impl Iterator<Item = &'a OsStr>,
        shown: &str,
    ) -> Result<(), Fault> {
        match &self.allowed {
            Some(allowed) => allowed.check((&self.dir, parent.id, &parent.way), names, shown),
            None => Ok(()),
        }
    }

    /// Where the tools may work, in words, if that is not everywhere.
    pub(crate) fn allowed(&self) -> Option<&str> {
        self.allowed.as_ref().map(Allowed::words)
    }

    /// Finds what is at a path that ends in a name.
    pub(crate) fn find(
        &self,
        (mut directory, mut name): (PathBuf, OsString),
        links: Links,
        shown: &str,
    ) -> Result<Target, Fault> {
        for _ in 0..LINKS_FOLLOWED {
            let parent = match self.descend(&directory, Some(&name), shown)? {
                Resolved::Reached(parent) => parent,
                Resolved::Missing { base, rest } => return Ok(Target::NoParent { base, rest, name }),
                Resolved::NotADirectory => return Err(failure::os_error("opening", shown, Errno::NOTDIR)),
            };
            let stat =
                stat_at(&parent.dir, &name).map_err(|error| failure::os_error("looking at", shown, error))?;
            let is_link = stat.is_some_and(|stat| Kind::of(&stat) == Kind::Link);
            if !is_link || links == Links::Keep {
                return Ok(Target::Entry(Entry { parent, name, stat }));
            }
            match link_target(&parent.dir, &name) {
                Ok(target) => (directory, name) = self.pointed_at(&directory, &target, shown)?,
                // It is no link any more, so look again at what it is.
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(error) => return Err(failure::os_error("following", shown, error)),
            }
        }
        Err(failure::os_error("following", shown, Errno::LOOP))
    }

    /// The same where a missing directory is a missing file.
    pub(crate) fn entry(
        &self,
        entry: (PathBuf, OsString),
        links: Links,
        shown: &str,
    ) -> Result<Entry, Fault> {
        match self.find(entry, links, shown)? {
            Target::Entry(entry) => Ok(entry),
            Target::NoParent { .. } => Err(failure::not_found(shown)),
        }
    }

    /// Where a link leads that is in `directory`. The kernel resolves the joined path, so that `..` in it means the
    /// same as it would to anyone who follows the link.
    fn pointed_at(&self, directory: &Path, target: &[u8], shown: &str) -> Result<(PathBuf, OsString), Fault> {
        if target.first().is_none_or(|first| *first == b'/') {
            return Err(failure::outside(shown));
        }
        let mut joined = directory.as_os_str().as_bytes().to_vec();
        joined.push(b'/');
        joined.extend_from_slice(target);
        let trimmed = trim_slashes(&joined);
        let (above, name) = split(trimmed);
        if trimmed.len() < joined.len() || matches!(name, b"." | b"..") {
            // Only a directory can be meant, and that is not what is looked for; but an escape is still an escape.
            return Err(match self.descend(Path::new(OsStr::from_bytes(trimmed)), None, shown)? {
                Resolved::Reached(_) => failure::failed(format!("{shown} is a directory")),
                Resolved::Missing { .. } => failure::not_found(shown),
                Resolved::NotADirectory => failure::os_error("following", shown, Errno::NOTDIR),
            });
        }
        Ok((OsStr::from_bytes(above).into(), OsString::from_vec(name.to_vec())))
    }
}

impl Entry {
    /// What has the name, or that nothing has.
    pub(crate) fn existing(&self, shown: &str) -> Result<&Stat, Fault> {
        self.stat.as_ref().ok_or_else(|| failure::not_found(shown))
    }
}

fn trim_slashes(path: &[u8]) -> &[u8] {
    let kept = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    path.get(..kept).unwrap_or_default()
}

/// The directory part and the last name. What has no slash is in the root.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (b".", path),
    }
}

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device: nothing that these tools read or write.
    Special,
}

impl Kind {
    pub(crate) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Special,
        }
    }
}

/// What has this name, without following links; nothing if nothing has.
pub(crate) fn stat_at(dir: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a link says.
pub(crate) fn link_target(dir: impl AsFd, name: &OsStr) -> Result<Vec<u8>, Errno> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// Opens a directory by a single name, and no link to one.
pub(crate) fn open_dir(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// How a directory is opened to work in it.
#[cfg(target_os = "linux")]
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// What is in a directory, `.` and `..` left out.
pub(crate) fn names(dir: impl AsFd) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let entries = rustix::fs::Dir::new(readable(dir)?)?;
    Ok(entries
        .map(|entry| entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()))
        .filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}

/// The same directory, opened to read its entries.
fn readable(dir: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::empty())
}

/// Makes a change of a directory's entries outlive a power cut.
pub(crate) fn sync(dir: impl AsFd) -> Result<(), Errno> {
    match readable(dir) {
        Ok(readable) => rustix::fs::fsync(readable),
        // A directory that may be changed but not read cannot be synced; the change stands all the same.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error),
    }
}
