//! Keeps the index: opens it when it is first needed, and sees to it that it is up to date when it is asked.
//!
//! Looking at every file takes a few milliseconds in most workspaces; there it is done before each query, so that an
//! answer never misses a change. Where it takes longer than [`QUICK`], a query first looks at the folders only: that
//! shows files that were made, removed, renamed or replaced (as editors and `write_file` do), and then everything is
//! looked at before the query. Otherwise the query is answered at once, and everything is looked at afterwards if that
//! was longer ago than [`AGE`]: a file that was written in place is found by its new words that much later. What a query
//! shows of a file is always read from the file itself.

use super::embed::Embedder;
use super::open::Reach;
use super::sync::{self, Failed, Known, Synced};
use super::{SearchOptions, fault};
use crate::workspace::within::Within;
use gantry_core::Fault;
use gantry_store::search::SearchIndex;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// A look at all files that may come before every query.
const QUICK: Duration = Duration::from_millis(15);
/// How old such a look may get.
const AGE: Duration = Duration::from_secs(2);
/// How long a query waits for the index.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it waits for a model that reads along.
const PATIENCE_WITH_MODEL: Duration = Duration::from_secs(10);

/// The keeper of one workspace's index.
#[derive(Debug)]
pub(super) struct Keeper {
    shelf: Arc<Shelf>,
    round: Arc<Mutex<Round>>,
    progress: watch::Sender<Progress>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stops_when_dropped: DropGuard,
}

/// What the work is done on.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) within: Arc<Within>,
    path: PathBuf,
    library: Mutex<Option<Arc<Library>>>,
    pub(super) embedder: Option<Embedder>,
}

/// An open index and what is known of it; they go together when it turns out to be damaged.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) index: SearchIndex,
    known: Mutex<Known>,
}

/// Which rounds of work were asked for. A round that began before it was asked for may have missed something.
#[derive(Debug, Default)]
struct Round {
    wanted: u64,
    running: bool,
}

/// How far the work has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// The last round that is done.
    round: u64,
    pub(super) full: bool,
    /// Folders that the last round could not look into.
    pub(super) unseen: usize,
    /// Why the last round failed.
    pub(super) failed: Option<Fault>,
}

impl Keeper {
    pub(super) fn new(within: &Arc<Within>, options: SearchOptions) -> Self {
        let stop = CancellationToken::new();
        Self {
            shelf: Arc::new(Shelf {
                within: Arc::clone(within),
                path: options.index,
                library: Mutex::default(),
                embedder: options.embeddings.map(Embedder::new),
            }),
            round: Arc::default(),
            progress: watch::Sender::default(),
            tasks: TaskTracker::new(),
            _stops_when_dropped: stop.clone().drop_guard(),
            stop,
        }
    }

    pub(super) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Waits until the index is good enough for a query that comes now, but not for ever. Says whether it is.
    pub(super) async fn ready(&self) -> Result<(bool, Progress), Fault> {
        let shelf = Arc::clone(&self.shelf);
        let state = spawn_blocking(move || shelf.state()).await;
        let state = state.map_err(|crash| fault::failed(format!("the search crashed: {crash}")))??;
        let mut done = true;
        if state != State::Fresh {
            let round = self.ask();
            if state == State::Stale {
                let mut progress = self.progress.subscribe();
                let reached = progress.wait_for(|progress| progress.round >= round);
                done = matches!(timeout(PATIENCE, reached).await, Ok(Ok(_)));
            }
        }
        if let Some(embedder) = &self.shelf.embedder {
            // A model that needs longer is no reason to wait; the answer says that it is not done.
            embedder.idle(PATIENCE_WITH_MODEL).await;
        }
        let progress = self.progress.borrow().clone();
        Ok((done, progress))
    }

    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.shelf.library().take();
    }

    /// Asks for a round that begins from now on.
    fn ask(&self) -> u64 {
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        round.wanted += 1;
        if !round.running && !self.stop.is_cancelled() {
            round.running = true;
            let worker = Worker {
                shelf: Arc::clone(&self.shelf),
                round: Arc::clone(&self.round),
                progress: self.progress.clone(),
                tasks: self.tasks.clone(),
                stop: self.stop.clone(),
            };
            self.tasks.spawn(worker.run());
        }
        round.wanted
    }
}

/// How the index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Good.
    Fresh,
    /// Good enough, but somebody should look soon.
    Aging,
    /// To be brought up to date first.
    Stale,
}

impl Shelf {
    fn state(&self) -> Result<State, Fault> {
        let reach = Reach::from(&self.within)?;
        let Some(library) = self.library().clone() else { return Ok(State::Stale) };
        let known = library.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((took, at)) = known.walked else { return Ok(State::Stale) };
        if took < QUICK || known.has_moved(&reach) {
            return Ok(State::Stale);
        }
        Ok(if at.elapsed() < AGE { State::Fresh } else { State::Aging })
    }

    /// The index, opened if it is not yet.
    fn open(&self) -> Result<Arc<Library>, gantry_store::Error> {
        let mut open = self.library();
        if let Some(library) = &*open {
            return Ok(Arc::clone(library));
        }
        let library = match Library::open(&self.path) {
            Err(gantry_store::Error::Corrupt { detail }) => {
                self.discard(&detail)?;
                Library::open(&self.path)
            }
            opened => opened,
        };
        let library = Arc::new(library?);
        *open = Some(Arc::clone(&library));
        Ok(library)
    }

    fn discard(&self, detail: &str) -> Result<(), gantry_store::Error> {
        tracing::warn!(path = %self.path.display(), detail, "the search index is damaged and made anew");
        SearchIndex::discard(&self.path)
    }

    /// How many files the index has.
    pub(super) fn n_files(&self) -> usize {
        let library = self.library().clone();
        library.map_or(0, |library| library.known.lock().unwrap_or_else(PoisonError::into_inner).files.len())
    }

    /// Does something with the index. If that finds it damaged, it is thrown away, and the next one is a new one.
    pub(super) fn with_index<T>(
        &self,
        work: impl FnOnce(&Library) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let library = self.open()?;
        let done = work(&library);
        if let Err(Failed::Index(gantry_store::Error::Corrupt { detail })) = &done {
            let mut open = self.library();
            // Somebody else may have found out first.
            if open.take_if(|open| Arc::ptr_eq(open, &library)).is_some() {
                self.discard(detail)?;
            }
        }
        done
    }

    fn sync(&self, stop: &CancellationToken) -> Result<Synced, Failed> {
        let sync = |library: &Library| sync::sync(&self.within, &library.index, &library.known, stop);
        match self.with_index(sync) {
            Err(Failed::Index(gantry_store::Error::Corrupt { .. })) => self.with_index(sync),
            synced => synced,
        }
    }

    fn library(&self) -> MutexGuard<'_, Option<Arc<Library>>> {
        self.library.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Library {
    fn open(path: &Path) -> Result<Self, gantry_store::Error> {
        let index = SearchIndex::open(path)?;
        let known = Mutex::new(Known::load(&index)?);
        Ok(Self { index, known })
    }
}

/// Does rounds until none is wanted.
struct Worker {
    shelf: Arc<Shelf>,
    round: Arc<Mutex<Round>>,
    progress: watch::Sender<Progress>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Worker {
    async fn run(self) {
        let mut begun = 0;
        while let Some(round) = self.next(begun) {
            begun = round;
            self.do_round(round).await;
        }
    }

    /// The newest round that is wanted, if it is a new one.
    fn next(&self, begun: u64) -> Option<u64> {
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (round.wanted > begun && !self.stop.is_cancelled()).then_some(round.wanted);
        round.running = next.is_some();
        next
    }

    async fn do_round(&self, round: u64) {
        let (shelf, stop) = (Arc::clone(&self.shelf), self.stop.clone());
        let synced = match spawn_blocking(move || shelf.sync(&stop)).await {
            Ok(synced) => synced.map_err(Failed::into_fault),
            Err(crash) => Err(fault::failed(format!("indexing crashed: {crash}"))),
        };
        match (&synced, &self.shelf.embedder) {
            (Err(fault), _) if !self.stop.is_cancelled() => {
                tracing::warn!(reason = fault.error.message, "the search index is not up to date");
            }
            (Ok(synced), Some(embedder)) => {
                if synced.changed {
                    embedder.forget();
                }
                embedder.read_along(&self.shelf, &self.tasks, &self.stop);
            }
            (Ok(_) | Err(_), _) => {}
        }
        let Synced { full, unseen, .. } = synced.as_ref().copied().unwrap_or_default();
        self.progress.send_replace(Progress { round, full, unseen, failed: synced.err() });
    }
}
