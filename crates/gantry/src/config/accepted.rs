//! Which files may configure Gantry where tools write: those that it was started with, and those that a person accepted.
//!
//! The data folder, which tools cannot reach, has a list of them, and of the workspaces of this Gantry. A file that is in
//! a workspace and not on the list may be the work of a tool. Without a list, everything that is there counts.

use super::Loaded;
use super::error::Problem;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The list, and the lock that its writers hold, in the data folder.
pub(super) const FILE: &str = "accepted.json";
const LOCK: &str = "accepted.lock";

const MAX_BYTES: u64 = 32 * 1024 * 1024;
const MAX_WORKSPACES: usize = 1000;
const MAX_FILES: usize = 50_000;

/// What to do about a file that is not on the list.
const ADVICE: &str = "read it, then gantry config apply takes it, or remove it";

/// The list. Its paths are canonical; a link is on it with what it leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    workspaces: BTreeSet<String>,
    files: BTreeSet<String>,
    /// What servers are started from, as long as it is protected without a gap: while a server is off, tools can change it.
    #[serde(default)]
    launch: BTreeSet<String>,
}

impl Accepted {
    /// The list of a data folder; none if Gantry has not run with it, or one that wrote no list.
    pub fn read(data: &Path) -> Result<Option<Self>, Problem> {
        let path = data.join(FILE);
        let read = || -> io::Result<Self> {
            let mut text = String::new();
            if File::open(&path)?.take(MAX_BYTES).read_to_string(&mut text)? as u64 == MAX_BYTES {
                return Err(io::Error::other("it is too large"));
            }
            Ok(serde_json::from_str(&text)?)
        };
        match read() {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => {
                let advice = "read the configuration files in the workspaces, then remove this one";
                Err(Problem::in_file(&path, format!("cannot be read: {error}; {advice}")))
            }
        }
    }

    /// Changes the list of a data folder. No other process changes it until what this returns is dropped.
    pub fn update(data: &Path, change: impl FnOnce(&mut Self)) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = lock.open(data.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let before = Self::read(data).map_err(|problem| io::Error::other(problem.to_string()))?;
        let mut accepted = before.clone().unwrap_or_default();
        change(&mut accepted);
        if before.unwrap_or_default() == accepted && data.join(FILE).is_file() {
            return Ok(lock);
        }
        if accepted.workspaces.len() > MAX_WORKSPACES || accepted.files.len() > MAX_FILES {
            let most = format!("more than {MAX_WORKSPACES} workspaces or {MAX_FILES} files");
            return Err(io::Error::other(format!(
                "{} would hold {most}; remove it",
                data.join(FILE).display()
            )));
        }
        let mut file = tempfile::NamedTempFile::new_in(data)?;
        file.write_all(&serde_json::to_vec_pretty(&accepted)?)?;
        file.as_file().sync_all()?;
        file.persist(data.join(FILE)).map_err(|failed| failed.error)?;
        Ok(lock)
    }

    /// Puts what this configuration was read from, and its workspaces, on the list; files that are gone leave it.
    pub fn add(loaded: &Loaded) -> io::Result<()> {
        Self::update(&loaded.data, |accepted| {
            let workspaces = loaded.config.all().map(|(_, project)| canonical(&project.workspace));
            accepted.workspaces.extend(workspaces.map(|path| text(&path)));
            accepted.forget_missing();
            loaded.sources.secret.iter().chain(&loaded.sources.open).for_each(|file| accepted.insert(file));
            accepted.launch =
                loaded.sources.launch.iter().flat_map(|path| names(path)).map(|path| text(&path)).collect();
        })
        .map(drop)
    }

    /// Puts a file on the list.
    pub fn insert(&mut self, file: &Path) {
        self.files.extend(names(file).iter().map(|path| text(path)));
    }

    /// Takes files off the list that are gone: one that comes back may be another.
    pub fn forget_missing(&mut self) {
        let is_there = |file: &String| Path::new(file).exists();
        self.files.retain(is_there);
        self.launch.retain(is_there);
    }

    pub fn has(&self, file: &Path) -> bool {
        names(file).iter().all(|path| self.lists(path))
    }

    fn lists(&self, path: &Path) -> bool {
        let path = text(path);
        self.files.contains(&path) || self.launch.contains(&path)
    }

    /// Whether a tool may have made this file.
    pub fn suspects(&self, file: &Path) -> bool {
        let is_new =
            |path: &PathBuf| !self.lists(path) && self.workspaces.iter().any(|it| path.starts_with(it));
        names(file).iter().any(is_new)
    }
}

/// What a message says about a file that is not on the list.
pub(super) fn objection(consequence: &str) -> String {
    format!(
        "{consequence}: it was not there when Gantry last ran here, and tools can write in this folder; {ADVICE}"
    )
}

/// The paths that decide about a file: where it stands, and what it is, if it is a link.
fn names(file: &Path) -> [PathBuf; 2] {
    let folder = canonical(file.parent().unwrap_or(file));
    [folder.join(file.file_name().unwrap_or_default()), canonical(file)]
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
