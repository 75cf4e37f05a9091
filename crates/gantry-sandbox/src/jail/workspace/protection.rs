//! The mounts that protect a workspace, found anew for each job, because protected paths come and go.

use super::checks;
use super::git::Absent;
use super::lease::{MountMode, Opened, ProtectedMount, unprotected, unusable, with_remedy};
use crate::jail::{Access, JailError};
use crate::protected::{EntryKind, GIT, GIT_FILES, GIT_FOLDERS, follow, repositories};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Limit: mounts over one workspace. Each is looked for at each interval while a job runs.
const MOUNTS: usize = 1024;

/// What protects a workspace from one job.
#[derive(Debug, Default)]
pub(super) struct Protection {
    /// The mounts by their path, so that a folder comes before its content.
    mounts: BTreeMap<PathBuf, (MountMode, bool)>,
    /// Files that cannot be covered, because they do not exist.
    pub(super) absent: Vec<Absent>,
    /// Whether something protected, or the repository, does not exist.
    pub(super) has_missing: bool,
}

/// The mounts that one path needs, and the first name of it that does not exist, if any, and whether it is the last;
/// relative to the workspace.
type Covers = (Vec<(PathBuf, MountMode, bool)>, Option<(PathBuf, bool)>);

impl Protection {
    /// Finds what there is to protect from a job. One that only reads is kept from what is hidden.
    pub(super) fn find(workspace: &Opened, access: Access) -> Result<Self, JailError> {
        let mut found = Self::default();
        let protected = &workspace.protected;
        let read_only = if access == Access::Write { &*protected.read_only } else { &[] };
        let hidden = protected.hidden.iter().map(|path| (path, MountMode::Hide));
        for (path, mode) in hidden.chain(read_only.iter().map(|path| (path, MountMode::ReadOnly))) {
            let (mounts, missing) = covers(workspace, path, mode)?;
            found.has_missing |= missing.is_some();
            if missing.is_none() {
                found.extend(mounts);
            }
        }
        if access == Access::Write {
            found.add_repository(workspace)?;
        }
        // A file system that is mounted below the workspace may be the machine's. Where the jail does not take such mounts
        // along, their mount points show.
        let below = checks::mounts(workspace)?;
        found.extend(below.into_iter().map(|(path, is_dir)| (path, MountMode::Hide, is_dir)));
        Ok(found)
    }

    /// Adds what makes git run programs, whether or not it exists.
    fn add_repository(&mut self, workspace: &Opened) -> Result<(), JailError> {
        let at = workspace.path.join(GIT);
        let mut sealed: Vec<_> = at.is_file().then_some((at, false)).into_iter().collect();
        let repositories = repositories(&workspace.path);
        self.has_missing |= repositories.is_empty();
        for repository in repositories {
            sealed.extend(GIT_FOLDERS.map(|name| (repository.join(name), true)));
            sealed.extend(GIT_FILES.map(|name| (repository.join(name), false)));
        }
        for (path, is_dir) in sealed {
            let (mounts, missing) = covers(workspace, &path, MountMode::ReadOnly)?;
            self.extend(mounts);
            let Some((missing, is_last)) = missing else { continue };
            let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
            let absent = (is_last && !is_dir).then(|| Absent::open(workspace, missing)).flatten();
            match (absent, folder) {
                (Some(absent), _) => self.absent.push(absent),
                // A folder that cannot be made, or a file whose folder cannot be looked into.
                (None, Some(folder)) => self.mount(folder, MountMode::ReadOnly, true),
                (None, None) => return Err(unprotected(&path, &"it does not exist; make it yourself")),
            }
        }
        Ok(())
    }

    fn extend(&mut self, mounts: impl IntoIterator<Item = (PathBuf, MountMode, bool)>) {
        mounts.into_iter().for_each(|(path, mode, is_dir)| self.mount(path, mode, is_dir));
    }

    fn mount(&mut self, path: PathBuf, mode: MountMode, is_dir: bool) {
        let mount = self.mounts.entry(path).or_insert((mode, is_dir));
        *mount = (mode.max(mount.0), is_dir);
    }

    /// The mounts in their order, without those that others make superfluous.
    pub(super) fn mounts(&self, workspace: &Opened) -> Result<Vec<ProtectedMount>, JailError> {
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
        let mounts: Vec<_> = needed
            .map(|(path, (mode, is_dir))| ProtectedMount { path: path.clone(), mode: *mode, is_dir: *is_dir })
            .collect();
        if mounts.len() > MOUNTS {
            let reason =
                format!("more than {MOUNTS} paths in it are protected or mounted; keep fewer of them in it");
            return Err(unusable(&workspace.path, &reason));
        }
        Ok(mounts)
    }
}

/// What has to be mounted over the entries of the workspace that a path depends on. A workspace that is itself protected is
/// refused.
fn covers(workspace: &Opened, path: &Path, mode: MountMode) -> Result<Covers, JailError> {
    let way = follow(path, Some((&workspace.path, workspace.id))).map_err(|(at, error)| {
        let folder = at.parent().unwrap_or(&workspace.path);
        unprotected(&at, &with_remedy(error, folder))
    })?;
    let mut mounts = Vec::new();
    for entry in way.entries {
        if entry.kind == (EntryKind::End { is_dir: true }) && workspace.path.starts_with(&entry.path) {
            let reason = format!(
                "it is in {}, which belongs to Gantry itself; choose another workspace",
                path.display()
            );
            return Err(unusable(&workspace.path, &reason));
        }
        let Some(below) = workspace.inside(&entry.path) else { continue };
        mounts.push(match entry.kind {
            EntryKind::Folder => (below, MountMode::Pin, true),
            EntryKind::Link => (below, MountMode::Hide, false),
            EntryKind::End { is_dir } => (below, mode, is_dir),
        });
    }
    let missing = way.missing.and_then(|(path, is_last)| Some((workspace.inside(&path)?, is_last)));
    Ok((mounts, missing))
}
