//! Lists the files of a folder as git would have them, ignored and hidden ones left out, and searches such lists with
//! several threads.

use super::opener::Opener;
use super::rules::{GIT, Rules};
use super::search_code::Query;
use crate::failure::{self, Result};
use crate::workspace::entry::{Kind, readable, stat_at};
use crate::workspace::path::RelPath;
use crate::workspace::reader::WorkspaceReader;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio_util::sync::CancellationToken;

const THREADS: usize = 8;
/// Names that one walk looks at.
const NAMES: usize = 1_000_000;
/// Directories within directories.
const DEPTH: usize = 64;
/// Files that a thread takes on at once.
const PORTION: usize = 32;

/// A directory that is not listed yet, with the rules of those above it.
type Unlisted = (PathBuf, Arc<Rules>);

/// Lists the files that a query is about: their paths relative to the root, sorted by their bytes, and how many
/// directories could not be listed.
pub(super) fn list(
    reader: &WorkspaceReader,
    query: &Query,
    stop: &CancellationToken,
) -> Result<(Vec<PathBuf>, usize)> {
    let (start, rules, kind) = find_start(reader, &query.path)?;
    if kind != Kind::Directory {
        return Ok((Some(start).filter(|file| query.takes(file)).into_iter().collect(), 0));
    }
    let (mut files, mut skipped) = (Vec::new(), 0);
    let (mut level, names_left) = (vec![(start, rules)], AtomicUsize::new(NAMES));
    let is_over = || stop.is_cancelled() || names_left.load(Ordering::Relaxed) == 0;
    let list_one = |directory: &Unlisted| list_directory(reader, directory, query, &names_left);
    for _ in 0..DEPTH {
        let directories = std::mem::take(&mut level);
        let worker = || |directories: &[Unlisted]| directories.iter().map(list_one).collect::<Vec<_>>();
        for entries in work_through(&directories, 1, is_over, worker).into_iter().flatten() {
            match entries {
                Ok((here, below)) => {
                    files.extend(here);
                    level.extend(below);
                }
                // It is hidden, gone, or something else by now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => skipped += 1,
            }
        }
    }
    files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    skipped += level.len() + usize::from(names_left.into_inner() == 0);
    Ok((files, skipped))
}

/// Where a path leads, the rules of the directories above it, and what is there. A path through a link is refused.
fn find_start(reader: &WorkspaceReader, path: &RelPath) -> Result<(PathBuf, Arc<Rules>, Kind)> {
    let failed = |error| failure::os_error("opening", path.shown(), error);
    let (start, kind) = reader.resolve(path)?;
    if start != path.plain_names().iter().collect::<PathBuf>() {
        return Err(failed(Errno::LOOP));
    }
    let mut rules = Arc::default();
    let above: Vec<&Path> = start.ancestors().skip(1).collect();
    for directory in above.into_iter().rev() {
        let opened = reader.open_directory(directory).map_err(failed)?;
        rules = Rules::in_directory(&rules, opened.as_fd(), directory);
    }
    Ok((start, rules, kind))
}

/// The files in a directory that a query takes, and the directories in it.
fn list_directory(
    reader: &WorkspaceReader,
    (path, above): &Unlisted,
    query: &Query,
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
            Kind::File if rules.keep(&path, false) && query.takes(&path) => files.push(path),
            Kind::Directory | Kind::File | Kind::Link | Kind::Special => {}
        }
    }
    Ok((files, below))
}

/// What was found in the files of a list.
#[derive(Debug)]
pub(super) struct Searched<R> {
    /// In the order of the list.
    pub(super) found: Vec<R>,
    /// Files that were searched, and files that could not be.
    pub(super) n_files: usize,
    pub(super) skipped: usize,
}

/// Searches files in their order, until the end or until `enough` is found. `worker` makes what each thread searches a
/// file with, which returns nothing if there is no file to search.
pub(super) fn search_files<'f, R: Send, W>(
    reader: &WorkspaceReader,
    files: &'f [PathBuf],
    enough: usize,
    stop: &CancellationToken,
    worker: impl Fn() -> W + Sync,
) -> Searched<R>
where
    W: FnMut(&mut Opener<'_>, &'f Path) -> io::Result<Option<Vec<R>>>,
{
    let n_found = AtomicUsize::new(0);
    let is_over = || stop.is_cancelled() || n_found.load(Ordering::Relaxed) >= enough;
    let portions = work_through(files, PORTION, is_over, || {
        let (mut opener, mut search, n_found) = (Opener::new(reader), worker(), &n_found);
        move |paths: &'f [PathBuf]| {
            let mut portion = Searched { found: Vec::new(), n_files: 0, skipped: 0 };
            for path in paths {
                if portion.found.len() >= enough {
                    break;
                }
                match search(&mut opener, path) {
                    Ok(Some(found)) => {
                        portion.n_files += 1;
                        portion.found.extend(found);
                    }
                    Ok(None) => {}
                    Err(_) => portion.skipped += 1,
                }
            }
            n_found.fetch_add(portion.found.len(), Ordering::Relaxed);
            portion
        }
    });
    let mut all = Searched { found: Vec::new(), n_files: 0, skipped: 0 };
    for portion in portions {
        all.found.extend(portion.found);
        all.n_files += portion.n_files;
        all.skipped += portion.skipped;
    }
    all
}

/// Hands out portions of a list, in its order, to several threads, until the end or until `is_over`. `worker` makes what
/// each thread works with. Returns the result of every portion that was handed out, in the order of the list.
fn work_through<'t, T: Sync, R: Send, W: FnMut(&'t [T]) -> R>(
    items: &'t [T],
    portion: usize,
    is_over: impl Fn() -> bool + Sync,
    worker: impl Fn() -> W + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let mut work = worker();
        while !is_over() {
            let from = next.fetch_add(portion, Ordering::Relaxed);
            let items = items.get(from..(from + portion).min(items.len())).unwrap_or_default();
            if items.is_empty() {
                return;
            }
            let result = work(items);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((from, result));
        }
    };
    let n_threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    thread::scope(|scope| {
        for _ in 1..n_threads.min(items.len().div_ceil(portion)) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(from, _)| *from);
    done.into_iter().map(|(_, result)| result).collect()
}
