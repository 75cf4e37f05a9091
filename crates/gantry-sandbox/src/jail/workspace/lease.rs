//! An opened workspace, and the lease of it that each job has while it runs.

use super::checks;
use super::git::{self, Absent};
use super::protection::Protection;
use crate::jail::protocol::Owner;
use crate::jail::{Access, JailError};
use crate::protected::{FileId, ProtectedPaths};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a folder is opened for its entries to be found from it.
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An opened workspace. Jobs on it can run at the same time, also those of other processes.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Opened>);

#[derive(Debug)]
pub(super) struct Opened {
    /// Without links.
    pub(super) path: PathBuf,
    pub(super) dir: OwnedFd,
    pub(super) id: FileId,
    pub(super) protected: ProtectedPaths,
}

/// The lease of one job on its workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceLease {
    /// The folder, opened for this job only. The helper keeps a copy for as long as anything in the jail can run.
    pub(crate) dir: OwnedFd,
    pub(crate) owner: Owner,
    /// The mounts over the workspace in the jail, in this order.
    pub(crate) mounts: Vec<ProtectedMount>,
    /// Files that no job may make.
    pub(super) absent: Vec<Absent>,
    /// Whether something protected does not exist, so that the job can change the way to where it would be.
    pub(crate) has_missing: bool,
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

    /// The paths that must not come to exist while the job runs, relative to the workspace.
    pub(crate) fn absent(&self) -> Vec<PathBuf> {
        self.absent.iter().map(|absent| absent.path.clone()).collect()
    }

    /// Takes away what the job made although it must not exist, and says what that was. No process of the job may live any
    /// more.
    pub(crate) fn take_away(&self) -> Option<String> {
        let found = self.absent.iter().filter_map(Absent::take_away).collect::<Vec<_>>().join(", ");
        (!found.is_empty()).then(|| {
            format!(
                "while the job ran, files were made with which git would run programs, so it was ended: {found}; \
                 ask a person to make such files"
            )
        })
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
        // It refuses a workspace that cannot be protected at all.
        Protection::find(&opened, Access::Write)?;
        Ok(Self(Arc::new(opened)))
    }

    /// Secures the workspace for one job. It blocks, but not for long.
    ///
    /// # Errors
    /// The workspace is gone, or something protected in it cannot be secured.
    pub(crate) fn acquire(&self, access: Access) -> Result<WorkspaceLease, JailError> {
        let workspace = &self.0;
        let at = rustix::fs::lstat(&workspace.path).map_err(|error| unusable(&workspace.path, &error))?;
        // The protected paths are paths.
        if FileId::of(&at) != workspace.id {
            let reason = "it was replaced by another folder; restart Gantry to use that one";
            return Err(unusable(&workspace.path, &reason));
        }
        let failed = |error: Errno| unusable(&workspace.path, &with_remedy(error, &workspace.path));
        // Opened anew, because bubblewrap marks the opening of each job.
        let dir = rustix::fs::openat(&workspace.dir, ".", FOLDER, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&dir).map_err(failed)?;
        let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
        if access == Access::Write {
            git::prepare(workspace);
        }
        let protection = Protection::find(workspace, access)?;
        let mounts = protection.mounts(workspace)?;
        let Protection { absent, has_missing, .. } = protection;
        Ok(WorkspaceLease { dir, owner, mounts, absent, has_missing, workspace: Arc::clone(workspace) })
    }
}

impl Opened {
    /// The path as one relative to the workspace, if it is below it.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let relative = path.strip_prefix(&self.path).ok()?;
        (!relative.as_os_str().is_empty()).then(|| relative.to_owned())
    }
}

/// Opens a path beneath a folder without following any link.
pub(crate) fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
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
