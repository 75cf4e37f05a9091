//! Digests of the files of some kinds, to find out which of them changed.

use crate::develop::site::{Bounds, Kind, Print, Site};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Files that are compared.
const FILES: usize = 20_000;
/// Bytes that are read for it.
const BYTES: u64 = 512 * 1024 * 1024;
/// A single file; formatters do not take larger ones either.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// How far files are looked for. Formatters leave alone what was built, and what others wrote.
pub(super) const BOUNDS: Bounds = Bounds {
    entries: 200_000,
    levels: 32,
    skipped: &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "vendor"],
};

/// The files as they are at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    prints: BTreeMap<PathBuf, Print>,
    bytes: u64,
    /// Whether there are more files than were looked at.
    pub(super) is_partial: bool,
}

impl Snapshot {
    /// The files of these kinds in a folder and below it. A lone file may have others with it, as the modules of a file
    /// of Rust.
    pub(super) fn take(site: &Site, folder: &Path, extensions: &[&str], bounds: &Bounds) -> Self {
        let mut snapshot = Self::default();
        let all_seen = site.walk(folder, bounds, |path, kind| {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if kind == Kind::File && extensions.contains(&extension) {
                snapshot.add(site, path)
            } else {
                ControlFlow::Continue(())
            }
        });
        snapshot.is_partial = !all_seen;
        snapshot
    }

    /// Takes a file in, as long as there is room.
    fn add(&mut self, site: &Site, path: &Path) -> ControlFlow<()> {
        if self.prints.len() >= FILES || self.bytes >= BYTES {
            return ControlFlow::Break(());
        }
        if let Some((print, bytes)) = print(site, path) {
            self.bytes += bytes;
            self.prints.insert(path.to_owned(), print);
        }
        ControlFlow::Continue(())
    }

    pub(super) fn len(&self) -> usize {
        self.prints.len()
    }

    /// Those of the files that are not the same any more, sorted.
    pub(super) fn changed(&self, site: &Site) -> Vec<String> {
        let is_same = |path: &Path, before: &Print| print(site, path).is_some_and(|(now, _)| now == *before);
        let changed = self.prints.iter().filter(|(path, before)| !is_same(path, before));
        changed.map(|(path, _)| path.display().to_string()).collect()
    }
}

/// What a file comes to, and its size.
fn print(site: &Site, path: &Path) -> Option<(Print, u64)> {
    let content = site.read_at(path, FILE_BYTES).ok()?;
    Some((Sha256::digest(&content).into(), content.len() as u64))
}
