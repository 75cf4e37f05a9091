//! The parts of a git repository that make git run programs, or make it look for those elsewhere.
//!
//! The rest of `.git` stays writable, so that git works in the jail. Of the sealed parts, a missing folder is made for good,
//! empty and without effect. A missing file must stay so: the first process of the jail looks for it at each interval, and
//! Gantry once more when the job has ended, and takes it away.

use super::lease::{FOLDER, Opened, open_beneath};
use crate::protected::{GIT_FOLDERS, repositories};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The permissions of a folder that is made, less what the umask takes.
const FOLDER_MODE: u32 = 0o755;

/// Makes the folders that a repository lacks.
pub(super) fn prepare(workspace: &Opened) {
    for repository in repositories(&workspace.path) {
        let Some(relative) = repository.canonicalize().ok().and_then(|real| workspace.inside(&real)) else {
            continue;
        };
        // A job can turn the repository into a link at any time, which is not followed.
        let Ok(repository) = open_beneath(&workspace.dir, &relative, OFlags::PATH | OFlags::DIRECTORY) else {
            continue;
        };
        for name in GIT_FOLDERS {
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
    pub(super) fn open(workspace: &Opened, path: PathBuf) -> Option<Self> {
        let folder = open_beneath(&workspace.dir, &Path::new(".").join(path.parent()?), FOLDER).ok()?;
        let absent = Self { folder, path };
        (absent.look() == Err(Errno::NOENT)).then_some(absent)
    }

    /// Takes away what is there by now, and says so.
    pub(super) fn take_away(&self) -> Option<String> {
        let mut removed = self.remove();
        // A job can shut the folder, for itself as well; it gets back what rights it had.
        if removed == Err(Errno::ACCESS)
            && let Ok(stat) = fstat(&self.folder)
        {
            let mode = Mode::from_raw_mode(stat.st_mode);
            fchmod(&self.folder, mode | Mode::RWXU).ok();
            removed = self.remove();
            fchmod(&self.folder, mode).ok();
        }
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
}
