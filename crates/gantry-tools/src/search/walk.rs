//! Lists the files of a folder as git would have them, ignored and hidden ones left out, and works through such lists
//! with several threads.

use super::rules::{GIT, Rules};
use crate::failure;
use crate::workspace::entry::{Kind, open_directory, readable, stat_at};
use crate::workspace::path::RelPath;
use crate::workspace::reader::WorkspaceReader;
use gantry_core::Fault;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio_util::sync::CancellationToken;

/// Threads of one search.
const THREADS: usize = 8;
/// Names that one walk looks at.
const NAMES: usize = 1_000_000;
/// Directories within directories.
const DEPTH: usize = 64;
/// Files that a thread takes on at once.
pub(super) const PORTION: usize = 32;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Paths relative to the root, sorted by their bytes.
    pub(super) files: Vec<PathBuf>,
    /// Directories that could not be listed.
    pub(super) skipped: usize,
    /// Directories that are next.
    below: Vec<Unlisted>,
}

/// A directory that is not listed yet, with the rules of those above it.
type Unlisted = (PathBuf, Arc<Rules>);

/// Lists the files at a path of a caller and below it that `takes` accepts.
pub(super) fn list(
    reader: &WorkspaceReader,
    path: &RelPath,
    takes: impl Fn(&Path) -> bool + Sync,
    stop: &CancellationToken,
) -> Result<Listed, Fault> {
    let (start, rules, kind) = find_start(reader, path)?;
    if kind != Kind::Directory {
        let files = Some(start).filter(|file| takes(file)).into_iter().collect();
        return Ok(Listed { files, ..Listed::default() });
    }
    let mut found = Mutex::new(Listed { below: vec![(start, rules)], ..Listed::default() });
    let names_left = AtomicUsize::new(NAMES);
    for _ in 0..DEPTH {
        let level = std::mem::take(&mut found.get_mut().unwrap_or_else(PoisonError::into_inner).below);
        work_through(&level, 1, stop, || {
            |_, directories: &[Unlisted]| {
                for directory in directories {
                    let entries = list_directory(reader, directory, &takes, &names_left);
                    found.lock().unwrap_or_else(PoisonError::into_inner).add(entries);
                }
                names_left.load(Ordering::Relaxed) > 0
            }
        });
    }
    let mut listed = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    listed.files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    listed.skipped += listed.below.len() + usize::from(names_left.into_inner() == 0);
    Ok(listed)
}

impl Listed {
    /// Adds what is in a directory: files, and directories below it.
    fn add(&mut self, entries: Result<(Vec<PathBuf>, Vec<Unlisted>), Errno>) {
        match entries {
            Ok((files, below)) => {
                self.files.extend(files);
                self.below.extend(below);
            }
            // It is hidden, gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(_) => self.skipped += 1,
        }
    }
}

/// Where a path leads, the rules of the directories above it, and what is there.
fn find_start(reader: &WorkspaceReader, path: &RelPath) -> Result<(PathBuf, Arc<Rules>, Kind), Fault> {
    let failed = |error| failure::os_error("opening", path.shown(), error);
    let (mut start, mut rules) = (PathBuf::new(), Arc::default());
    let mut dir = reader.open_root().map_err(failed)?;
    let names = path.plain_names();
    for (n, name) in names.iter().enumerate() {
        let name = OsStr::new(name);
        rules = Rules::in_directory(&rules, dir.as_fd(), &start);
        start.push(name);
        match open_directory(&dir, name) {
            Ok((opened, stat)) => {
                reader.refuse_hidden(&stat, path.shown())?;
                dir = opened;
            }
            Err(Errno::NOTDIR) if n + 1 == names.len() => {
                let stat = stat_at(&dir, name).map_err(failed)?.ok_or_else(|| failed(Errno::NOENT))?;
                reader.refuse_hidden(&stat, path.shown())?;
                return Ok((start, rules, Kind::of(&stat)));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok((start, rules, Kind::Directory))
}

/// The files in a directory that `takes` accepts, and the directories in it.
fn list_directory(
    reader: &WorkspaceReader,
    (path, above): &Unlisted,
    takes: impl Fn(&Path) -> bool,
    names_left: &AtomicUsize,
) -> Result<(Vec<PathBuf>, Vec<Unlisted>), Errno> {
    let dir = reader.open_directory(path)?;
    let rules = Rules::in_directory(above, dir.as_fd(), path);
    let (mut files, mut below) = (Vec::new(), Vec::new());
    for entry in Dir::new(readable(&dir)?)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || name.eq_ignore_ascii_case(GIT) {
            continue;
        }
        let take_one = |left: usize| left.checked_sub(1);
        if names_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_err() {
            break;
        }
        let mut kind = Kind::from(entry.file_type());
        if entry.file_type() == FileType::Unknown {
            // Some file systems do not say.
            kind = stat_at(&dir, name)?.map_or(Kind::Special, |stat| Kind::of(&stat));
        }
        let path = path.join(name);
        match kind {
            Kind::Directory if rules.keep(&path, true) => below.push((path, Arc::clone(&rules))),
            Kind::File if rules.keep(&path, false) && takes(&path) => files.push(path),
            Kind::Directory | Kind::File | Kind::Link | Kind::Special => {}
        }
    }
    Ok((files, below))
}

/// Hands out portions of a list, in its order, to several threads: each time the index of the first item, and the items.
/// `worker` makes what each thread works with, which returns false once nothing after its portion matters.
pub(super) fn work_through<T: Sync, W: FnMut(usize, &[T]) -> bool>(
    items: &[T],
    portion: usize,
    stop: &CancellationToken,
    worker: impl Fn() -> W + Sync,
) {
    let (next, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut work = worker();
        while !stop.is_cancelled() && !enough.load(Ordering::Relaxed) {
            let from = next.fetch_add(portion, Ordering::Relaxed);
            let items = items.get(from..(from + portion).min(items.len())).unwrap_or_default();
            if items.is_empty() {
                return;
            }
            if !work(from, items) {
                enough.store(true, Ordering::Relaxed);
            }
        }
    };
    let n_threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    thread::scope(|scope| {
        for _ in 1..n_threads.min(items.len().div_ceil(portion)) {
            scope.spawn(work);
        }
        work();
    });
}
