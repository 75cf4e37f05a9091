//! Watches the configuration files and applies their changes while Gantry runs.

use crate::config::Stamp;
use crate::wiring::Configuration;
use gantry_runtime::Projects;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the files are checked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Applies changes until `stop` fires. A file is read when it has not changed for one interval, so that no half-written
/// file is read.
pub(crate) async fn watch(
    projects: Arc<Projects>,
    configuration: Arc<Configuration>,
    stop: CancellationToken,
) {
    let Some(mut known) = stamp(&configuration).await else { return };
    let mut seen = known.clone();
    // The files may have changed between the start and the first check.
    projects.reload().await.ok();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let Some(now) = stamp(&configuration).await else { return };
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

async fn stamp(configuration: &Arc<Configuration>) -> Option<Stamp> {
    let loaded = configuration.held();
    match tokio::task::spawn_blocking(move || loaded.stamp()).await {
        Ok(stamp) => Some(stamp),
        Err(error) => {
            tracing::error!("changes of the configuration are no longer noticed: {error}");
            None
        }
    }
}
