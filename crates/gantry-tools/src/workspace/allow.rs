//! Where the tools of a catalogue entry may work: at its allowed paths and below them, and nowhere else.
//!
//! A call finds the allowed paths anew, by handle from the root, name by name and through no link. The directory that
//! the call has opened is then inside an allowed one, or on the way to some, or out of reach; how the call spelled it
//! plays no part. An allowed path that does not exist yet is the names that are still missing.

use super::Error;
use super::entry::open_dir;
use super::protected::FileId;
use crate::failure::{self, Result};
use crate::text::display_text;
use rustix::fs::fstat;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Paths that one entry may allow; each call looks for all of them.
pub(crate) const ALLOWED_PATHS: usize = 256;
/// Paths that a text names; the rest is counted.
const NAMED: usize = 8;

/// The allowed paths of one entry.
#[derive(Debug)]
pub(crate) struct Allowed {
    entry: String,
    /// Relative to the root, as names.
    paths: Vec<Vec<OsString>>,
    description: String,
}

/// What the tools may work on from one directory.
#[derive(Debug, PartialEq, Eq)]
enum AllowedBelow {
    /// Everything in it and below.
    Everything,
    /// What one of these sequences of names leads to, and what is below it.
    Only(Vec<Vec<OsString>>),
}

impl Allowed {
    /// The paths that an entry allows, or nothing if it allows the whole workspace.
    pub(crate) fn new(entry: &str, root: &Path, given: &[PathBuf]) -> Result<Option<Self>, Error> {
        if given.is_empty() {
            return Ok(None);
        }
        if given.len() > ALLOWED_PATHS {
            return Err(Error::TooManyAllowed { entry: entry.to_owned(), given: given.len() });
        }
        let unusable = |source| Error::Unusable { path: root.into(), source };
        let spelled_root = std::path::absolute(root).map_err(unusable)?;
        let real_root = std::fs::canonicalize(root).map_err(unusable)?;
        let mut paths: Vec<Vec<OsString>> = Vec::new();
        let mut named = Vec::new();
        for path in given {
            let spelled = spelled_root.join(path);
            let real = names_below(&real_root, &resolved(&spelled)).ok_or_else(|| Error::NotInWorkspace {
                entry: entry.to_owned(),
                path: path.clone(),
                workspace: root.into(),
            })?;
            // A link at an allowed path may be worked on as well as what it leads to.
            let spelled = names_below(&spelled_root, &spelled).unwrap_or_else(|| real.clone());
            named.push(display_names(&spelled));
            paths.extend([spelled, real]);
        }
        paths.sort();
        paths.dedup();
        Ok(Some(Self { entry: entry.to_owned(), paths, description: enumerated(&named) }))
    }

    /// The paths, for a text: `docs, notes.txt`.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Refuses what is reached by these names, each in the one before, from an opened directory; `ancestors` are that
    /// directory and all above it. No names mean the directory itself.
    pub(crate) fn check<'a>(
        &self,
        (root, here, ancestors): (impl AsFd, FileId, &[FileId]),
        names: impl Iterator<Item = &'a OsStr>,
        path: &str,
    ) -> Result<()> {
        let names: Vec<&OsStr> = names.collect();
        if self.allowed_below(root, here, ancestors).covers(&names) {
            return Ok(());
        }
        let Self { entry, description, .. } = self;
        Err(failure::denied(format!(
            "{path} is outside of where the tools of {entry} may work ({description}); use a path in there, or ask a person \
             to add this one to the allowedPaths of {entry}"
        )))
    }

    fn allowed_below(&self, root: impl AsFd, here: FileId, ancestors: &[FileId]) -> AllowedBelow {
        let mut only = Vec::new();
        for names in &self.paths {
            let found = directories(root.as_fd(), names);
            if found.get(names.len()).is_some_and(|allowed| ancestors.contains(allowed)) {
                return AllowedBelow::Everything;
            }
            if let Some(rest) = found.iter().position(|id| *id == here).and_then(|n| names.get(n..)) {
                only.push(rest.to_vec());
            }
        }
        AllowedBelow::Only(only)
    }
}

impl AllowedBelow {
    fn covers(&self, names: &[&OsStr]) -> bool {
        match self {
            Self::Everything => true,
            // Behind something that does not exist, `..` could lead anywhere.
            Self::Only(_) if names.iter().any(|name| *name == "..") => false,
            Self::Only(allowed) => allowed.iter().any(|allowed| {
                let first = names.iter().take(allowed.len());
                names.len() >= allowed.len() && first.eq(allowed.iter())
            }),
        }
    }
}

/// The root and the directories on the way down these names, as far as they exist.
fn directories(root: impl AsFd, names: &[OsString]) -> Vec<FileId> {
    let mut found: Vec<FileId> = fstat(root.as_fd()).iter().map(FileId::of).collect();
    let mut handle: Option<OwnedFd> = None;
    for name in names {
        let at = handle.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        // What cannot be opened counts as missing, so that nothing below it is in reach.
        let Ok(next) = open_dir(at, name) else { break };
        let Ok(stat) = fstat(&next) else { break };
        found.push(FileId::of(&stat));
        handle = Some(next);
    }
    found
}

/// The names between a folder and a path in it; nothing if the path is not in it, or is not plain.
fn names_below(folder: &Path, path: &Path) -> Option<Vec<OsString>> {
    let below = path.strip_prefix(folder).ok()?;
    below
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

fn display_names(names: &[OsString]) -> String {
    let path: PathBuf = names.iter().collect();
    if names.is_empty() { ".".to_owned() } else { display_text(&path.to_string_lossy()) }
}

fn enumerated(paths: &[String]) -> String {
    let named = paths.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The path with the links in it resolved as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|ancestor| {
        let real = std::fs::canonicalize(ancestor).ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    });
    real.unwrap_or_else(|| path.to_owned())
}
