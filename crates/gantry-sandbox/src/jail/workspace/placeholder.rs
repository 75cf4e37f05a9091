//! Placeholders: what is put where a protected path does not exist, so that a jail has a mount point there.
//!
//! They are seen outside of the jail as well, by people and by programs, and one may be left over when Gantry is killed.
//! So no program takes one for the real thing, and Gantry recognises it: a socket without a listener cannot even be
//! opened; an empty folder, or a file without effect, has a sticky bit that it has no use for.

use super::lease::{Opened, is_empty, open_beneath};
use super::looks_like_placeholder;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, fstat, mkdirat, mknodat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// The permissions that folders and files are made with, less what the umask takes: both with the sticky bit.
const FOLDER_MODE: u32 = 0o1700;
const FILE_MODE: u32 = 0o1644;
/// The permissions of a folder that a user has filled.
const ORDINARY_MODE: u32 = 0o755;

const NO_LINK: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// For a file that its readers must not find.
    Socket,
    Folder,
    /// For a file that its readers may find with this content, without effect.
    File(&'static [u8]),
}

/// The contents of [`Placeholder::File`].
pub(super) const EMPTY: &[u8] = b"";
/// The common folder of a repository that has none is the repository itself. Git refuses an empty file.
pub(super) const ITSELF: &[u8] = b".\n";
const _: () = assert!(ITSELF.len() as u64 == super::LONGEST);

/// The result of an attempt to make a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// It is there, or one of another kind that was left over.
    Present { is_dir: bool },
    /// Something else is there.
    Taken,
    /// Nothing can be made there, and no job can change that.
    Impossible,
}

impl Placeholder {
    /// Makes it, unless it is there already.
    pub(super) fn make(self, workspace: &Opened, path: &Path) -> Result<Made, Errno> {
        let (folder, name) = parent(workspace, path)?;
        match self.make_in(folder.as_fd(), name) {
            Ok(()) => {
                give_to_owner(workspace, folder.as_fd(), name)?;
                Ok(Made::Present { is_dir: self == Self::Folder })
            }
            Err(Errno::EXIST) => self.reuse(workspace, path, &statat(&folder, name, NO_LINK)?),
            Err(Errno::ROFS) => Ok(Made::Impossible),
            Err(Errno::ACCESS) if !is_ours(folder.as_fd())? => Ok(Made::Impossible),
            Err(error) => Err(error),
        }
    }

    /// Uses the placeholder that is there, if it is one.
    fn reuse(self, workspace: &Opened, path: &Path, stat: &Stat) -> Result<Made, Errno> {
        if !is_one(workspace, path, stat)? {
            return Ok(Made::Taken);
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let (Self::File(content), FileType::RegularFile) = (self, kind)
            && usize::try_from(stat.st_size) != Ok(content.len())
        {
            // A power failure has left only its beginning.
            rustix::io::write(open_beneath(workspace.dir(), path, OFlags::WRONLY)?, content)?;
        }
        Ok(Made::Present { is_dir: kind == FileType::Directory })
    }

    fn make_in(self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
        match self {
            Self::Socket => mknodat(folder, name, FileType::Socket, Mode::empty(), 0),
            Self::Folder => mkdirat(folder, name, Mode::from_raw_mode(FOLDER_MODE)),
            Self::File(content) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let file = openat(folder, name, flags, Mode::from_raw_mode(FILE_MODE))?;
                // So few bytes are written at once or not at all.
                rustix::io::write(file, content)?;
                Ok(())
            }
        }
    }
}

fn is_marked(stat: &Stat) -> bool {
    looks_like_placeholder(stat.st_mode, u64::try_from(stat.st_size).unwrap_or(u64::MAX))
}

/// Whether a placeholder is there, made now or left over.
pub(super) fn is_one(workspace: &Opened, path: &Path, stat: &Stat) -> Result<bool, Errno> {
    if !is_marked(stat) {
        return Ok(false);
    }
    let found = if is_folder(stat) {
        is_empty(workspace.dir(), path)
    } else if FileType::from_raw_mode(stat.st_mode) == FileType::Socket {
        Ok(true)
    } else {
        is_without_effect(workspace, path, stat)
    };
    // Without the right to look into it, it is not a placeholder any more: the user has changed it.
    if found == Err(Errno::ACCESS) { Ok(false) } else { found }
}

/// Removes a placeholder. A folder that a user has filled stays.
pub(super) fn remove(workspace: &Opened, path: &Path) -> Result<(), Errno> {
    let (folder, name) = parent(workspace, path)?;
    let stat = match statat(&folder, name, NO_LINK) {
        Ok(stat) if is_one(workspace, path, &stat)? => stat,
        Ok(stat) if is_marked(&stat) && is_folder(&stat) => return hand_over(workspace, path),
        Ok(_) | Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    let flags = if is_folder(&stat) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::ROFS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives a folder that a user has filled ordinary permissions.
fn hand_over(workspace: &Opened, path: &Path) -> Result<(), Errno> {
    let folder = open_beneath(workspace.dir(), path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    fchmod(folder, Mode::from_raw_mode(ORDINARY_MODE))
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The folder that holds a path, opened without following a link, and the name in it.
fn parent<'a>(workspace: &Opened, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((open_beneath(workspace.dir(), folder, OFlags::PATH | OFlags::DIRECTORY)?, name))
}

/// Whether a file has the content of a placeholder, or only the beginning of it, as after a power failure.
fn is_without_effect(workspace: &Opened, path: &Path, stat: &Stat) -> Result<bool, Errno> {
    if stat.st_nlink != 1 {
        return Ok(false);
    }
    let mut content = [0; ITSELF.len() + 1];
    let file = open_beneath(workspace.dir(), path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let n_read = rustix::io::read(file, &mut content)?;
    Ok(content.get(..n_read).is_some_and(|content| ITSELF.starts_with(content)))
}

/// Gives what root has made to the owner of the workspace, unless something else is in its place by now.
fn give_to_owner(workspace: &Opened, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let made = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !is_marked(&fstat(&made)?) {
        return Ok(());
    }
    let owner = fstat(workspace.dir())?;
    let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    chownat(made, "", Some(user), Some(group), AtFlags::EMPTY_PATH)
}

/// Whether a job, which has the same user as Gantry, could give itself the right to write in a folder.
fn is_ours(folder: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(fstat(folder)?.st_uid == rustix::process::geteuid().as_raw())
}
