//! Watches the configuration files and applies their changes while Gantry runs.

use crate::config::FileSnapshot;
use crate::startup::ActiveConfig;
use gantry_runtime::Projects;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Applies changes until `stop` fires. A file is read when it has not changed for one interval, so that no half-written
/// file is read.
pub(crate) async fn watch(
    projects: Arc<Projects>,
    configuration: Arc<ActiveConfig>,
    stop: CancellationToken,
) {
    let Some(mut known) = snapshot(&configuration).await else { return };
    let mut seen = known.clone();
    // The files may have changed between the start and the first check.
    projects.reload().await.ok();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let Some(now) = snapshot(&configuration).await else { return };
        let is_stable = now == seen;
        seen = now;
        if is_stable && seen != known {
            // A change during the reload differs from this stamp and is found by the next check.
            known = seen.clone();
            // The result is in the event stream and in the log.
            projects.reload().await.ok();
        }
    }
}

async fn snapshot(configuration: &Arc<ActiveConfig>) -> Option<FileSnapshot> {
    let loaded = configuration.current();
    match tokio::task::spawn_blocking(move || loaded.snapshot()).await {
        Ok(snapshot) => Some(snapshot),
        Err(error) => {
            tracing::error!("changes of the configuration are no longer noticed: {error}");
            None
        }
    }
}
