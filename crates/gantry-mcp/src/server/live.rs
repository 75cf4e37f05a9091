//! A request from its start to its answer, whatever the transport: what it says on the way, and the last word.

use super::{
    Handler, Reply, Server,
    outbox::Care,
    park,
    presence::Presence,
    running::{Next, Running},
};
use crate::{
    envelope::Id,
    exchange::{ClientRequest, ClientRequestError},
};
use std::sync::Arc;

/// A request that is under way, and what is needed to answer it.
pub(super) struct Live<H: Handler> {
    server: Server<H>,
    id: Id<'static>,
    running: Option<Box<Running>>,
    /// What it takes to let the request wait for its client; absent where that cannot happen.
    ticket: Option<Ticket<H::Identity>>,
}

/// Whose request it is, and which.
pub(super) struct Ticket<I> {
    pub(super) identity: I,
    pub(super) method: Box<str>,
    pub(super) params: Box<str>,
}

/// What is to be sent next.
#[derive(Debug)]
pub(super) enum Spoken {
    /// A message before the answer.
    Message(String, Care),
    /// The answer. Nothing follows.
    Last(Reply),
}

impl<H: Handler> Live<H> {
    pub(super) fn new(
        server: Server<H>,
        id: Id<'static>,
        running: Box<Running>,
        ticket: Option<Ticket<H::Identity>>,
    ) -> Self {
        Self { server, id, running: Some(running), ticket }
    }

    /// Who is there for it.
    pub(super) fn presence(&self) -> Option<Arc<Presence>> {
        self.running.as_ref().map(|running| Arc::clone(&running.caller.presence))
    }

    /// Tells the work that its client has withdrawn it.
    pub(super) fn cancel(&self) {
        if let Some(running) = &self.running {
            running.cancel();
        }
    }

    /// Lets the work go on whether its messages are taken or not: a client that does not read must not hold up what
    /// others wait for.
    pub(super) fn detach(&mut self) {
        if let Some(running) = &mut self.running {
            running.detach();
        }
    }

    /// Waits for what is to be sent next, pauses apart.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Spoken {
        loop {
            if let Some(spoken) = self.next_or_pause().await {
                return spoken;
            }
        }
    }

    /// Waits for what is to be sent next, for a transport whose streams can be taken up again; `None` if nothing will be
    /// said for a while.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next_or_pause(&mut self) -> Option<Spoken> {
        loop {
            let Some(running) = &mut self.running else { std::future::pending().await };
            match running.next().await {
                Next::Say(text, care) => return Some(Spoken::Message(text, care)),
                Next::Pause => return None,
                Next::Done(outcome) => {
                    return Some(Spoken::Last(self.server.reply(&self.id, &running.about, outcome)));
                }
                Next::Ask(questions) => {
                    if let Some(reply) = self.park(&questions) {
                        return Some(Spoken::Last(reply));
                    }
                }
            }
        }
    }

    /// The answer of a request that says nothing on the way.
    pub(super) async fn last(&mut self) -> Reply {
        loop {
            if let Spoken::Last(reply) = self.next().await {
                return reply;
            }
        }
    }

    /// Lets the request wait for its client; `None` if there is no room for that, and then it goes on without answers.
    fn park(&mut self, questions: &[ClientRequest]) -> Option<Reply> {
        let running = self.running.take()?;
        let caller = Arc::clone(&running.caller);
        let parked = match self.ticket.take() {
            Some(Ticket { identity, method, params }) => {
                self.server.inner.parks.park(identity, park::digest(&method, &params), *running)
            }
            None => Err(running),
        };
        match parked {
            Ok(state) => Some(Reply::ok(self.server.inner.about.questions(&self.id, questions, &state))),
            Err(running) => {
                tracing::warn!(
                    "a question was not asked: too many requests wait for their clients, or the server stops"
                );
                caller.outbox.answer(Err(ClientRequestError::Gone));
                self.running = Some(running);
                None
            }
        }
    }
}
