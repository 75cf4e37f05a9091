//! Brings the index up to date with the files: walks, compares, reads what is new, forgets what is gone.
//!
//! What lies in a folder that could not be looked into is not gone: the index keeps what it has of it.
//!
//! A file is read again when its size, times or inode differ. What was changed only a moment before it was looked at
//! counts as changed the next time too, because another change in the same tick of the clock would not show.

use super::open::{self, Reach};
use super::walk::{Spot, Start, Visit, walk};
use super::{fault, symbols, words};
use crate::workspace::within::{Way, Within};
use gantry_core::Fault;
use gantry_store::search::{Document, SearchIndex, Stamp};
use rustix::fs::Stat;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// Files that are indexed.
pub(super) const FILES: usize = 200_000;
/// The size of a file that is indexed.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;
/// Folders that could not be looked into and are remembered each by itself.
const UNSEEN: usize = 1_000;
/// Files that are taken in at once, and bytes of words in them.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Files that were read and wait to be taken in.
const READ_AHEAD: usize = 64;
/// Threads that read.
const READERS: usize = 8;
/// Changed files after which the index is compacted.
const MANY: usize = 2_000;
/// How recent a change is that another one could hide behind.
const TICK: Duration = Duration::from_millis(50);
/// Stands for the time of such a change, so that it equals no other.
const UNSETTLED: i64 = i64::MIN;
/// How often progress is logged.
const REPORT: Duration = Duration::from_secs(5);

/// What the index has, and how the folders were when that was found out.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) files: HashMap<String, Stamp>,
    directories: Vec<(String, Stamp)>,
    /// How long looking at everything took the last time, and when that was.
    pub(super) walked: Option<(Duration, Instant)>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Synced {
    /// Whether the index was changed.
    pub(super) changed: bool,
    /// Whether there are more files than the index takes.
    pub(super) full: bool,
    /// Folders that could not be looked into.
    pub(super) unseen: usize,
}

impl Known {
    /// What an index has that was made earlier.
    pub(super) fn load(index: &SearchIndex) -> Result<Self, gantry_store::Error> {
        Ok(Self { files: index.stamps()?.into_iter().collect(), ..Self::default() })
    }

    /// Whether a file was made, removed, renamed or replaced since. Looks at folders only.
    pub(super) fn has_moved(&self, reach: &Reach) -> bool {
        self.directories.iter().any(|(path, stamp)| reach.directory_stamp(path) != Some(*stamp))
    }
}

/// Why it failed.
#[derive(Debug)]
pub(super) enum Failed {
    Index(gantry_store::Error),
    Files(Fault),
}

impl Failed {
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Index(error) => fault::index(&error),
            Self::Files(fault) => fault,
        }
    }
}

impl From<gantry_store::Error> for Failed {
    fn from(error: gantry_store::Error) -> Self {
        Self::Index(error)
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Files(fault)
    }
}

/// Does it.
pub(super) fn sync(
    within: &Within,
    index: &SearchIndex,
    known: &Mutex<Known>,
    stop: &CancellationToken,
) -> Result<Synced, Failed> {
    let start = Start::find(within, &Way::parse(".")?)?;
    sync_from(start, &Reach::from(within)?, index, &Intake { known, stop })
}

fn sync_from(
    start: Start,
    reach: &Reach,
    index: &SearchIndex,
    intake: &Intake<'_>,
) -> Result<Synced, Failed> {
    let began = Instant::now();
    let mut census = Census::take(start, intake.stop)?;
    let took = began.elapsed();
    let Changes { changed, gone, full } = census.compare(&intake.known().files);
    let n_changes = changed.len() + gone.len();
    if !gone.is_empty() {
        index.apply(&[], &gone)?;
        let mut known = intake.known();
        for path in &gone {
            known.files.remove(path);
        }
    }
    take_in(reach, index, &changed, intake)?;
    if n_changes > MANY {
        index.compact()?;
    }
    let mut known = intake.known();
    known.directories = census.directories;
    known.walked = Some((took, Instant::now()));
    Ok(Synced { changed: n_changes > 0, full, unseen: census.unseen.count })
}

struct Intake<'a> {
    known: &'a Mutex<Known>,
    stop: &'a CancellationToken,
}

impl Intake<'_> {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, index: &SearchIndex, documents: &mut Vec<Document>) -> Result<(), Failed> {
        index.apply(documents, &[])?;
        let mut known = self.known();
        known.files.extend(documents.drain(..).map(|document| (document.path, document.stamp)));
        Ok(())
    }
}

/// Reads files with several threads and takes them in with this one.
fn take_in(
    reach: &Reach,
    index: &SearchIndex,
    changed: &[(String, Stamp)],
    intake: &Intake<'_>,
) -> Result<(), Failed> {
    let (n_files, next) = (changed.len(), AtomicUsize::new(0));
    let (sender, read) = sync_channel(READ_AHEAD);
    let n_readers = thread::available_parallelism().map_or(1, usize::from).min(READERS).min(n_files);
    let mut reported = Instant::now();
    thread::scope(|scope| {
        for _ in 0..n_readers {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || read_files(reach, changed, next, &sender));
        }
        drop(sender);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (n, document) in read.into_iter().enumerate() {
            bytes += document.body.len();
            batch.push(document);
            let is_last = intake.stop.is_cancelled();
            if is_last || batch.len() == BATCH || bytes > BATCH_BYTES {
                intake.keep(index, &mut batch)?;
                bytes = 0;
            }
            if is_last {
                return Err(fault::canceled().into());
            }
            if reported.elapsed() > REPORT {
                reported = Instant::now();
                tracing::info!(done = n, of = n_files, "indexing files for search_code");
            }
        }
        if batch.is_empty() { Ok(()) } else { intake.keep(index, &mut batch) }
    })
}

/// Reads one file after the other, as long as somebody wants them.
fn read_files(reach: &Reach, changed: &[(String, Stamp)], next: &AtomicUsize, sender: &SyncSender<Document>) {
    while let Some((path, stamp)) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
        if sender.send(document(reach, path, *stamp)).is_err() {
            return;
        }
    }
}

/// A file as the index has it. One that is gone, too large or no text has no words.
fn document(reach: &Reach, path: &str, stamp: Stamp) -> Document {
    let bare = Document { path: path.to_owned(), stamp, ..Document::default() };
    let Ok((file, _)) = reach.open(path) else { return bare };
    let Some(text) = open::text(file, FILE_BYTES) else { return bare };
    let body = words::of_text(&text);
    let names = words::of_text(path);
    // A file without a word is still found by its name.
    let body = if body.is_empty() { names.clone() } else { body };
    Document { names, symbols: words::of_text(&symbols::of_text(path, &text)), body, ..bare }
}

/// What is there now.
#[derive(Debug, Default)]
struct Census {
    files: Vec<(String, Stamp)>,
    directories: Vec<(String, Stamp)>,
    unseen: Unseen,
}

/// Folders that could not be looked into.
#[derive(Debug, Default)]
struct Unseen {
    count: usize,
    /// Their paths, with a slash at the end.
    paths: Vec<String>,
    /// Whether there are more of them, which may be anywhere.
    beyond: bool,
}

/// What has to be done with the index.
struct Changes {
    changed: Vec<(String, Stamp)>,
    gone: Vec<String>,
    full: bool,
}

impl Census {
    fn take(start: Start, stop: &CancellationToken) -> Result<Self, Fault> {
        let taker = Taker { settled_ns: settled_ns(), all: Mutex::default() };
        walk(start, &taker, stop);
        if stop.is_cancelled() {
            return Err(fault::canceled());
        }
        Ok(taker.all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compares it with what the index has, and leaves out what there is no room for.
    fn compare(&mut self, known: &HashMap<String, Stamp>) -> Changes {
        let kept = self.kept(known);
        let room = FILES.saturating_sub(kept.len());
        let full = self.files.len() > room;
        if full {
            // Those that come first, or each look would exchange some for others.
            self.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            self.files.truncate(room);
        }
        let is_new = |(path, stamp): &&(String, Stamp)| {
            stamp.changed_ns == UNSETTLED || known.get(path) != Some(stamp)
        };
        let there = self.paths();
        let is_gone = |path: &&String| !there.contains(path.as_str()) && !kept.contains(path.as_str());
        Changes {
            changed: self.files.iter().filter(is_new).cloned().collect(),
            gone: known.keys().filter(is_gone).cloned().collect(),
            full,
        }
    }

    /// Files of the index that may still be there, although they were not seen.
    fn kept<'a>(&self, known: &'a HashMap<String, Stamp>) -> HashSet<&'a str> {
        if self.unseen.count == 0 {
            return HashSet::new();
        }
        let seen = self.paths();
        let missing = known.keys().map(String::as_str).filter(|path| !seen.contains(path));
        missing.filter(|path| self.unseen.has(path)).collect()
    }

    fn paths(&self) -> HashSet<&str> {
        self.files.iter().map(|(path, _)| path.as_str()).collect()
    }
}

impl Unseen {
    fn add(&mut self, path: &[u8]) {
        self.count += 1;
        // One whose name is no UTF-8 has no indexed files.
        let Ok(path) = std::str::from_utf8(path) else { return };
        if self.paths.len() < UNSEEN { self.paths.push(path.to_owned()) } else { self.beyond = true }
    }

    /// Whether a file may lie in one of them.
    fn has(&self, file: &str) -> bool {
        self.beyond || self.paths.iter().any(|folder| file.starts_with(folder.as_str()))
    }
}

/// When a change was so long ago that a later one would show.
fn settled_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(TICK).as_nanos()).unwrap_or(i64::MAX)
}

struct Taker {
    settled_ns: i64,
    all: Mutex<Census>,
}

impl Taker {
    fn stamp(&self, stat: &Stat) -> Stamp {
        let stamp = open::stamp(stat);
        if stamp.changed_ns < self.settled_ns { stamp } else { Stamp { changed_ns: UNSETTLED, ..stamp } }
    }
}

impl Visit for Taker {
    type Hand = Vec<(String, Stamp)>;

    fn hand(&self) -> Self::Hand {
        Vec::new()
    }

    fn directory(&self, path: &[u8], stat: &Stat) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        // One whose name is no UTF-8 has no indexed files.
        if let Ok(path) = std::str::from_utf8(path) {
            all.directories.push((path.to_owned(), self.stamp(stat)));
        }
    }

    fn file(&self, hand: &mut Self::Hand, spot: &Spot<'_>) {
        let Ok(path) = std::str::from_utf8(spot.path) else { return };
        if let Ok(stat) = spot.stat() {
            hand.push((path.to_owned(), self.stamp(&stat)));
        }
    }

    fn skipped(&self, path: &[u8]) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).unseen.add(path);
    }

    fn done(&self, hand: Self::Hand) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).files.extend(hand);
    }
}

#[cfg(test)]
mod tests;
