//! What is done with a single name in an opened directory: never through a link, and never held up by a pipe.

use gantry_core::digest::Digest;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// What is read at a time to hash a file.
const HASH_BUFFER: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device: nothing that these tools read or write.
    Special,
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Special,
        }
    }
}

impl Kind {
    pub(crate) fn of(stat: &Stat) -> Self {
        FileType::from_raw_mode(stat.st_mode).into()
    }
}

/// What has this name, without following links; nothing if nothing has.
pub(crate) fn stat_at(dir: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn link_target(dir: impl AsFd, name: &OsStr) -> Result<Vec<u8>, Errno> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// How a directory is opened to work in it.
#[cfg(target_os = "linux")]
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Opens a directory, and no link to one.
pub(crate) fn open_dir(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// The same, with what it is. A link is `LOOP`, which the kernel does not tell from a file.
pub(crate) fn open_directory(dir: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let opened = open_dir(&dir, name).map_err(|error| match (error, stat_at(&dir, name)) {
        (Errno::NOTDIR, Ok(Some(stat))) if Kind::of(&stat) == Kind::Link => Errno::LOOP,
        _ => error,
    })?;
    let stat = fstat(&opened)?;
    Ok((opened, stat))
}

/// Opens a regular file to read it.
pub(crate) fn open_regular(dir: impl AsFd, name: &OsStr) -> Result<(File, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if Kind::of(&stat) == Kind::File { Ok((file.into(), stat)) } else { Err(Errno::INVAL) }
}

/// The content of a file, unless it has more bytes than the limit, or grows beyond it meanwhile.
pub(crate) fn read_bounded(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    Ok(Some(content).filter(|content| content.len() as u64 <= limit))
}

/// The digest of a file's content and its size in bytes, with the same limit.
pub(crate) fn digest_bounded(file: File, limit: u64) -> io::Result<Option<(Digest, u64)>> {
    let mut file = file.take(limit.saturating_add(1));
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; HASH_BUFFER]);
    while let n @ 1.. = file.read(&mut buffer)? {
        hasher.update(buffer.get(..n).unwrap_or_default());
        size += n as u64;
    }
    Ok((size <= limit).then(|| (Digest::from_bytes(hasher.finalize().into()), size)))
}

/// The names in a directory, `.` and `..` left out.
pub(crate) fn names(dir: impl AsFd) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let entries = rustix::fs::Dir::new(readable(dir)?)?;
    Ok(entries
        .map(|entry| entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()))
        .filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}

/// The same directory, opened to read its entries.
pub(crate) fn readable(dir: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::empty())
}

/// Makes a change of a directory's entries outlive a power cut.
pub(crate) fn sync(dir: impl AsFd) -> Result<(), Errno> {
    match readable(dir) {
        Ok(readable) => rustix::fs::fsync(readable),
        // A directory that may be changed but not read cannot be synced; the change stands all the same.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Which file or directory it is, and when it was last written to, moved or otherwise changed.
pub(crate) fn identity(stat: &Stat) -> String {
    let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    format!("{:?}", (stat.st_dev, stat.st_ino, stat.st_size, times))
}

pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The time of the last change of the content, as RFC 3339 in UTC.
pub(crate) fn modified(stat: &Stat) -> String {
    let nanoseconds = i32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    let time = jiff::Timestamp::new(stat.st_mtime, nanoseconds);
    // A file system can hold times that no calendar has.
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}
