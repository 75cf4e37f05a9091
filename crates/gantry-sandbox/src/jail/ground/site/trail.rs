//! The way to a protected path, as the system would go it: every entry of the workspace that the path depends on.
//!
//! Not only what is at its end: who can replace a folder or a link on the way chooses what is found there.

use super::stand_in;
use super::{Id, JailError, Site, unprotected, words};
use rustix::fs::{FileType, Stat, lstat, readlink};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Links that are followed on one way; what Linux follows.
const LINKS: usize = 40;

/// An entry on the way; paths are relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A folder that is passed.
    Passed(PathBuf),
    /// A link that is followed.
    Link(PathBuf),
    /// What is at the end, or stands in the way to it, as does a folder that cannot be entered.
    Found { path: PathBuf, is_dir: bool },
    /// Where the way ends, and whether at its last name. A stand-in counts as missing.
    Missing { path: PathBuf, is_last: bool },
    /// The end is the workspace itself, or a folder above it.
    Around,
}

/// Where the walk is.
struct Walk<'a> {
    site: &'a Site,
    /// Without links.
    at: PathBuf,
    ahead: VecDeque<OsString>,
    links: usize,
    steps: Vec<Step>,
}

/// Follows an absolute path. What is outside of the workspace leaves no step.
pub(super) fn follow(site: &Site, path: &Path) -> Result<Vec<Step>, JailError> {
    let mut walk = Walk { site, at: PathBuf::from("/"), ahead: VecDeque::new(), links: 0, steps: Vec::new() };
    walk.turn_to(path);
    while let Some(name) = walk.ahead.pop_front() {
        if name == ".." {
            walk.at.pop();
        } else if !walk.step(&name)? {
            return Ok(walk.steps);
        }
    }
    // It ended in a folder that was reached by `..` or is the root, or in one that was stepped into at last.
    if site.path.starts_with(&walk.at) {
        walk.steps.push(Step::Around);
    } else if let Some(path) = walk.inside(&walk.at) {
        walk.end_in(path);
    }
    Ok(walk.steps)
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
        let relative = path.strip_prefix(&self.site.path).ok()?;
        (!relative.as_os_str().is_empty()).then(|| relative.to_owned())
    }

    /// Takes one name; whether the way goes on.
    fn step(&mut self, name: &OsString) -> Result<bool, JailError> {
        let next = self.at.join(name);
        let path = self.inside(&next);
        let stat = match lstat(&next) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                self.missing(path);
                return Ok(false);
            }
            // Whatever it leads to cannot be found, by Gantry's own doing neither.
            Err(_) if path.is_none() => return Ok(false),
            // A job could let itself in: it has the same user.
            Err(Errno::ACCESS) if let Some(folder) = self.inside(&self.at) => {
                self.end_in(folder);
                return Ok(false);
            }
            Err(error) => return Err(unprotected(&next, &words(error, &self.at))),
        };
        if let Some(path) = &path {
            match stand_in::is_one(self.site, path, &stat) {
                Ok(false) => {}
                // One may go while it is looked at, if no job runs.
                Ok(true) | Err(Errno::NOENT) => {
                    self.missing(Some(path.clone()));
                    return Ok(false);
                }
                Err(error) => return Err(unprotected(&next, &error)),
            }
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.link(&next, path),
            FileType::Directory => {
                self.enter(next, path, &stat);
                Ok(true)
            }
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                self.steps.extend(path.map(|path| Step::Found { path, is_dir: false }));
                Ok(false)
            }
        }
    }

    /// The end is a folder that was passed at last.
    fn end_in(&mut self, folder: PathBuf) {
        self.steps.retain(|step| *step != Step::Passed(folder.clone()));
        self.steps.push(Step::Found { path: folder, is_dir: true });
    }

    fn missing(&mut self, path: Option<PathBuf>) {
        let is_last = self.ahead.is_empty();
        self.steps.extend(path.map(|path| Step::Missing { path, is_last }));
    }

    fn link(&mut self, link: &Path, path: Option<PathBuf>) -> Result<bool, JailError> {
        let is_inside = path.is_some();
        self.steps.extend(path.map(Step::Link));
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

    fn enter(&mut self, next: PathBuf, path: Option<PathBuf>, stat: &Stat) {
        self.steps.extend(path.map(Step::Passed));
        // Another mount of the workspace is the workspace.
        self.at = if Id::of(stat) == self.site.id { self.site.path.clone() } else { next };
    }
}
