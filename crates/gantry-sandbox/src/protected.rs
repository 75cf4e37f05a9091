//! What no tool and no job touches in a workspace, and how it is found: one rule for both.
//!
//! Protected are files and folders that exist, each folder with all below it. A name that does not exist is not: a
//! file that is made there is not loaded by itself.
//!
//! A path is followed name by name, as the kernel would. Not only what is at its end counts: a process that can replace a
//! folder or a link on the way chooses what is found at the end.

use rustix::fs::{FileType, Mode, OFlags, Stat, lstat, readlink, stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// Where a repository keeps its own things.
pub const GIT: &str = ".git";
/// What in there makes git run programs, or makes it look for those elsewhere. Attributes do not, without a configuration.
pub const GIT_FOLDERS: [&str; 3] = ["hooks", "modules", "worktrees"];
pub const GIT_FILES: [&str; 3] = ["config", "config.worktree", COMMON];

/// The file in a repository that names the one it is part of, and the beginning of a `.git` that is a file.
const COMMON: &str = "commondir";
const POINTER: &[u8] = b"gitdir:";
/// Limit: bytes that are read of either.
const POINTER_LIMIT: u64 = 4096;

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
    /// A link on the way, or at the end.
    Link,
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
            add(&next, EntryKind::Link);
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
    let stat = lstat(&at).map_err(|error| (at.clone(), error))?;
    way.entries.retain(|entry| entry.path != at);
    way.entries.push(PathEntry { path: at, id: FileId::of(&stat), kind: EntryKind::End { is_dir: true } });
    Ok(way)
}

/// What a protected path leads through and to; nothing if it does not exist, and is not protected.
///
/// # Errors
/// The same as of [`follow`].
pub fn existing(path: &Path) -> Result<Vec<PathEntry>, (PathBuf, Errno)> {
    let way = follow(path, None)?;
    Ok(if way.missing.is_none() { way.entries } else { Vec::new() })
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

/// The repositories of a workspace: what `.git` is or leads to, and the one that this is part of. A folder is one with any
/// content, because a job can remove for a while what makes it a repository; so is one that cannot be looked into.
#[must_use]
pub fn repositories(workspace: &Path) -> Vec<PathBuf> {
    let at = workspace.join(GIT);
    let mut found = match stat(&at) {
        Err(Errno::NOENT) => Vec::new(),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
            pointed_to(workspace, &at)
        }
        Ok(_) | Err(_) => vec![at],
    };
    found.retain(|path| match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    });
    found
}

/// The repository that a file called `.git` leads to, and the one that it is part of.
fn pointed_to(workspace: &Path, at: &Path) -> Vec<PathBuf> {
    let trimmed = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text.trim_ascii()));
    let text = pointer(at);
    let Some(own) = text.as_deref().and_then(|text| text.strip_prefix(POINTER)) else { return Vec::new() };
    let own = workspace.join(trimmed(own));
    let common = pointer(&own.join(COMMON)).map(|common| own.join(trimmed(&common)));
    [own].into_iter().chain(common).collect()
}

/// The beginning of a file, if it is one.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    file.take(POINTER_LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}
