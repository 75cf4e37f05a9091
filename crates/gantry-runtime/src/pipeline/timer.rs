//! The time that a call has used: it stands still while the client is asked something.
//!
//! A tool that asks a person for a form to be filled in is not slow; the person is.

use gantry_provider::BoxFuture;
use gantry_provider::client::{
    Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
    ServerNotification,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Limits the time of a call. It has how many questions are open: the time stands still while there is one.
#[derive(Debug, Default)]
pub(crate) struct PausableTimer(watch::Sender<usize>);

impl PausableTimer {
    /// Returns when the call has used up its time, which begins now.
    pub(crate) async fn expired_after(&self, mut limit: Duration) {
        let mut open = self.0.subscribe();
        // Waiting does not fail: the sender is in `self`.
        while open.wait_for(|open| *open == 0).await.is_ok() {
            let since = Instant::now();
            tokio::select! {
                biased;
                // First: a question that is open when the limit is reached stops the time all the same.
                _ = open.wait_for(|open| *open > 0) => limit = limit.saturating_sub(since.elapsed()),
                () = tokio::time::sleep(limit) => return,
            }
        }
    }

    fn stop(self: &Arc<Self>) -> PauseGuard {
        self.0.send_modify(|open| *open += 1);
        PauseGuard(Arc::clone(self))
    }
}

/// The timers of a call and of those above it.
#[derive(Debug, Clone, Default)]
pub struct TimerChain(Arc<[Arc<PausableTimer>]>);

impl TimerChain {
    pub(crate) fn with(&self, watch: &Arc<PausableTimer>) -> Self {
        Self(self.0.iter().chain([watch]).cloned().collect())
    }

    /// Pauses all of them until what is returned is dropped.
    pub(crate) fn stop(&self) -> Vec<PauseGuard> {
        self.0.iter().map(PausableTimer::stop).collect()
    }
}

#[derive(Debug)]
pub(crate) struct PauseGuard(Arc<PausableTimer>);

impl Drop for PauseGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// A client whose answers cost the call no time.
#[derive(Debug)]
pub(crate) struct PausingClient {
    pub(crate) audience: Arc<dyn ClientChannel>,
    pub(crate) watch: Arc<PausableTimer>,
}

impl ClientChannel for PausingClient {
    fn capabilities(&self) -> &Capabilities {
        self.audience.capabilities()
    }

    fn session(&self) -> u64 {
        self.audience.session()
    }

    fn wants_progress(&self) -> bool {
        self.audience.wants_progress()
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.audience.log_level()
    }

    fn notify(&self, notice: ServerNotification) {
        self.audience.notify(notice);
    }

    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(async move {
            let _stopped = self.watch.stop();
            self.audience.ask(questions).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_watch_stands_still_while_a_question_is_open() {
        let watch = Arc::new(PausableTimer::default());
        let begun = Instant::now();
        let questions = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let (first, second) = (watch.stop(), watch.stop());
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(40)).await;
            drop(second);
        };
        tokio::join!(watch.expired_after(Duration::from_secs(10)), questions);
        assert_eq!(begun.elapsed().as_secs(), 110);
    }
}
