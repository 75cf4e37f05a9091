//! `search_code`: finds lines and files in the workspace, by text, by regular expression, or ranked by words.
//!
//! **Invariant:** nothing outside the workspace and nothing that is hidden from tools is read, and no link is followed:
//! every file is opened by single names from the opened root (`open`).
//!
//! Every search lists the files (`walk`) and reads them: literal and regex until enough is found (`grep`), ranked all
//! of them (`scan`, `ranked`). Nothing is kept between two searches.

mod answer;
mod embed;
mod fault;
mod grep;
mod open;
mod query;
mod ranked;
mod rules;
mod scan;
mod snippet;
mod spec;
mod symbols;
mod walk;
mod words;

use crate::own::Part;
use crate::workspace::within::Within;
use crate::workspace::{Error, Fenced};
use answer::Answer;
use embed::Reranker;
use gantry_core::tool::ToolSpec;
use gantry_core::{Fault, Permit};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use open::Beneath;
use query::{Mode, Query};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Searches that run at the same time; each uses all cores.
const SEARCHES: usize = 4;

/// What is searched, and with what.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// The folder that is searched.
    pub workspace: PathBuf,
    /// What is not read in it.
    pub fenced: Fenced,
    /// A model that puts the best files in a new order by their meaning, if there is one.
    pub embeddings: Option<Embeddings>,
}

/// A model that makes embeddings, behind an endpoint that speaks the OpenAI protocol.
#[derive(Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// The address before `/embeddings`.
    pub url: String,
    /// The name of the model.
    pub model: String,
    /// The key, if one is needed.
    pub api_key: Option<String>,
}

impl fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embeddings")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The provider of `search_code`.
#[derive(Debug)]
pub struct SearchCode {
    tools: [ToolSpec; 1],
    folder: Arc<Folder>,
    reranker: Option<Reranker>,
    slots: Arc<Semaphore>,
}

/// The folder that is searched: its path to list it, and its handle to open files beneath it.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    within: Within,
}

impl Folder {
    fn enter(&self) -> Result<Arc<Beneath>, Fault> {
        Ok(Arc::new(Beneath::enter(&self.within)?))
    }
}

impl SearchCode {
    /// Opens the folder. Nothing is read or made yet.
    ///
    /// # Errors
    /// There is no such folder, it cannot be opened, or it lies inside a hidden one.
    pub fn open(options: SearchOptions) -> Result<Self, Error> {
        let SearchOptions { workspace, fenced, embeddings } = options;
        let within = Within::open(&workspace, fenced)?;
        Ok(Self {
            tools: [spec::search_code()],
            folder: Arc::new(Folder { path: workspace, within }),
            reranker: embeddings.map(Reranker::new),
            slots: Arc::new(Semaphore::new(SEARCHES)),
        })
    }

    async fn run(&self, cancel: &CancellationToken, permit: &Permit) -> Result<String, Fault> {
        let query = Arc::new(Query::parse(permit.arguments())?);
        let mut answer = self.search(&query, cancel).await?;
        if let (Mode::Ranked, Some(reranker)) = (query.mode, &self.reranker) {
            reranker.rerank(&query.text, &mut answer).await;
        }
        let text = serde_json::to_string(&answer.bounded(query.most));
        text.map_err(|error| fault::failed(format!("the answer cannot be written: {error}")))
    }

    /// Dropping the future stops the search at the next file.
    async fn search(&self, query: &Arc<Query>, cancel: &CancellationToken) -> Result<Answer, Fault> {
        let (folder, query) = (Arc::clone(&self.folder), Arc::clone(query));
        let stop = cancel.child_token();
        let _stops_when_dropped = stop.clone().drop_guard();
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|closed| fault::failed(format!("the search is over: {closed}")))?;
        let searched = spawn_blocking(move || {
            // The slot goes with the thread that searches, because its caller may stop waiting for it.
            let _slot = slot;
            match query.mode {
                Mode::Ranked => ranked::run(&folder, &query, &stop),
                Mode::Literal | Mode::Regex => grep::run(&folder, &query, &stop),
            }
        });
        let searched = searched.await;
        searched.unwrap_or_else(|crash| Err(fault::failed(format!("the search crashed: {crash}"))))
    }
}

impl Part for SearchCode {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(self.run(&cx.cancel, permit))
    }
}

#[cfg(test)]
mod tests;
