//! Ranked search: the index says which files, the files themselves say which line.
//!
//! The score of a file is BM25 over its words, its symbols and its path, raised by how much of the question stands on
//! one line or in the path. With a model, the order by words and the order by meaning are put together by reciprocal ranks.

use super::answer::{Answer, Indexed, Match};
use super::keeper::{Keeper, Progress, Shelf};
use super::open::{self, Reach};
use super::query::Query;
use super::snippet::Finder;
use super::sync::{FILE_BYTES, FILES, Failed};
use super::walk::Start;
use super::{fault, words};
use gantry_core::Fault;
use gantry_store::search::{Hit, SearchIndex, Term};
use std::cmp::Ordering::Equal;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Files that are looked at beyond those that are asked for, because their lines may change the order.
const BEYOND: usize = 20;
/// Files of each order that are put together, at least.
const FUSED: usize = 200;
/// What softens the difference between the first ranks when orders are put together.
const RANK_SOFTENER: f64 = 60.0;
/// Threads that read files for one answer.
const READERS: usize = 4;

/// Finds the best files, the best first.
pub(super) async fn run(
    keeper: &Keeper,
    slots: &Arc<Semaphore>,
    query: Query,
    stop: &CancellationToken,
) -> Result<Answer, Fault> {
    let terms = words::terms(&query.text);
    if terms.is_empty() {
        return Err(fault::invalid(
            "query has no word to rank by; use mode literal to search for characters",
        ));
    }
    let asked = Arc::new(Asked { query, terms });
    let answer = match attempt(keeper, slots, &asked, stop).await {
        // The next attempt begins with a new index.
        Err(Failed::Index(gantry_store::Error::Corrupt { .. })) => attempt(keeper, slots, &asked, stop).await,
        answer => answer,
    };
    answer.map_err(Failed::into_fault)
}

/// What is looked for.
#[derive(Debug)]
struct Asked {
    query: Query,
    terms: Vec<Term>,
}

async fn attempt(
    keeper: &Keeper,
    slots: &Arc<Semaphore>,
    asked: &Arc<Asked>,
    stop: &CancellationToken,
) -> Result<Answer, Failed> {
    // A path that cannot be looked at is said before anything is indexed.
    let (shelf, at) = (Arc::clone(keeper.shelf()), Arc::clone(asked));
    blocking(move || Ok(Start::find(&shelf.within, &at.query.way).map(drop)?)).await?;

    let (ready, progress) = keeper.ready().await?;
    let (near, by_words) = meaning(keeper, &asked.query.text).await;
    let search = Search {
        shelf: Arc::clone(keeper.shelf()),
        asked: Arc::clone(asked),
        near,
        stop: stop.child_token(),
    };
    let _stops_when_dropped = search.stop.clone().drop_guard();
    let slot = super::slot(slots).await?;
    let (matches, truncated) = blocking(move || {
        let found = search.run();
        drop(slot);
        found
    })
    .await?;

    let mut answer = Answer::new(asked.query.mode, matches);
    answer.truncated = truncated;
    answer.indexed =
        Some(Indexed { files: keeper.shelf().n_files(), done: ready && progress.failed.is_none() });
    answer.note = remarks(progress, by_words);
    Ok(answer.bounded())
}

/// What the reader of an answer should know.
fn remarks(progress: Progress, by_words: Option<String>) -> Option<String> {
    let failed = progress.failed.map(|fault| format!("the index is not up to date: {}", fault.error.message));
    let full = progress.full.then(|| format!("only the first {FILES} files, by path, are ranked"));
    let n_unseen = progress.unseen;
    let unseen = (n_unseen > 0).then(|| {
        format!("folders that could not be looked into: {n_unseen}; files in them are missing, or ranked as they were")
    });
    let all: Vec<String> = [failed, full, unseen, by_words].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The files that are near in meaning, where there is a model; or why they are not known.
async fn meaning(keeper: &Keeper, question: &str) -> (Vec<(i64, f32)>, Option<String>) {
    let Some(embedder) = &keeper.shelf().embedder else { return (Vec::new(), None) };
    match embedder.nearest(keeper.shelf(), question).await {
        Ok(near) => {
            let trouble = embedder.trouble();
            (near, trouble.map(|reason| format!("some files are ranked by words alone: {reason}")))
        }
        Err(reason) => (Vec::new(), Some(format!("ranked by words alone: {reason}"))),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let crashed = |crash| Err(fault::failed(format!("the search crashed: {crash}")).into());
    spawn_blocking(work).await.unwrap_or_else(crashed)
}

/// One search of the index.
struct Search {
    shelf: Arc<Shelf>,
    asked: Arc<Asked>,
    near: Vec<(i64, f32)>,
    stop: CancellationToken,
}

/// A file that may be in the answer.
struct Candidate {
    path: String,
    score: f64,
    /// It was found by its meaning, so it need not have any of the words.
    near: bool,
}

impl Search {
    /// The matches, and whether there are more.
    fn run(&self) -> Result<(Vec<Match>, bool), Failed> {
        let most = self.asked.query.most;
        let limit = if self.near.is_empty() { most + BEYOND } else { FUSED.max(most + BEYOND) };
        let mut candidates = self.shelf.with_index(|library| {
            let hits = library.index.rank(&self.asked.terms, limit, |path| self.accepts(path))?;
            self.fuse(&library.index, hits)
        })?;
        candidates.truncate(most + BEYOND);
        let reach = Reach::from(&self.shelf.within)?;
        let mut found = self.look(&reach, &candidates);
        if self.stop.is_cancelled() {
            return Err(fault::canceled().into());
        }
        found
            .sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Equal).then_with(|| a.path.cmp(&b.path)));
        let truncated = found.len() > most;
        found.truncate(most);
        Ok((found, truncated))
    }

    fn accepts(&self, path: &str) -> bool {
        self.asked.query.is_below(path) && self.asked.query.takes(path.as_bytes())
    }

    /// Puts the order by words and the order by meaning together.
    fn fuse(&self, index: &SearchIndex, hits: Vec<Hit>) -> Result<Vec<Candidate>, Failed> {
        if self.near.is_empty() {
            let candidate = |hit: Hit| Candidate { path: hit.path, score: hit.score, near: false };
            return Ok(hits.into_iter().map(candidate).collect());
        }
        let by_rank = |rank: usize| 1.0 / (RANK_SOFTENER + rank as f64);
        let mut fused: HashMap<i64, Candidate> = HashMap::new();
        for (rank, Hit { path, id, .. }) in hits.into_iter().enumerate() {
            fused.insert(id, Candidate { path, score: by_rank(rank), near: false });
        }
        let mut rank = 0;
        for (id, _) in &self.near {
            if let Some(known) = fused.get_mut(id) {
                known.score += by_rank(rank);
                known.near = true;
            } else {
                let Some(path) = index.path(*id)?.filter(|path| self.accepts(path)) else { continue };
                fused.insert(*id, Candidate { path, score: by_rank(rank), near: true });
            }
            rank += 1;
            if rank == FUSED {
                break;
            }
        }
        let mut all: Vec<Candidate> = fused.into_values().collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
        Ok(all)
    }

    /// Reads the files with several threads.
    fn look(&self, reach: &Reach, candidates: &[Candidate]) -> Vec<Match> {
        let finder = Finder::new(&self.asked.terms);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Vec::new();
            while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.stop.is_cancelled() {
                    break;
                }
                found.extend(self.look_at(reach, &finder, candidate));
            }
            found
        };
        let n_threads = thread::available_parallelism().map_or(1, usize::from).min(READERS);
        thread::scope(|scope| {
            let others: Vec<_> = (1..n_threads).map(|_| scope.spawn(work)).collect();
            let mut found = work();
            for other in others {
                found.extend(other.join().unwrap_or_default());
            }
            found
        })
    }

    /// The match in a file as it is now. One that is gone, or has lost the words since it was indexed, is none.
    fn look_at(&self, reach: &Reach, finder: &Finder<'_>, candidate: &Candidate) -> Option<Match> {
        let Candidate { path, score, near } = candidate;
        let (file, _) = reach.open(path).ok()?;
        let text = open::text(file, FILE_BYTES)?;
        let snippet = finder.best(path, &text, self.asked.query.context);
        let part = snippet.coverage.into_iter().chain(finder.in_path(path)).reduce(f64::max);
        if part.is_none() && !near {
            return None;
        }
        let raised = if self.near.is_empty() { 1.0 + part.unwrap_or(0.0) } else { 1.0 };
        let score = Some((score * raised * 1e6).round() / 1e6);
        Some(Match { score, ..snippet.found })
    }
}
