//! A request from its start to its response: its work, the messages that the client gets meanwhile, and the response.

use super::handler::{ForwardRequest, Handler, Outcome};
use super::outgoing::{Delivery, Outgoing};
use super::pending_input::ParkKey;
use super::request::{Operation, ResultKind};
use super::request_channel::RequestChannel;
use super::{Reply, Server};
use crate::ErrorObject;
use crate::envelope::Id;
use crate::error::code;
use crate::exchange::{BoxFuture, RequestContext};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

/// A request that is running, and what is needed to respond to it.
pub(super) struct RequestTask {
    pub(super) server: Server,
    pub(super) id: Id<'static>,
    /// `None` once the request was parked: it waits for input without this task.
    pub(super) running: Option<Box<RunningRequest>>,
    /// Finds the request again while it waits for input; absent where it cannot wait for any.
    pub(super) park_key: Option<ParkKey>,
}

pub(super) enum Next {
    Message(String, Delivery),
    /// Nothing will be sent for a while: a client that can resume its stream may be disconnected.
    Released,
    /// The response. Nothing follows.
    Response(Reply),
}

impl RequestTask {
    /// Cancels the work because the client has cancelled the request.
    pub(super) fn cancel(&self) {
        if let Some(running) = &self.running {
            running.cancel.cancel();
        }
    }

    /// Lets the work go on whether the transport takes its messages or not.
    pub(super) fn detach(&mut self) {
        if let Some(running) = &mut self.running {
            running.detach();
        }
    }

    /// Waits for the next thing to send.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            let Some(running) = &mut self.running else { std::future::pending().await };
            match running.next().await {
                Ok(Outgoing::Message(text, delivery)) => return Next::Message(text, delivery),
                Ok(Outgoing::Released) => return Next::Released,
                Ok(Outgoing::InputRequired(requests, responses)) => {
                    // A round that the work withdrew before it was sent needs no responses.
                    if responses.is_closed() {
                        continue;
                    }
                    let Some(running) = self.running.take() else { continue };
                    let parked = match self.park_key.take() {
                        Some(key) => {
                            self.server.inner.pending_inputs.park(key, running, &requests, responses)
                        }
                        None => Err(running),
                    };
                    match parked {
                        Ok(state) => {
                            let text = self.server.inner.writer.input_required(&self.id, &requests, &state);
                            return Next::Response(Reply::ok(text));
                        }
                        // The work goes on without responses.
                        Err(running) => self.running = Some(running),
                    }
                }
                Err(outcome) => return Next::Response(self.server.reply(&self.id, running, outcome)),
            }
        }
    }

    /// The response of a request whose client gets no messages before it.
    pub(super) async fn response(&mut self) -> Reply {
        loop {
            if let Next::Response(reply) = self.next().await {
                return reply;
            }
        }
    }
}

/// The work of a request. Dropping it drops the work.
pub(super) struct RunningRequest {
    work: Work,
    outcome: Option<Outcome>,
    pub(super) channel: Arc<RequestChannel>,
    cancel: CancellationToken,
    cancel_on_drop: Option<DropGuard>,
    pub(super) kind: ResultKind,
}

enum Work {
    /// Polled where its transport waits.
    Inline(BoxFuture<'static, Outcome>),
    Spawned(AbortOnDropHandle<Outcome>),
    Finished,
}

impl RunningRequest {
    pub(super) fn start(
        handler: Arc<dyn Handler>,
        operation: Operation,
        channel: Arc<RequestChannel>,
        cancel: CancellationToken,
    ) -> Box<Self> {
        let kind = operation.result_kind();
        // A legacy client that hangs up has not withdrawn its request.
        let cancel_on_drop = channel.version().is_modern().then(|| cancel.clone().drop_guard());
        let work = Work::Inline(Box::pin(run(handler, operation, Arc::clone(&channel), cancel.clone())));
        Box::new(Self { work, outcome: None, channel, cancel, cancel_on_drop, kind })
    }

    /// Waits for the next message. The error is the outcome, once no message is left.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped; inline work rests until the next call.
    async fn next(&mut self) -> Result<Outgoing, Outcome> {
        loop {
            if let Some(outgoing) = self.channel.outgoing.pop() {
                return Ok(outgoing);
            }
            if let Some(outcome) = self.outcome.take() {
                drop(self.cancel_on_drop.take().map(DropGuard::disarm));
                return Err(outcome);
            }
            tokio::select! {
                biased;
                outcome = self.work.wait() => {
                    self.work = Work::Finished;
                    self.outcome = Some(outcome);
                }
                outgoing = self.channel.outgoing.next() => return Ok(outgoing),
            }
        }
    }

    /// Spawns the work, because no transport waits for it for a while.
    pub(super) fn detach(&mut self) {
        self.work = match std::mem::replace(&mut self.work, Work::Finished) {
            Work::Inline(work) => Work::Spawned(AbortOnDropHandle::new(tokio::spawn(work))),
            work @ (Work::Spawned(_) | Work::Finished) => work,
        };
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        // The work first: it must not go on because a request to its client has failed.
        self.work = Work::Finished;
        self.channel.outgoing.close();
    }
}

impl Work {
    async fn wait(&mut self) -> Outcome {
        match self {
            Self::Inline(work) => work.await,
            Self::Spawned(task) => task.await.unwrap_or_else(|_stopped| {
                let message = "the request was stopped; it may have had an effect";
                Err(ErrorObject::new(code::INTERNAL_ERROR, message)).into()
            }),
            Self::Finished => std::future::pending().await,
        }
    }
}

/// Runs an operation. A handler that panics costs its own request and nothing else.
async fn run(
    handler: Arc<dyn Handler>,
    operation: Operation,
    channel: Arc<RequestChannel>,
    cancel: CancellationToken,
) -> Outcome {
    let work = async move {
        let version = channel.version();
        let context = RequestContext { client: Arc::clone(&channel) as _, cancel };
        match operation {
            Operation::List(kind) => handler.list(kind, version).await.into(),
            Operation::Call(call, meta) => handler.call_tool(*call, meta, version, context).await,
            Operation::Forward { method, params, meta, change } => {
                let result = handler.request(ForwardRequest { method, params, meta, context }).await;
                if let (Ok(_), Some(change)) = (&result, change) {
                    channel.apply(change);
                }
                result.map(Into::into).into()
            }
        }
    };
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!("the handler of an MCP request panicked");
        let message = "internal error; the call may have had an effect";
        Err(ErrorObject::new(code::INTERNAL_ERROR, message)).into()
    })
}
