//! The entries of the workspace that a protected path depends on, found as the kernel would resolve the path.
//!
//! Not only its last one: a job that can replace a folder or a link on the way chooses what is found at the end.

use super::lease::{FileId, Opened, unprotected, with_remedy};
use super::placeholder;
use crate::jail::JailError;
use rustix::fs::{FileType, lstat, readlink};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Limit: links that are followed in one path, as in Linux.
const LINKS: usize = 40;

/// An entry that a path depends on; relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathEntry {
    Parent(PathBuf),
    Link(PathBuf),
    /// The end, or a file on the way or a folder that cannot be entered, beyond which the path cannot be resolved.
    Found {
        path: PathBuf,
        is_dir: bool,
    },
    /// The first name that does not exist, and whether it is the last of the path. A placeholder counts as missing.
    Missing {
        path: PathBuf,
        is_last: bool,
    },
    /// The end is the workspace itself, or a folder above it.
    AboveWorkspace,
}

struct Walk<'a> {
    workspace: &'a Opened,
    /// The folder that is reached, without links.
    at: PathBuf,
    ahead: VecDeque<OsString>,
    links: usize,
    entries: Vec<PathEntry>,
}

/// Follows an absolute path. Entries outside of the workspace are left out.
pub(super) fn follow(workspace: &Opened, path: &Path) -> Result<Vec<PathEntry>, JailError> {
    let mut walk =
        Walk { workspace, at: PathBuf::from("/"), ahead: VecDeque::new(), links: 0, entries: Vec::new() };
    walk.turn_to(path);
    while let Some(name) = walk.ahead.pop_front() {
        if name == ".." {
            walk.at.pop();
        } else if !walk.step(&name)? {
            return Ok(walk.entries);
        }
    }
    // The path ends in a folder.
    if workspace.path.starts_with(&walk.at) {
        walk.entries.push(PathEntry::AboveWorkspace);
    } else if let Some(path) = walk.inside(&walk.at) {
        walk.end_in(path);
    }
    Ok(walk.entries)
}

impl Walk<'_> {
    /// Puts the names of a path before those that are ahead.
    fn turn_to(&mut self, path: &Path) {
        if path.is_absolute() {
            self.at = PathBuf::from("/");
        }
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// The path as one relative to the workspace, if it is below it.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let relative = path.strip_prefix(&self.workspace.path).ok()?;
        (!relative.as_os_str().is_empty()).then(|| relative.to_owned())
    }

    /// Resolves one name. Returns whether the path goes on.
    fn step(&mut self, name: &OsString) -> Result<bool, JailError> {
        let next = self.at.join(name);
        let path = self.inside(&next);
        let stat = match lstat(&next) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                self.missing(path);
                return Ok(false);
            }
            // Gantry cannot find what is beyond it either.
            Err(_) if path.is_none() => return Ok(false),
            // A job could let itself in: it has the same user.
            Err(Errno::ACCESS) if let Some(folder) = self.inside(&self.at) => {
                self.end_in(folder);
                return Ok(false);
            }
            Err(error) => return Err(unprotected(&next, &with_remedy(error, &self.at))),
        };
        if let Some(path) = &path {
            match placeholder::is_one(self.workspace, path, &stat) {
                Ok(false) => {}
                // Another process may remove it at this moment, if no job runs.
                Ok(true) | Err(Errno::NOENT) => {
                    self.missing(Some(path.clone()));
                    return Ok(false);
                }
                Err(error) => return Err(unprotected(&next, &error)),
            }
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            return self.link(&next, path);
        }
        if kind != FileType::Directory {
            self.entries.extend(path.map(|path| PathEntry::Found { path, is_dir: false }));
            return Ok(false);
        }
        self.entries.extend(path.map(PathEntry::Parent));
        // Another mount of the workspace is the workspace.
        let is_workspace = FileId::of(&stat) == self.workspace.id;
        self.at = if is_workspace { self.workspace.path.clone() } else { next };
        Ok(true)
    }

    /// The end is this folder, the last that was entered.
    fn end_in(&mut self, folder: PathBuf) {
        self.entries.retain(|entry| *entry != PathEntry::Parent(folder.clone()));
        self.entries.push(PathEntry::Found { path: folder, is_dir: true });
    }

    fn missing(&mut self, path: Option<PathBuf>) {
        let is_last = self.ahead.is_empty();
        self.entries.extend(path.map(|path| PathEntry::Missing { path, is_last }));
    }

    fn link(&mut self, link: &Path, path: Option<PathBuf>) -> Result<bool, JailError> {
        let is_inside = path.is_some();
        self.entries.extend(path.map(PathEntry::Link));
        self.links += 1;
        if self.links > LINKS {
            return Ok(false);
        }
        match readlink(link, Vec::new()) {
            Ok(target) => {
                self.turn_to(Path::new(&OsString::from_vec(target.into_bytes())));
                Ok(true)
            }
            Err(error) if is_inside => Err(unprotected(link, &error)),
            Err(_) => Ok(false),
        }
    }
}
