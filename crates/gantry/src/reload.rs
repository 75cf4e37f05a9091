//! Follows the files that configure Gantry: what changes in them applies while it runs.

use crate::config::FileSnapshot;
use crate::startup::ActiveConfig;
use gantry_runtime::Projects;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Applies changes until `stop` fires. A file that is being written is read once it has come to rest.
pub(crate) async fn follow(
    projects: Arc<Projects>,
    configuration: Arc<ActiveConfig>,
    stop: CancellationToken,
) {
    let Some(mut known) = snapshot(&configuration).await else { return };
    let mut seen = known.clone();
    // Something may have changed between the start and the first look.
    projects.reload().await.ok();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some(now) = snapshot(&configuration).await else { return };
        let at_rest = now == seen;
        seen = now;
        if at_rest && seen != known {
            // Taken before reading: what changes while it is read is seen the next time.
            known = seen.clone();
            // What came of it is in the event stream and in the log; a mistake stays known until it is mended.
            projects.reload().await.ok();
        }
    }
}

async fn snapshot(configuration: &Arc<ActiveConfig>) -> Option<FileSnapshot> {
    let loaded = configuration.current();
    match tokio::task::spawn_blocking(move || loaded.snapshot()).await {
        Ok(snapshot) => Some(snapshot),
        Err(error) => {
            tracing::error!("changes of the configuration are not seen any more: {error}");
            None
        }
    }
}
