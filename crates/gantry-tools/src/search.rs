//! `search_code`: finds lines and files in the workspace, by text, by regular expression, or ranked by an index.
//!
//! **Invariant:** nothing outside the workspace and nothing that is hidden from tools is read, and no link is followed:
//! every file is opened by single names from the opened root (`walk`, `open`).
//!
//! Literal and regex search read the files (`grep`). Ranked search asks an index (`ranked`), which is made when it is
//! first needed and kept up to date from then on (`keeper`, `sync`).

mod answer;
mod embed;
mod fault;
mod first;
mod grep;
mod keeper;
mod open;
mod query;
mod ranked;
mod rules;
mod snippet;
mod spec;
mod symbols;
mod sync;
mod walk;
mod words;

use crate::own::Part;
use crate::workspace::within::Within;
use crate::workspace::{Error, Fenced};
use answer::Answer;
use gantry_core::tool::ToolSpec;
use gantry_core::{Fault, Permit};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use keeper::Keeper;
use query::{Mode, Query};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    /// The file of the index. It and its folder are made when they are first needed.
    pub index: PathBuf,
    /// A model that finds files by their meaning, if there is one.
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
    within: Arc<Within>,
    keeper: Keeper,
    slots: Arc<Semaphore>,
}

impl SearchCode {
    /// Opens the folder. Nothing is read or made yet.
    ///
    /// # Errors
    /// There is no such folder, it cannot be opened, or it lies inside a hidden one.
    pub fn open(options: SearchOptions) -> Result<Self, Error> {
        let within = Arc::new(Within::open(&options.workspace, options.fenced.clone())?);
        Ok(Self {
            tools: [spec::search_code()],
            keeper: Keeper::new(&within, options),
            within,
            slots: Arc::new(Semaphore::new(SEARCHES)),
        })
    }

    async fn run(&self, cancel: &CancellationToken, permit: &Permit) -> Result<String, Fault> {
        let query = Query::parse(permit.arguments())?;
        let answer = match query.mode {
            Mode::Ranked => ranked::run(&self.keeper, &self.slots, query, cancel).await?,
            Mode::Literal | Mode::Regex => self.grep(query, cancel).await?,
        };
        let text = serde_json::to_string(&answer);
        text.map_err(|error| fault::failed(format!("the answer cannot be written: {error}")))
    }

    /// Dropping the future stops the search at the next file.
    async fn grep(&self, query: Query, cancel: &CancellationToken) -> Result<Answer, Fault> {
        let within = Arc::clone(&self.within);
        let stop = cancel.child_token();
        let _stops_when_dropped = stop.clone().drop_guard();
        let slot = slot(&self.slots).await?;
        let searched = spawn_blocking(move || {
            let answer = grep::run(&within, &query, &stop);
            drop(slot);
            answer
        });
        let searched = searched.await;
        searched.unwrap_or_else(|crash| Err(fault::failed(format!("the search crashed: {crash}"))))
    }
}

/// Waits until a search may begin. The slot goes with the thread that searches, whose caller may stop waiting for it.
async fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Fault> {
    let slot = Arc::clone(slots).acquire_owned().await;
    slot.map_err(|closed| fault::failed(format!("the search is over: {closed}")))
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

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.keeper.close())
    }
}

#[cfg(test)]
mod tests;
