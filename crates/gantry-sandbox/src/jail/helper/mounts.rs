//! The mounts over protected paths of the workspace.
//!
//! A mount lies on a file or folder, not on its name: a process outside of the jail that renames it takes the mount along,
//! and one that removes it takes the mount off. So each mount is looked for at its path, before the program is executed and
//! at each interval while it runs.
//!
//! Invariant: nothing here follows a link in the workspace, which a job may have written before, or writes at this moment.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, fstat,
    fstatvfs, stat, statx,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::HelperJob;
use crate::jail::WORKSPACE;
use crate::jail::error::{At as _, JailError, Step};
use crate::jail::probe::Backend;
use crate::jail::workspace::{MountMode, ProtectedMount, open_beneath};
use crate::protected::FileId;
use crate::sys::jail::set_mount_attributes;

/// What hidden folders and files look like.
const NO_FOLDER: &str = "/run/hidden/folder";
const NO_FILE: &str = "/run/hidden/file";

/// What hidden files look like with bubblewrap: the number of `/dev/null`.
const NULL_DEVICE: u64 = libc::makedev(1, 3);

/// Mounts over the protected paths, in their order.
pub(super) fn make(mounts: &[ProtectedMount]) -> Result<(), JailError> {
    if mounts.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(NO_FOLDER).and_then(|()| fs::write(NO_FILE, [])).at(Step::Protection, NO_FOLDER)?;
    let workspace = open_workspace().at(Step::Protection, WORKSPACE)?;
    for mount in mounts {
        make_one(&workspace, mount).at(Step::Protection, mount.path.display())?;
    }
    Ok(())
}

fn make_one(workspace: &OwnedFd, wanted: &ProtectedMount) -> io::Result<()> {
    let below = open_below(workspace, &wanted.path)?;
    let is_folder = FileType::from_raw_mode(fstat(&below)?.st_mode) == FileType::Directory;
    let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let itself = copy | OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    let mount = match wanted.mode {
        MountMode::Pin | MountMode::ReadOnly => open_tree(&below, "", itself)?,
        MountMode::Hide if is_folder => open_tree(CWD, NO_FOLDER, copy)?,
        MountMode::Hide => open_tree(CWD, NO_FILE, copy)?,
    };
    let attributes = match wanted.mode {
        MountMode::Pin => MountAttrFlags::empty(),
        MountMode::ReadOnly | MountMode::Hide => MountAttrFlags::MOUNT_ATTR_RDONLY,
    };
    set_mount_attributes(&mount, attributes, true)?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&mount, "", &below, "", both)?)
}

/// Refuses a workspace or a store from bubblewrap that is not the folder that Gantry had opened.
pub(super) fn check_folders(job: &HelperJob) -> Result<(), JailError> {
    let workspace = job.workspace.iter().map(|folder| (folder, Path::new(WORKSPACE)));
    let stores = job.stores.iter().zip(job.spec.job.stores.iter().map(|store| &*store.at));
    for (folder, at) in workspace.chain(stores) {
        let shown = at.display();
        let (wanted, found) = (fstat(folder).at(Step::Rootfs, &shown)?, stat(at).at(Step::Rootfs, &shown)?);
        if FileId::of(&wanted) != FileId::of(&found) {
            return Err(Errno::STALE).at(Step::Rootfs, shown);
        }
    }
    Ok(())
}

/// The protected mounts of a jail, each found at its path, and the paths that must stay absent.
#[derive(Debug)]
pub(super) struct MountWatch {
    workspace: OwnedFd,
    /// The paths, and the number of the mount there.
    mounts: Vec<(PathBuf, u64)>,
    absent: Vec<PathBuf>,
}

impl MountWatch {
    /// Finds the mounts. Changes of mounts have to be watched by now: earlier ones are not reported.
    pub(super) fn find(job: &HelperJob) -> Result<Self, JailError> {
        let workspace = open_workspace().at(Step::Protection, WORKSPACE)?;
        // bubblewrap goes by paths, which may have led it astray.
        let opened = job.workspace.as_ref().filter(|_| job.spec.backend == Backend::Bubblewrap);
        let mut mounts = Vec::new();
        for mount in &job.spec.mounts {
            let id = find_one(&workspace, mount, opened).at(
                Step::Protection,
                format!(
                    "{} was replaced meanwhile, or its user may not look at it (`chmod u+rx` on the folders above it gives \
                     the right back); run the job again",
                    mount.path.display()
                ),
            )?;
            mounts.push((mount.path.clone(), id));
        }
        Ok(Self { workspace, mounts, absent: job.spec.absent.clone() })
    }

    /// Whether each of them still is at its path, and nothing is where nothing may be. The kernel does not tell when a name
    /// changes.
    pub(super) fn are_in_place(&self) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        // It would follow a link on the way, but folders on the way are pinned by mounts of their own.
        let look = |path: &PathBuf| statx(&self.workspace, path, flags, StatxFlags::MNT_ID);
        // If a folder is shut, the job has shut it for itself as well.
        let is_there = |(path, id): &(PathBuf, u64)| match look(path) {
            Ok(found) => found.stx_mnt_id == *id,
            Err(error) => error == Errno::ACCESS,
        };
        let is_absent = |path| matches!(look(path), Err(Errno::NOENT | Errno::ACCESS));
        self.mounts.iter().all(is_there) && self.absent.iter().all(is_absent)
    }
}

/// The number of the mount at the path of a protected one. `opened` is the workspace as Gantry has opened it, if what the
/// mount shows is to be compared.
fn find_one(
    workspace: &OwnedFd,
    mount: &ProtectedMount,
    opened: Option<&OwnedFd>,
) -> rustix::io::Result<u64> {
    let found = open_below(workspace, &mount.path)?;
    let state = statx(&found, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let is_mount = state.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    let is_read_only = fstatvfs(&found)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    let is_right = opened.map_or(Ok(true), |opened| is_shown_right(&found, mount, opened))?;
    if is_mount && (is_read_only || mount.mode == MountMode::Pin) && is_right {
        Ok(state.stx_mnt_id)
    } else {
        Err(Errno::STALE)
    }
}

/// Whether a mount shows the same path of the workspace that Gantry had opened, or for a hidden path nothing.
fn is_shown_right(found: &OwnedFd, mount: &ProtectedMount, opened: &OwnedFd) -> rustix::io::Result<bool> {
    let state = fstat(found)?;
    Ok(match mount.mode {
        MountMode::Pin | MountMode::ReadOnly => {
            FileId::of(&state) == FileId::of(&fstat(open_below(opened, &mount.path)?)?)
        }
        // But for `.` and `..`.
        MountMode::Hide if mount.is_dir => {
            let folder = open_beneath(found, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY)?;
            Dir::new(folder)?.nth(2).is_none()
        }
        MountMode::Hide => {
            let kind = FileType::from_raw_mode(state.st_mode);
            kind == FileType::CharacterDevice && state.st_rdev == NULL_DEVICE
        }
    })
}

fn open_workspace() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(WORKSPACE, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a path of the workspace. Its last name may be that of a link, which is then opened itself.
fn open_below(workspace: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    open_beneath(workspace, path, OFlags::PATH | OFlags::NOFOLLOW)
}
