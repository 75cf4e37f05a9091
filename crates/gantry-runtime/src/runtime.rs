//! The runtime: a few handles that the stages share, and the one way for a call to enter.

mod detach_on_drop;
mod dry_run;
mod explain;
mod lifecycle;
mod observer;
mod opening;
mod pool;
mod rebuild;
mod reconfigure;
mod resources;
mod setup;
mod sources;
mod upstreams;
mod view;

use crate::approvals::RunningGuard;
use crate::cache::Cache;
use crate::context::CallCx;
use crate::event::Events;
use crate::output_tool::OutputTool;
use crate::outputs::Outputs;
use crate::pipeline;
use crate::reply::Reply;
use crate::services::{Call, Running, Services};
use crate::session::{Session, Sessions};
use arc_swap::{ArcSwap, ArcSwapOption};
use detach_on_drop::DetachOnDrop;
pub use dry_run::{DryRun, Outcome};
pub use explain::Explanation;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::CallId;
use gantry_core::{CallRequest, Tool, Verdict};
use gantry_store::Store;
use rebuild::Upstreams;
use setup::Toolsets;
pub(crate) use setup::{Setup, State, unknown_agent};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why a runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tools of the project clash.
    #[error("{0}")]
    Pool(String),
    /// A tool names a queue that is not there.
    #[error("tool {tool} names queue {queue}, which is not configured; add it under queues")]
    UnknownQueue { tool: String, queue: String },
}

/// The governed pipeline and what it works on: a project, or the part of it that its active agent has for itself.
#[derive(Debug)]
pub struct Runtime {
    /// Tells the runtimes of a process apart.
    number: u64,
    project: Arc<str>,
    /// The agent that has this runtime for itself.
    active: Option<Arc<str>>,
    state: ArcSwap<State>,
    upstreams: Upstreams,
    toolsets: Toolsets,
    pub(crate) output_tool: Arc<Tool>,
    output_provider: Arc<OutputTool>,
    pub(crate) services: Arc<Services>,
    pub(crate) cache: Cache,
    pub(crate) outputs: Outputs,
    pub(crate) store: Store,
    pub(crate) events: Events,
    sessions: Sessions,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// The active agent, if it has its own runtime; sessions of that agent are refused here.
    elsewhere: ArcSwapOption<Relocation>,
}

/// A call that was let in; it counts as running from here on.
#[derive(Debug)]
pub struct Admitted(#[expect(dead_code, reason = "held for its end")] Running);

/// The agent that has a runtime for itself. Callers of that agent, and callers who name none, belong there; if it is
/// none, no caller belongs here any more.
#[derive(Debug)]
pub(crate) struct Relocation {
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) why: Arc<str>,
}

impl Runtime {
    /// Runs one call, to its end even if its caller is gone. One that is held is waited for.
    pub async fn call(self: &Arc<Self>, cx: CallCx, request: CallRequest) -> Reply {
        match self.enter(&cx) {
            Ok(entered) => {
                let reply = self.run(entered, cx.clone(), request).await;
                let reply = self.attend(&cx, reply).await;
                self.collect(&reply).await;
                reply
            }
            Err(refusal) => Reply::shed(cx.id, &refusal),
        }
    }

    /// Runs one call that was admitted, to its end even if its caller is gone. One that has to wait for a person or for
    /// its time is held, and the reply says so. The entry point that hands the reply to the caller confirms it by
    /// [`Self::collect`].
    pub async fn run(self: &Arc<Self>, entered: Admitted, cx: CallCx, request: CallRequest) -> Reply {
        DetachOnDrop::new(&self.tasks, Arc::clone(self).through(entered, cx, request)).await
    }

    /// Waits with the caller of a held call, by the best way there is to ask the person behind it. The reply is what came of
    /// it, or that it still waits. The reply of a call that is not held is returned as it is. The entry point that hands the
    /// reply to the caller confirms it by [`Self::collect`].
    pub async fn attend(self: &Arc<Self>, cx: &CallCx, reply: Reply) -> Reply {
        if !reply.is_held() {
            return reply;
        }
        DetachOnDrop::new(&self.tasks, Arc::clone(self).wait_for_decision(cx.clone(), reply)).await
    }

    /// Runs one call that was admitted and whose caller does not wait; it is found by its id.
    pub fn defer(self: &Arc<Self>, entered: Admitted, cx: CallCx, request: CallRequest) {
        self.tasks.spawn(Arc::clone(self).through(entered, cx, request));
    }

    /// Runs a held call; `running` is let go of when it has ended.
    pub(crate) fn resume(
        self: &Arc<Self>,
        entered: Admitted,
        cx: CallCx,
        request: CallRequest,
        running: RunningGuard,
    ) {
        let run = Arc::clone(self).through(entered, cx, request);
        self.tasks.spawn(async move {
            let reply = run.await;
            running.ended(&reply);
        });
    }

    /// What would be decided about a call. Nothing is run.
    pub(crate) async fn verdict(&self, cx: &CallCx, request: &CallRequest) -> Verdict {
        pipeline::verdict(self, cx, request).await
    }

    /// Ends when this runtime takes no more calls.
    pub(crate) async fn stopping(&self) {
        self.closing.cancelled().await;
    }

    /// Whether this runtime takes no more calls.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Lets a call in, unless there are too many or its session leaves. If it leaves, there may be another place for its
    /// caller.
    ///
    /// # Errors
    /// It was not let in, and nothing will run.
    pub fn enter(&self, cx: &CallCx) -> Result<Admitted, Refusal> {
        let call = self.counted(&cx.session, cx.cancel.clone());
        // Order: counted first, so that the eviction of its session either waits for the call or is seen here.
        let running = self.services.enter(cx.id, call, cx.parent.is_some())?;
        // A call below one that runs still belongs to it: its parent is waited for.
        let leaves = cx.session.leaves_because().filter(|_| cx.parent.is_none());
        if self.closing.is_cancelled() || leaves.is_some() {
            let why = leaves.as_deref().unwrap_or("Gantry is shutting down");
            let message = format!("{why}; nothing was run. Try again later.");
            return Err(Refusal::new(ErrorCode::UpstreamUnavailable, message));
        }
        Ok(Admitted(running))
    }

    /// Counts a request that is no tool call as running, for as long as it does.
    fn enter_request(&self, session: &Session) -> Result<Running, Refusal> {
        let cancel = session.cancellation().child_token();
        let running = self.services.enter(CallId::mint(), self.counted(session, cancel), false)?;
        if let Some(why) = session.leaves_because() {
            let message = format!("{why}; nothing was asked. Try again later.");
            return Err(Refusal::new(ErrorCode::UpstreamUnavailable, message));
        }
        Ok(running)
    }

    fn counted(&self, session: &Session, cancel: CancellationToken) -> Call {
        let principal = Arc::clone(&session.caller().principal);
        Call { cancel, principal, session: session.id(), runtime: self.number }
    }

    /// Takes a call through the pipeline; it counts as running until then.
    async fn through(self: Arc<Self>, entered: Admitted, cx: CallCx, request: CallRequest) -> Reply {
        let reply = pipeline::run(&self, &cx, &request).await;
        drop(entered);
        match &reply.approval {
            // The same request has ended, and no caller was given its outcome yet.
            Some(row) if row.state.is_over() && request.resumed.is_none() => {
                let row = (**row).clone();
                self.outcome(&cx, row).await
            }
            _ => reply,
        }
    }
}

#[cfg(test)]
mod tests;
