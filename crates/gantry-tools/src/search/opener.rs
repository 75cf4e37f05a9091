//! Opens the files of a list, one after the other.

use crate::workspace::reader::WorkspaceReader;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Opens many files for one thread. It keeps the last directory open, because files come sorted by path.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    reader: &'a WorkspaceReader,
    last: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(reader: &'a WorkspaceReader) -> Self {
        Self { reader, last: None }
    }

    /// Opens a file. Nothing if it is gone, hidden, or no file any more.
    pub(super) fn open(&mut self, path: &Path) -> Result<Option<(File, u64)>, Errno> {
        match self.try_open(path) {
            Ok(opened) => Ok(Some(opened)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NXIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn try_open(&mut self, path: &Path) -> Result<(File, u64), Errno> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::NOENT)?;
        let dir = match self.last.take() {
            Some((last, dir)) if last.as_os_str() == parent.as_os_str() => (last, dir),
            _ => (parent.to_owned(), self.reader.open_directory(parent)?),
        };
        let opened = self.reader.open_file_at(&dir.1, name);
        self.last = Some(dir);
        let (file, stat) = opened?;
        Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Reads a whole text file. Nothing if it is gone, hidden, larger than the limit, or binary.
    pub(super) fn read<'b>(
        &mut self,
        path: &Path,
        limit: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, Errno> {
        let Some((file, size)) = self.open(path)?.filter(|(_, size)| *size <= limit) else { return Ok(None) };
        buffer.clear();
        // The size is known, so that a small file takes one read.
        buffer.reserve(usize::try_from(size).unwrap_or(0));
        while (buffer.len() as u64) < size && rustix::io::read(&file, spare_capacity(buffer))? > 0 {}
        Ok(Some(buffer.as_slice()).filter(|text| !text.contains(&0)))
    }
}
