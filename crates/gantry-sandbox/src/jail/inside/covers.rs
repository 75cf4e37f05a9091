//! The covers over what is protected in the workspace.
//!
//! Invariant: nothing here follows a link in the workspace, which a job has written before, or writes at this moment.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::jail::WORKSPACE;
use crate::jail::ground::{Cover, How};
use crate::jail::plan::{At as _, Failure, Step};
use crate::sys::jail::{MountChange, change_mount};

/// What hidden folders and files look like.
const NO_FOLDER: &str = "/run/hidden/folder";
const NO_FILE: &str = "/run/hidden/file";

/// Lays the covers over the workspace, in their order.
pub(super) fn lay(covers: &[Cover]) -> Result<(), Failure> {
    if covers.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(NO_FOLDER).and_then(|()| fs::write(NO_FILE, [])).at(Step::Covers, NO_FOLDER)?;
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = rustix::fs::open(WORKSPACE, folder, Mode::empty()).at(Step::Covers, WORKSPACE)?;
    for cover in covers {
        lay_one(&workspace, cover).at(Step::Covers, cover.path.display())?;
    }
    Ok(())
}

fn lay_one(workspace: &OwnedFd, cover: &Cover) -> io::Result<()> {
    let below = open_below(workspace, &cover.path)?;
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&below)?.st_mode) == FileType::Directory;
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

/// Opens a path of the workspace. Its last name may be that of a link, which is then opened itself.
fn open_below(workspace: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(workspace, path, flags, Mode::empty(), resolve)?)
}
