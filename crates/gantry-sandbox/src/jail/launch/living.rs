//! The jobs of this process, counted, so that nothing ends it before the last of them is tidied up after.

use std::sync::LazyLock;

use tokio::sync::watch;
use tokio::time::timeout;

use super::END_LIMIT;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// A job, from before anything is done for it until nothing is left of it.
#[derive(Debug)]
pub(super) struct Living(());

impl Living {
    pub(super) fn begin() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Waits until there is no job any more, for as long as one may take to die.
pub(crate) async fn settled() {
    let mut count = COUNT.subscribe();
    if timeout(END_LIMIT, count.wait_for(|count| *count == 0)).await.is_err() {
        tracing::warn!("jobs are still ending; what stands in for protected paths is left to the next job");
    }
}
