//! Tools of the older era that can only be called as tasks: started, looked at until they are done, and fetched.

use super::{
    core::{Ask, Core},
    limits::{POLL, POLL_DEFAULT},
    types::Failure,
};
use crate::raw;
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

impl Core {
    /// Calls a tool as a task, as if it were a plain call.
    pub(super) async fn ask_as_task(self: &Arc<Self>, ask: Ask<'_>) -> Result<String, Failure> {
        // The task also runs between two looks at it, and what it asks or logs then is its client's.
        let work = ask.audience.map(|audience| self.dispatcher().work_goes_on(audience.session()));
        let outcome = self.run_task(ask).await;
        if let (Some(work), Ok(_) | Err(Failure::Answered(_) | Failure::Unavailable(_))) = (work, &outcome) {
            self.dispatcher().work_is_over(work);
        }
        outcome
    }

    async fn run_task(self: &Arc<Self>, ask: Ask<'_>) -> Result<String, Failure> {
        let params = raw::with(ask.params, "task", "{}");
        let started = self.ask(Ask { params: &params, ..ask }).await?;
        let Some(task) = raw::member(&started, "task").filter(|task| task.starts_with('{')) else {
            return Ok(started);
        };
        let Some(id) = raw::member(task, "taskId") else {
            return Err(Failure::Lost("the server started a task without an id".into()));
        };
        let guard = TaskGuard { core: Arc::clone(self), params: Some(raw::object([("taskId", id)])) };
        let outcome = self.finish_task(ask, id, task.to_owned()).await;
        if !matches!(outcome, Err(Failure::Canceled)) {
            guard.forget();
        }
        outcome
    }

    async fn finish_task(&self, ask: Ask<'_>, id: &str, mut task: String) -> Result<String, Failure> {
        let params = raw::object([("taskId", id)]);
        let about_task = Ask { params: &params, meta: None, token: None, ..ask };
        // A task that is done, or that wants to ask something, is answered by its result.
        while raw::string_member(&task, "status")
            .is_some_and(|status| matches!(&*status, "working" | "submitted"))
        {
            tokio::select! {
                () = ask.cancel.cancelled() => return Err(Failure::Canceled),
                () = sleep(pause(&task)) => {}
            }
            task = self.ask(Ask { method: "tasks/get", ..about_task }).await.map_err(once_sent)?;
        }
        self.ask(Ask { method: "tasks/result", ..about_task }).await.map_err(once_sent)
    }
}

/// Once a task or a first round was sent, what cannot be asked any more is unknown, not undone.
pub(super) fn once_sent(failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable(reason) => Failure::Lost(reason),
        Failure::Answered(_) | Failure::Lost(_) | Failure::Canceled => failure,
    }
}

fn pause(task: &str) -> Duration {
    let millis = raw::member(task, "pollInterval").and_then(|interval| interval.parse().ok());
    millis.map_or(POLL_DEFAULT, Duration::from_millis).clamp(POLL[0], POLL[1])
}

/// Cancels a task that nobody waits for any more.
struct TaskGuard {
    core: Arc<Core>,
    params: Option<String>,
}

impl TaskGuard {
    fn forget(mut self) {
        self.params = None;
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        let (Some(params), Ok(runtime)) = (self.params.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let core = Arc::clone(&self.core);
        runtime.spawn(async move {
            let canceled = timeout(super::limits::POST_WAIT, core.own("tasks/cancel", &params)).await;
            tracing::debug!(?canceled, "a task was canceled");
        });
    }
}
