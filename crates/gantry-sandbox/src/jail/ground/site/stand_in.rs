//! Stand-ins: what is put where a protected path does not exist, so that a jail has something to cover.
//!
//! They are seen outside of the jail as well, by people and by programs, and one may be left over when Gantry is killed.
//! So each is something that nobody takes for the real thing, and that is recognised again: a socket that nobody
//! listens on cannot even be opened; an empty folder, or a file without effect, has a sticky bit that it has no use for.

use super::Site;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, chownat, fchmod, fstat, mkdirat,
    mknodat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// The permissions that folders and files are made with, less what the umask takes: both with the sticky bit.
const FOLDER_MODE: u32 = 0o1700;
const FILE_MODE: u32 = 0o1644;
/// The permissions of a folder that has become somebody's.
const ORDINARY_MODE: u32 = 0o755;
/// The bits of a mode by which they are recognised: with these, only the sticky one is set.
const FOLDER_MARK: u32 = 0o7077;
const FILE_MARK: u32 = 0o7111;
const STICKY: u32 = 0o1000;
/// The bits of a socket, of which none is set.
const SOCKET_MARK: u32 = 0o7777;

const NO_LINK: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// What stands in for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandIn {
    /// For a file that whoever reads it must not find.
    Socket,
    /// For a folder.
    Folder,
    /// For a file that may be found with this content, without effect.
    File(&'static [u8]),
}

/// The contents of [`StandIn::File`].
pub(super) const EMPTY: &[u8] = b"";
/// The common folder of a repository that has none is the repository itself. Git refuses an empty file.
pub(super) const ITSELF: &[u8] = b".\n";
/// How many bytes one of them has at most.
pub(in crate::jail::ground) const LONGEST: u64 = ITSELF.len() as u64;

/// What came of an attempt to put a stand-in somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// It is there, or one of another kind that was left over.
    Stands { is_dir: bool },
    /// Something else is.
    Taken,
    /// There can be nothing, and no job can change that.
    Barred,
}

impl StandIn {
    /// Puts it there, unless it is there already.
    pub(super) fn make(self, site: &Site, path: &Path) -> Result<Made, Errno> {
        let (folder, name) = parent(site, path)?;
        match self.make_in(folder.as_fd(), name) {
            Ok(()) => {
                give(site, folder.as_fd(), name)?;
                Ok(Made::Stands { is_dir: self == Self::Folder })
            }
            Err(Errno::EXIST) => self.take_over(site, path, &statat(&folder, name, NO_LINK)?),
            Err(Errno::ROFS) => Ok(Made::Barred),
            Err(Errno::ACCESS) if !is_ours(folder.as_fd())? => Ok(Made::Barred),
            Err(error) => Err(error),
        }
    }

    /// Uses what is there, if it is a stand-in.
    fn take_over(self, site: &Site, path: &Path, stat: &Stat) -> Result<Made, Errno> {
        if !is_one(site, path, stat)? {
            return Ok(Made::Taken);
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let (Self::File(content), FileType::RegularFile) = (self, kind)
            && usize::try_from(stat.st_size) != Ok(content.len())
        {
            // A power failure has left less of it.
            rustix::io::write(open(site, path, OFlags::WRONLY)?, content)?;
        }
        Ok(Made::Stands { is_dir: kind == FileType::Directory })
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

/// Whether something looks like a stand-in from outside.
pub(in crate::jail::ground) fn is_marked(mode: u32) -> bool {
    match FileType::from_raw_mode(mode) {
        FileType::Socket => mode & SOCKET_MARK == 0,
        FileType::Directory => mode & FOLDER_MARK == STICKY,
        FileType::RegularFile => mode & FILE_MARK == STICKY,
        FileType::Symlink
        | FileType::Fifo
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => false,
    }
}

/// Whether a stand-in is there, made now or left over.
pub(super) fn is_one(site: &Site, path: &Path, stat: &Stat) -> Result<bool, Errno> {
    if !is_marked(stat.st_mode) {
        return Ok(false);
    }
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => Ok(true),
        FileType::Directory => is_empty(site, path),
        FileType::RegularFile
        | FileType::Symlink
        | FileType::Fifo
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => is_without_effect(site, path, stat),
    };
    // Whoever took away the right to look into it has made it theirs.
    if found == Err(Errno::ACCESS) { Ok(false) } else { found }
}

/// Takes a stand-in away. One that somebody has put something in by now stays.
pub(super) fn remove(site: &Site, path: &Path) -> Result<(), Errno> {
    let (folder, name) = parent(site, path)?;
    let stat = match statat(&folder, name, NO_LINK) {
        Ok(stat) if is_one(site, path, &stat)? => stat,
        Ok(stat) if is_marked(stat.st_mode) && is_folder(&stat) => return hand_over(site, path),
        Ok(_) | Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    let flags = if is_folder(&stat) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::ROFS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a folder that somebody has put something in an ordinary one.
fn hand_over(site: &Site, path: &Path) -> Result<(), Errno> {
    let folder = open(site, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    fchmod(folder, Mode::from_raw_mode(ORDINARY_MODE))
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The folder that holds a path, opened without following a link, and the name in it.
fn parent<'a>(site: &Site, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((open(site, folder, OFlags::PATH | OFlags::DIRECTORY)?, name))
}

pub(super) fn open(site: &Site, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(site.dir(), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Whether a folder has nothing in it.
pub(super) fn is_empty(site: &Site, path: &Path) -> Result<bool, Errno> {
    let folder = open(site, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    for entry in Dir::new(folder)? {
        let entry = entry?;
        if ![".", ".."].contains(&entry.file_name().to_str().unwrap_or_default()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file says what a stand-in would, or less: one that was left over half written.
fn is_without_effect(site: &Site, path: &Path, stat: &Stat) -> Result<bool, Errno> {
    if stat.st_nlink != 1 || u64::try_from(stat.st_size).is_ok_and(|size| size > LONGEST) {
        return Ok(false);
    }
    let mut content = [0; ITSELF.len() + 1];
    let file = open(site, path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let n_read = rustix::io::read(file, &mut content)?;
    Ok(content.get(..n_read).is_some_and(|content| ITSELF.starts_with(content)))
}

/// Gives what root has made to whoever the workspace belongs to, unless something else has come to its place.
fn give(site: &Site, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let made = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !is_marked(fstat(&made)?.st_mode) {
        return Ok(());
    }
    let owner = fstat(site.dir())?;
    let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    chownat(made, "", Some(user), Some(group), AtFlags::EMPTY_PATH)
}

/// Whether a job, which has the same user as Gantry, could give itself the right to write in a folder.
fn is_ours(folder: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(fstat(folder)?.st_uid == rustix::process::geteuid().as_raw())
}
