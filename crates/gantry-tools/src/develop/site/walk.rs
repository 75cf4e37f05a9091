//! Goes through what is below a folder, as far as its bounds allow.

use super::{Kind, Site};
use std::ops::ControlFlow;
use std::path::Path;

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(in crate::develop) struct Bounds {
    /// Entries that are looked at, of all folders together.
    pub(in crate::develop) entries: usize,
    /// Folders within folders.
    pub(in crate::develop) levels: usize,
    /// Names of folders that are not gone into.
    pub(in crate::develop) skipped: &'static [&'static str],
}

impl Site {
    /// Shows everything below a folder that is no folder itself, until `visit` breaks. Links are shown, not
    /// followed. Says whether all of it was seen, apart from the folders that are skipped.
    pub(in crate::develop) fn walk(
        &self,
        folder: &Path,
        bounds: &Bounds,
        mut visit: impl FnMut(&Path, Kind) -> ControlFlow<()>,
    ) -> bool {
        let (mut left, mut all_seen) = (bounds.entries, true);
        let mut unseen = vec![(folder.to_owned(), 0)];
        while let Some((folder, level)) = unseen.pop() {
            let entries = self.entries(&folder, left.saturating_add(1));
            let Some(rest) = left.checked_sub(entries.len()) else { return false };
            left = rest;
            for (name, kind) in entries {
                let path = folder.join(&name);
                match kind {
                    Kind::Folder if bounds.skipped.iter().any(|skipped| name == Path::new(skipped)) => {}
                    Kind::Folder if level == bounds.levels => all_seen = false,
                    Kind::Folder => unseen.push((path, level + 1)),
                    Kind::File | Kind::Other if visit(&path, kind).is_break() => return false,
                    Kind::File | Kind::Other => {}
                }
            }
        }
        all_seen
    }
}
