//! A folder of the workspace that a development tool works in, as Gantry itself looks at it.
//!
//! Links that stay in the workspace are followed, because the programs of the project follow them too.

use crate::command::runner::in_jail;
use crate::failure::{self, Result};
use crate::text::display_text;
use crate::workspace::entry::Kind;
use crate::workspace::path::RelPath;
use crate::workspace::reader::WorkspaceReader;
use crate::workspace::root::WorkspaceRoot;
use gantry_core::ErrorCode;
use gantry_core::digest::Digest;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a manifest or a lock file.
const MANIFEST_BYTES: u64 = 16 * 1024 * 1024;
/// Entries of a folder that are looked at for a file of some kind.
const ENTRIES: usize = 1000;

/// A folder of the workspace, or a file in it.
#[derive(Debug)]
pub(super) struct ProjectDir {
    pub(super) reader: WorkspaceReader,
    /// The folder, relative to the workspace and without links; empty for the workspace itself.
    pub(super) folder: PathBuf,
    /// The name in the folder, if the path is that of a file.
    pub(super) file: Option<String>,
}

impl ProjectDir {
    pub(super) fn open(root: &WorkspaceRoot, path: &str) -> Result<Self> {
        let reader = root.reader()?;
        let path = RelPath::parse(path)?;
        let (real, kind) = reader.resolve(&path)?;
        let Some(text) = real.to_str() else {
            return Err(failure::invalid_path(format!("{} leads to a name that is not UTF-8", path.shown())));
        };
        match kind {
            Kind::Directory => Ok(Self { reader, folder: real, file: None }),
            Kind::File => {
                let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
                Ok(Self { reader, folder: folder.into(), file: Some(name.to_owned()) })
            }
            Kind::Link | Kind::Special => {
                Err(failure::invalid(format!("{} is neither a file nor a directory", path.shown())))
            }
        }
    }

    pub(super) fn shown(&self) -> String {
        if self.folder.as_os_str().is_empty() {
            return "the workspace".to_owned();
        }
        display_text(&self.folder.to_string_lossy())
    }

    /// Something in the folder, as programs in the jail have it.
    pub(super) fn in_jail(&self, name: &str) -> String {
        in_jail(&self.folder.join(name)).display().to_string()
    }

    /// Where a path relative to the workspace leads, and what is there.
    fn resolve(&self, path: &Path) -> Result<(PathBuf, Kind)> {
        let text = path.to_str().ok_or_else(|| failure::invalid_path("the path is not UTF-8"))?;
        self.reader.resolve(&RelPath::parse(if text.is_empty() { "." } else { text })?)
    }

    /// Whether there is something at a path relative to the workspace, if only a link.
    fn exists(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        self.resolve(parent).is_ok_and(|(parent, _)| self.reader.kind(&parent.join(name)).is_ok())
    }

    /// Whether there is something of this name in the folder, if only a link.
    pub(super) fn has(&self, name: &str) -> bool {
        self.exists(&self.folder.join(name))
    }

    /// The folder, or one above it up to the workspace, in which there is something of this name.
    pub(super) fn find_above(&self, name: &str) -> Option<PathBuf> {
        self.folder.ancestors().find(|folder| self.exists(&folder.join(name))).map(Path::to_owned)
    }

    /// The text of a file at a path relative to the workspace, if it is one and not larger than a manifest.
    pub(super) fn text(&self, path: &Path) -> Option<String> {
        let (real, _) = self.resolve(path).ok()?;
        String::from_utf8(self.reader.read_bounded(&real, MANIFEST_BYTES).ok()?).ok()
    }

    /// The digest of a file at a path relative to the workspace; none if there is no such file. One that is too large, is no plain file or
    /// lies elsewhere is an error: it is there for others, and what it says is not known.
    pub(super) fn digest(&self, path: &Path) -> Result<Option<Digest>> {
        let digest = match self.resolve(path) {
            Ok((real, _)) => self.reader.digest(&real, MANIFEST_BYTES).ok(),
            Err(fault) if fault.error.code == ErrorCode::FileNotFound => return Ok(None),
            Err(_) => None,
        };
        let refused = || {
            failure::failed(format!(
                "{} is too large or not a plain file; installing needs a plain file, so nothing was installed",
                display_text(&path.to_string_lossy())
            ))
        };
        digest.map(|(digest, _)| Some(digest)).ok_or_else(refused)
    }

    /// Whether a folder in the folder has a file whose name fits; an empty name is the folder itself.
    pub(super) fn has_file(&self, folder: &str, fits: impl Fn(&Path) -> bool) -> bool {
        let entries = self.entries(&self.folder.join(folder), ENTRIES);
        entries.iter().any(|(name, kind)| *kind == Kind::File && fits(Path::new(name)))
    }

    /// The first entries of a folder relative to the workspace, sorted; none if it cannot be listed.
    pub(super) fn entries(&self, folder: &Path, limit: usize) -> Vec<(OsString, Kind)> {
        let Ok((real, _)) = self.resolve(folder) else { return Vec::new() };
        self.reader.list(&real, limit).unwrap_or_default()
    }
}

/// Whether the name of a file ends in one of these.
pub(super) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|it| extensions.contains(&it))
}
