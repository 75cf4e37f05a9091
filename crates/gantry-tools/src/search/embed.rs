//! Meaning beside words, where the operator has configured a model: one vector per file, made by an endpoint that speaks
//! the OpenAI protocol, and compared by the angle between them.
//!
//! Only the beginning of each file is sent, with its path and what it defines. The model is an addition: whatever goes
//! wrong with it, words alone still find files, and the answer says what was missing.

mod model;

use super::keeper::Shelf;
use super::open::{self, Reach};
use super::sync::FILE_BYTES;
use super::{Embeddings, symbols};
use gantry_store::search::{Edition, SearchIndex, Vectors};
use model::Model;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Files that are sent at once.
const BATCH: usize = 32;
/// Characters of a file that are sent: of what it defines, and of its text.
const SYMBOL_CHARS: usize = 500;
const HEAD_CHARS: usize = 1_500;
/// A model that reads along.
#[derive(Debug)]
pub(super) struct Embedder {
    model: Model,
    /// All vectors of the index, until one of them changes.
    vectors: Mutex<Option<Arc<Vectors>>>,
    reading: watch::Sender<Reading>,
}

/// How far the reading along is.
#[derive(Debug, Clone, Default)]
struct Reading {
    /// How often it was asked for, and how often that was when it last began.
    wanted: u64,
    begun: u64,
    /// When that was, as long as it lasts.
    running: Option<Instant>,
    /// Why the last attempt failed.
    trouble: Option<String>,
}

impl Embedder {
    pub(super) fn new(settings: Embeddings) -> Self {
        Self { model: Model::new(settings), vectors: Mutex::default(), reading: watch::Sender::default() }
    }

    /// Why some files may have no vector.
    pub(super) fn trouble(&self) -> Option<String> {
        let reading = self.reading.borrow();
        let under_way = reading.running.map(|_| "the model has not read all files yet".to_owned());
        reading.trouble.clone().or(under_way)
    }

    /// Must be called when files have changed.
    pub(super) fn forget(&self) {
        self.vectors().take();
    }

    /// Waits until nothing is left to read, unless that has taken too long already, or the model does not answer.
    pub(super) async fn idle(&self, patience: Duration) {
        let began = self.reading.borrow().running;
        if let Some(began) = began.filter(|_| self.model.silent().is_none()) {
            // The sender lives as long as this, so there is always an end to wait for.
            let mut reading = self.reading.subscribe();
            timeout_at(began + patience, reading.wait_for(|reading| reading.running.is_none())).await.ok();
        }
    }

    /// Has every file read that has no vector, beside everything else. A model that does not answer is not asked.
    pub(super) fn read_along(&self, shelf: &Arc<Shelf>, tasks: &TaskTracker, stop: &CancellationToken) {
        if self.model.silent().is_some() {
            return;
        }
        let mut starts = false;
        self.reading.send_modify(|reading| {
            reading.wanted += 1;
            starts = reading.running.is_none();
            reading.running.get_or_insert_with(Instant::now);
        });
        if starts {
            let (shelf, stop) = (Arc::clone(shelf), stop.clone());
            tasks.spawn(async move {
                if let Some(embedder) = &shelf.embedder {
                    stop.run_until_cancelled(embedder.read_until_done(&shelf)).await;
                }
            });
        }
    }

    async fn read_until_done(&self, shelf: &Arc<Shelf>) {
        loop {
            self.reading.send_modify(|reading| reading.begun = reading.wanted);
            let outcome = self.read_all(shelf).await;
            if let Err(reason) = &outcome {
                tracing::warn!(reason, "files are not embedded for search_code; words alone are used");
            }
            let mut done = true;
            self.reading.send_modify(|reading| {
                reading.trouble = outcome.err();
                done = reading.wanted == reading.begun;
                reading.running = (!done).then(Instant::now);
            });
            if done {
                return;
            }
        }
    }

    async fn read_all(&self, shelf: &Arc<Shelf>) -> Result<(), String> {
        loop {
            let (at, model) = (Arc::clone(shelf), self.model.name().to_owned());
            let batch = blocking(move || unread(&at, &model)).await?;
            if batch.is_empty() {
                return Ok(());
            }
            let (files, texts): (Vec<Edition>, Vec<String>) = batch.into_iter().unzip();
            let vectors = files.into_iter().zip(self.model.embed(&texts).await?).collect::<Vec<_>>();
            let (at, model) = (Arc::clone(shelf), self.model.name().to_owned());
            blocking(move || with_index(&at, |index| index.put_vectors(&model, &vectors))).await?;
            self.forget();
        }
    }

    /// The files nearest in meaning, the nearest first, with how near they are.
    pub(super) async fn nearest(
        &self,
        shelf: &Arc<Shelf>,
        question: &str,
    ) -> Result<Vec<(i64, f32)>, String> {
        let asked = self.model.embed(&[question.to_owned()]).await?.pop().unwrap_or_default();
        let vectors = self.all(shelf).await?;
        if asked.len() != vectors.dimensions && !vectors.ids.is_empty() {
            let (given, known) = (asked.len(), vectors.dimensions);
            return Err(format!(
                "the model gave {given} numbers, but {known} for files; remove the index if it has changed"
            ));
        }
        blocking(move || Ok(nearest(&vectors, &asked))).await
    }

    async fn all(&self, shelf: &Arc<Shelf>) -> Result<Arc<Vectors>, String> {
        if let Some(vectors) = &*self.vectors() {
            return Ok(Arc::clone(vectors));
        }
        let (at, model) = (Arc::clone(shelf), self.model.name().to_owned());
        let loaded = blocking(move || with_index(&at, |index| index.vectors(&model))).await?;
        let loaded = Arc::new(loaded);
        *self.vectors() = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn vectors(&self) -> MutexGuard<'_, Option<Arc<Vectors>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some files without a vector, with what is sent of them.
fn unread(shelf: &Shelf, model: &str) -> Result<Vec<(Edition, String)>, String> {
    let missing = with_index(shelf, |index| index.without_vector(model, BATCH))?;
    let reach = Reach::from(&shelf.within).map_err(|fault| fault.error.message)?;
    Ok(missing.into_iter().map(|(file, path)| (file, gist(&reach, &path))).collect())
}

/// What is sent of a file. One that is gone by now is sent by its name, and forgotten with the next round.
fn gist(reach: &Reach, path: &str) -> String {
    let text = reach.open(path).ok().and_then(|(file, _)| open::text(file, FILE_BYTES)).unwrap_or_default();
    let symbols: String = symbols::of_text(path, &text).chars().take(SYMBOL_CHARS).collect();
    let head: String = text.chars().take(HEAD_CHARS).collect();
    format!("{path}\n{symbols}\n{head}")
}

fn nearest(vectors: &Vectors, asked: &[f32]) -> Vec<(i64, f32)> {
    let rows = vectors.flat.chunks_exact(vectors.dimensions.max(1));
    let cosine = |row: &[f32]| row.iter().zip(asked).map(|(a, b)| a * b).sum::<f32>();
    let mut all: Vec<(i64, f32)> = vectors.ids.iter().copied().zip(rows.map(cosine)).collect();
    all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|crash| Err(format!("it crashed: {crash}")))
}

fn with_index<T>(
    shelf: &Shelf,
    work: impl FnOnce(&SearchIndex) -> Result<T, gantry_store::Error>,
) -> Result<T, String> {
    let done = shelf.with_index(|library| Ok(work(&library.index)?));
    done.map_err(|failed| failed.into_fault().error.message)
}
