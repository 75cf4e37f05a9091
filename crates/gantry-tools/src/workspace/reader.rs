//! The workspace for tools that read many files of it: the same folder, confined and protected in the same way.
//!
//! A path leads from the opened root by single names, through no link and into nothing that is hidden. What is hidden is
//! looked up once, when the reader is made, so a reader is for one call.

use super::entry::{
    Kind, digest_bounded, names, open_dir, open_directory, open_regular, read_bounded, stat_at,
};
use super::path::RelPath;
use super::protected::{FileId, Protection};
use super::root::WorkspaceRoot;
use crate::failure::{self, Result};
use cap_std::fs::Dir;
use gantry_core::digest::Digest;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Reads files and directories of a workspace. All paths are relative to the root, and empty for the root itself.
#[derive(Debug)]
pub(crate) struct WorkspaceReader {
    root: Dir,
    protection: Protection,
}

impl WorkspaceRoot {
    /// A reader for one call. It sees the whole workspace but for what is hidden now.
    pub(crate) fn reader(&self) -> Result<WorkspaceReader> {
        let root = self.resolve_directory(Path::new("."), None, ".")?;
        let (opened, _) = root.ok_or_else(|| failure::not_found("."))?;
        Ok(WorkspaceReader { root: Dir::from_std_file(opened.dir.into()), protection: opened.protection })
    }
}

impl WorkspaceReader {
    /// Where a path of a caller leads and what is there. Links are followed as long as they stay in the workspace; the
    /// path that is returned has none.
    pub(crate) fn resolve(&self, path: &RelPath) -> Result<(PathBuf, Kind)> {
        let shown = path.shown();
        let real = self.root.canonicalize(path.text());
        let real = real.map_err(|error| failure::io_error("opening", shown, &error))?;
        let real: PathBuf = real.iter().filter(|name| *name != ".").collect();
        let opening = |error| failure::os_error("opening", shown, error);
        let (mut kind, mut parent) = (Kind::Directory, Some(self.open_root().map_err(opening)?));
        for name in &real {
            let dir = parent.take().ok_or_else(|| opening(Errno::NOTDIR))?;
            let found = stat_at(&dir, name).map_err(opening)?.ok_or_else(|| failure::not_found(shown))?;
            self.protection.refuse_hidden(FileId::of(&found), shown)?;
            kind = Kind::of(&found);
            if kind == Kind::Directory {
                parent = Some(open_dir(&dir, name).map_err(opening)?);
            }
        }
        Ok((real, kind))
    }

    /// Opens a directory. A link on the way is `LOOP`; something hidden is `NOENT`, as if it was not there; a path that is
    /// absolute or goes back is `INVAL`.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut dir = self.open_root()?;
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::INVAL),
            };
            let (opened, stat) = open_directory(&dir, name)?;
            if self.is_hidden(&stat) {
                return Err(Errno::NOENT);
            }
            dir = opened;
        }
        Ok(dir)
    }

    /// The directory of a path, opened, and its last name.
    fn open_parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        Ok((self.open_directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Opens a regular file by a name in an opened directory.
    pub(crate) fn open_file_at(&self, dir: impl AsFd, name: &OsStr) -> Result<(File, Stat), Errno> {
        let (file, stat) = open_regular(dir, name)?;
        if self.is_hidden(&stat) { Err(Errno::NOENT) } else { Ok((file, stat)) }
    }

    pub(crate) fn open_file(&self, path: &Path) -> Result<(File, Stat), Errno> {
        let (dir, name) = self.open_parent(path)?;
        self.open_file_at(dir, name)
    }

    /// The content of a regular file. `FBIG` if it has more bytes than the limit.
    pub(crate) fn read_bounded(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read_bounded(self.open_file(path)?.0, limit)?.ok_or_else(|| Errno::FBIG.into())
    }

    /// The digest of a regular file's content and its size. `FBIG` if it has more bytes than the limit.
    pub(crate) fn digest(&self, path: &Path, limit: u64) -> io::Result<(Digest, u64)> {
        digest_bounded(self.open_file(path)?.0, limit)?.ok_or_else(|| Errno::FBIG.into())
    }

    /// What is at a path that ends in a name; a link there is itself.
    pub(crate) fn kind(&self, path: &Path) -> Result<Kind, Errno> {
        let (dir, name) = self.open_parent(path)?;
        let stat = stat_at(dir, name)?.filter(|stat| !self.is_hidden(stat)).ok_or(Errno::NOENT)?;
        Ok(Kind::of(&stat))
    }

    /// The entries of a directory, sorted, with what they are: the first so many that the file system names, what is
    /// hidden left out.
    pub(crate) fn list(&self, path: &Path, limit: usize) -> Result<Vec<(OsString, Kind)>, Errno> {
        let dir = self.open_directory(path)?;
        let mut entries = Vec::new();
        for name in names(&dir)?.take(limit) {
            let name = name?;
            if let Some(stat) = stat_at(&dir, &name)?.filter(|stat| !self.is_hidden(stat)) {
                entries.push((name, Kind::of(&stat)));
            }
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    pub(crate) fn is_hidden(&self, stat: &Stat) -> bool {
        self.protection.hides(FileId::of(stat))
    }

    fn open_root(&self) -> Result<OwnedFd, Errno> {
        open_dir(&self.root, OsStr::new("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::ProtectedPaths;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn workspace() -> (TempDir, WorkspaceReader) {
        let dir = TempDir::new().unwrap();
        let ws = dir.path().join("ws");
        for folder in ["d/sub", ".gantry"] {
            fs::create_dir_all(ws.join(folder)).unwrap();
        }
        for (path, content) in [("d/f", "content"), (".gantry/db", "SECRET"), ("../secret", "SECRET")] {
            fs::write(ws.join(path), content).unwrap();
        }
        for (target, link) in [("d", "l"), ("../secret", "out"), (".gantry", "alias"), ("f", "d/lf")] {
            symlink(target, ws.join(link)).unwrap();
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, ws.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let protected = ProtectedPaths { hidden: vec![ws.join(".gantry")], ..ProtectedPaths::default() };
        let reader = WorkspaceRoot::open(&ws, protected).unwrap().reader().unwrap();
        (dir, reader)
    }

    #[test]
    fn a_path_of_a_caller_leads_through_links_and_never_outside_or_to_what_is_hidden() {
        let (_dir, reader) = workspace();
        let resolve = |path: &str| {
            let found = reader.resolve(&RelPath::parse(path)?)?;
            Ok((found.0.to_str().unwrap().to_owned(), found.1))
        };
        let code = |path: &str| {
            resolve(path).map_err(|fault: gantry_core::CallFailure| fault.error.code.as_str()).unwrap_err()
        };
        assert_eq!(resolve(".").unwrap(), (String::new(), Kind::Directory));
        assert_eq!(resolve("l/sub").unwrap(), ("d/sub".to_owned(), Kind::Directory));
        assert_eq!(resolve("d/lf").unwrap(), ("d/f".to_owned(), Kind::File));
        assert_eq!(resolve("pipe").unwrap().1, Kind::Special);
        assert_eq!(code("out"), "INVALID_PATH");
        assert_eq!(code("none"), "FILE_NOT_FOUND");
        assert_eq!(code("d/f/x"), "FILE_NOT_FOUND");
        assert_eq!(code(".gantry/db"), "PERMISSION_DENIED");
        assert_eq!(code("alias"), "PERMISSION_DENIED");
    }

    #[test]
    fn nothing_is_opened_through_a_link_or_from_what_is_hidden() {
        let (_dir, reader) = workspace();
        let read = |path: &str| {
            reader.read_bounded(Path::new(path), 7).map_err(|error| Errno::from_io_error(&error))
        };
        assert_eq!(read("d/f").unwrap(), b"content");
        for (path, error) in [
            ("l/f", Errno::LOOP),
            ("d/lf", Errno::LOOP),
            (".gantry/db", Errno::NOENT),
            ("pipe", Errno::INVAL),
            ("../secret", Errno::INVAL),
            ("d/../../secret", Errno::INVAL),
            ("/etc/hostname", Errno::INVAL),
            ("d", Errno::INVAL),
            ("", Errno::ISDIR),
        ] {
            assert_eq!(read(path), Err(Some(error)), "{path}");
        }
        let too_large = reader.read_bounded(Path::new("d/f"), 6).unwrap_err();
        assert_eq!(Errno::from_io_error(&too_large), Some(Errno::FBIG));
        assert_eq!(reader.digest(Path::new("d/f"), 7).unwrap(), (Digest::of(b"content"), 7));
        assert!(reader.digest(Path::new("d/f"), 6).is_err());
        assert_eq!(reader.kind(Path::new("d/lf")), Ok(Kind::Link));
        assert_eq!(reader.kind(Path::new(".gantry")), Err(Errno::NOENT));
        let entries = reader.list(Path::new("d"), 10).unwrap();
        assert_eq!(
            entries,
            [("f".into(), Kind::File), ("lf".into(), Kind::Link), ("sub".into(), Kind::Directory)]
        );
        assert_eq!(reader.list(Path::new(""), 10).unwrap().len(), 5);
        assert_eq!(reader.list(Path::new("d"), 1).unwrap().len(), 1);
    }
}
