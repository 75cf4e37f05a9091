//! Finds the files that define agents and tools.
//!
//! What could be such a file and is not read is named in a warning. A link to a file is followed; one to a folder is
//! not, so that whoever fences these folders off fences off all of them.

use crate::config::check::Judge;
use crate::config::error::Problem;
use crate::config::projects::Place;
use crate::config::text::{Judgement, Rule};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Things in a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// Files of one folder that are read.
const MAX_FILES: usize = 1000;

/// A folder in which every folder can define something.
#[derive(Debug)]
pub(in crate::config) struct Shelf {
    pub(in crate::config) folder: &'static str,
    /// The file in each folder that defines it.
    pub(in crate::config) file: &'static str,
    form: Form,
    /// What the folders are called.
    rule: Rule,
    /// How a file is called that defines something by itself.
    markdown: Option<&'static str>,
}

pub(in crate::config) static AGENTS: Shelf = Shelf {
    folder: "agents",
    file: "agent.json",
    form: Form::AgentJson,
    rule: Rule::Name,
    markdown: Some(".md"),
};
pub(in crate::config) static TOOLS: Shelf =
    Shelf { folder: "tools", file: "tool.json", form: Form::ToolJson, rule: Rule::ServerId, markdown: None };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    AgentJson,
    AgentText,
    ToolJson,
}

/// A file that defines an agent or an entry of the catalogue.
#[derive(Debug)]
pub(super) struct File {
    /// The name of its folder, or its own without the ending.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// As messages name it.
    pub(super) shown: Arc<Path>,
    pub(super) form: Form,
}

/// The files of a project in one of its folders, in the order of their names.
pub(super) fn list(place: &Place, shelf: &Shelf, judge: &mut Judge<'_>) -> Vec<File> {
    let (folder, shown) = (place.folder.join(shelf.folder), place.shown.join(shelf.folder));
    let names = match names(&folder) {
        Ok(names) => names,
        Err(error) => {
            judge.problems.push(Problem::in_file(&shown, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    if folder.is_symlink() && !names.is_empty() {
        judge.warn(&shown, "not read, because a link to a folder is not followed; put the folder there");
        return Vec::new();
    }
    let mut files: Vec<File> = Vec::new();
    for name in names {
        let Some(file) = candidate(&folder, &shown, name, shelf) else { continue };
        match objection(&file, &folder, shelf) {
            Some(why) => judge.warn(&file.shown, &format!("not read, because {why}")),
            None if files.len() == MAX_FILES => {
                let message =
                    format!("there are more than {MAX_FILES} {} here; move some away", shelf.folder);
                judge.problems.push(Problem::in_file(&shown, message));
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
fn candidate(folder: &Path, shown: &Path, name: String, shelf: &Shelf) -> Option<File> {
    let (path, shown) = (folder.join(&name), shown.join(&name));
    if let Some(stem) = shelf.markdown.and_then(|ending| name.strip_suffix(ending)) {
        // Some editors say twice what the file is.
        let stem = stem.strip_suffix(".agent").unwrap_or(stem);
        let (name, shown) = (stem.to_owned(), shown.into());
        return Some(File { name, path, shown, form: Form::AgentText });
    }
    let (path, shown) = (path.join(shelf.file), shown.join(shelf.file).into());
    path.symlink_metadata().ok()?;
    Some(File { name, path, shown, form: shelf.form })
}

/// Why a file is not read.
fn objection(file: &File, folder: &Path, shelf: &Shelf) -> Option<String> {
    if file.name.starts_with('.') || file.name.is_empty() {
        return Some("hidden files are not; rename it".to_owned());
    }
    if file.form != Form::AgentText {
        if folder.join(&file.name).is_symlink() {
            return Some("a link to a folder is not followed; put the folder there".to_owned());
        }
        if shelf.rule.judge(&file.name) != Judgement::Good {
            return Some(format!("the name of its folder is not {}; rename it", shelf.rule.noun()));
        }
    }
    (!file.path.is_file()).then(|| "this is not a file; remove it".to_owned())
}
