//! Whether anything that configures Gantry has changed, without reading it.

use super::Loaded;
use super::accepted;
use super::definition_files::{AGENTS, TOOLS, names};
use gantry_rest::SpecPlace;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What files looked like at one time. Two that are equal mean that nothing has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSnapshot(Vec<(PathBuf, Option<FileStat>)>);

/// What a file looks like from outside: its size, the time of its last change, as it says and as the system has it, its
/// device and inode.
type FileStat = (u64, Option<SystemTime>, [i64; 2], u64, u64);

impl Loaded {
    /// What the files that configure Gantry look like now.
    pub fn snapshot(&self) -> FileSnapshot {
        let mut paths = self.config_files.clone();
        paths.push(self.data.join(accepted::FILE));
        for folder in &self.definition_roots {
            for kind in [&AGENTS, &TOOLS] {
                let folder = folder.join(kind.folder);
                // A folder that cannot be listed looks like an empty one, until it can be.
                for name in names(&folder).unwrap_or_default() {
                    let path = folder.join(name);
                    paths.push(path.join(kind.file));
                    paths.push(path);
                }
                paths.push(folder);
            }
        }
        let mut snapshot = FileSnapshot::of(paths);
        // Servers may write there, so only what is there counts.
        let identity = |path: &PathBuf| path.metadata().ok().map(|it| (0, None, [0, 0], it.dev(), it.ino()));
        snapshot.0.extend(self.sources.launch.iter().map(|path| (path.clone(), identity(path))));
        snapshot
    }
}

impl FileSnapshot {
    fn of(paths: Vec<PathBuf>) -> Self {
        let stat = |path: &Path| -> Option<FileStat> {
            let metadata = path.metadata().ok()?;
            let changed = [metadata.ctime(), metadata.ctime_nsec()];
            Some((metadata.len(), metadata.modified().ok(), changed, metadata.dev(), metadata.ino()))
        };
        let stats = paths.into_iter().map(|path| (stat(&path), path));
        Self(stats.map(|(stat, path)| (path, stat)).collect())
    }

    /// The files of an OpenAPI document and of those that it refers to; none if it is from the web.
    pub(super) fn of_document(spec: &SpecPlace) -> Self {
        Self::of(match spec {
            SpecPlace::File(file) => gantry_rest::files(file),
            SpecPlace::Url(_) => Vec::new(),
        })
    }

    /// Whether these files are as in the snapshot before, and none was written within this time. A time in the future
    /// says nothing.
    pub fn is_settled(&self, before: &Self, time: Duration, is_counted: impl Fn(&Path) -> bool) -> bool {
        let before: HashSet<_> = before.0.iter().collect();
        let is_old = |at: SystemTime| SystemTime::now().duration_since(at).map_or(true, |age| age >= time);
        let written = |stat: &Option<FileStat>| stat.as_ref().and_then(|stat| stat.1);
        let mut files = self.0.iter().filter(|(path, _)| is_counted(path));
        files.all(|file| before.contains(file) && written(&file.1).is_none_or(is_old))
    }

    /// The files, whether they are there or not.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().map(|(path, _)| path)
    }
}
