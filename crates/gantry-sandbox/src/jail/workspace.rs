//! The workspace as a jail has it: opened once, and secured for each job against what the job must not touch.
//!
//! A jail shows the whole workspace, so protected paths in it are covered by mounts that only the jail sees; nothing is made
//! for that in the workspace. A file that would make git run programs cannot be covered before it exists: it is watched
//! for, and a job that makes it ends (see `git.rs`).
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
mod protection;

#[cfg(target_os = "linux")]
pub use lease::Workspace;
#[cfg(target_os = "linux")]
pub(crate) use lease::{MountMode, ProtectedMount, WorkspaceLease, open_beneath, unprotected};

/// An opened workspace; never one, because there are no jails here.
#[derive(Debug, Clone)]
#[cfg(not(target_os = "linux"))]
pub struct Workspace(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl Workspace {
    /// Opens a workspace.
    pub fn open(
        workspace: &std::path::Path,
        _protected: crate::protected::ProtectedPaths,
    ) -> Result<Self, super::JailError> {
        let what = format!("the workspace {}", workspace.display());
        let reason = "only Linux has what it takes to confine programs".to_owned();
        Err(super::JailError::Workspace { what, reason })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
