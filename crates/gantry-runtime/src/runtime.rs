//! The runtime: a few handles that the stages share, and the one way for a call to enter.

mod detach_on_drop;
mod dry_run;
mod explain;
mod lifecycle;
mod observer;
mod pool;
mod providers;
mod refresh;
mod resources;
mod servers;
mod sessions;
mod snapshot;
mod view;

use crate::approvals::RunningGuard;
use crate::cache::Cache;
use crate::context::PipelineContext;
use crate::event::Events;
use crate::output_tool::OutputTool;
use crate::outputs::Outputs;
use crate::pipeline;
use crate::reply::Reply;
use crate::serial_gate::SerialGate;
use crate::services::{Admitted, InFlightCall, Services};
use crate::session::Sessions;
use arc_swap::{ArcSwap, ArcSwapOption};
use detach_on_drop::DetachOnDrop;
pub use dry_run::{DryRun, Outcome};
pub use explain::Explanation;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::{CallRequest, Tool};
use gantry_provider::server::ServerGroup;
use gantry_store::Store;
pub(crate) use snapshot::{Snapshot, unknown_agent};
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
pub use view::{ListedTool, ToolProvider};

/// Why a runtime cannot start: providers or tools clash, or a tool names a queue that is not configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The governed pipeline and what it works on: a project, or the part of it that its active agent has for itself.
#[derive(Debug)]
pub struct Runtime {
    /// Tells the runtimes of a process apart.
    pub instance_id: u64,
    pub project: Arc<str>,
    /// The agent that has this runtime for itself.
    pub active: Option<Arc<str>>,
    snapshot: ArcSwap<Snapshot>,
    servers: Arc<dyn ServerGroup>,
    /// Entered by what replaces the snapshot.
    building: SerialGate,
    /// Woken when a provider has something else to offer.
    changed: Arc<Notify>,
    generation: watch::Sender<u64>,
    /// Until when callers wait for servers that start.
    discovery_deadline: Instant,
    pub(crate) output_tool: Arc<Tool>,
    output_provider: Arc<OutputTool>,
    pub(crate) services: Arc<Services>,
    pub(crate) cache: Cache,
    pub(crate) outputs: Outputs,
    pub store: Store,
    pub events: Events,
    pub(crate) sessions: Sessions,
    tasks: TaskTracker,
    /// Fires when this runtime takes no more calls.
    pub(crate) closing: CancellationToken,
    /// Fires before running calls are canceled at the end, so that no waiting call takes the place of a canceled one.
    pub(crate) canceling: CancellationToken,
    /// The active agent, if it has its own runtime; sessions of that agent are refused here.
    relocation: ArcSwapOption<Relocation>,
}

impl Drop for Runtime {
    /// Ends the tasks of a runtime whose start was given up.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// The agent that has a runtime for itself. Callers of that agent, and callers that name none, belong there; if it is
/// none, no caller belongs here any more.
#[derive(Debug)]
pub(crate) struct Relocation {
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) why: Arc<str>,
}

impl Runtime {
    /// Runs one call, to its end even if its caller is gone. One that is held is waited for.
    pub async fn call(self: &Arc<Self>, cx: PipelineContext, request: CallRequest) -> Reply {
        match self.enter(&cx) {
            Ok(entered) => {
                let reply = self.run(entered, cx.clone(), request).await;
                let reply = self.wait_if_held(&cx, reply).await;
                self.collect(&reply).await;
                reply
            }
            Err(refusal) => Reply::rejected_before_entry(cx.id, &refusal),
        }
    }

    /// Runs one call that was admitted, to its end even if its caller is gone. One that has to wait for a person or for
    /// its time is held, and the reply says so. The entry point that hands the reply to the caller confirms it by
    /// [`Self::collect`].
    pub async fn run(
        self: &Arc<Self>,
        entered: Admitted,
        cx: PipelineContext,
        request: CallRequest,
    ) -> Reply {
        DetachOnDrop::new(&self.tasks, Arc::clone(self).run_admitted(entered, cx, request)).await
    }

    /// Waits with the caller of a held call, by the best way there is to ask the person behind it. The reply is what came of
    /// it, or that it still waits. The reply of a call that is not held is returned as it is. The entry point that hands the
    /// reply to the caller confirms it by [`Self::collect`].
    pub async fn wait_if_held(self: &Arc<Self>, cx: &PipelineContext, reply: Reply) -> Reply {
        if !reply.is_held() {
            return reply;
        }
        DetachOnDrop::new(&self.tasks, Arc::clone(self).wait_for_decision(cx.clone(), reply)).await
    }

    /// Runs one call that was admitted and whose caller does not wait; it is found by its id.
    pub fn defer(self: &Arc<Self>, entered: Admitted, cx: PipelineContext, request: CallRequest) {
        self.tasks.spawn(Arc::clone(self).run_admitted(entered, cx, request));
    }

    /// Runs a held call; `running` is let go of when it has ended.
    pub(crate) fn resume(
        self: &Arc<Self>,
        entered: Admitted,
        cx: PipelineContext,
        request: CallRequest,
        running: RunningGuard,
    ) {
        let run = Arc::clone(self).run_admitted(entered, cx, request);
        self.tasks.spawn(async move {
            let reply = run.await;
            running.ended(&reply);
        });
    }

    /// Lets a call in, unless there are too many or its session leaves. If it leaves, there may be another place for its
    /// caller.
    pub fn enter(&self, cx: &PipelineContext) -> Result<Admitted, Refusal> {
        let call = InFlightCall {
            id: cx.id,
            cancel: cx.cancel.clone(),
            principal: Arc::clone(&cx.caller().principal),
            session: cx.session.id(),
            runtime: self.instance_id,
        };
        // Order: counted first, so that the eviction of its session either waits for the call or is seen here.
        let admitted = self.services.enter(call, cx.parent.is_some())?;
        // A call below one that runs still belongs to it: its parent is waited for.
        let leaves = cx.session.eviction_reason().filter(|_| cx.parent.is_none());
        if self.closing.is_cancelled() || leaves.is_some() {
            let why = leaves.as_deref().unwrap_or("Gantry is shutting down");
            let message = format!("{why}; nothing was run. Try again later.");
            return Err(Refusal::new(ErrorCode::UpstreamUnavailable, message));
        }
        Ok(admitted)
    }

    /// Takes a call through the pipeline; it counts as running until then.
    async fn run_admitted(
        self: Arc<Self>,
        entered: Admitted,
        cx: PipelineContext,
        request: CallRequest,
    ) -> Reply {
        let reply = pipeline::run(&self, &cx, &request).await;
        drop(entered);
        match &reply.approval {
            // The same request has ended, and no caller was given its outcome yet.
            Some(row) if row.state.is_over() && request.resumed.is_none() => {
                let row = (**row).clone();
                // Boxed, so that other calls do not carry its state.
                Box::pin(self.outcome(&cx, row)).await
            }
            _ => reply,
        }
    }
}

#[cfg(test)]
mod tests;
