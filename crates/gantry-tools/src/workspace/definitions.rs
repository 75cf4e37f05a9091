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

use super::protected::{Id, Marks, resolved};
use super::root::{DIRECTORY, Kind, names, open_dir, stat_at};
use rustix::fs::{CWD, Mode, Stat, fstat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries of an `agents`, `tools` or `projects` folder that are looked at; with more, no tool changes anything.
pub(crate) const ENTRIES: usize = 10_000;
/// Links that are followed from a definition to what it is; what Linux follows.
const LINKS_FOLLOWED: usize = 40;

/// What something is by its position in a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefinitionKind {
    /// The folder itself.
    Catalogue,
    Projects,
    /// Something in `projects`. Whether the configuration has such a project can change with every start.
    Project,
    Agents,
    Tools,
    /// Something in `agents`.
    Agent,
    /// Something in `tools`.
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
fn is_lock(name: &OsStr) -> bool {
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
    spots: Vec<(Id, DefinitionKind)>,
    /// Where links in catalogues lead to: the directory, the name in it, and what is there by that.
    ends: Vec<(Id, OsString, DefinitionKind)>,
    marks: Marks,
}

/// Why it is not known what defines something.
#[derive(Debug)]
pub(crate) enum Unknown {
    TooMany(PathBuf),
    Unreadable(PathBuf, Errno),
}

impl Definitions {
    /// Looks for those of these catalogue folders.
    pub(crate) fn find(catalogues: &[PathBuf]) -> Result<Self, Unknown> {
        let mut all = Self::default();
        for folder in catalogues {
            // The folder stays where it is even while nothing is defined in it, so that no other one takes its place.
            all.marks.add(folder);
            let Some((_, id)) = directory(CWD, folder.as_os_str()).map_err(unreadable(folder))? else {
                continue;
            };
            if all.spots.contains(&(id, DefinitionKind::Catalogue)) {
                continue;
            }
            all.spots.push((id, DefinitionKind::Catalogue));
            all.add_shelves(folder)?;
            all.add(&folder.join("projects"), DefinitionKind::Projects)?;
        }
        Ok(all)
    }

    /// Adds the `agents` and the `tools` of a catalogue or of a project in it, and says whether anything is defined there.
    fn add_shelves(&mut self, folder: &Path) -> Result<bool, Unknown> {
        let agents = self.add(&folder.join("agents"), DefinitionKind::Agents)?;
        let tools = self.add(&folder.join("tools"), DefinitionKind::Tools)?;
        Ok(agents || tools)
    }

    /// Adds the `agents`, the `tools` or the `projects` of a catalogue, and says whether anything is defined there.
    fn add(&mut self, folder: &Path, spot: DefinitionKind) -> Result<bool, Unknown> {
        let unreadable = unreadable(folder);
        let Some(entry) = stat_at(CWD, folder.as_os_str()).map_err(unreadable)? else { return Ok(false) };
        self.follow(folder, &entry, spot);
        let Some((dir, id)) = directory(CWD, folder.as_os_str()).map_err(unreadable)? else {
            return Ok(false);
        };
        self.spots.push((id, spot));
        let mut holds = false;
        for (n, name) in names(&dir).map_err(unreadable)?.enumerate() {
            if n == ENTRIES {
                return Err(Unknown::TooMany(folder.into()));
            }
            let name = name.map_err(unreadable)?;
            let path = folder.join(&name);
            holds |= match self.add_entry((&dir, &name), &path, spot) {
                // What is in it is unknown, so it is not moved.
                Err(Errno::ACCESS) => {
                    self.marks.add(&path);
                    true
                }
                added => added.map_err(unreadable)?,
            };
            if spot == DefinitionKind::Projects {
                holds |= self.add_project(&path)?;
            }
        }
        if holds {
            self.marks.holding.extend([id, Id::of(&entry)]);
        }
        Ok(holds)
    }

    /// Adds what is defined in something in `projects`.
    fn add_project(&mut self, folder: &Path) -> Result<bool, Unknown> {
        match self.add_shelves(folder) {
            Ok(false) => Ok(false),
            Ok(true) => {
                self.marks.add_way(&folder.join("agents"), None);
                Ok(true)
            }
            Err(Unknown::Unreadable(_, Errno::ACCESS)) => {
                self.marks.add(folder);
                Ok(true)
            }
            Err(unknown) => Err(unknown),
        }
    }

    /// Adds something in one of those, and says whether it is a definition or has one in it.
    fn add_entry(
        &mut self,
        (dir, name): (&OwnedFd, &OsStr),
        path: &Path,
        spot: DefinitionKind,
    ) -> Result<bool, Errno> {
        // What is gone by now is not there.
        let Some(entry) = stat_at(dir, name)? else { return Ok(false) };
        let is_definition = spot.below(name) == Some(DefinitionKind::Definition);
        if is_definition {
            self.mark(path, &entry);
        }
        let Some(inner) = spot.inner(name) else { return Ok(is_definition) };
        self.follow(path, &entry, inner);
        let Some((dir, id)) = directory(dir, name)? else { return Ok(is_definition) };
        self.spots.push((id, inner));
        let Some(file) = inner.definition() else { return Ok(is_definition) };
        let found = stat_at(&dir, OsStr::new(file))?;
        if let Some(stat) = &found {
            self.mark(&path.join(file), stat);
            self.marks.holding.extend([id, Id::of(&entry)]);
        }
        Ok(is_definition || found.is_some())
    }

    /// Marks a definition.
    fn mark(&mut self, path: &Path, entry: &Stat) {
        self.marks.there.push(Id::of(entry));
        self.follow(path, entry, DefinitionKind::Definition);
    }

    /// If this is a link, then what it leads to is what the link is, and so is every link on the way there.
    fn follow(&mut self, path: &Path, entry: &Stat, spot: DefinitionKind) {
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
            self.marks.add_way(&spelled, None);
            self.marks.add_way(&end, None);
            if let (Some(folder), Some(name)) = (end.parent(), end.file_name())
                && let Ok(stat) = rustix::fs::stat(folder)
            {
                self.ends.push((Id::of(&stat), name.to_owned(), spot));
            }
            link = end;
        }
    }

    /// Whether changing this name in that directory would change or make a definition.
    pub(crate) fn covers(&self, directory: Id, name: &OsStr, stat: Option<&Stat>) -> bool {
        self.marks.covers(directory, name, stat) || self.arise(directory, [name])
    }

    /// Whether this is a directory with a definition below it, or a link to one.
    pub(crate) fn within(&self, stat: Option<&Stat>) -> bool {
        self.marks.within(stat)
    }

    /// Whether one of these names, each in the one before and the first in that directory, would be a definition.
    pub(crate) fn arise<'a>(&self, directory: Id, names: impl IntoIterator<Item = &'a OsStr>) -> bool {
        let mut names = names.into_iter();
        let Some(first) = names.next() else { return false };
        let mut spots = self.spots_at(directory, first);
        spots.contains(&DefinitionKind::Definition)
            || names.any(|name| {
                spots = spots.iter().filter_map(|spot| spot.below(name)).collect();
                spots.contains(&DefinitionKind::Definition)
            })
    }

    /// Whether something that is moved to this name in that directory would bring definitions along.
    pub(crate) fn come_with(
        &self,
        (dir, moved, kind): (&OwnedFd, &OsStr, Kind),
        (directory, name): (Id, &OsStr),
    ) -> Result<bool, Errno> {
        let spots = self.spots_at(directory, name);
        match kind {
            Kind::File | Kind::Special => Ok(false),
            // What it leads to depends on where it is.
            Kind::Link => Ok(!spots.is_empty()),
            Kind::Directory if spots.is_empty() => Ok(false),
            Kind::Directory => {
                let dir = open_dir(dir, moved)?;
                spots.into_iter().try_fold(false, |found, spot| Ok(found || holds(&dir, spot)?))
            }
        }
    }

    /// What this name in that directory is; usually nothing.
    fn spots_at(&self, directory: Id, name: &OsStr) -> Vec<DefinitionKind> {
        let here = self.spots.iter().filter(|(id, _)| *id == directory);
        let ends = self.ends.iter().filter(|(id, end, _)| *id == directory && end.eq_ignore_ascii_case(name));
        here.filter_map(|(_, spot)| spot.below(name)).chain(ends.map(|(_, _, spot)| *spot)).collect()
    }
}

/// Whether there would be a definition in a directory if it were at this spot.
fn holds(dir: &OwnedFd, spot: DefinitionKind) -> Result<bool, Errno> {
    if let Some(file) = spot.definition() {
        return Ok(stat_at(dir, OsStr::new(file))?.is_some());
    }
    for (n, name) in names(dir)?.enumerate() {
        let name = name?;
        // Where there is too much to look at, a definition is taken to be in it.
        if n == ENTRIES || spot.below(&name) == Some(DefinitionKind::Definition) {
            return Ok(true);
        }
        let Some(inner) = spot.inner(&name) else { continue };
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

fn unreadable(folder: &Path) -> impl Fn(Errno) -> Unknown + Copy {
    move |error| Unknown::Unreadable(folder.into(), error)
}

/// Until this is dropped, no other tool of this process gives anything another place.
pub(crate) fn rename_lock() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // Nothing is guarded but the order, which a panic cannot spoil.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
