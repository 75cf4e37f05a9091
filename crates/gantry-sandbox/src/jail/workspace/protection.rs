//! The mounts that protect a workspace, found anew for each job, because protected paths come and go.

use super::lease::{MountMode, Opened, ProtectedMount, unprotected, unusable, with_remedy};
use super::path_walk::{self, PathEntry};
use super::placeholder::{self, EMPTY, Made, Placeholder};
use super::{checks, git};
use crate::jail::{Access, JailError};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Limit: mounts over one workspace.
const MOUNTS: usize = 512;
/// How often a path is resolved anew because it was made in between.
const ATTEMPTS: usize = 3;

/// A protected path, and its placeholder.
struct ProtectedPath {
    path: PathBuf,
    mode: MountMode,
    placeholder: Placeholder,
}

/// The mounts by their path, so that a folder comes before its content.
#[derive(Debug, Default)]
pub(super) struct Protection {
    mounts: BTreeMap<PathBuf, (MountMode, bool)>,
}

impl Protection {
    /// Refuses a workspace that cannot be secured at all.
    pub(super) fn check(workspace: &Opened) -> Result<(), JailError> {
        for protected in protected_paths(workspace, Access::Write)? {
            protected.entries(workspace)?;
        }
        Ok(())
    }

    /// Makes placeholders where they are needed, and returns the mounts in their order.
    pub(super) fn secure(workspace: &Opened, access: Access) -> Result<Vec<ProtectedMount>, JailError> {
        if access == Access::Write {
            git::prepare(workspace);
        }
        let mut protection = Self::default();
        for protected in protected_paths(workspace, access)? {
            protection.add(workspace, &protected)?;
        }
        // A file system that is mounted below the workspace may be the machine's. Where the jail does not take such mounts
        // along, their mount points show.
        for (path, is_dir) in checks::mounts(workspace)? {
            protection.mount(path, MountMode::Hide, is_dir);
        }
        let mounts = protection.ordered();
        if mounts.len() > MOUNTS {
            let reason =
                format!("more than {MOUNTS} paths in it are protected or mounted; protect folders instead");
            return Err(unusable(&workspace.path, &reason));
        }
        Ok(mounts)
    }

    /// Removes the placeholders, and returns the first failure. Requires the exclusive lock.
    pub(super) fn remove_placeholders(workspace: &Opened) -> Result<(), JailError> {
        let mut paths = configured(workspace, Access::Write);
        let found = of_git(workspace).map(|more| paths.extend(more));
        // A failure must not keep the others in place.
        paths.iter().map(|path| path.remove_placeholders(workspace)).fold(found, Result::and)
    }

    fn add(&mut self, workspace: &Opened, protected: &ProtectedPath) -> Result<(), JailError> {
        for _ in 0..ATTEMPTS {
            let mut missing = None;
            for entry in protected.entries(workspace)? {
                match entry {
                    PathEntry::Parent(path) => self.mount(path, MountMode::Pin, true),
                    PathEntry::Link(path) => self.mount(path, MountMode::Hide, false),
                    PathEntry::Found { path, is_dir } => self.mount(path, protected.mode, is_dir),
                    PathEntry::Missing { path, is_last } => missing = Some((path, is_last)),
                    PathEntry::AboveWorkspace => {}
                }
            }
            let Some((path, is_last)) = missing else { return Ok(()) };
            if self.add_missing(workspace, protected, path, is_last)? {
                return Ok(());
            }
        }
        Err(unprotected(&protected.path, &"it keeps being made and removed; try again"))
    }

    /// Makes a placeholder. Returns false if another process has made something there by now.
    fn add_missing(
        &mut self,
        workspace: &Opened,
        protected: &ProtectedPath,
        path: PathBuf,
        is_last: bool,
    ) -> Result<bool, JailError> {
        let placeholder = if is_last { protected.placeholder } else { Placeholder::Folder };
        match placeholder.make(workspace, &path) {
            Ok(Made::Taken) => return Ok(false),
            Ok(Made::Present { is_dir }) => self.mount(path, protected.mode, is_dir),
            Ok(Made::Impossible) => {}
            // Gantry has no right to make anything there now, but a job could take it.
            Err(Errno::ACCESS) if let Some(folder) = above(&path) => {
                self.mount(folder.to_owned(), protected.mode, true);
            }
            Err(error) => {
                let reason = format!(
                    "it is missing, and a job that makes it cannot be stopped: {}; make it yourself, or use a workspace \
                     on another file system",
                    with_remedy(error, &workspace.path)
                );
                return Err(unprotected(&workspace.path.join(&path), &reason));
            }
        }
        Ok(true)
    }

    fn mount(&mut self, path: PathBuf, mode: MountMode, is_dir: bool) {
        let mount = self.mounts.entry(path).or_insert((mode, is_dir));
        *mount = (mode.max(mount.0), is_dir);
    }

    /// The mounts in their order, without those that others make superfluous.
    fn ordered(self) -> Vec<ProtectedMount> {
        let above = |path: &Path| {
            let ancestors = path.ancestors().skip(1);
            ancestors.filter_map(|above| self.mounts.get(above)).map(|(mode, _)| *mode).max()
        };
        let is_needed = |(path, (mode, _)): &(&PathBuf, &(MountMode, bool))| match above(path) {
            Some(MountMode::Hide) => false,
            // In a read-only folder nothing can be moved or changed, only read.
            Some(MountMode::ReadOnly) => *mode == MountMode::Hide,
            Some(MountMode::Pin) | None => true,
        };
        let needed = self.mounts.iter().filter(is_needed);
        needed
            .map(|(path, (mode, is_dir))| ProtectedMount { path: path.clone(), mode: *mode, is_dir: *is_dir })
            .collect()
    }
}

impl ProtectedPath {
    fn read_only(path: PathBuf, placeholder: Placeholder) -> Self {
        Self { path, mode: MountMode::ReadOnly, placeholder }
    }

    /// The entries that it depends on. A workspace that is itself protected is refused.
    fn entries(&self, workspace: &Opened) -> Result<Vec<PathEntry>, JailError> {
        let entries = path_walk::follow(workspace, &self.path)?;
        if entries.contains(&PathEntry::AboveWorkspace) {
            let reason = format!(
                "it is in {}, which belongs to Gantry itself; choose another workspace",
                self.path.display()
            );
            return Err(unusable(&workspace.path, &reason));
        }
        Ok(entries)
    }

    /// Removes its placeholder, or one on the way to it.
    fn remove_placeholders(&self, workspace: &Opened) -> Result<(), JailError> {
        let touched = self.entries(workspace)?.into_iter().filter_map(|entry| match entry {
            // A user may have filled a folder that was a placeholder.
            PathEntry::Missing { path, .. }
            | PathEntry::Parent(path)
            | PathEntry::Found { path, is_dir: true } => Some(path),
            PathEntry::Link(_) | PathEntry::Found { is_dir: false, .. } | PathEntry::AboveWorkspace => None,
        });
        let removed = touched.map(|path| {
            let at = workspace.path.join(&path);
            let folder = at.parent().unwrap_or(&workspace.path);
            placeholder::remove(workspace, &path)
                .map_err(|error| unprotected(&at, &with_remedy(error, folder)))
        });
        removed.fold(Ok(()), Result::and)
    }
}

/// The folder of the workspace that holds a path, unless that is the workspace itself.
fn above(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

fn protected_paths(workspace: &Opened, access: Access) -> Result<Vec<ProtectedPath>, JailError> {
    let mut paths = configured(workspace, access);
    if access == Access::Write {
        paths.extend(of_git(workspace)?);
    }
    Ok(paths)
}

/// The paths that Gantry protects. For a job that only reads, only the hidden ones count.
fn configured(workspace: &Opened, access: Access) -> Vec<ProtectedPath> {
    let protected = &workspace.protected;
    let hidden = |path: &PathBuf| {
        let is_file = path.extension().is_some();
        let placeholder = if is_file { Placeholder::File(EMPTY) } else { Placeholder::Folder };
        ProtectedPath { path: path.clone(), mode: MountMode::Hide, placeholder }
    };
    let mut paths: Vec<ProtectedPath> = protected.hidden.iter().map(hidden).collect();
    if access == Access::Write {
        let read_only = |paths: &[PathBuf], placeholder| -> Vec<_> {
            paths.iter().map(|path| ProtectedPath::read_only(path.clone(), placeholder)).collect()
        };
        paths.extend(read_only(&protected.read_only, Placeholder::Socket));
        paths.extend(read_only(&protected.read_only_dirs, Placeholder::Folder));
    }
    paths
}

/// The paths that make git run programs.
fn of_git(workspace: &Opened) -> Result<impl Iterator<Item = ProtectedPath>, JailError> {
    let paths = git::read_only(workspace)?.into_iter();
    Ok(paths.map(|(path, placeholder)| ProtectedPath::read_only(path, placeholder)))
}
