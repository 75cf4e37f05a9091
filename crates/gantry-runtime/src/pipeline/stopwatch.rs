//! The time that a call has used: it stands still while the client is asked something.
//!
//! A tool that asks a person for a form to be filled in is not slow; the person is.

use gantry_provider::BoxFuture;
use gantry_provider::client::{Answered, Audience, Capabilities, LogLevel, Notice, Question, Unanswered};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How soon a stopped watch is looked at again when the limit is close.
const GLANCE: Duration = Duration::from_millis(50);

/// Counts the time of a call.
#[derive(Debug)]
pub(crate) struct Stopwatch {
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

impl Stopwatch {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), stops: Mutex::default() })
    }

    /// Returns when the call has used up its time.
    pub(crate) async fn ran_for(&self, limit: Duration) {
        loop {
            let left = limit.saturating_sub(self.used());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(GLANCE.min(limit))).await;
        }
    }

    fn used(&self) -> Duration {
        let stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = stops.total + stops.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.started.elapsed().saturating_sub(stopped)
    }

    fn stop(self: &Arc<Self>) -> Stopped {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.open += 1;
        if stops.open == 1 {
            stops.since = Some(Instant::now());
        }
        Stopped(Arc::clone(self))
    }
}

/// The watches of a call and of those above it.
#[derive(Debug, Clone, Default)]
pub struct Watches(Option<Arc<Linked>>);

#[derive(Debug)]
struct Linked {
    watch: Arc<Stopwatch>,
    above: Watches,
}

impl Watches {
    /// These and one more.
    pub(crate) fn with(&self, watch: &Arc<Stopwatch>) -> Self {
        Self(Some(Arc::new(Linked { watch: Arc::clone(watch), above: self.clone() })))
    }

    /// All of them stand still until what is returned is dropped.
    pub(crate) fn stop(&self) -> Vec<Stopped> {
        let mut stopped = Vec::new();
        let mut next = &self.0;
        while let Some(linked) = next {
            stopped.push(linked.watch.stop());
            next = &linked.above.0;
        }
        stopped
    }
}

/// The watch stands still until this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped(Arc<Stopwatch>);

impl Drop for Stopped {
    fn drop(&mut self) {
        let mut stops = self.0.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.open = stops.open.saturating_sub(1);
        if stops.open == 0 {
            let stopped = stops.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            stops.total += stopped;
        }
    }
}

/// An audience whose answers cost the call no time.
#[derive(Debug)]
pub(crate) struct Patient {
    pub(crate) audience: Arc<dyn Audience>,
    pub(crate) watch: Arc<Stopwatch>,
}

impl Audience for Patient {
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

    fn notify(&self, notice: Notice) {
        self.audience.notify(notice);
    }

    fn ask(&self, questions: Vec<Question>) -> BoxFuture<'_, Result<Vec<Answered>, Unanswered>> {
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
        let watch = Stopwatch::start();
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (first, second) = (watch.stop(), watch.stop());
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(first);
        tokio::time::sleep(Duration::from_secs(40)).await;
        drop(second);
        watch.ran_for(Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 110);
    }
}
