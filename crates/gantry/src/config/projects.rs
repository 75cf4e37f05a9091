//! Where the projects of a configuration stand: their workspaces, data, lock files, and folders of agents and tools.

use super::build::{Base, absolute};
use super::model::MAIN_PROJECT;
use super::text::is_name;
use super::tree::{Node, find};
use std::path::{Component, Path, PathBuf};

/// The files that pin the definitions of tools begin and end like this, with the name of the project between.
const LOCK: (&str, &str) = ("gantry", "lock");
/// The folder for projects, beside the configuration and in the data folder.
const PROJECTS: &str = "projects";

/// Where a project stands, all absolute.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) workspace: PathBuf,
    /// The folder of its agent and tool files.
    pub(super) folder: PathBuf,
    /// The same folder as messages name it.
    pub(super) shown: PathBuf,
    pub(super) data: PathBuf,
    pub(super) lock: PathBuf,
}

impl Place {
    /// The place of the file itself, and those of the projects in it. `shown` is the folder of the configuration as
    /// messages name it.
    pub(super) fn all(root: &Node, base: &Base, shown: &Path) -> (Self, Vec<Self>) {
        let (begin, end) = LOCK;
        let main = Self {
            name: MAIN_PROJECT.to_owned(),
            workspace: workspace(root, &base.folder),
            folder: base.folder.clone(),
            shown: shown.to_owned(),
            data: base.data.clone(),
            lock: base.folder.join(format!("{begin}.{end}")),
        };
        let projects = find(root, "projects").into_iter().flat_map(|entry| entry.node.value.entries());
        // A name that is none was reported, and is no part of a path.
        let others = projects.filter(|entry| is_name(&entry.key)).map(|entry| {
            let name = &entry.key;
            Self {
                name: name.clone(),
                workspace: workspace(&entry.node, &base.folder),
                folder: base.folder.join(PROJECTS).join(name),
                shown: shown.join(PROJECTS).join(name),
                data: base.data.join(PROJECTS).join(name),
                lock: base.folder.join(format!("{begin}.{name}.{end}")),
            }
        });
        (main, others.collect())
    }
}

/// The workspace that the group of a project names.
pub(super) fn workspace(project: &Node, folder: &Path) -> PathBuf {
    let written = find(project, "workspace").and_then(|entry| entry.node.value.as_text());
    absolute(folder, written.map_or(".", |text| &text.text))
}

/// A path of a user in the workspace, absolute; none if it leaves it. A relative one starts at the workspace.
pub(super) fn within(workspace: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    if path.is_relative() {
        return Some(absolute(workspace, path));
    }
    let rest = path.strip_prefix(plain(workspace)).or_else(|_| path.strip_prefix(workspace)).ok()?;
    Some(absolute(workspace, rest))
}

/// A path without `..`, as its text says; links are not asked.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}
