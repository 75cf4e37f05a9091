//! Goes through the files of a folder with several threads, as git would have them: ignored and hidden ones left out.
//!
//! **Invariant:** everything is opened by a single name in a directory that is open already, and never through a link.
//! Whatever is renamed or replaced meanwhile, no step leads out of the workspace. What is hidden from tools is known by
//! device and inode, and is not entered.

use super::open;
use super::rules::{GIT, Rules, Said};
use crate::workspace::within::{Hidden, Way, Within};
use gantry_core::Fault;
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio_util::sync::CancellationToken;

/// Threads of one walk.
const THREADS: usize = 8;
/// Names that one walk looks at.
const NAMES: usize = 1_000_000;
/// Directories within directories. Each level may keep a directory open per thread.
const DEPTH: usize = 64;
/// Files of one directory that a thread takes on at once.
const PORTION: usize = 64;

/// Somebody who wants to see the files.
pub(super) trait Visit: Sync {
    /// What each thread has for itself.
    type Hand;

    fn hand(&self) -> Self::Hand;

    /// Whether it matters what is at this path, or below it if it ends in a slash.
    fn wants(&self, _path: &[u8]) -> bool {
        true
    }

    /// Called for each directory before what is in it.
    fn directory(&self, _path: &[u8], _stat: &Stat) {}

    /// Called for each file.
    fn file(&self, hand: &mut Self::Hand, spot: &Spot<'_>);

    /// Called for each directory that is not looked into, or not into all that is in it.
    fn skipped(&self, _path: &[u8]) {}

    /// Called for each thread at its end.
    fn done(&self, _hand: Self::Hand) {}
}

/// Where a file is.
#[derive(Debug)]
pub(super) struct Spot<'a> {
    dir: BorrowedFd<'a>,
    name: &'a OsStr,
    /// Its path relative to the workspace root.
    pub(super) path: &'a [u8],
    hidden: &'a Hidden,
}

impl Spot<'_> {
    /// Opens the file, unless it is hidden or no regular file; then it is as if there were none.
    pub(super) fn open(&self) -> Result<File, Errno> {
        let (file, stat) = open::regular(self.dir, self.name)?;
        if self.hidden.has(&stat) { Err(Errno::NOENT) } else { Ok(file) }
    }

    /// Looks at the file in the same way.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        let stat = statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && !self.hidden.has(&stat) { Ok(stat) } else { Err(Errno::NOENT) }
    }
}

/// Where a walk begins: a directory, or one file.
#[derive(Debug)]
pub(super) struct Start {
    dir: OwnedFd,
    /// Empty for the root; otherwise it ends in a slash.
    path: Vec<u8>,
    stat: Stat,
    /// The rules of the directories above.
    rules: Arc<Rules>,
    file: Option<OsString>,
    pub(super) hidden: Hidden,
    /// Names that are looked at; what comes after them is left out.
    pub(super) names: usize,
}

/// How a walk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Walked {
    /// Files and directories that could not be looked at.
    pub(super) skipped: usize,
}

impl Start {
    /// Goes to where a path leads.
    pub(super) fn find(within: &Within, way: &Way) -> Result<Self, Fault> {
        let (root, hidden) = within.enter()?;
        let barred = |error| way.barred(error);
        let (dir, stat) = open::directory(&root, OsStr::new(".")).map_err(barred)?;
        let rules = Arc::default();
        let mut start = Self { dir, path: Vec::new(), stat, rules, file: None, hidden, names: NAMES };
        for (n, name) in way.names.iter().enumerate() {
            let opened = open::directory(&start.dir, OsStr::new(name));
            if opened.as_ref().err() == Some(&Errno::NOTDIR) && n + 1 == way.names.len() {
                let found = statat(&start.dir, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(barred)?;
                start.hidden.check(&found, way)?;
                start.file = Some(name.into());
                return Ok(start);
            }
            let (dir, stat) = opened.map_err(barred)?;
            start.hidden.check(&stat, way)?;
            let has =
                |name: &[u8]| statat(&start.dir, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW).is_ok();
            start.rules = Rules::in_directory(&start.rules, start.dir.as_fd(), bare(&start.path), has);
            start.path.extend_from_slice(name.as_bytes());
            start.path.push(b'/');
            (start.dir, start.stat) = (dir, stat);
        }
        Ok(start)
    }
}

/// Shows every file from there on to the visitor, until it is told to stop. The order is not fixed.
pub(super) fn walk<V: Visit>(start: Start, visit: &V, stop: &CancellationToken) -> Walked {
    let Start { dir, path, stat, rules, file, hidden, names } = start;
    let directory = Directory { dir, path, rules };
    let first = match file {
        Some(name) => Task::Files(Arc::new(directory), vec![name]),
        None => Task::Entered(Box::new((directory, stat))),
    };
    let walk = Walk {
        hidden: &hidden,
        stop,
        visit,
        queue: Queue { state: Mutex::new(State { tasks: vec![first], at_work: 0 }), wake: Condvar::new() },
        names: (AtomicUsize::new(0), names),
        skipped: AtomicUsize::new(0),
    };
    let n_threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
    Walked { skipped: walk.skipped.into_inner() }
}

struct Walk<'a, V> {
    hidden: &'a Hidden,
    stop: &'a CancellationToken,
    visit: &'a V,
    queue: Queue,
    /// How many were looked at, and how many may be.
    names: (AtomicUsize, usize),
    skipped: AtomicUsize,
}

/// An open directory, kept as long as something in it is still to be looked at.
struct Directory {
    dir: OwnedFd,
    path: Vec<u8>,
    rules: Arc<Rules>,
}

enum Task {
    Enter(Arc<Directory>, OsString),
    Entered(Box<(Directory, Stat)>),
    Files(Arc<Directory>, Vec<OsString>),
}

impl<V: Visit> Walk<'_, V> {
    fn work(&self) {
        let mut hand = self.visit.hand();
        while let Some(work) = self.queue.next(self.stop) {
            match work.task {
                Task::Enter(parent, name) => self.enter(&parent, &name, &mut hand),
                Task::Entered(entered) => self.look_around(entered.0, &entered.1, &mut hand),
                Task::Files(directory, names) => self.show(&directory, &names, &mut hand),
            }
        }
        self.visit.done(hand);
    }

    fn enter(&self, parent: &Directory, name: &OsStr, hand: &mut V::Hand) {
        let mut path = parent.path.clone();
        path.extend_from_slice(name.as_bytes());
        path.push(b'/');
        if !self.visit.wants(&path) {
            return;
        }
        match open::directory(&parent.dir, name) {
            Ok((_, stat)) if self.hidden.has(&stat) => {}
            Ok((dir, stat)) => {
                let directory = Directory { dir, path, rules: Arc::clone(&parent.rules) };
                self.look_around(directory, &stat, hand);
            }
            // It is gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(_) => self.skip(&path),
        }
    }

    /// Leaves what is in a directory to be done, except for the first files, which are looked at right away.
    fn look_around(&self, mut directory: Directory, stat: &Stat, hand: &mut V::Hand) {
        self.visit.directory(&directory.path, stat);
        let Ok(mut entries) = entries(&directory.dir) else { return self.skip(&directory.path) };
        let (looked_at, most) = &self.names;
        if looked_at.fetch_add(entries.len(), Ordering::Relaxed) > *most {
            return self.skip(&directory.path);
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let has = |name: &[u8]| entries.binary_search_by(|entry| entry.0.as_bytes().cmp(name)).is_ok();
        let Directory { dir, path, rules } = &directory;
        let rules = Rules::in_directory(rules, dir.as_fd(), bare(path), has);
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        let mut full = path.clone();
        for (name, kind) in entries {
            full.truncate(path.len());
            full.extend_from_slice(name.as_bytes());
            let is_dir = match known_kind(dir.as_fd(), &name, kind) {
                FileType::Directory => true,
                FileType::RegularFile => false,
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => continue,
            };
            if wanted(&rules, &full, &name, is_dir) {
                if is_dir { &mut directories } else { &mut files }.push(name);
            }
        }
        directory.rules = rules;
        let directory = Arc::new(directory);
        let first = self.leave(&directory, files, directories);
        self.show(&directory, &first, hand);
    }

    /// Puts all but the first files into the queue.
    ///
    /// Order: the first in the alphabet comes out of the queue first, which lets a visitor who has seen enough of those
    /// do without the rest.
    fn leave(
        &self,
        directory: &Arc<Directory>,
        mut files: Vec<OsString>,
        directories: Vec<OsString>,
    ) -> Vec<OsString> {
        let mut tasks = Vec::new();
        if depth(&directory.path) < DEPTH {
            tasks.extend(directories.into_iter().rev().map(|name| Task::Enter(Arc::clone(directory), name)));
        } else if !directories.is_empty() {
            self.skip(&directory.path);
        }
        while files.len() > PORTION {
            let rest = files.split_off(files.len() - PORTION);
            tasks.push(Task::Files(Arc::clone(directory), rest));
        }
        if !tasks.is_empty() {
            self.queue.add(tasks);
        }
        files
    }

    fn show(&self, directory: &Directory, names: &[OsString], hand: &mut V::Hand) {
        let mut path = directory.path.clone();
        for name in names {
            path.truncate(directory.path.len());
            path.extend_from_slice(name.as_bytes());
            if self.stop.is_cancelled() {
                return;
            }
            if self.visit.wants(&path) {
                let spot = Spot { dir: directory.dir.as_fd(), name, path: &path, hidden: self.hidden };
                self.visit.file(hand, &spot);
            }
        }
    }

    fn skip(&self, path: &[u8]) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        self.visit.skipped(path);
    }
}

fn entries(dir: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push((OsStr::from_bytes(name).to_owned(), entry.file_type()));
        }
        if found.len() > NAMES {
            break;
        }
    }
    Ok(found)
}

/// What has a name, for file systems that do not say it along with the name.
fn known_kind(dir: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> FileType {
    if kind != FileType::Unknown {
        return kind;
    }
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

fn wanted(rules: &Rules, path: &[u8], name: &OsStr, is_dir: bool) -> bool {
    if name.as_bytes().eq_ignore_ascii_case(GIT) {
        return false;
    }
    match rules.say(Path::new(OsStr::from_bytes(path)), is_dir) {
        Said::LeaveOut => false,
        Said::Keep => true,
        Said::Nothing => !name.as_bytes().starts_with(b"."),
    }
}

/// A directory's path without the slash at its end.
fn bare(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

fn depth(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}

/// What is still to be done. Threads that find nothing wait until somebody adds something or all are done.
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    tasks: Vec<Task>,
    at_work: usize,
}

/// A task that somebody is at.
struct Work<'a> {
    task: Task,
    _at_work: AtWork<'a>,
}

/// Even a thread that panics stops being at work, so that the others do not wait for it.
struct AtWork<'a>(&'a Queue);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.at_work -= 1;
        if state.at_work == 0 && state.tasks.is_empty() {
            self.0.wake.notify_all();
        }
    }
}

impl Queue {
    fn next(&self, stop: &CancellationToken) -> Option<Work<'_>> {
        let mut state = self.state();
        loop {
            if stop.is_cancelled() {
                state.tasks.clear();
                self.wake.notify_all();
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.at_work += 1;
                return Some(Work { task, _at_work: AtWork(self) });
            }
            if state.at_work == 0 {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, tasks: Vec<Task>) {
        let n_tasks = tasks.len();
        self.state().tasks.extend(tasks);
        for _ in 0..n_tasks.min(THREADS) {
            self.wake.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
