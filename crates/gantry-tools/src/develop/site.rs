//! A folder of the workspace that a tool works in, as Gantry itself looks at it.
//!
//! Anyone may have written what is in there; so files are reached beneath the opened workspace only, must be ordinary
//! files, and are read up to a limit.

mod walk;

pub(super) use walk::Bounds;

use super::fault;
use crate::command::runner::{CommandRunner, RunnerOptions};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use gantry_core::Fault;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A manifest or a lock file.
pub(super) const MANIFEST_BYTES: u64 = 16 * 1024 * 1024;
/// What is read of a file at once.
const PART_BYTES: usize = 64 * 1024;
/// A folder of the workspace, or a file in it.
#[derive(Debug)]
pub(super) struct Site {
    root: Dir,
    /// What is hidden from tools and jobs, relative to the workspace.
    hidden: Vec<PathBuf>,
    /// The folder, relative to the workspace and without links; empty for the workspace itself.
    pub(super) folder: PathBuf,
    /// The name in the folder, if the path is that of a file.
    pub(super) file: Option<PathBuf>,
}

/// The content of a file as one number.
pub(super) type Print = [u8; 32];

impl Site {
    /// Looks for a path, on a thread that may block.
    pub(super) async fn open(runner: &Arc<CommandRunner>, path: &str) -> Result<Self, Fault> {
        let (runner, path) = (Arc::clone(runner), path.to_owned());
        off_thread(move || Self::find(runner.options(), &path)).await?
    }

    pub(super) fn find(options: &RunnerOptions, path: &str) -> Result<Self, Fault> {
        let relative = Path::new(path);
        if path.is_empty() || path.contains('\0') {
            return Err(fault::invalid(
                "the path is empty or contains a NUL character; \".\" is the workspace root",
            ));
        }
        if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(fault::outside(path));
        }
        let failed = |error: io::Error| fault::path(path, &error);
        let root = Dir::open_ambient_dir(&options.workspace, ambient_authority()).map_err(failed)?;
        let real = root.canonicalize(relative).map_err(failed)?;
        let workspace = std::fs::canonicalize(&options.workspace).map_err(failed)?;
        let hidden: Vec<PathBuf> = spellings(&options.fenced.hidden).collect();
        if hidden.iter().any(|hidden| workspace.join(&real).starts_with(hidden)) {
            return Err(fault::hidden(path));
        }
        let hidden = hidden.iter().filter_map(|hidden| hidden.strip_prefix(&workspace).ok());
        let hidden = hidden.map(Path::to_owned).collect();
        let found = root.metadata(&real).map_err(failed)?;
        let real: PathBuf = real.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if found.is_dir() {
            return Ok(Self { root, hidden, folder: real, file: None });
        }
        if !found.is_file() {
            return Err(fault::invalid(format!("{path} is neither a file nor a directory")));
        }
        let folder = real.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { root, hidden, folder, file: real.file_name().map(PathBuf::from) })
    }

    /// The folder, or one above it up to the workspace, in which there is something of this name.
    pub(super) fn above(&self, name: &str) -> Option<PathBuf> {
        let holds = |folder: &&Path| self.root.symlink_metadata(folder.join(name)).is_ok();
        self.folder.ancestors().find(holds).map(Path::to_owned)
    }

    /// Whether there is something of this name in the folder, if only a link.
    pub(super) fn has(&self, name: impl AsRef<Path>) -> bool {
        self.root.symlink_metadata(self.folder.join(name)).is_ok()
    }

    /// Whether there is a file at a path relative to the workspace.
    pub(super) fn is_file(&self, path: &Path) -> bool {
        self.root.metadata(path).is_ok_and(|found| found.is_file())
    }

    /// A file in the folder, if it is one and is not larger than a manifest.
    pub(super) fn read(&self, name: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.read_at(&self.folder.join(name), MANIFEST_BYTES).ok()
    }

    /// The same as text.
    pub(super) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        String::from_utf8(self.read(name)?).ok()
    }

    /// A file at a path relative to the workspace.
    pub(super) fn read_at(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.plain_file(path, limit)?.take(limit).read_to_end(&mut content)?;
        Ok(content)
    }

    fn plain_file(&self, path: &Path, limit: u64) -> io::Result<File> {
        // Opening must not wait for a pipe's other end.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = self.root.open_with(path, &options)?;
        let found = file.metadata()?;
        if !found.is_file() || found.len() > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(file)
    }

    /// What a file at a path relative to the workspace comes to; none if there is none. One that is too large, is no
    /// plain file or lies elsewhere is an error: it is there for others, and what it says is not known.
    pub(super) fn print(&self, path: &Path, limit: u64) -> Result<Option<Print>, Fault> {
        match self.digest(path, limit) {
            Ok(print) => Ok(Some(print)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(_) => Err(fault::not_plain(path)),
        }
    }

    fn digest(&self, path: &Path, limit: u64) -> io::Result<Print> {
        let mut file = self.plain_file(path, limit)?.take(limit);
        let mut all = Sha256::new();
        let mut part = vec![0; PART_BYTES];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(all.finalize().into()),
                read => all.update(part.get(..read).unwrap_or_default()),
            }
        }
    }

    /// The entries of a folder relative to the workspace, sorted: names, and whether they are folders. Links are
    /// neither, and what is hidden is left out.
    pub(super) fn entries(&self, folder: &Path, limit: usize) -> Vec<(PathBuf, Kind)> {
        let opened = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = self.root.read_dir(opened).into_iter().flatten().flatten().take(limit);
        let known = entries.filter_map(|entry| {
            let kind = entry.file_type().ok()?;
            let kind = match () {
                () if kind.is_dir() => Kind::Folder,
                () if kind.is_file() => Kind::File,
                () => Kind::Other,
            };
            Some((PathBuf::from(entry.file_name()), kind))
        });
        let mut known: Vec<_> = known.filter(|(name, _)| !self.hidden.contains(&folder.join(name))).collect();
        known.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        known
    }
}

/// Paths as they were given, and as they are without links.
fn spellings(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    paths.iter().flat_map(|path| [Some(path.clone()), std::fs::canonicalize(path).ok()]).flatten()
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Other,
}

/// Does work that may block.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    spawn_blocking(work).await.map_err(|crash| fault::crashed(&crash))
}

/// The same after a program has run.
pub(super) async fn after_run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    spawn_blocking(work).await.map_err(|crash| fault::crashed_after(&crash))
}
