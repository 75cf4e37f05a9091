//! Spawns tasks that go on when their caller is gone; each has a name in the log.

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Spawns a task. What belongs to a runtime or a server is spawned on its own `TaskTracker` instead, which ends with it.
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", name)))
}
