//! Watches the configuration files and applies their changes while Gantry runs.

use crate::config::FileSnapshot;
use crate::startup::ActiveConfig;
use gantry_runtime::Projects;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How many times a change waits for files that are not loaded. A tool may write those again and again.
const MAX_PAUSES: usize = 10;

/// Applies changes until `stop` fires. Files are read when none of them has changed for one interval, so that no half-written
/// file is read.
pub(crate) async fn watch(
    projects: Arc<Projects>,
    configuration: Arc<ActiveConfig>,
    stop: CancellationToken,
) {
    // The files may have changed between the start and the first check.
    let (mut known, mut seen) = (FileSnapshot::default(), FileSnapshot::default());
    let mut pauses = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let Some(now) = snapshot(&configuration, seen.clone()).await else { return };
        if now == known {
            pauses = 0;
        } else {
            let loaded = configuration.current().sources.all().cloned().collect::<HashSet<PathBuf>>();
            let is_settled = now.is_settled(&seen, POLL_INTERVAL, |_| true)
                || pauses >= MAX_PAUSES && now.is_settled(&seen, POLL_INTERVAL, |file| loaded.contains(file));
            pauses += 1;
            if is_settled {
                pauses = 0;
                // A change during the reload differs from this stamp and is found by the next check.
                known = now.clone();
                // The result is in the event stream and in the log.
                projects.reload(None).await.ok();
            }
        }
        seen = now;
    }
}

/// What the files look like now, other than `before` or not.
async fn snapshot(configuration: &Arc<ActiveConfig>, before: FileSnapshot) -> Option<FileSnapshot> {
    let configuration = Arc::clone(configuration);
    let look = move || {
        let now = configuration.current().snapshot();
        if now != before {
            configuration.forget_missing_files();
        }
        now
    };
    match tokio::task::spawn_blocking(look).await {
        Ok(snapshot) => Some(snapshot),
        Err(error) => {
            tracing::error!("changes of the configuration are no longer noticed: {error}");
            None
        }
    }
}
