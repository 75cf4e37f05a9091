//! Opening by a single name in an opened directory: never through a link, never held up by a pipe.

use crate::workspace::within::{Hidden, Within};
use gantry_core::Fault;
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

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

/// Opens a directory.
pub(super) fn directory(dir: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(&dir, name, flags, Mode::empty()) {
        // With both flags the kernel gives a link and a file the same error.
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

/// The opened root of a workspace. Files beneath it are opened one name at a time, through no link and nothing hidden.
#[derive(Debug)]
pub(super) struct Beneath {
    pub(super) root: OwnedFd,
    pub(super) hidden: Hidden,
}

impl Beneath {
    pub(super) fn enter(within: &Within) -> Result<Self, Fault> {
        let (root, hidden) = within.enter()?;
        Ok(Self { root, hidden })
    }

    /// Opens the directory at a path relative to the root.
    pub(super) fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let (mut dir, _) = directory(&self.root, OsStr::new("."))?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let (opened, stat) = directory(&dir, OsStr::from_bytes(name))?;
            self.refuse_hidden(&stat)?;
            dir = opened;
        }
        Ok(dir)
    }

    fn refuse_hidden(&self, stat: &Stat) -> Result<(), Errno> {
        if self.hidden.has(stat) { Err(Errno::NOENT) } else { Ok(()) }
    }
}

/// Opens many files for one thread. It keeps the last directory open, because files come sorted by path.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    beneath: &'a Beneath,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(beneath: &'a Beneath) -> Self {
        Self { beneath, last: None }
    }

    /// Reads a whole text file. Nothing if it is larger than the limit or binary.
    pub(super) fn read<'b>(
        &mut self,
        path: &[u8],
        limit: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, Errno> {
        let (file, stat) = self.open(path)?;
        buffer.clear();
        // The size is known, so that a small file takes one read.
        let Some(size) = u64::try_from(stat.st_size).ok().filter(|size| *size <= limit) else {
            return Ok(None);
        };
        buffer.reserve(usize::try_from(size).unwrap_or(0));
        while (buffer.len() as u64) < size && rustix::io::read(&file, spare_capacity(buffer))? > 0 {}
        Ok(Some(buffer.as_slice()).filter(|text| !text.contains(&0)))
    }

    /// Opens the file at a path relative to the root.
    pub(super) fn open(&mut self, path: &[u8]) -> Result<(File, Stat), Errno> {
        let (parent, name) = split(path);
        let dir = match self.last.take() {
            Some((last, dir)) if last == parent => (last, dir),
            _ => (parent.to_vec(), self.beneath.directory(parent)?),
        };
        let opened = regular(&dir.1, OsStr::from_bytes(name));
        self.last = Some(dir);
        let (file, stat) = opened?;
        self.beneath.refuse_hidden(&stat)?;
        Ok((file, stat))
    }
}

/// The directory part of a path, empty for the root, and the last name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}
