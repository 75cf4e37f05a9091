//! Spawns tasks that go on when their caller is gone; each has a name in the log, and their number can be asked for.

use std::sync::LazyLock;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

static TASKS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Spawns a task. What belongs to a runtime or a server is spawned on its own `TaskTracker` instead, which ends with it.
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    TASKS.spawn(future.instrument(tracing::debug_span!("task", name)))
}

/// How many of these tasks have not ended.
#[must_use]
pub fn count() -> usize {
    TASKS.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_counts_until_it_has_ended() {
        let (send, receive) = tokio::sync::oneshot::channel::<()>();
        let task = spawn("waits", receive);
        assert!(count() >= 1);
        send.send(()).unwrap();
        task.await.unwrap().unwrap();
    }
}
