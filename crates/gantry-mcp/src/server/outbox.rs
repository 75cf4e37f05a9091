//! Between the audience of a request and its transport: what is to be said, in order and bounded.

use crate::{
    exchange::{ClientRequest, ClientRequestError, ClientResponse},
    limits::{OUTBOX_BYTES, OUTBOX_MESSAGES},
};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, oneshot};

/// What comes of questions.
pub(super) type Answers = Result<Vec<ClientResponse>, ClientRequestError>;

/// What is to be said to the client of one request.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    // Invariant: never held across an await.
    state: Mutex<State>,
    changed: Notify,
}

/// Whether a message may get lost on the way to a client that reads too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// No caller waits for the outcome.
    MayDrop,
    /// Somebody does.
    MustArrive,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<(String, Care)>,
    bytes: usize,
    round: Option<Round>,
    released: bool,
}

/// Questions that were asked together, until they are answered.
#[derive(Debug)]
struct Round {
    questions: Vec<ClientRequest>,
    answers: oneshot::Sender<Answers>,
    told: bool,
}

/// One thing to say.
#[derive(Debug)]
pub(super) enum Said {
    /// A message of JSON-RPC.
    Message(String, Care),
    /// Questions that cannot be sent as messages of their own.
    Questions(Vec<ClientRequest>),
    /// Nothing will be said for a while.
    Released,
}

impl Outbox {
    /// Says something, unless too much waits already.
    pub(super) fn tell(&self, message: String) {
        let mut state = self.lock();
        if state.messages.len() >= OUTBOX_MESSAGES || state.bytes + message.len() > OUTBOX_BYTES {
            tracing::debug!("a notification was dropped: the client takes them too slowly");
            return;
        }
        state.push(message, Care::MayDrop);
        drop(state);
        self.changed.notify_one();
    }

    /// Says something that must not get lost; the caller bounds how much of it there can be.
    pub(super) fn insist(&self, message: String) {
        self.lock().push(message, Care::MustArrive);
        self.changed.notify_one();
    }

    /// Says that nothing will be said for a while.
    pub(super) fn release(&self) {
        self.lock().released = true;
        self.changed.notify_one();
    }

    /// Asks something. Only one round is open at a time; the caller sees to that.
    pub(super) fn ask(&self, questions: Vec<ClientRequest>) -> oneshot::Receiver<Answers> {
        let (answers, answered) = oneshot::channel();
        self.lock().round = Some(Round { questions, answers, told: false });
        self.changed.notify_one();
        answered
    }

    /// The questions that somebody still waits for.
    pub(super) fn open_questions(&self) -> Vec<ClientRequest> {
        let state = self.lock();
        let open = state.round.as_ref().filter(|round| !round.answers.is_closed());
        open.map(|round| round.questions.clone()).unwrap_or_default()
    }

    /// Answers the open questions; `false` if nobody waits for that any more.
    pub(super) fn answer(&self, answers: Answers) -> bool {
        let round = self.lock().round.take();
        round.is_some_and(|round| round.answers.send(answers).is_ok())
    }

    /// The next thing to say.
    pub(super) fn take(&self) -> Option<Said> {
        let mut state = self.lock();
        if let Some((message, care)) = state.messages.pop_front() {
            state.bytes -= message.len();
            return Some(Said::Message(message, care));
        }
        if std::mem::take(&mut state.released) {
            return Some(Said::Released);
        }
        let round = state.round.as_mut().filter(|round| !round.told && !round.answers.is_closed())?;
        round.told = true;
        Some(Said::Questions(round.questions.clone()))
    }

    /// Waits until there may be something to say.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A thread that panicked inside left the state whole: every change to it is one call.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, message: String, care: Care) {
        self.bytes += message.len();
        self.messages.push_back((message, care));
    }
}

/// Takes the answers to questions from what a client sent for them; `None` if one is missing or is no object.
pub(super) fn matched(questions: &[ClientRequest], responses: &str) -> Option<Vec<ClientResponse>> {
    let responses = crate::raw::members(responses)?;
    let answer = |question: &ClientRequest| {
        let (_, value) = responses.iter().find(|(key, _)| *key == question.key)?;
        value.starts_with('{').then(|| Ok((*value).to_owned()))
    };
    questions.iter().map(answer).collect()
}
