//! The handle on the workspace, and the way from a path to an opened directory and one name in it.
//!
//! The root is opened once, so replacing the folder's path by something else later changes nothing. What is behind a
//! path is always reached in two steps: the directory, resolved beneath the root by the kernel, and the
//! name, used on that directory without following links. A link as the last name is followed here, by resolving
//! what it says beneath the root again.

use super::allow::Allowed;
use super::entry::{Kind, digest_bounded, identity, link_target, open_regular, size, stat_at};
use super::path::RelPath;
use super::protected::{Guard, OpenDir};
use super::{Error, ProtectedPaths};
use crate::failure::{self, Result};
use crate::text::counted;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use gantry_core::CallFailure;
use gantry_core::digest::Digest;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Links that are followed one after the other; what Linux follows.
pub(super) const LINKS_FOLLOWED: usize = 40;
/// A file whose content is compared; of a larger one, identity, size and times are.
const HASHED_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    dir: Dir,
    guard: Guard,
    /// Where the tools may work; anywhere if nothing is said.
    allowed: Option<Allowed>,
}

/// A name in an opened directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) parent: OpenDir,
    /// The directories between `parent` and the name that do not exist, each in the one before.
    pub(crate) missing: Vec<OsString>,
    pub(crate) name: OsString,
    /// What has the name, if anything has. A link is itself here, not what it points at.
    pub(crate) stat: Option<Stat>,
    /// The path as messages have it.
    pub(crate) shown: String,
}

/// Something that would be overwritten.
#[derive(Debug)]
pub(crate) struct Existing {
    /// What it is, such as `12 bytes, sha256 ab12cd…`.
    pub(crate) description: String,
    /// Equal fingerprints mean that it is still the same.
    pub(crate) fingerprint: String,
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

    /// Opens a directory beneath the root, or as much of the way as there is, and says which names of the way do not exist;
    /// nothing if the way leads through something that is no directory. `name` is what is meant in the directory, if not
    /// the directory itself. `shown` is the path as messages have it.
    pub(crate) fn resolve_directory(
        &self,
        directory: &Path,
        name: Option<&OsStr>,
        shown: &str,
    ) -> Result<Option<(OpenDir, Vec<OsString>)>> {
        let mut missing = Vec::new();
        let mut obstacle = None;
        for reached in directory.ancestors() {
            let is_root = reached.as_os_str().is_empty();
            match self.dir.open_dir(if is_root { Path::new(".") } else { reached }) {
                Ok(dir) => {
                    // Checked in every case, so that no answer tells what is protected or out of reach.
                    let base = self.guard.enter(dir.into_std_file().into(), shown)?;
                    missing.reverse();
                    if let Some(allowed) = &self.allowed {
                        let names = missing.iter().map(OsString::as_os_str).chain(name);
                        allowed.check((&self.dir, base.id, &base.ancestors), names, shown)?;
                    }
                    return match obstacle {
                        None => Ok(Some((base, missing))),
                        Some(Errno::NOTDIR) => Ok(None),
                        Some(error) => Err(failure::os_error("opening", shown, error)),
                    };
                }
                Err(error) => match Errno::from_io_error(&error) {
                    // It is outside of the root.
                    None => return Err(failure::io_error("opening", shown, &error)),
                    Some(Errno::NOENT) => {}
                    other => obstacle = other,
                },
            }
            let last = reached.components().next_back().filter(|last| *last != Component::CurDir);
            missing.extend(last.map(|last| last.as_os_str().to_owned()));
        }
        // The root itself cannot be opened any more.
        Err(failure::os_error("opening", shown, obstacle.unwrap_or(Errno::NOENT)))
    }

    /// Finds what is at a path that ends in a name.
    pub(crate) fn resolve(&self, path: &RelPath, links: Links) -> Result<Entry> {
        let shown = path.shown();
        let (mut directory, mut name) = path.split()?;
        for _ in 0..LINKS_FOLLOWED {
            let resolved = self.resolve_directory(&directory, Some(&name), shown)?;
            let (parent, missing) =
                resolved.ok_or_else(|| failure::os_error("opening", shown, Errno::NOTDIR))?;
            if !missing.is_empty() {
                return Ok(Entry { parent, missing, name, stat: None, shown: shown.to_owned() });
            }
            let entry = Entry::find(parent, name, shown)?;
            if links == Links::Keep || entry.stat.as_ref().map(Kind::of) != Some(Kind::Link) {
                return Ok(entry);
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

    /// Where a link in a directory leads. The kernel resolves the joined path, so `..` in it means what it means to
    /// every other program that follows the link.
    fn follow(&self, directory: &Path, target: &[u8], shown: &str) -> Result<(PathBuf, OsString)> {
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
        // It ends in `..`, a dot or a slash, so it can only be a directory, unless it leads outside.
        match self.resolve_directory(&joined, None, shown)? {
            Some((_, missing)) if !missing.is_empty() => Err(failure::not_found(shown)),
            Some(_) | None => Err(failure::failed(format!("{shown} is a link to a directory"))),
        }
    }
}

impl Entry {
    pub(crate) fn find(parent: OpenDir, name: OsString, shown: &str) -> Result<Self> {
        let stat = stat_at(&parent.dir, &name);
        let stat = stat.map_err(|error| failure::os_error("looking at", shown, error))?;
        Ok(Self { parent, missing: Vec::new(), name, stat, shown: shown.to_owned() })
    }

    /// The directory and the name in it, or that there is no such directory.
    pub(crate) fn at(&self) -> Result<(&OwnedFd, &OsStr)> {
        if !self.missing.is_empty() {
            return Err(failure::missing_parent(&self.shown));
        }
        Ok((&self.parent.dir, &self.name))
    }

    /// What has the name, or that nothing has.
    pub(crate) fn existing(&self) -> Result<&Stat> {
        self.stat.as_ref().ok_or_else(|| failure::not_found(&self.shown))
    }

    /// Refuses to change what has the name, or to make what would get it.
    pub(crate) fn may_change(&self) -> Result<()> {
        if self.missing.is_empty() {
            self.parent.may_change(&self.name, self.stat.as_ref(), &self.shown)
        } else {
            self.parent.may_make(&self.missing, &self.name, &self.shown)
        }
    }

    /// Describes what has the name now, for the approver and to compare it later. That may not be what had the name when the
    /// path was resolved.
    pub(crate) fn describe_target(&self) -> Result<Option<Existing>> {
        let Ok((dir, name)) = self.at() else { return Ok(None) };
        let failed = |error| self.os_error("looking at", error);
        let Some(stat) = stat_at(dir, name).map_err(failed)? else { return Ok(None) };
        // Any write changes this, so it is the fingerprint of what is not read as a whole.
        let by_stat = |description| Existing {
            description,
            fingerprint: format!("stat-{}", Digest::of(identity(&stat).as_bytes())),
        };
        Ok(Some(match Kind::of(&stat) {
            Kind::File => match self.digest(&stat)? {
                Some((digest, size)) => Existing {
                    description: format!("{}, sha256 {}…", counted(size, "byte"), digest.short(6)),
                    fingerprint: digest.to_string(),
                },
                None => by_stat(counted(size(&stat), "byte")),
            },
            Kind::Link => {
                let target = link_target(dir, name).map_err(failed)?;
                let fingerprint = Digest::of_parts(&[b"link", &target]).to_string();
                Existing { description: "a symbolic link".to_owned(), fingerprint }
            }
            Kind::Special => by_stat("a special file".to_owned()),
            Kind::Directory => {
                let message = format!("{} is a directory, which is never replaced", self.shown);
                return Err(failure::failed(message));
            }
        }))
    }

    /// The digest and the size of a file, if it is not too large to be read and may be.
    fn digest(&self, stat: &Stat) -> Result<Option<(Digest, u64)>> {
        let (dir, name) = self.at()?;
        if size(stat) > HASHED_BYTES {
            return Ok(None);
        }
        let file = match open_regular(dir, name) {
            // A file that may be replaced but not read is still told from another one.
            Err(Errno::ACCESS) => return Ok(None),
            opened => opened.map_err(|error| self.os_error("looking at", error))?.0,
        };
        let digest = digest_bounded(file, HASHED_BYTES);
        digest.map_err(|error| failure::io_error("looking at", &self.shown, &error))
    }

    /// An error of the operating system, with what was being done.
    pub(crate) fn os_error(&self, doing: &str, error: Errno) -> CallFailure {
        failure::os_error(doing, &self.shown, error)
    }
}
