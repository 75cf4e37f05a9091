//! The jobs of this process, counted, so that it does not end before it has tidied up after the last of them.

use std::sync::LazyLock;

use tokio::sync::watch;
use tokio::time::timeout;

use super::END_LIMIT;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// A job, from before its first step until nothing is left of it.
#[derive(Debug)]
pub(super) struct ActiveJob(());

impl ActiveJob {
    pub(super) fn begin() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for ActiveJob {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Waits until there is no job any more, for as long as one may take to die.
pub(crate) async fn wait_idle() {
    let mut count = COUNT.subscribe();
    if timeout(END_LIMIT, count.wait_for(|count| *count == 0)).await.is_err() {
        tracing::warn!("jobs are still ending; the next job removes their placeholders for protected paths");
    }
}
