//! Keeps what is known of an API in step with its document: tries until it is there, and looks whether its files change.

use super::api::{Loaded, Shared};
use super::load::{self, Stamps, stamped};
use super::options::SpecPlace;
use gantry_provider::task;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long the next attempt to get a document from the web waits; the last one again and again.
const PAUSES: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// The APIs of one set-up. They are got ready one after the other, so the first to be asked starts all of them.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    members: Mutex<Vec<(Weak<Shared>, CancellationToken)>>,
    began: OnceLock<Instant>,
}

impl Watchers {
    pub(super) fn add(&self, shared: &Arc<Shared>, stop: &CancellationToken) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.push((Arc::downgrade(shared), stop.clone()));
    }

    /// Starts those that have not been started. Returns when the first was.
    pub(super) fn start(&self) -> Instant {
        let members = std::mem::take(&mut *self.members.lock().unwrap_or_else(PoisonError::into_inner));
        for (shared, stop) in members {
            if let Some(shared) = shared.upgrade() {
                task::spawn("OpenAPI document", run(shared, stop));
            }
        }
        *self.began.get_or_init(Instant::now)
    }
}

/// Runs until there is nothing more to do, or the provider is gone.
async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let keeping = async {
        match &shared.options.spec {
            SpecPlace::File(path) => watch(&shared, path.clone()).await,
            SpecPlace::Url(_) => insist(&shared).await,
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = keeping => {}
    }
}

/// Tries until the document is there.
async fn insist(shared: &Shared) {
    let mut pauses = PAUSES.iter();
    let mut pause = Duration::ZERO;
    let mut warned = false;
    loop {
        let attempt = attempt(shared).await.map(|_| ());
        let done = attempt.is_ok();
        if let (Err(reason), false) = (&attempt, warned) {
            tracing::info!("{} is tried again in the background: {reason}", shared.origin.provider);
            warned = true;
        }
        shared.tried(attempt);
        if done {
            return;
        }
        pause = pauses.next().map_or(pause, |seconds| Duration::from_secs(*seconds));
        tokio::time::sleep(pause).await;
    }
}

/// Reads the files, and reads them again whenever they change.
async fn watch(shared: &Shared, root: PathBuf) {
    let mut files = vec![root.clone()];
    let mut first = true;
    loop {
        // Looked at before they are read: what is written meanwhile is seen as a change.
        let mut known = stamps(files).await;
        match attempt(shared).await {
            Ok(found) => {
                known = found;
                shared.tried(Ok(()));
            }
            Err(reason) => {
                if !first {
                    tracing::warn!(
                        "{} goes on with what it had, as its changed specification cannot be used: {reason}",
                        shared.origin.provider
                    );
                }
                shared.tried(Err(reason));
            }
        }
        first = false;
        files = known.iter().map(|(path, _)| path.clone()).collect();
        loop {
            tokio::time::sleep(LOOK).await;
            if stamps(files.clone()).await != known {
                break;
            }
        }
    }
}

async fn stamps(files: Vec<PathBuf>) -> Stamps {
    // Nothing is known of files that could not be read.
    spawn_blocking(move || files.into_iter().map(stamped).collect()).await.unwrap_or_default()
}

/// Reads the document once. Returns the files that it is made of.
async fn attempt(shared: &Shared) -> Result<Stamps, String> {
    let brought = load::bring(&shared.options.spec, &shared.client).await?;
    let (bundle, choice) = (brought.bundle, shared.choice.clone());
    let options = Arc::clone(&shared.options);
    let importing = spawn_blocking(move || {
        let import = gantry_openapi::import(&bundle, &choice);
        // Its memory serves the tools.
        drop(bundle);
        Loaded::new(import, &options)
    });
    let loaded = importing.await.map_err(|crash| format!("it could not be read: {crash}"))?;
    shared.put(loaded);
    Ok(brought.files)
}
