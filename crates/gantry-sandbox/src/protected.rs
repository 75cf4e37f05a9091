//! What no tool and no job touches in a workspace, and how it is found: one rule for both.
//!
//! Protected are files and folders that exist, each folder with all below it. A name that does not exist is not: a
//! file that is made there is not loaded by itself.
//!
//! A path is followed name by name, as the kernel would. Not only what is at its end counts: a process that can replace a
//! folder or a link on the way chooses what is found at the end.

use rustix::fs::{FileType, Stat, lstat, readlink};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Limit: links that are followed in one path, as in Linux.
const LINKS: usize = 40;

/// Absolute paths of files and folders, wherever they are. One that does not exist is not protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedPaths {
    /// Neither read nor changed.
    pub hidden: Vec<PathBuf>,
    /// Read, but not changed.
    pub read_only: Vec<PathBuf>,
}

/// A file or folder, under any name: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(rustix::fs::Dev, u64);

impl FileId {
    #[must_use]
    pub fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// What a path leads through and to.
#[derive(Debug, Default)]
pub struct Way {
    pub entries: Vec<PathEntry>,
    /// The first name that does not exist, if any, and whether it is the last of the path.
    pub missing: Option<(PathBuf, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEntry {
    /// Absolute and without links, but for its last name if it is one.
    pub path: PathBuf,
    pub id: FileId,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder on the way.
    Folder,
    /// A link on the way, or one that is itself at the end of the path or of another such link.
    Link { is_last: bool },
    /// The end; or a file on the way or a folder that cannot be entered, beyond which the path cannot be followed.
    End { is_dir: bool },
}

/// Follows an absolute path. A folder with the identity of `alias` counts as that path, under each name by which it is reached.
///
/// # Errors
/// The path at which the way is not known, and why.
pub fn follow(path: &Path, alias: Option<(&Path, FileId)>) -> Result<Way, (PathBuf, Errno)> {
    let (mut way, mut at, mut ahead, mut links) = (Way::default(), PathBuf::new(), VecDeque::new(), 0);
    turn_to(path, &mut at, &mut ahead);
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let failed = |error| (next.clone(), error);
        let stat = match lstat(&next) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                way.missing = Some((next, ahead.is_empty()));
                return Ok(way);
            }
            // A job could let itself in: it has the same user.
            Err(Errno::ACCESS) => break,
            Err(error) => return Err(failed(error)),
        };
        let mut add = |path: &Path, kind| {
            way.entries.push(PathEntry { path: path.to_owned(), id: FileId::of(&stat), kind });
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            add(&next, EntryKind::Link { is_last: ahead.is_empty() });
            links += 1;
            if links > LINKS {
                return Ok(way);
            }
            let target = readlink(&next, Vec::new()).map_err(failed)?;
            turn_to(Path::new(&OsString::from_vec(target.into_bytes())), &mut at, &mut ahead);
        } else if kind == FileType::Directory {
            let known = alias.filter(|(_, id)| *id == FileId::of(&stat)).map(|(path, _)| path.to_owned());
            at = known.unwrap_or(next);
            add(&at, EntryKind::Folder);
        } else {
            add(&next, EntryKind::End { is_dir: false });
            return Ok(way);
        }
    }
    way.end_in(at)
}

/// Puts the names of a path before those that are ahead.
fn turn_to(path: &Path, at: &mut PathBuf, ahead: &mut VecDeque<OsString>) {
    if path.is_absolute() {
        *at = PathBuf::from("/");
    }
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

impl Way {
    fn end_in(mut self, folder: PathBuf) -> Result<Self, (PathBuf, Errno)> {
        match lstat(&folder) {
            Ok(stat) => {
                self.entries.retain(|entry| entry.path != folder);
                let (id, kind) = (FileId::of(&stat), EntryKind::End { is_dir: true });
                self.entries.push(PathEntry { path: folder, id, kind });
                Ok(self)
            }
            Err(error) => Err((folder, error)),
        }
    }
}
