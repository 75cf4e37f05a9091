//! The time that a call has used: it stands still while the client is asked something.
//!
//! A tool that asks a person for a form to be filled in is not slow; the person is.

use gantry_provider::BoxFuture;
use gantry_provider::client::{
    Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
    ServerNotification,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How soon a paused timer is checked again when the limit is close.
const RECHECK: Duration = Duration::from_millis(50);

/// Counts the time of a call.
#[derive(Debug)]
pub(crate) struct PausableTimer {
    started: Instant,
    stops: Mutex<Stops>,
}

#[derive(Debug, Default)]
struct Stops {
    /// Questions that are open.
    open: usize,
    /// Since when there has been at least one.
    since: Option<Instant>,
    /// How long there was one before that.
    total: Duration,
}

impl PausableTimer {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), stops: Mutex::default() })
    }

    /// Returns when the call has used up its time.
    pub(crate) async fn expired_after(&self, limit: Duration) {
        loop {
            let left = limit.saturating_sub(self.used());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(RECHECK.min(limit))).await;
        }
    }

    fn used(&self) -> Duration {
        let stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = stops.total + stops.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.started.elapsed().saturating_sub(stopped)
    }

    fn stop(self: &Arc<Self>) -> PauseGuard {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.open += 1;
        if stops.open == 1 {
            stops.since = Some(Instant::now());
        }
        PauseGuard(Arc::clone(self))
    }
}

/// The timers of a call and of those above it.
#[derive(Debug, Clone, Default)]
pub struct TimerChain(Arc<[Arc<PausableTimer>]>);

impl TimerChain {
    /// These and one more.
    pub(crate) fn with(&self, watch: &Arc<PausableTimer>) -> Self {
        Self(self.0.iter().chain([watch]).cloned().collect())
    }

    /// Pauses all of them until what is returned is dropped.
    pub(crate) fn stop(&self) -> Vec<PauseGuard> {
        self.0.iter().map(PausableTimer::stop).collect()
    }
}

/// The timer is paused until this is dropped.
#[derive(Debug)]
pub(crate) struct PauseGuard(Arc<PausableTimer>);

impl Drop for PauseGuard {
    fn drop(&mut self) {
        let mut stops = self.0.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.open = stops.open.saturating_sub(1);
        if stops.open == 0 {
            let stopped = stops.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            stops.total += stopped;
        }
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

    fn present(&self) -> BoxFuture<'_, ()> {
        self.audience.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_watch_stands_still_while_a_question_is_open() {
        let watch = PausableTimer::start();
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (first, second) = (watch.stop(), watch.stop());
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(first);
        tokio::time::sleep(Duration::from_secs(40)).await;
        drop(second);
        watch.expired_after(Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 110);
    }
}
