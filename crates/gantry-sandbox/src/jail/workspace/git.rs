//! The parts of a git repository that make git run programs, or make it look for those elsewhere.
//!
//! The rest of `.git` stays writable, so that git works in the jail. Of the sealed parts, a missing folder is made for good,
//! empty and without effect. A missing file must stay so: the first process of the jail looks for it at each interval, and
//! Gantry once more when the job has ended, and takes it away.

use super::lease::{FOLDER, Opened, is_empty, open_beneath, unprotected};
use crate::jail::JailError;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const GIT: &str = ".git";
/// The folders in a repository that are read-only.
const FOLDERS: [&str; 3] = ["hooks", "modules", "worktrees"];
/// The files in it that are read-only; in `info`, everything else is not.
const FILES: [&str; 4] = ["config", "config.worktree", "info/attributes", COMMON];
const INFO: &str = "info";
/// The permissions of a folder that is made, less what the umask takes.
const FOLDER_MODE: u32 = 0o755;

/// The beginning of a file that names the repository in its place, and the file in a repository that names the one it is
/// part of.
const POINTER: &[u8] = b"gitdir:";
const COMMON: &str = "commondir";
/// Limit: bytes that are read of either.
const POINTER_LIMIT: u64 = 4096;

/// What is read-only because of git.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    /// Absolute paths, and whether each is or would be a folder.
    pub(super) paths: Vec<(PathBuf, bool)>,
    /// Whether there is no repository. A job may make one.
    pub(super) is_missing: bool,
}

pub(super) fn sealed(workspace: &Opened) -> Result<Sealed, JailError> {
    let at = workspace.path.join(GIT);
    let kind = found(workspace).map_err(|error| unprotected(&at, &error))?;
    let repositories = repositories(workspace, kind);
    let mut sealed = Sealed { paths: Vec::new(), is_missing: repositories.is_empty() };
    for repository in repositories {
        sealed.paths.extend(FOLDERS.iter().map(|name| (repository.join(name), true)));
        sealed.paths.extend(FILES.iter().map(|name| (repository.join(name), false)));
    }
    if kind == Found::File {
        sealed.paths.push((at, false));
    }
    Ok(sealed)
}

/// Makes the folders that a repository lacks.
pub(super) fn prepare(workspace: &Opened) {
    let Ok(kind) = found(workspace) else { return };
    for repository in repositories(workspace, kind) {
        let Some(relative) = repository.canonicalize().ok().and_then(|real| workspace.inside(&real)) else {
            continue;
        };
        // A job can turn the repository into a link at any time, which is not followed.
        let Ok(repository) = open_beneath(workspace.dir(), &relative, OFlags::PATH | OFlags::DIRECTORY)
        else {
            continue;
        };
        for name in FOLDERS.iter().chain([&INFO]) {
            // Where it cannot be made, the repository as a whole is read-only.
            make_folder(&repository, name).ok();
        }
    }
}

fn make_folder(repository: &OwnedFd, name: &str) -> Result<(), Errno> {
    mkdirat(repository, name, Mode::from_raw_mode(FOLDER_MODE))?;
    if rustix::process::geteuid().is_root() {
        // What root has made is its owner's, who works with git outside of jails.
        let owner = fstat(repository)?;
        let made = openat(repository, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))?;
    }
    Ok(())
}

/// A file that must not be made.
#[derive(Debug)]
pub(super) struct Absent {
    /// The folder that it would be in.
    folder: OwnedFd,
    /// Relative to the workspace.
    pub(super) path: PathBuf,
}

impl Absent {
    /// None if it is there by now, or its folder cannot be looked into, so that what is made there would not be found.
    pub(super) fn open(workspace: &Opened, path: &Path) -> Option<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = open_beneath(workspace.dir(), folder, FOLDER).ok()?;
        let absent = Self { folder, path: path.to_owned() };
        (absent.look() == Err(Errno::NOENT)).then_some(absent)
    }

    /// Takes away what is there by now, and says so.
    pub(super) fn take_away(&self) -> Option<String> {
        let removed = match self.remove() {
            // A job can shut the folder, for itself as well.
            Err(Errno::ACCESS) => self.with_rights(),
            removed => removed,
        };
        let path = self.path.display();
        match removed {
            Err(Errno::NOENT) => None,
            Ok(()) => Some(format!("{path} (it was removed)")),
            Err(error) => {
                Some(format!("{path} (it cannot be removed: {error}; remove it before you use git)"))
            }
        }
    }

    /// Its name, if something has it.
    fn look(&self) -> Result<&OsStr, Errno> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?;
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|_| name)
    }

    fn remove(&self) -> Result<(), Errno> {
        let name = self.look()?;
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(&self.folder, name, AtFlags::REMOVEDIR),
            removed => removed,
        }
    }

    /// The same with all rights in the folder, which then gets back what it had.
    fn with_rights(&self) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(fstat(&self.folder)?.st_mode);
        fchmod(&self.folder, mode | Mode::RWXU)?;
        let removed = self.remove();
        fchmod(&self.folder, mode)?;
        removed
    }
}

/// The repositories in the workspace that are its own: what `.git` is or leads to, and the one that it is part of.
fn repositories(workspace: &Opened, kind: Found) -> Vec<PathBuf> {
    let at = workspace.path.join(GIT);
    let mut found = match kind {
        Found::Nothing => Vec::new(),
        Found::Repository => return vec![at],
        Found::Link => vec![at],
        Found::File => pointed_to(workspace),
    };
    // One that cannot be looked at is there.
    found.retain(|path| !matches!(rustix::fs::stat(path), Err(Errno::NOENT)));
    found
}

/// The repository that a file called `.git` leads to, and the one that it is part of.
fn pointed_to(workspace: &Opened) -> Vec<PathBuf> {
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
