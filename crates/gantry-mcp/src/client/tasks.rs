//! Tools of legacy servers that can only be called as tasks: started, polled until they are done, and fetched.

use super::dispatcher::RequestGuard;
use super::inner::{ConnectionInner, OutgoingRequest};
use super::limits::{POLL, POLL_DEFAULT, POST_WAIT};
use super::types::{Answer, UpstreamError};
use crate::exchange::ClientChannel;
use crate::raw;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

impl ConnectionInner {
    /// Calls a tool as a task, as if it were a plain call.
    pub(super) async fn call_as_task(
        self: &Arc<Self>,
        request: OutgoingRequest<'_>,
        client: &Arc<dyn ClientChannel>,
    ) -> Answer {
        let params = raw::with(request.params, "task", "{}");
        // The server also works between two polls, and its messages then belong to the client of the task.
        let id = self.dispatcher().next_id();
        let running = self.dispatcher().register(id, client, false)?;
        self.dispatcher().pending().mark_task(id);
        let mut guard = TaskGuard { inner: Arc::clone(self), running, has_ended: false, cancel: None };
        let start = OutgoingRequest { params: &params, progress_token: Some(id), ..request };
        let outcome = self.run_task(request, start, &mut guard).await;
        guard.has_ended = matches!(outcome, Ok(_) | Err(UpstreamError::Rpc(_) | UpstreamError::NotSent(_)));
        if !matches!(outcome, Err(UpstreamError::Canceled)) {
            guard.cancel = None;
        }
        outcome
    }

    async fn run_task(
        &self,
        request: OutgoingRequest<'_>,
        start: OutgoingRequest<'_>,
        guard: &mut TaskGuard,
    ) -> Answer {
        let started = self.request(start).await?;
        let Some(task) = raw::member(&started, "task").filter(|task| task.starts_with('{')) else {
            return Ok(started);
        };
        let Some(id) = raw::member(task, "taskId") else {
            let what = "the server started a task without an id";
            return Err(UpstreamError::OutcomeUnknown(what.into()));
        };
        let params = raw::object([("taskId", id)]);
        guard.cancel = Some(params.clone());
        let outcome = self.finish_task(request, &params, task.to_owned()).await;
        outcome.map_err(UpstreamError::into_outcome_unknown)
    }

    async fn finish_task(&self, request: OutgoingRequest<'_>, params: &str, mut task: String) -> Answer {
        let about_task = OutgoingRequest { params, meta: None, progress_token: None, ..request };
        // A task that is done, or that needs input, is answered by its result.
        while raw::string_member(&task, "status")
            .is_some_and(|status| matches!(&*status, "working" | "submitted"))
        {
            tokio::select! {
                () = request.cancel.cancelled() => return Err(UpstreamError::Canceled),
                () = sleep(poll_interval(&task)) => {}
            }
            task = self.request(OutgoingRequest { method: "tasks/get", ..about_task }).await?;
        }
        self.request(OutgoingRequest { method: "tasks/result", ..about_task }).await
    }
}

fn poll_interval(task: &str) -> Duration {
    let millis = raw::member(task, "pollInterval").and_then(|interval| interval.parse().ok());
    millis.map_or(POLL_DEFAULT, Duration::from_millis).clamp(POLL[0], POLL[1])
}

/// Dropped before the task has ended, it cancels the task, which may still run for as long as the connection lasts.
struct TaskGuard {
    inner: Arc<ConnectionInner>,
    running: RequestGuard,
    /// The server does not run the task.
    has_ended: bool,
    /// The params of `tasks/cancel`, once the task has an id.
    cancel: Option<String>,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        let mut pending = self.inner.dispatcher().pending();
        let running = self.running.id;
        drop(if self.has_ended { pending.complete(running) } else { pending.orphan(running) });
        drop(pending);
        let (Some(params), Ok(runtime)) = (self.cancel.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let inner = Arc::clone(&self.inner);
        runtime.spawn(async move {
            let canceled = timeout(POST_WAIT, inner.own("tasks/cancel", &params)).await;
            tracing::debug!(?canceled, "a task was canceled");
        });
    }
}
