//! Digests of the files that a formatter may change, to find out which of them it changed.

use super::formatter::Formatter;
use crate::dev::project_dir::{ProjectDir, has_extension};
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
    /// Bytes of all files together.
    pub(super) bytes: u64,
}

pub(super) const BOUNDS: Bounds = Bounds { entries: 200_000, levels: 32, bytes: 512 * 1024 * 1024 };

/// Folders with what was built or what others wrote, which formatters leave alone.
const SKIPPED: [&str; 8] =
    [".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "vendor"];

/// The files as they are at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) digests: BTreeMap<PathBuf, Digest>,
    /// Whether there are more files than were looked at.
    pub(super) is_partial: bool,
}

impl Snapshot {
    /// The files of a formatter's kinds in its folder and below it. A lone file may have others with it, as the modules
    /// of a file of Rust.
    pub(super) fn take(project: &ProjectDir, formatter: &Formatter, mut bounds: Bounds) -> Self {
        let mut snapshot = Self::default();
        let mut folders = vec![(formatter.folder.clone(), 0)];
        while let Some((folder, level)) = folders.pop() {
            let entries = project.entries(&folder, bounds.entries.saturating_add(1));
            let Some(rest) = bounds.entries.checked_sub(entries.len()) else {
                snapshot.is_partial = true;
                break;
            };
            bounds.entries = rest;
            for (name, kind) in entries {
                let path = folder.join(&name);
                match kind {
                    Kind::Directory if SKIPPED.iter().any(|skipped| name == *skipped) => {}
                    Kind::Directory if level == bounds.levels => snapshot.is_partial = true,
                    Kind::Directory => folders.push((path, level + 1)),
                    Kind::File if !has_extension(&path, formatter.extensions) => {}
                    Kind::File if bounds.bytes == 0 => snapshot.is_partial = true,
                    Kind::File => bounds.bytes = bounds.bytes.saturating_sub(snapshot.add(project, path)),
                    Kind::Link | Kind::Special => {}
                }
            }
        }
        snapshot
    }

    /// Adds a file, and says how large it is. One that is too large, or cannot be read, is left out.
    fn add(&mut self, project: &ProjectDir, path: PathBuf) -> u64 {
        let Ok((digest, bytes)) = project.reader.digest(&path, FILE_BYTES) else {
            self.is_partial = true;
            return 0;
        };
        self.digests.insert(path, digest);
        bytes
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
