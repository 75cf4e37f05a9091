//! Digests of the files that a formatter may change, to find out which of them it changed.

use super::formatter::Formatter;
use crate::dev::project_dir::ProjectDir;
use crate::workspace::entry::Kind;
use gantry_core::digest::Digest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A single file; formatters do not take larger ones either.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Entries of all folders together.
    pub(super) entries: usize,
    /// Folders within folders.
    pub(super) levels: usize,
    /// Files that are compared, and their bytes together.
    pub(super) files: usize,
    pub(super) bytes: u64,
}

pub(super) const BOUNDS: Bounds =
    Bounds { entries: 200_000, levels: 32, files: 20_000, bytes: 512 * 1024 * 1024 };

/// Folders with what was built or what others wrote, which formatters leave alone.
const SKIPPED: [&str; 8] =
    [".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "vendor"];

/// The files as they are at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) digests: BTreeMap<PathBuf, Digest>,
    /// Of all these files together.
    bytes: u64,
    /// Whether there are more files than were looked at.
    pub(super) is_partial: bool,
}

impl Snapshot {
    pub(super) fn take(project: &ProjectDir, formatter: &Formatter) -> Self {
        Self::take_within(project, &formatter.folder, formatter.extensions, &BOUNDS)
    }

    /// The files of these kinds in a folder and below it. A lone file may have others with it, as the modules of a file
    /// of Rust.
    pub(super) fn take_within(
        project: &ProjectDir,
        folder: &Path,
        extensions: &[&str],
        bounds: &Bounds,
    ) -> Self {
        let mut snapshot = Self::default();
        let mut entries_left = bounds.entries;
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, level)) = folders.pop() {
            let entries = project.entries(&folder, entries_left.saturating_add(1));
            let Some(rest) = entries_left.checked_sub(entries.len()) else { return snapshot.into_partial() };
            entries_left = rest;
            for (name, kind) in entries {
                let path = folder.join(&name);
                let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
                match kind {
                    Kind::Directory if SKIPPED.iter().any(|skipped| name == *skipped) => {}
                    Kind::Directory if level == bounds.levels => snapshot.is_partial = true,
                    Kind::Directory => folders.push((path, level + 1)),
                    Kind::File if !extensions.contains(&extension) => {}
                    Kind::File if snapshot.is_full(bounds) => return snapshot.into_partial(),
                    Kind::File => snapshot.add(project, path),
                    Kind::Link | Kind::Special => {}
                }
            }
        }
        snapshot
    }

    fn is_full(&self, bounds: &Bounds) -> bool {
        self.digests.len() >= bounds.files || self.bytes >= bounds.bytes
    }

    fn add(&mut self, project: &ProjectDir, path: PathBuf) {
        if let Ok((digest, bytes)) = project.reader.digest(&path, FILE_BYTES) {
            self.bytes += bytes;
            self.digests.insert(path, digest);
        }
    }

    fn into_partial(self) -> Self {
        Self { is_partial: true, ..self }
    }

    /// Those of the files that are not the same any more, sorted.
    pub(super) fn changed(&self, project: &ProjectDir) -> Vec<String> {
        let is_same = |path: &Path, before: &Digest| {
            project.reader.digest(path, FILE_BYTES).is_ok_and(|(now, _)| now == *before)
        };
        let changed = self.digests.iter().filter(|(path, before)| !is_same(path, before));
        changed.map(|(path, _)| path.display().to_string()).collect()
    }
}
