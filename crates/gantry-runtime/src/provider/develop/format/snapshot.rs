//! What files of some kinds come to, so that the ones that changed can be told.

use crate::provider::develop::site::{Kind, Print, Site};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that are compared.
const FILES: usize = 20_000;
/// Bytes that are read for it.
const BYTES: u64 = 512 * 1024 * 1024;
/// A single file; formatters do not take larger ones either.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// How deep folders are gone into, and how many entries of one are looked at.
const LEVELS: usize = 32;
const ENTRIES: usize = 20_000;
/// Folders that formatters leave alone: what was built, and what others wrote.
const SKIPPED: [&str; 8] =
    [".git", "node_modules", "target", ".venv", "venv", "__pycache__", "dist", "vendor"];

/// The files as they are at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    prints: BTreeMap<PathBuf, Print>,
    bytes: u64,
    /// Whether there are more files than were looked at.
    pub(super) is_partial: bool,
}

impl Snapshot {
    /// The file that is meant, or the files of these kinds in the folder and below it. A lone file may have others
    /// with it, as the modules of a file of Rust.
    pub(super) fn take(site: &Site, extensions: &[&str]) -> Self {
        let mut snapshot = Self::default();
        snapshot.add(site, &site.folder, extensions, 0);
        snapshot
    }

    fn add(&mut self, site: &Site, folder: &Path, extensions: &[&str], level: usize) {
        let entries = site.entries(folder, ENTRIES);
        self.is_partial |= entries.len() == ENTRIES || level > LEVELS;
        if level > LEVELS {
            return;
        }
        for (name, kind) in entries {
            let path = folder.join(&name);
            let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            match kind {
                Kind::Folder if !SKIPPED.iter().any(|skipped| name == Path::new(skipped)) => {
                    self.add(site, &path, extensions, level + 1);
                }
                Kind::File if extensions.contains(&extension) => self.add_file(site, path),
                Kind::Folder | Kind::File | Kind::Other => {}
            }
        }
    }

    fn add_file(&mut self, site: &Site, path: PathBuf) {
        if self.prints.len() >= FILES || self.bytes >= BYTES {
            self.is_partial = true;
            return;
        }
        if let Ok(content) = site.read_at(&path, FILE_BYTES) {
            self.bytes += content.len() as u64;
            self.prints.insert(path, Sha256::digest(content).into());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.prints.len()
    }

    /// The files that are not the same in another snapshot, sorted.
    pub(super) fn differs(&self, after: &Self) -> Vec<String> {
        let changed = self.prints.iter().filter(|(path, print)| after.prints.get(*path) != Some(print));
        changed.map(|(path, _)| path.display().to_string()).collect()
    }
}
