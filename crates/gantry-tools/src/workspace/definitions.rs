//! The files that define agents and tools: `agents/*.md`, `agents/*/agent.json` and `tools/*/tool.json` in a catalogue
//! folder and in every folder of its `projects`, and the `gantry.*.lock` that pin tools. An agent that writes one gives itself
//! rights, so tools read them and do not change them.
//!
//! They cannot be listed once and for all, because a new file is a new definition, and a new project has its own. Each
//! change looks for them on the disk: the ones that exist are recognised by device and inode, the ones that would come
//! to be by the directory, recognised in the same way, and the few names below it.
//!
//! **Invariant:** a rename and the last look before it happen under one [`rename_lock`]. Otherwise one call could move a directory
//! into a catalogue while another one, judged before, writes a definition into that directory.

use super::entry::{DIRECTORY, Kind, names, open_dir, stat_at};
use super::protected::{FoundPaths, Id, resolved};
use super::root::LINKS_FOLLOWED;
use rustix::fs::{CWD, Mode, Stat, fstat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries of an `agents`, `tools` or `projects` folder that are looked at; with more, no tool changes anything.
pub(crate) const ENTRIES: usize = 10_000;

/// What an entry is by its position in a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefinitionKind {
    /// The folder itself.
    Catalogue,
    Projects,
    /// An entry of `projects`. Whether the configuration has such a project can change with every start.
    Project,
    Agents,
    Tools,
    /// An entry of `agents`.
    Agent,
    /// An entry of `tools`.
    Tool,
    /// A file that configures Gantry.
    Definition,
}

impl DefinitionKind {
    /// What this name is in there. Case does not count, as on some file systems.
    fn below(self, name: &OsStr) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match self {
            Self::Catalogue | Self::Project if is("agents") => Some(Self::Agents),
            Self::Catalogue | Self::Project if is("tools") => Some(Self::Tools),
            Self::Catalogue if is("projects") => Some(Self::Projects),
            Self::Catalogue if is_lock(name) => Some(Self::Definition),
            Self::Projects => Some(Self::Project),
            Self::Agents if is_markdown(name) => Some(Self::Definition),
            Self::Agents => Some(Self::Agent),
            Self::Tools => Some(Self::Tool),
            Self::Agent | Self::Tool if self.definition().is_some_and(is) => Some(Self::Definition),
            Self::Catalogue | Self::Project | Self::Agent | Self::Tool | Self::Definition => None,
        }
    }

    /// What a directory of this name in there is.
    fn inner(self, name: &OsStr) -> Option<Self> {
        match self {
            Self::Agents => Some(Self::Agent),
            Self::Catalogue | Self::Projects | Self::Project | Self::Tools => self.below(name),
            Self::Agent | Self::Tool | Self::Definition => None,
        }
    }

    /// The definition that may be in there.
    fn definition(self) -> Option<&'static str> {
        match self {
            Self::Agent => Some("agent.json"),
            Self::Tool => Some("tool.json"),
            Self::Catalogue
            | Self::Projects
            | Self::Project
            | Self::Agents
            | Self::Tools
            | Self::Definition => None,
        }
    }
}

/// `gantry.lock`, or that of a project: `gantry.<project>.lock`.
pub(crate) fn is_lock(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes().to_ascii_lowercase();
    let between =
        name.strip_prefix(b"gantry".as_slice()).and_then(|rest| rest.strip_suffix(b".lock".as_slice()));
    between.is_some_and(|project| project.is_empty() || project.starts_with(b"."))
}

fn is_markdown(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// The definitions and their places, as they are found on the disk.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Directories of catalogues.
    directories: Vec<(Id, DefinitionKind)>,
    /// Where links in catalogues lead to: the directory, the name in it, and what the link is.
    link_targets: Vec<(Id, OsString, DefinitionKind)>,
    found: FoundPaths,
}

/// Why it is not known what the definitions are.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownDefinitions {
    #[error("{} has more than {ENTRIES} entries; ask a person to clear it up", .0.display())]
    TooMany(PathBuf),
    #[error("{} cannot be read ({}); ask a person to repair it", .0.display(), .1)]
    Unreadable(PathBuf, Errno),
}

impl Definitions {
    /// Looks for those of these catalogue folders.
    pub(crate) fn find(catalogues: &[PathBuf]) -> Result<Self, UnknownDefinitions> {
        let mut all = Self::default();
        for folder in catalogues {
            // The folder stays where it is even while nothing is defined in it, so that no other one takes its place.
            all.found.add(folder);
            let Some((_, id)) = directory(CWD, folder.as_os_str()).map_err(unreadable(folder))? else {
                continue;
            };
            if all.directories.contains(&(id, DefinitionKind::Catalogue)) {
                continue;
            }
            all.directories.push((id, DefinitionKind::Catalogue));
            all.add_agents_and_tools(folder)?;
            all.add_folder(&folder.join("projects"), DefinitionKind::Projects)?;
        }
        Ok(all)
    }

    /// Adds the `agents` and the `tools` of a catalogue or of a project in it, and says whether anything is defined there.
    fn add_agents_and_tools(&mut self, folder: &Path) -> Result<bool, UnknownDefinitions> {
        let agents = self.add_folder(&folder.join("agents"), DefinitionKind::Agents)?;
        let tools = self.add_folder(&folder.join("tools"), DefinitionKind::Tools)?;
        Ok(agents || tools)
    }

    /// Adds the `agents`, the `tools` or the `projects` of a catalogue, and says whether anything is defined there.
    fn add_folder(&mut self, folder: &Path, kind: DefinitionKind) -> Result<bool, UnknownDefinitions> {
        let unreadable = unreadable(folder);
        let Some(entry) = stat_at(CWD, folder.as_os_str()).map_err(unreadable)? else { return Ok(false) };
        self.follow(folder, &entry, kind);
        let Some((dir, id)) = directory(CWD, folder.as_os_str()).map_err(unreadable)? else {
            return Ok(false);
        };
        self.directories.push((id, kind));
        let mut holds = false;
        for (n, name) in names(&dir).map_err(unreadable)?.enumerate() {
            if n == ENTRIES {
                return Err(UnknownDefinitions::TooMany(folder.into()));
            }
            let name = name.map_err(unreadable)?;
            let path = folder.join(&name);
            holds |= match self.add_entry((&dir, &name), &path, kind) {
                // What is in it is unknown, so it is not moved.
                Err(Errno::ACCESS) => {
                    self.found.add(&path);
                    true
                }
                added => added.map_err(unreadable)?,
            };
            if kind == DefinitionKind::Projects {
                holds |= self.add_project(&path)?;
            }
        }
        if holds {
            self.found.holding.extend([id, Id::of(&entry)]);
        }
        Ok(holds)
    }

    /// Adds what is defined in an entry of `projects`.
    fn add_project(&mut self, folder: &Path) -> Result<bool, UnknownDefinitions> {
        match self.add_agents_and_tools(folder) {
            Ok(false) => Ok(false),
            Ok(true) => {
                self.found.add_ancestors(&folder.join("agents"), None);
                Ok(true)
            }
            Err(UnknownDefinitions::Unreadable(_, Errno::ACCESS)) => {
                self.found.add(folder);
                Ok(true)
            }
            Err(unknown) => Err(unknown),
        }
    }

    /// Adds an entry of one of those folders, and says whether it is a definition or has one in it.
    fn add_entry(
        &mut self,
        (dir, name): (&OwnedFd, &OsStr),
        path: &Path,
        kind: DefinitionKind,
    ) -> Result<bool, Errno> {
        // What is gone by now is not there.
        let Some(entry) = stat_at(dir, name)? else { return Ok(false) };
        let is_definition = kind.below(name) == Some(DefinitionKind::Definition);
        if is_definition {
            self.add_definition(path, &entry);
        }
        let Some(inner) = kind.inner(name) else { return Ok(is_definition) };
        self.follow(path, &entry, inner);
        let Some((dir, id)) = directory(dir, name)? else { return Ok(is_definition) };
        self.directories.push((id, inner));
        let Some(file) = inner.definition() else { return Ok(is_definition) };
        let found = stat_at(&dir, OsStr::new(file))?;
        if let Some(stat) = &found {
            self.add_definition(&path.join(file), stat);
            self.found.holding.extend([id, Id::of(&entry)]);
        }
        Ok(is_definition || found.is_some())
    }

    /// Protects a definition.
    fn add_definition(&mut self, path: &Path, entry: &Stat) {
        self.found.existing.push(Id::of(entry));
        self.follow(path, entry, DefinitionKind::Definition);
    }

    /// If this is a link, everything that it leads through and to counts as what the link is.
    fn follow(&mut self, path: &Path, entry: &Stat, kind: DefinitionKind) {
        if Kind::of(entry) != Kind::Link {
            return;
        }
        let mut link = path.to_owned();
        for _ in 0..LINKS_FOLLOWED {
            let (Ok(target), Some(folder)) = (std::fs::read_link(&link), link.parent()) else { break };
            let spelled = folder.join(target);
            let end = match (spelled.parent(), spelled.file_name()) {
                (Some(folder), Some(name)) => resolved(folder).join(name),
                (None, _) | (_, None) => resolved(&spelled),
            };
            self.found.add_ancestors(&spelled, None);
            self.found.add_ancestors(&end, None);
            if let (Some(folder), Some(name)) = (end.parent(), end.file_name())
                && let Ok(stat) = rustix::fs::stat(folder)
            {
                self.link_targets.push((Id::of(&stat), name.to_owned(), kind));
            }
            link = end;
        }
    }

    /// Whether changing this name in that directory would change or make a definition.
    pub(crate) fn covers(&self, directory: Id, name: &OsStr, stat: Option<&Stat>) -> bool {
        self.found.covers(directory, name, stat) || self.would_define(directory, [name])
    }

    /// Whether this is a directory with a definition below it, or a link to one.
    pub(crate) fn is_above(&self, stat: Option<&Stat>) -> bool {
        self.found.is_above(stat)
    }

    /// Whether one of these names, each in the one before and the first in that directory, would be a definition.
    pub(crate) fn would_define<'a>(&self, directory: Id, names: impl IntoIterator<Item = &'a OsStr>) -> bool {
        let mut names = names.into_iter();
        let Some(first) = names.next() else { return false };
        let mut kinds = self.kinds_at(directory, first);
        kinds.contains(&DefinitionKind::Definition)
            || names.any(|name| {
                kinds = kinds.iter().filter_map(|kind| kind.below(name)).collect();
                kinds.contains(&DefinitionKind::Definition)
            })
    }

    /// Whether an entry that is moved to this name in that directory would bring definitions along.
    pub(crate) fn brings_definitions(
        &self,
        (dir, moved, kind): (&OwnedFd, &OsStr, Kind),
        (directory, name): (Id, &OsStr),
    ) -> Result<bool, Errno> {
        let kinds = self.kinds_at(directory, name);
        match kind {
            Kind::File | Kind::Special => Ok(false),
            // What it leads to depends on where it is.
            Kind::Link => Ok(!kinds.is_empty()),
            Kind::Directory if kinds.is_empty() => Ok(false),
            Kind::Directory => {
                let dir = open_dir(dir, moved)?;
                kinds.into_iter().try_fold(false, |found, kind| Ok(found || holds(&dir, kind)?))
            }
        }
    }

    /// What this name in that directory is; usually nothing.
    fn kinds_at(&self, directory: Id, name: &OsStr) -> Vec<DefinitionKind> {
        let here = self.directories.iter().filter(|(id, _)| *id == directory);
        let link_targets = self
            .link_targets
            .iter()
            .filter(|(id, end, _)| *id == directory && end.eq_ignore_ascii_case(name));
        here.filter_map(|(_, kind)| kind.below(name)).chain(link_targets.map(|(_, _, kind)| *kind)).collect()
    }
}

/// Whether there would be a definition in a directory if it were of this kind.
fn holds(dir: &OwnedFd, kind: DefinitionKind) -> Result<bool, Errno> {
    if let Some(file) = kind.definition() {
        return Ok(stat_at(dir, OsStr::new(file))?.is_some());
    }
    for (n, name) in names(dir)?.enumerate() {
        let name = name?;
        // Where there is too much to look at, a definition is taken to be in it.
        if n == ENTRIES || kind.below(&name) == Some(DefinitionKind::Definition) {
            return Ok(true);
        }
        let Some(inner) = kind.inner(&name) else { continue };
        let found = match stat_at(dir, &name)?.as_ref().map(Kind::of) {
            Some(Kind::Directory) => holds(&open_dir(dir, &name)?, inner)?,
            Some(Kind::Link) => true,
            Some(Kind::File | Kind::Special) | None => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens a directory, or what a link to one leads to; nothing if there is none.
fn directory(at: impl AsFd, name: &OsStr) -> Result<Option<(OwnedFd, Id)>, Errno> {
    match rustix::fs::openat(at, name, DIRECTORY, Mode::empty()) {
        Ok(dir) => {
            let id = Id::of(&fstat(&dir)?);
            Ok(Some((dir, id)))
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unreadable(folder: &Path) -> impl Fn(Errno) -> UnknownDefinitions + Copy {
    move |error| UnknownDefinitions::Unreadable(folder.into(), error)
}

/// Until this is dropped, no other tool of this process renames anything.
pub(crate) fn rename_lock() -> MutexGuard<'static, ()> {
    static RENAMES: Mutex<()> = Mutex::new(());
    // Nothing is guarded but the order, which a panic cannot spoil.
    RENAMES.lock().unwrap_or_else(PoisonError::into_inner)
}
