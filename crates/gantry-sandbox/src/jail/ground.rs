//! The workspace as a jail has it: opened once, and secured for each job against what the job must not touch.
//!
//! A jail shows the whole workspace, so what is protected in it is covered by mounts that only the jail sees. A mount
//! needs something to be mounted on: where a protected path does not exist, a stand-in that nothing takes for the real
//! thing is made for as long as jobs run (see `site/stand_in.rs`). Whoever is the last to leave takes the stand-ins away.
//!
//! What is mounted somewhere below the workspace is not part of it: jobs find an empty folder there.
//!
//! **Limits.** A file that has a second name (a hard link) elsewhere in the workspace can be reached by that one. Only
//! the repository at the top of the workspace is secured, not those below it. Who replaces a covered path *outside* of
//! the jail takes the cover off with it: the jail has to notice that its mounts have changed, and end.

#[cfg(target_os = "linux")]
mod site;

#[cfg(target_os = "linux")]
pub(crate) use site::{Cover, How, Occupied};

use super::JailError;
#[cfg(target_os = "linux")]
use rustix::fs::FileType;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// What no job may touch in a workspace: absolute paths, wherever they are and whether or not they exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    /// Not even read. A missing one is taken for a file if its name has an extension, else for a folder.
    pub hidden: Vec<PathBuf>,
    /// Read, but neither changed nor made.
    pub sealed: Vec<PathBuf>,
    /// The same for folders with everything in them.
    pub folders: Vec<PathBuf>,
}

/// An opened workspace. Jobs on it can run at the same time, also those of other processes.
#[derive(Debug, Clone)]
pub struct Ground {
    #[cfg(target_os = "linux")]
    site: std::sync::Arc<site::Site>,
}

#[cfg(target_os = "linux")]
impl Ground {
    /// Opens a workspace.
    ///
    /// # Errors
    /// There is no such folder, it cannot be opened, it is itself protected, or it holds the machine's folders or the
    /// user's home.
    pub fn open(workspace: &Path, protected: Protected) -> Result<Self, JailError> {
        Ok(Self { site: site::Site::open(workspace, protected)?.into() })
    }

    /// Secures the workspace for one job. It blocks, but not for long.
    ///
    /// # Errors
    /// The workspace is gone, or what is protected in it cannot be secured.
    pub(crate) fn occupy(&self, access: super::Access) -> Result<Occupied, JailError> {
        self.site.occupy(access)
    }
}

#[cfg(not(target_os = "linux"))]
impl Ground {
    /// Opens a workspace.
    ///
    /// # Errors
    /// Always: there are no jails here.
    pub fn open(workspace: &Path, _protected: Protected) -> Result<Self, JailError> {
        let what = format!("the workspace {}", workspace.display());
        Err(JailError::Ground { what, reason: "only Linux has what it takes to confine programs".to_owned() })
    }
}

/// Whether this only holds the place of something that is missing, for as long as jobs run: a socket, a folder, or a file
/// without effect.
#[must_use]
#[cfg(target_os = "linux")]
pub fn holds_a_place(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    looks_like_a_place(metadata.mode(), metadata.len()) && !was_filled(metadata)
}

/// The same for those who have no more than the mode and the size. A folder counts that has something in it: whoever
/// wants to know has to look.
#[must_use]
#[cfg(target_os = "linux")]
pub fn looks_like_a_place(mode: u32, size: u64) -> bool {
    let is_file = FileType::from_raw_mode(mode) == FileType::RegularFile;
    site::stand_in::is_marked(mode) && !(is_file && size > site::stand_in::LONGEST)
}

/// Whether something was put into a folder since it was made: then it is somebody's. Where the file system does not keep
/// the time of the making, it is not known.
#[cfg(target_os = "linux")]
fn was_filled(metadata: &Metadata) -> bool {
    let times = metadata.created().ok().zip(metadata.modified().ok());
    metadata.is_dir() && times.is_some_and(|(created, modified)| modified > created)
}

/// Whether this only holds the place of something that is missing; never so, because there are no jails here.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn looks_like_a_place(_mode: u32, _size: u64) -> bool {
    false
}

/// Whether this only holds the place of something that is missing; never so, because there are no jails here.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn holds_a_place(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
