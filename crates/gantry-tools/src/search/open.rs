//! Opening by a single name in an opened directory: never through a link, never held up by a pipe.

use crate::workspace::within::{Hidden, Within};
use gantry_core::Fault;
use gantry_store::search::Stamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

/// Opens a regular file to read it.
pub(super) fn regular(dir: impl AsFd, name: &OsStr) -> Result<(File, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file.into(), stat)),
        FileType::Directory
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(Errno::INVAL),
    }
}

/// Opens a directory to read its entries.
pub(super) fn directory(dir: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(&dir, name, flags, Mode::empty()) {
        // With both flags a link is told from a file only by looking.
        Err(Errno::NOTDIR) if is_link(&dir, name) => Err(Errno::LOOP),
        opened => opened,
    }?;
    let stat = fstat(&opened)?;
    Ok((opened, stat))
}

fn is_link(dir: impl AsFd, name: &OsStr) -> bool {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// How a file is now, to tell later whether it has changed.
pub(super) fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        size: stat.st_size,
        modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec.try_into().unwrap_or(0)),
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec.try_into().unwrap_or(0)),
        inode: stat.st_ino.cast_signed(),
    }
}

fn nanoseconds(seconds: i64, part: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part)
}

/// Everything of a file that is text; nothing if it is none, or too much.
pub(super) fn text(file: File, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes).ok()? as u64;
    if read > limit || bytes.contains(&0) {
        return None;
    }
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// The opened root of a workspace, to get at files by their whole path: one step per name, through no link and nothing
/// hidden.
#[derive(Debug)]
pub(super) struct Reach {
    root: OwnedFd,
    hidden: Hidden,
}

impl Reach {
    pub(super) fn from(within: &Within) -> Result<Self, Fault> {
        let (root, hidden) = within.enter()?;
        Ok(Self { root, hidden })
    }

    /// Opens the file at a path relative to the root.
    pub(super) fn open(&self, path: &str) -> Result<(File, Stat), Errno> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut dir: Option<OwnedFd> = None;
        for step in above.split('/').filter(|step| !step.is_empty()) {
            let (opened, stat) = directory(dir.as_ref().unwrap_or(&self.root), OsStr::new(step))?;
            self.refuse_hidden(&stat)?;
            dir = Some(opened);
        }
        let (file, stat) = regular(dir.as_ref().unwrap_or(&self.root), OsStr::new(name))?;
        self.refuse_hidden(&stat)?;
        Ok((file, stat))
    }

    /// How a directory is now, as far as its entries go. Nothing of it is read, so links in the path do no harm.
    pub(super) fn directory_stamp(&self, path: &str) -> Option<Stamp> {
        let path = if path.is_empty() { "." } else { path };
        statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(stamp)
    }

    fn refuse_hidden(&self, stat: &Stat) -> Result<(), Errno> {
        if self.hidden.has(stat) { Err(Errno::NOENT) } else { Ok(()) }
    }
}
