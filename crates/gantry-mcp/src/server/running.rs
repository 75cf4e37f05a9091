//! A request that is under way: its work, what it says meanwhile, and what came of it.

use super::{
    caller::Caller,
    handler::Answer,
    outbox::{Care, Said},
};
use crate::{
    ErrorObject, Version,
    client::ListKind,
    error::code,
    exchange::{BoxFuture, Capabilities, ClientRequest, ForwardMethod},
};
use std::sync::Arc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};

/// What a request is about, as far as its answer is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    List(ListKind),
    Call,
    Other(ForwardMethod),
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Done {
    /// A whole list, the text of an array.
    List(Arc<str>),
    /// A result.
    Answer(Answer),
}

pub(super) type Outcome = Result<Done, ErrorObject>;

/// What a request does next.
#[derive(Debug)]
pub(super) enum Next {
    /// It says this.
    Say(String, Care),
    /// It has nothing to say for a while.
    Pause,
    /// It needs answers to go on.
    Ask(Vec<ClientRequest>),
    /// It has ended.
    Done(Outcome),
}

/// A request that is under way. Dropping it drops its work.
pub(super) struct Running {
    work: Work,
    outcome: Option<Outcome>,
    pub(super) caller: Arc<Caller>,
    cancel: CancellationToken,
    hang_up: Option<DropGuard>,
    pub(super) about: Subject,
}

/// What has to be known of a request to write its answer.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) topic: Topic,
    pub(super) version: Version,
    pub(super) capabilities: Arc<Capabilities>,
}

enum Work {
    /// It is polled where its transport waits.
    Here(BoxFuture<'static, Outcome>),
    /// It goes on by itself.
    Away(AbortOnDropHandle<Outcome>),
    Over,
}

impl Running {
    pub(super) fn new(
        work: BoxFuture<'static, Outcome>,
        caller: Arc<Caller>,
        cancel: CancellationToken,
        about: Subject,
    ) -> Self {
        Self { work: Work::Here(work), outcome: None, caller, cancel, hang_up: None, about }
    }

    /// From now on, dropping this tells the work that its client has withdrawn it.
    pub(super) fn cancel_on_drop(mut self) -> Self {
        self.hang_up = Some(self.cancel.clone().drop_guard());
        self
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits for what comes next.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped; the work rests until the next call.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            match self.caller.outbox.take() {
                Some(Said::Message(text, care)) => return Next::Say(text, care),
                Some(Said::Questions(questions)) => return Next::Ask(questions),
                Some(Said::Released) => return Next::Pause,
                None => {}
            }
            if let Some(outcome) = self.outcome.take() {
                drop(self.hang_up.take().map(DropGuard::disarm));
                return Next::Done(outcome);
            }
            tokio::select! {
                biased;
                outcome = self.work.wait() => {
                    self.work = Work::Over;
                    self.outcome = Some(outcome);
                }
                () = self.caller.outbox.changed() => {}
            }
        }
    }

    /// Lets the work go on by itself, because nobody waits for it here for a while.
    pub(super) fn detach(&mut self) {
        self.work = match std::mem::replace(&mut self.work, Work::Over) {
            Work::Here(work) => Work::Away(AbortOnDropHandle::new(tokio::spawn(work))),
            work @ (Work::Away(_) | Work::Over) => work,
        };
    }
}

impl Work {
    async fn wait(&mut self) -> Outcome {
        match self {
            Self::Here(work) => work.await,
            Self::Away(task) => task.await.unwrap_or_else(|_stopped| {
                Err(ErrorObject::new(
                    code::INTERNAL_ERROR,
                    "the request was stopped; it may have had an effect",
                ))
            }),
            Self::Over => std::future::pending().await,
        }
    }
}
