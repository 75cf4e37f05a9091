//! Finds the files that define agents and tools.
//!
//! What could be such a file and is not read is named in a warning. A link to a file is followed; one to a folder is
//! not.

use crate::config::de::Findings;
use crate::config::error::Problem;
use crate::config::schema::Places;
use gantry_core::options::{Name, ServerId};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Things in a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// Files of one folder that are read.
const MAX_FILES: usize = 1000;

/// A folder whose subfolders each define one agent or one tool.
#[derive(Debug)]
pub(in crate::config) struct DefinitionDir {
    pub(in crate::config) folder: &'static str,
    /// The file in each folder that defines it.
    pub(in crate::config) file: &'static str,
    kind: FileKind,
}

pub(in crate::config) const AGENTS: DefinitionDir =
    DefinitionDir { folder: "agents", file: "agent.json", kind: FileKind::AgentJson };
pub(in crate::config) const TOOLS: DefinitionDir =
    DefinitionDir { folder: "tools", file: "tool.json", kind: FileKind::ToolJson };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    AgentJson,
    /// A file in the folder of agents that defines one by itself.
    AgentMarkdown,
    ToolJson,
}

#[derive(Debug)]
pub(super) struct DefinitionFile {
    /// The name of its folder, or its own without the ending.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// As messages name it.
    pub(super) shown: Arc<Path>,
    pub(super) kind: FileKind,
}

/// The files of a project in one of its folders, in the order of their names.
pub(super) fn list(places: &Places, dir: &DefinitionDir, findings: &mut Findings) -> Vec<DefinitionFile> {
    let (folder, shown) = (places.folder.join(dir.folder), places.shown.join(dir.folder));
    let names = match names(&folder) {
        Ok(names) => names,
        Err(error) => {
            findings.problems.push(Problem::in_file(&shown, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    if folder.is_symlink() && !names.is_empty() {
        let message = "not read, because a link to a folder is not followed; put the folder there";
        findings.warnings.push(Problem::in_file(&shown, message));
        return Vec::new();
    }
    let mut files: Vec<DefinitionFile> = Vec::new();
    for name in names {
        let Some(file) = candidate(&folder, &shown, name, dir) else { continue };
        match objection(&file, &folder) {
            Some(why) => {
                findings.warnings.push(Problem::in_file(&file.shown, format!("not read, because {why}")));
            }
            None if files.len() == MAX_FILES => {
                let message = format!("there are more than {MAX_FILES} {} here; move some away", dir.folder);
                findings.problems.push(Problem::in_file(&shown, message));
                return files;
            }
            None => files.push(file),
        }
    }
    files
}

/// The names in a folder, sorted; none if there is no such folder. Names that are no text are left out.
pub(in crate::config) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        if names.len() == MAX_ENTRIES {
            return Err(io::Error::other(format!("it holds more than {MAX_ENTRIES} files and folders")));
        }
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// The file that a name in the folder stands for, if it looks like one.
fn candidate(folder: &Path, shown: &Path, name: String, dir: &DefinitionDir) -> Option<DefinitionFile> {
    let (path, shown) = (folder.join(&name), shown.join(&name));
    if let (FileKind::AgentJson, Some(stem)) = (dir.kind, name.strip_suffix(".md")) {
        // Some editors say twice what the file is.
        let name = stem.strip_suffix(".agent").unwrap_or(stem).to_owned();
        return Some(DefinitionFile { name, path, shown: shown.into(), kind: FileKind::AgentMarkdown });
    }
    let (path, shown) = (path.join(dir.file), shown.join(dir.file).into());
    path.symlink_metadata().ok()?;
    Some(DefinitionFile { name, path, shown, kind: dir.kind })
}

/// Why a file is not read.
fn objection(file: &DefinitionFile, folder: &Path) -> Option<String> {
    if file.name.starts_with('.') || file.name.is_empty() {
        return Some("hidden files are not; rename it".to_owned());
    }
    if file.kind != FileKind::AgentMarkdown && folder.join(&file.name).is_symlink() {
        return Some("a link to a folder is not followed; put the folder there".to_owned());
    }
    let checked = match file.kind {
        FileKind::AgentJson => file.name.parse::<Name>().map(drop),
        FileKind::ToolJson => file.name.parse::<ServerId>().map(drop),
        FileKind::AgentMarkdown => Ok(()),
    };
    if let Err(noun) = checked {
        return Some(format!("the name of its folder is not {noun}; rename it"));
    }
    (!file.path.is_file()).then(|| "this is not a file; remove it".to_owned())
}
