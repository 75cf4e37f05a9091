//! An opened workspace, and what is done to it for as long as a job runs on it.

mod git;
mod lock;
mod place;
pub(super) mod stand_in;
mod survey;
mod trail;

use super::Protected;
use crate::jail::{Access, JailError};
use lock::Lock;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::Survey;

/// How a folder is opened for its entries to be found from it.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where the workspace is, and what is protected.
#[derive(Debug)]
pub(super) struct Site {
    /// Without links.
    path: PathBuf,
    dir: OwnedFd,
    id: Id,
    protected: Protected,
}

/// A file or folder, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id(u64, u64);

/// A workspace while one job runs on it.
///
/// **Contract:** [`Occupied::leave`] is for when nothing of the job lives any more, because then the stand-ins go. Merely
/// dropped, it leaves them to the next job. The helper keeps a copy of `dir` for as long as anything in the jail can run:
/// the lock that holds the stand-ins in place comes with it, also when Gantry is killed. No job may have it.
#[derive(Debug)]
pub(crate) struct Occupied {
    /// The folder, opened for reading, with the lock.
    pub(crate) dir: OwnedFd,
    /// The user and group that the folder belongs to.
    pub(crate) owner: (u32, u32),
    /// What to lay over the workspace in the jail, in this order.
    pub(crate) covers: Vec<Cover>,
    site: Arc<Site>,
}

/// One path of the workspace that a jail covers, or holds in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cover {
    /// Relative to the workspace, made of plain names. Only the last one can be that of a symbolic link, which is to be
    /// covered itself instead of what it leads to.
    pub(crate) path: PathBuf,
    /// What is done there.
    pub(crate) how: How,
    /// Whether there is a folder.
    pub(crate) is_dir: bool,
}

/// How a path of the workspace is covered; each secures more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum How {
    /// A folder is mounted on itself, so that it can be neither renamed nor removed.
    Pin,
    /// Mounted on itself, read-only.
    Seal,
    /// An empty read-only folder or file is mounted over it.
    Hide,
}

impl Occupied {
    /// Where the folder is.
    pub(crate) fn path(&self) -> &Path {
        &self.site.path
    }

    /// Leaves the workspace when nothing of the job lives any more. The last to leave takes the stand-ins away.
    pub(crate) fn leave(self) {
        if let Some(_alone) = Lock::alone(&self.dir) {
            self.site.tidy();
        }
    }

    /// The same when it is not known whether something of the job still dies: whatever does has the lock as well. If that
    /// takes too long, the stand-ins are left to the next job.
    pub(crate) fn leave_when_free(self) {
        let Self { dir, site, .. } = self;
        // A lock belongs to an opening, and this one is shared with the jail.
        let own = rustix::fs::openat(&dir, ".", FOLDER, Mode::empty());
        drop(dir);
        if let Ok(own) = own
            && let Some(_alone) = Lock::alone_in_time(&own)
        {
            site.tidy();
        }
    }
}

impl Site {
    /// Opens a workspace.
    pub(super) fn open(workspace: &Path, protected: Protected) -> Result<Self, JailError> {
        let path = std::fs::canonicalize(workspace).map_err(|error| unusable(workspace, &error))?;
        place::check(&path)?;
        let failed = |error: Errno| unusable(&path, &words(error, &path));
        let dir = rustix::fs::open(&path, FOLDER, Mode::empty()).map_err(failed)?;
        let id = Id::of(&rustix::fs::fstat(&dir).map_err(failed)?);
        let site = Self { path, dir, id, protected };
        Survey::look(&site, Access::Write)?;
        Ok(site)
    }

    /// Secures it for one job.
    pub(super) fn occupy(self: &Arc<Self>, access: Access) -> Result<Occupied, JailError> {
        self.is_in_place()?;
        let failed = |error: Errno| unusable(&self.path, &words(error, &self.path));
        // Opened anew, because a lock belongs to an opening and each job has its own.
        let dir = rustix::fs::openat(&self.dir, ".", FOLDER, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&dir).map_err(failed)?;
        Lock::share(&dir, &self.path)?;
        let owner = (stat.st_uid, stat.st_gid);
        let occupied = |covers| Occupied { dir, owner, covers, site: Arc::clone(self) };
        match Survey::secure(self, access) {
            Ok(covers) => Ok(occupied(covers)),
            Err(error) => {
                occupied(Vec::new()).leave();
                Err(error)
            }
        }
    }

    /// Takes the stand-ins away; only for whoever is alone. A leftover of one who could not is found by the next.
    fn tidy(&self) {
        if let Err(error) = self.is_in_place().and_then(|()| Survey::tidy(self)) {
            tracing::warn!(%error, "stand-ins for protected paths are left in the workspace");
        }
    }

    fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Refuses to go on with a folder that is not the one at its path any more: the protected paths are paths.
    fn is_in_place(&self) -> Result<(), JailError> {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) if Id::of(&stat) == self.id => Ok(()),
            Ok(_) => Err(unusable(
                &self.path,
                &"it was replaced by another folder; restart Gantry to use that one",
            )),
            Err(error) => Err(unusable(&self.path, &error)),
        }
    }
}

impl Id {
    fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// The workspace cannot be used.
fn unusable(workspace: &Path, reason: &dyn Display) -> JailError {
    JailError::Ground { what: format!("the workspace {}", workspace.display()), reason: reason.to_string() }
}

/// What the system says, and what to do if it denies a right in this folder.
fn words(error: Errno, folder: &Path) -> String {
    match error {
        Errno::ACCESS => format!("{error}; `chmod u+rwx {}` gives the right back", folder.display()),
        error => error.to_string(),
    }
}

/// Something in it cannot be protected.
fn unprotected(path: &Path, reason: &dyn Display) -> JailError {
    JailError::Ground { what: format!("{} cannot be protected", path.display()), reason: reason.to_string() }
}
