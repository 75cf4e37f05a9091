//! A future that moves into a tracked task of its own when its caller drops it.
//!
//! A call is polled where its caller awaits it, which costs no task and no wake-up. If the caller goes away first (a
//! client hangs up), the rest of the call moves into a task of its own and ends there, recorded like any other.

use crate::reply::Reply;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub(super) struct DetachOnDrop {
    /// Taken when it has ended.
    call: Option<Pin<Box<dyn Future<Output = Reply> + Send>>>,
    tasks: TaskTracker,
    /// Counted, so that shutting down waits for the call wherever it runs.
    _counted: TaskTrackerToken,
}

impl DetachOnDrop {
    pub(super) fn new(tasks: &TaskTracker, call: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self { call: Some(Box::pin(call)), tasks: tasks.clone(), _counted: tasks.token() }
    }
}

impl Future for DetachOnDrop {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        let reply = std::task::ready!(call.as_mut().poll(cx));
        self.call = None;
        Poll::Ready(reply)
    }
}

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        // Without a runtime nothing can go on; the open entry is reported as unknown at the next start.
        if let (Some(call), Ok(runtime)) = (self.call.take(), tokio::runtime::Handle::try_current()) {
            self.tasks.spawn_on(call, &runtime);
        }
    }
}
