//! The covers over what is protected in the workspace.
//!
//! A cover lies on a file or folder, not on its name: who renames that outside of the jail takes the cover along, and
//! who removes it takes the cover off. So each one is looked for at its path, before the program is executed and ever
//! again while it runs.
//!
//! Invariant: nothing here follows a link in the workspace, which a job has written before, or writes at this moment.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
    fstat, fstatvfs, statx,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::Order;
use crate::jail::WORKSPACE;
use crate::jail::ground::{Cover, How};
use crate::jail::plan::{At as _, Failure, Step, Walls};
use crate::sys::jail::{MountChange, change_mount};

/// What hidden folders and files look like.
const NO_FOLDER: &str = "/run/hidden/folder";
const NO_FILE: &str = "/run/hidden/file";

/// What they look like where somebody else has hidden them: the number of `/dev/null`.
const NULL_DEVICE: u64 = libc::makedev(1, 3);

/// Lays the covers over the workspace, in their order.
pub(super) fn lay(covers: &[Cover]) -> Result<(), Failure> {
    if covers.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(NO_FOLDER).and_then(|()| fs::write(NO_FILE, [])).at(Step::Covers, NO_FOLDER)?;
    let workspace = open_workspace().at(Step::Covers, WORKSPACE)?;
    for cover in covers {
        lay_one(&workspace, cover).at(Step::Covers, cover.path.display())?;
    }
    Ok(())
}

fn lay_one(workspace: &OwnedFd, cover: &Cover) -> io::Result<()> {
    let below = open_below(workspace, &cover.path)?;
    let is_folder = FileType::from_raw_mode(fstat(&below)?.st_mode) == FileType::Directory;
    let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let itself = copy | OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    let mount = match cover.how {
        How::Pin | How::Seal => open_tree(&below, "", itself)?,
        How::Hide if is_folder => open_tree(CWD, NO_FOLDER, copy)?,
        How::Hide => open_tree(CWD, NO_FILE, copy)?,
    };
    let set = match cover.how {
        How::Pin => 0,
        How::Seal | How::Hide => MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into(),
    };
    change_mount(&mount, MountChange { is_recursive: true, set, id_map: None })?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&mount, "", &below, "", both)?)
}

/// The covers of a jail, each found at its path.
#[derive(Debug)]
pub(super) struct Laid {
    workspace: OwnedFd,
    /// The paths, and the number of the mount that lies there.
    mounts: Vec<(PathBuf, u64)>,
}

impl Laid {
    /// Finds the covers, whoever has laid them. Changes of the mounts have to be watched by now: of those before, nothing is
    /// told.
    pub(super) fn find(order: &Order) -> Result<Self, Failure> {
        let workspace = open_workspace().at(Step::Covers, WORKSPACE)?;
        // Who goes by paths may have been led astray.
        let (covers, opened) = match &order.plan.walls {
            Walls::Native(view) => (&view.covers, None),
            Walls::Given { covers } => (covers, order.folders.first()),
        };
        let mut mounts = Vec::new();
        for cover in covers {
            let (found, mount) = lying(&workspace, cover).map_err(|error| fallen(cover, error))?;
            if let Some(opened) = opened {
                shows(&found, cover, opened).map_err(|error| fallen(cover, error))?;
            }
            mounts.push((cover.path.clone(), mount));
        }
        Ok(Self { workspace, mounts })
    }

    /// Whether each of them still lies at its path. The kernel does not tell when a name changes.
    pub(super) fn is_whole(&self) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        // A link on the way would be found as well: what is on the way is pinned by a cover of its own.
        let mut found = self
            .mounts
            .iter()
            .map(|(path, mount)| (statx(&self.workspace, path, flags, StatxFlags::MNT_ID), *mount));
        found.all(|(found, mount)| match found {
            Ok(found) => found.stx_mnt_id == mount,
            // The job has shut a folder, for itself as well.
            Err(Errno::ACCESS) => true,
            Err(_) => false,
        })
    }
}

/// Why a job is not run: a cover is not what it should be.
fn fallen(cover: &Cover, error: Errno) -> Failure {
    let path = cover.path.display();
    let what = match error {
        Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {
            format!("{path} was replaced meanwhile; run the job again")
        }
        Errno::ACCESS => {
            format!("{path}, which its user may not look at; use chmod u+rx on the folders above it")
        }
        _ => path.to_string(),
    };
    Failure { step: Step::Covers, detail: what, errno: error.raw_os_error() }
}

/// A cover as it lies, and the number of its mount.
fn lying(workspace: &OwnedFd, cover: &Cover) -> rustix::io::Result<(OwnedFd, u64)> {
    let found = open_below(workspace, &cover.path)?;
    let state = statx(&found, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let is_mount = state.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    let is_read_only = fstatvfs(&found)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if is_mount && (is_read_only || cover.how == How::Pin) {
        Ok((found, state.stx_mnt_id))
    } else {
        Err(Errno::STALE)
    }
}

/// Makes sure that a cover which somebody else has laid shows what it has to: what is at that path of the opened
/// workspace, or nothing.
fn shows(found: &OwnedFd, cover: &Cover, opened: &OwnedFd) -> rustix::io::Result<()> {
    let state = fstat(found)?;
    let is_right = match cover.how {
        How::Pin | How::Seal => {
            let wanted = fstat(open_below(opened, &cover.path)?)?;
            (state.st_dev, state.st_ino) == (wanted.st_dev, wanted.st_ino)
        }
        How::Hide if cover.is_dir => is_empty(found)?,
        How::Hide => {
            let kind = FileType::from_raw_mode(state.st_mode);
            kind == FileType::CharacterDevice && state.st_rdev == NULL_DEVICE
        }
    };
    if is_right { Ok(()) } else { Err(Errno::STALE) }
}

fn is_empty(folder: &OwnedFd) -> rustix::io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(rustix::fs::openat(folder, ".", flags, Mode::empty())?)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn open_workspace() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(WORKSPACE, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a path of the workspace. Its last name may be that of a link, which is then opened itself.
fn open_below(workspace: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(workspace, path, flags, Mode::empty(), resolve)
}
