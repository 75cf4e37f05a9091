//! An opened workspace, and the lease of it that each job has while it runs.

use super::lock::Lock;
use super::protection::Protection;
use super::{ProtectedPaths, checks};
use crate::jail::protocol::Owner;
use crate::jail::{Access, JailError};
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, Stat, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a folder is opened for its entries to be found from it.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How long a job that is being killed may take to let go of its lock.
const DEATH_LIMIT: Duration = Duration::from_secs(2);

/// An opened workspace. Jobs on it can run at the same time, also those of other processes.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Opened>);

#[derive(Debug)]
pub(super) struct Opened {
    /// Without links.
    pub(super) path: PathBuf,
    dir: OwnedFd,
    pub(super) id: FileId,
    pub(super) protected: ProtectedPaths,
}

/// A file or folder, independent of its name: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

/// The lease of one job on its workspace.
///
/// **Contract:** release it when no process of the job lives any more, because then the placeholders go. Merely dropped,
/// it leaves them to the next job. The helper keeps a copy of `dir` for as long as anything in the jail can run: with it
/// comes the lock that keeps the placeholders, also when Gantry is killed. No job may have it.
#[derive(Debug)]
pub(crate) struct WorkspaceLease {
    /// The folder, opened for reading, with the lock.
    pub(crate) dir: OwnedFd,
    pub(crate) owner: Owner,
    /// The mounts over the workspace in the jail, in this order.
    pub(crate) mounts: Vec<ProtectedMount>,
    workspace: Arc<Opened>,
}

/// A mount over one path of the workspace, in the jail only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProtectedMount {
    /// Relative to the workspace, made of plain names. Only the last one can be that of a symbolic link, which is then
    /// mounted over itself instead of its target.
    pub(crate) path: PathBuf,
    pub(crate) mode: MountMode,
    pub(crate) is_dir: bool,
}

/// What is mounted over a path of the workspace; each protects more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum MountMode {
    /// The folder itself, so that it can be neither renamed nor removed.
    Pin,
    /// The file or folder itself, read-only.
    ReadOnly,
    /// An empty read-only folder or file.
    Hide,
}

impl WorkspaceLease {
    pub(crate) fn path(&self) -> &Path {
        &self.workspace.path
    }

    /// Ends the lease when no process of the job lives any more. The last lease to end removes the placeholders.
    pub(crate) fn release(self) {
        if let Some(_lock) = Lock::exclusive(&self.dir, Duration::ZERO) {
            self.workspace.remove_placeholders();
        }
    }

    /// The same when processes of the job may still be dying: they hold the lock as well. If that takes too long, the
    /// placeholders are left to the next job.
    pub(crate) fn release_when_free(self) {
        let Self { dir, workspace, .. } = self;
        // A lock belongs to an opening, and this one is shared with the jail.
        let own = rustix::fs::openat(&dir, ".", FOLDER, Mode::empty());
        drop(dir);
        if let Ok(own) = own
            && let Some(_lock) = Lock::exclusive(&own, DEATH_LIMIT)
        {
            workspace.remove_placeholders();
        }
    }
}

impl Workspace {
    /// Opens a workspace.
    ///
    /// # Errors
    /// There is no such folder, it cannot be opened, it is itself protected, or it holds the machine's folders or the
    /// user's home.
    pub fn open(workspace: &Path, protected: ProtectedPaths) -> Result<Self, JailError> {
        let path = std::fs::canonicalize(workspace).map_err(|error| unusable(workspace, &error))?;
        checks::check_location(&path)?;
        let failed = |error: Errno| unusable(&path, &with_remedy(error, &path));
        let dir = rustix::fs::open(&path, FOLDER, Mode::empty()).map_err(failed)?;
        let id = FileId::of(&rustix::fs::fstat(&dir).map_err(failed)?);
        let opened = Opened { path, dir, id, protected };
        Protection::check(&opened)?;
        Ok(Self(Arc::new(opened)))
    }

    /// Secures the workspace for one job. It blocks, but not for long.
    ///
    /// # Errors
    /// The workspace is gone, or something protected in it cannot be secured.
    pub(crate) fn acquire(&self, access: Access) -> Result<WorkspaceLease, JailError> {
        let workspace = &self.0;
        workspace.check_in_place()?;
        let failed = |error: Errno| unusable(&workspace.path, &with_remedy(error, &workspace.path));
        // Opened anew, because a lock belongs to an opening and each job has its own.
        let dir = rustix::fs::openat(&workspace.dir, ".", FOLDER, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&dir).map_err(failed)?;
        Lock::share(&dir, &workspace.path)?;
        let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
        let mut lease = WorkspaceLease { dir, owner, mounts: Vec::new(), workspace: Arc::clone(workspace) };
        match Protection::secure(workspace, access) {
            Ok(mounts) => {
                lease.mounts = mounts;
                Ok(lease)
            }
            Err(error) => {
                lease.release();
                Err(error)
            }
        }
    }
}

impl Opened {
    /// Removes placeholders. Requires the exclusive lock; placeholders left by a crash are removed by the next job.
    fn remove_placeholders(&self) {
        if let Err(error) = self.check_in_place().and_then(|()| Protection::remove_placeholders(self)) {
            tracing::warn!(%error, "placeholders for protected paths are left in the workspace");
        }
    }

    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Refuses to go on if another folder is at the path by now: the protected paths are paths.
    fn check_in_place(&self) -> Result<(), JailError> {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) if FileId::of(&stat) == self.id => Ok(()),
            Ok(_) => Err(unusable(
                &self.path,
                &"it was replaced by another folder; restart Gantry to use that one",
            )),
            Err(error) => Err(unusable(&self.path, &error)),
        }
    }
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// Opens a path beneath a folder without following any link.
pub(crate) fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

pub(crate) fn is_empty(folder: impl AsFd, path: &Path) -> Result<bool, Errno> {
    for entry in Dir::new(open_beneath(folder, path, FOLDER)?)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn unusable(workspace: &Path, reason: &dyn Display) -> JailError {
    JailError::Workspace {
        what: format!("the workspace {}", workspace.display()),
        reason: reason.to_string(),
    }
}

/// The system's error, and what to do if it denies a right in this folder.
pub(super) fn with_remedy(error: Errno, folder: &Path) -> String {
    match error {
        Errno::ACCESS => format!("{error}; `chmod u+rwx {}` gives the right back", folder.display()),
        error => error.to_string(),
    }
}

pub(crate) fn unprotected(path: &Path, reason: &dyn Display) -> JailError {
    JailError::Workspace {
        what: format!("{} cannot be protected", path.display()),
        reason: reason.to_string(),
    }
}
