//! Lists the files of a folder as git would have them, ignored and hidden ones left out, and works through such a list
//! with several threads.
//!
//! The walk of the `ignore` crate goes by path, so a directory that is replaced by a link meanwhile can make it list
//! names outside. **Invariant:** that is all it does. A directory is opened beneath the root before it is listed and
//! left out if it is a link or hidden, and every file is opened beneath the root before anything of it is shown.

use super::open::{self, Beneath};
use super::rules::{GIT, Rules};
use crate::workspace::within::Way;
use gantry_core::Fault;
use ignore::{DirEntry, WalkBuilder, WalkState};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use tokio_util::sync::CancellationToken;

/// Threads of one search.
const THREADS: usize = 8;
/// Names that one walk looks at.
const NAMES: usize = 1_000_000;

/// The size of a directory itself from which on its names are counted before it is listed.
const LARGE_DIRECTORY: i64 = 4 * 1024 * 1024;
/// Directories within directories.
const DEPTH: usize = 64;
/// Files that a thread takes on at once.
const PORTION: usize = 32;

/// Where a walk begins.
#[derive(Debug)]
pub(super) struct Start {
    /// Relative to the root, and empty for the root itself.
    path: Vec<u8>,
    /// It is a file, or something else that is no directory.
    is_file: bool,
    /// The rules that hold in the directory.
    rules: Arc<Rules>,
    /// Names that are looked at; the walk ends after them.
    names: usize,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Paths relative to the root, sorted.
    pub(super) files: Vec<Vec<u8>>,
    /// Directories that could not be listed.
    pub(super) skipped: usize,
}

impl Start {
    /// Goes to where a path leads.
    pub(super) fn find(beneath: &Beneath, way: &Way) -> Result<Self, Fault> {
        let barred = |error| way.barred(error);
        let (mut dir, _) = open::directory(&beneath.root, OsStr::new(".")).map_err(barred)?;
        let rules = Rules::in_directory(&Arc::default(), dir.as_fd(), b"");
        let mut start = Self { path: Vec::new(), is_file: false, rules, names: NAMES };
        for (n, name) in way.names.iter().enumerate() {
            if n > 0 {
                start.path.push(b'/');
            }
            start.path.extend_from_slice(name.as_bytes());
            let opened = open::directory(&dir, OsStr::new(name));
            if opened.as_ref().err() == Some(&Errno::NOTDIR) && n + 1 == way.names.len() {
                let found = statat(&dir, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(barred)?;
                beneath.hidden.check(&found, way)?;
                start.is_file = true;
                return Ok(start);
            }
            let (opened, stat) = opened.map_err(barred)?;
            beneath.hidden.check(&stat, way)?;
            start.rules = Rules::in_directory(&start.rules, opened.as_fd(), &start.path);
            dir = opened;
        }
        Ok(start)
    }
}

/// Lists the files from there on that `takes` accepts by their path.
pub(super) fn list(
    (workspace, beneath): (&Path, &Arc<Beneath>),
    start: Start,
    takes: impl Fn(&[u8]) -> bool + Sync,
    stop: &CancellationToken,
) -> Listed {
    if start.is_file {
        let files = if takes(&start.path) { vec![start.path] } else { Vec::new() };
        return Listed { files, skipped: 0 };
    }
    if beneath.directory(&start.path).is_ok_and(|dir| !fits(&dir, start.names)) {
        return Listed { files: Vec::new(), skipped: 1 };
    }
    // The dot lets the workspace itself be a link.
    let root = workspace.join(".");
    let from = root.join(OsStr::from_bytes(&start.path));
    let filter = Arc::new(Filter::new(Arc::clone(beneath), root, start, stop));
    let mut builder = WalkBuilder::new(from);
    // Its own filters read rules in ways that `rules` does not.
    builder.standard_filters(false).follow_links(false).max_depth(Some(DEPTH)).threads(n_threads());
    let accepts = Arc::clone(&filter);
    builder.filter_entry(move |entry| accepts.accepts(entry));
    let found = Mutex::new(Listed::default());
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            if stop.is_cancelled() || filter.full.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match entry {
                Ok(entry) if is_dir(&entry) => found.skipped += usize::from(entry.depth() == DEPTH),
                Ok(entry) => found.files.extend(filter.relative(entry.path()).filter(|path| takes(path))),
                Err(_) => found.skipped += 1,
            }
            WalkState::Continue
        })
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.skipped += usize::from(filter.full.load(Ordering::Relaxed));
    found.files.sort_unstable();
    found
}

/// Decides which entries are listed.
struct Filter {
    beneath: Arc<Beneath>,
    root: PathBuf,
    /// The rules that hold in each directory that was entered.
    rules: RwLock<HashMap<Vec<u8>, Arc<Rules>>>,
    /// Names that may still be looked at.
    left: AtomicUsize,
    full: AtomicBool,
    stop: CancellationToken,
}

impl Filter {
    fn new(beneath: Arc<Beneath>, root: PathBuf, start: Start, stop: &CancellationToken) -> Self {
        let rules = RwLock::new(HashMap::from([(start.path, start.rules)]));
        let left = AtomicUsize::new(start.names);
        Self { beneath, root, rules, left, full: AtomicBool::new(false), stop: stop.clone() }
    }

    fn accepts(&self, entry: &DirEntry) -> bool {
        if self.full.load(Ordering::Relaxed) || self.stop.is_cancelled() {
            return false;
        }
        let take = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            self.full.store(true, Ordering::Relaxed);
            return false;
        }
        let is_dir = is_dir(entry);
        if !is_dir && !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return false;
        }
        let Some(path) = self.relative(entry.path()) else { return false };
        let (parent, name) = open::split(&path);
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).get(parent).cloned();
        let Some(rules) = rules else { return false };
        let kept = !name.eq_ignore_ascii_case(GIT.as_bytes()) && rules.keep(&path, is_dir);
        if kept && is_dir { self.enter(path, &rules) } else { kept }
    }

    /// Opens a directory beneath the root and reads its rules, before it is listed by its path.
    fn enter(&self, path: Vec<u8>, above: &Arc<Rules>) -> bool {
        let rules = match self.beneath.directory(&path) {
            // The walk would read all its names before it asks about one.
            Ok(dir) if !fits(&dir, self.left.load(Ordering::Relaxed)) => {
                self.full.store(true, Ordering::Relaxed);
                return false;
            }
            Ok(dir) => Rules::in_directory(above, dir.as_fd(), &path),
            // It is hidden, gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return false,
            // The walk fails to list it too, and counts it.
            Err(_) => Arc::clone(above),
        };
        self.rules.write().unwrap_or_else(PoisonError::into_inner).insert(path, rules);
        true
    }

    fn relative(&self, path: &Path) -> Option<Vec<u8>> {
        let path = path.strip_prefix(&self.root).ok()?;
        Some(path.as_os_str().to_owned().into_vec())
    }
}

/// Whether a directory has at most so many names. Only one whose own size says that it has very many is read for that.
fn fits(dir: &OwnedFd, names: usize) -> bool {
    let is_large = fstat(dir).is_ok_and(|stat| stat.st_size > LARGE_DIRECTORY);
    !is_large || rustix::fs::Dir::read_from(dir).is_ok_and(|all| all.take(names + 1).count() <= names)
}

fn is_dir(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn n_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(THREADS)
}

/// Hands out portions of a list, in its order, to several threads: each time the index of the first item, and the items.
/// `worker` makes what each thread works with, which returns false once nothing after its portion matters.
pub(super) fn work_through<T: Sync, W: FnMut(usize, &[T]) -> bool>(
    items: &[T],
    stop: &CancellationToken,
    worker: impl Fn() -> W + Sync,
) {
    let (next, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut work = worker();
        while !stop.is_cancelled() && !enough.load(Ordering::Relaxed) {
            let from = next.fetch_add(PORTION, Ordering::Relaxed);
            let portion = items.get(from..(from + PORTION).min(items.len())).unwrap_or_default();
            if portion.is_empty() {
                return;
            }
            if !work(from, portion) {
                enough.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..n_threads().min(items.len().div_ceil(PORTION)) {
            scope.spawn(work);
        }
        work();
    });
}
