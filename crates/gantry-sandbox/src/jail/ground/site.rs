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
/// **Contract:** it is dropped when nothing of the job lives any more, because then the stand-ins go. The helper keeps a
/// copy of `dir` for as long as anything in the jail can run: the lock that holds the stand-ins in place comes with it,
/// also when Gantry is killed. No job may have it.
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
}

impl Site {
    /// Opens a workspace.
    pub(super) fn open(workspace: &Path, protected: Protected) -> Result<Self, JailError> {
        let path = std::fs::canonicalize(workspace).map_err(|error| unusable(workspace, &error))?;
        place::check(&path)?;
        let failed = |error: Errno| unusable(&path, &error);
        let dir = rustix::fs::open(&path, FOLDER, Mode::empty()).map_err(failed)?;
        let id = Id::of(&rustix::fs::fstat(&dir).map_err(failed)?);
        let site = Self { path, dir, id, protected };
        Survey::look(&site, Access::Write)?;
        Ok(site)
    }

    /// Secures it for one job.
    pub(super) fn occupy(self: &Arc<Self>, access: Access) -> Result<Occupied, JailError> {
        self.is_in_place()?;
        let failed = |error: Errno| unusable(&self.path, &error);
        // Opened anew, because a lock belongs to an opening and each job has its own.
        let dir = rustix::fs::openat(&self.dir, ".", FOLDER, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&dir).map_err(failed)?;
        Lock::share(&dir, &self.path)?;
        let owner = (stat.st_uid, stat.st_gid);
        let mut occupied = Occupied { dir, owner, covers: Vec::new(), site: Arc::clone(self) };
        occupied.covers = Survey::secure(self, access)?;
        Ok(occupied)
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

/// The last to leave takes the stand-ins away; a leftover of one who could not is found by the next.
impl Drop for Occupied {
    fn drop(&mut self) {
        let Some(_alone) = Lock::alone(&self.dir) else { return };
        let tidied = self.site.is_in_place().and_then(|()| Survey::tidy(&self.site));
        if let Err(error) = tidied {
            tracing::warn!(%error, "stand-ins for protected paths are left in the workspace");
        }
    }
}

/// The workspace cannot be used.
fn unusable(workspace: &Path, reason: &dyn Display) -> JailError {
    JailError::Ground { what: format!("the workspace {}", workspace.display()), reason: reason.to_string() }
}

/// Something in it cannot be protected.
fn unprotected(path: &Path, reason: &dyn Display) -> JailError {
    JailError::Ground { what: format!("{} cannot be protected", path.display()), reason: reason.to_string() }
}
