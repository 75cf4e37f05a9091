//! Watches the configuration files and applies their changes while Gantry runs.

use crate::config::Stamp;
use crate::wiring::Configuration;
use gantry_runtime::Projects;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the files are checked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Applies changes until `stop` fires. A file that is being written is read once it has come to rest.
pub(crate) async fn watch(
    projects: Arc<Projects>,
    configuration: Arc<Configuration>,
    stop: CancellationToken,
) {
    let Some(mut known) = stamp(&configuration).await else { return };
    let mut seen = known.clone();
    // Something may have changed between the start and the first look.
    projects.reload().await.ok();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let Some(now) = stamp(&configuration).await else { return };
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

async fn stamp(configuration: &Arc<Configuration>) -> Option<Stamp> {
    let loaded = configuration.held();
    match tokio::task::spawn_blocking(move || loaded.stamp()).await {
        Ok(stamp) => Some(stamp),
        Err(error) => {
            tracing::error!("changes of the configuration are not seen any more: {error}");
            None
        }
    }
}
