//! The workspace as a jail has it: opened once, and secured for each job against what the job must not touch.
//!
//! A jail shows the whole workspace, so protected paths in it are covered by mounts that only the jail sees. A mount
//! needs a mount point: where a protected path does not exist, a placeholder that no program takes for the real thing is
//! made for as long as jobs run (see `placeholder.rs`). The last job to end removes the placeholders.
//!
//! File systems that are mounted below the workspace are not part of it: jobs find an empty folder there.
//!
//! **Limits.** A file that has a second name (a hard link) elsewhere in the workspace can be reached by that one. Only
//! the repository at the top of the workspace is secured, not those below it. A process outside of the jail that replaces
//! a protected path takes the mount off with it: the jail has to notice that its mounts have changed, and end.

#[cfg(target_os = "linux")]
mod checks;
#[cfg(target_os = "linux")]
mod git;
#[cfg(target_os = "linux")]
mod lease;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod path_walk;
#[cfg(target_os = "linux")]
mod placeholder;
#[cfg(target_os = "linux")]
mod protection;

#[cfg(target_os = "linux")]
pub use lease::Workspace;
#[cfg(target_os = "linux")]
pub(crate) use lease::{
    FileId, MountMode, ProtectedMount, WorkspaceLease, is_empty, open_beneath, unprotected,
};

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Paths that no job may touch in a workspace: absolute, wherever they are and whether or not they exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedPaths {
    /// Not even read. A missing one is taken for a file if its name has an extension, else for a folder.
    pub hidden: Vec<PathBuf>,
    /// Files that jobs may read, but neither change nor make.
    pub read_only: Vec<PathBuf>,
    /// The same for folders with all their content.
    pub read_only_dirs: Vec<PathBuf>,
}

/// The longest content of a placeholder for a file.
const LONGEST: u64 = 2;

/// Whether this is only the placeholder of a missing path, for as long as jobs run: a socket, a folder, or a file without
/// effect.
#[must_use]
pub fn is_placeholder(metadata: &Metadata) -> bool {
    looks_like_placeholder(metadata.mode(), metadata.len()) && !was_filled(metadata)
}

/// The same for callers that have no more than the mode and the size. A folder with content counts, too: the caller has to
/// look into it.
#[must_use]
pub fn looks_like_placeholder(mode: u32, size: u64) -> bool {
    const STICKY: u32 = 0o1000;
    match mode & 0o170_000 {
        SOCKET => mode & 0o7777 == 0,
        FOLDER => mode & 0o7077 == STICKY,
        FILE => mode & 0o7111 == STICKY && size <= LONGEST,
        _ => false,
    }
}

/// The types of files in a mode.
const SOCKET: u32 = 0o140_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// Whether a folder was changed since it was made: then its content is the user's. Unknown where the file system does not
/// keep the time of the making.
fn was_filled(metadata: &Metadata) -> bool {
    let times = metadata.created().ok().zip(metadata.modified().ok());
    metadata.is_dir() && times.is_some_and(|(created, modified)| modified > created)
}

/// An opened workspace; never one, because there are no jails here.
#[derive(Debug, Clone)]
#[cfg(not(target_os = "linux"))]
pub struct Workspace(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl Workspace {
    /// Opens a workspace.
    pub fn open(workspace: &std::path::Path, _protected: ProtectedPaths) -> Result<Self, super::JailError> {
        let what = format!("the workspace {}", workspace.display());
        let reason = "only Linux has what it takes to confine programs".to_owned();
        Err(super::JailError::Workspace { what, reason })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
