//! The parts of a git repository that make git run programs, or make it look for those elsewhere.
//!
//! The rest of `.git` stays writable, so that git works in the jail. A missing part gets a placeholder with which git does
//! what it would do without.

use super::lease::{Opened, is_empty, open_beneath, unprotected};
use super::placeholder::{EMPTY, ITSELF, Placeholder};
use crate::jail::JailError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const GIT: &str = ".git";
/// A folder that most repositories have; without it, git makes it when needed.
const INFO: &str = "info";
const INFO_MODE: u32 = 0o755;

/// The beginning of a file that names the repository in its place, and the file in a repository that names the one it is
/// part of.
const POINTER: &[u8] = b"gitdir:";
const COMMON: &str = "commondir";
/// Limit: bytes that are read of either.
const POINTER_LIMIT: u64 = 4096;

/// The read-only parts of a repository, and the placeholders for them.
const READ_ONLY: [(&str, Placeholder); 7] = [
    ("hooks", Placeholder::Folder),
    ("modules", Placeholder::Folder),
    ("worktrees", Placeholder::Folder),
    ("config", Placeholder::File(EMPTY)),
    ("config.worktree", Placeholder::File(EMPTY)),
    ("info/attributes", Placeholder::File(EMPTY)),
    (COMMON, Placeholder::File(ITSELF)),
];

/// The paths of the workspace that are read-only because of git. None where there is no repository yet: a job may make
/// one.
pub(super) fn read_only(workspace: &Opened) -> Result<Vec<(PathBuf, Placeholder)>, JailError> {
    let at = workspace.path.join(GIT);
    let in_repository = |at: &PathBuf| {
        READ_ONLY.iter().map(|(name, placeholder)| (at.join(name), *placeholder)).collect::<Vec<_>>()
    };
    match found(workspace).map_err(|error| unprotected(&at, &error))? {
        Found::Nothing => Ok(Vec::new()),
        Found::Repository | Found::Link => Ok(in_repository(&at)),
        Found::File => {
            // Paths outside of the workspace are ignored later.
            let mut paths: Vec<_> = repositories(workspace).iter().flat_map(in_repository).collect();
            paths.push((at, Placeholder::Socket));
            Ok(paths)
        }
    }
}

/// Makes the folder `info`, to whose placeholder git could not write.
pub(super) fn prepare(workspace: &Opened) {
    let repositories = match found(workspace) {
        Ok(Found::Repository) => vec![workspace.path.join(GIT)],
        Ok(Found::File) => repositories(workspace),
        Ok(Found::Nothing | Found::Link) | Err(_) => Vec::new(),
    };
    for repository in repositories {
        let Ok(relative) = repository.strip_prefix(&workspace.path) else { continue };
        // A job can turn the repository into a link at any time, which is not followed.
        if let Ok(folder) = open_beneath(workspace.dir(), relative, OFlags::PATH | OFlags::DIRECTORY) {
            // Where it cannot be made, it gets a placeholder, or no job can make it either.
            mkdirat(folder, INFO, Mode::from_raw_mode(INFO_MODE)).ok();
        }
    }
}

/// The repository that a file called `.git` leads to, and the one that it is part of.
fn repositories(workspace: &Opened) -> Vec<PathBuf> {
    let text = pointer(&workspace.path.join(GIT));
    let Some(own) = text.as_deref().and_then(|text| text.strip_prefix(POINTER)) else { return Vec::new() };
    let own = workspace.path.join(trimmed(own));
    let common = pointer(&own.join(COMMON)).map(|common| own.join(trimmed(&common)));
    let is_other = |common: &PathBuf| *common != own;
    let common = common.filter(is_other);
    [own].into_iter().chain(common).collect()
}

/// The beginning of a file, if it is one.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(POINTER_LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}

fn trimmed(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.trim_ascii()))
}

/// The kinds of `.git`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A folder with any content. Not only with what makes it a repository: a job could remove that for a while.
    Repository,
    Link,
    /// A worktree or a submodule: a file that says where the repository is.
    File,
}

fn found(workspace: &Opened) -> Result<Found, Errno> {
    let stat = match statat(workspace.dir(), GIT, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        return Ok(Found::Link);
    }
    if kind != FileType::Directory {
        return Ok(Found::File);
    }
    match is_empty(workspace.dir(), Path::new(GIT)) {
        Ok(true) => Ok(Found::Nothing),
        // A job can take away the right to look into it, and give it back.
        Ok(false) | Err(Errno::ACCESS) => Ok(Found::Repository),
        Err(error) => Err(error),
    }
}
