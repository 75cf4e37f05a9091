//! Who waits for what on one connection: requests under way, progress tokens, and how it all ends.
//!
//! Every link feeds what comes in to [`Dispatcher::receive`], with the request on whose stream it came where the
//! transport tells. Receiving never waits.

mod waiting;

use super::{
    limits::QUESTIONS,
    message::{self, Message, Named},
    types::{Failure, Target},
};
use crate::{
    ErrorObject,
    envelope::cut,
    exchange::{BoxFuture, ClientChannel},
};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use waiting::{Waiter, Waiting};

#[cfg(test)]
pub(super) use waiting::{ABANDONED, DOUBT, OWN_UNDER_WAY};
pub(super) use waiting::{Asker, Whose};

/// Sends messages that have no answer.
pub(super) trait Outbox: Send + Sync + Debug {
    /// Sends a message without waiting; what does not fit is dropped.
    fn post(&self, text: String);

    /// Sends a message and waits for its turn where that takes a while.
    fn deliver(&self, text: String) -> BoxFuture<'_, ()> {
        self.post(text);
        Box::pin(std::future::ready(()))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) target: Target,
    /// Whether the server may send requests: only those of the older era may.
    pub(super) may_ask: AtomicBool,
    pub(super) questions: Arc<Semaphore>,
    /// Questions that are open, by the server's id, so that it can withdraw them. Limit: [`QUESTIONS`].
    pub(super) open_questions: Mutex<BTreeMap<String, CancellationToken>>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    /// Limit: one per request under way above this layer.
    tokens: Mutex<BTreeMap<u64, Arc<dyn ClientChannel>>>,
    garbage: AtomicU64,
    /// Changes of tools, resources and prompts that wait for a slow receiver.
    pub(super) late_changes: [AtomicBool; 3],
    pub(super) over: CancellationToken,
    reason: OnceLock<String>,
}

impl Dispatcher {
    /// A dispatcher for a new link.
    pub(super) fn new(target: &Target) -> Arc<Self> {
        Arc::new(Self {
            target: target.clone(),
            may_ask: AtomicBool::new(false),
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            open_questions: Mutex::default(),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            tokens: Mutex::default(),
            garbage: AtomicU64::new(0),
            late_changes: Default::default(),
            over: CancellationToken::new(),
            reason: OnceLock::new(),
        })
    }

    /// Opens a request. `outbox` is where its withdrawal is told, if that is to be told at all.
    pub(super) fn register(
        self: &Arc<Self>,
        audience: Arc<dyn ClientChannel>,
        own: bool,
        outbox: Option<Arc<dyn Outbox>>,
    ) -> Result<Ticket, Failure> {
        let (reply, outcome) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let over = CancellationToken::new();
        let asker = Asker { audience: Arc::clone(&audience), over: over.clone() };
        let mut waiting = lock(&self.waiting);
        if waiting.has_ended() {
            return Err(Failure::Unavailable(self.why_ended()));
        }
        waiting.admit(id, own, Waiter { asker, reply }).map_err(|many| {
            Failure::Unavailable(format!("{many} are under way at {} already", self.target.name))
        })?;
        drop(waiting);
        Ok(Ticket { id, audience, outcome, over, outbox, dispatcher: Arc::clone(self) })
    }

    /// A token under which the server can report progress to this client.
    pub(super) fn progress_token(self: &Arc<Self>, audience: &Arc<dyn ClientChannel>) -> ProgressToken {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.tokens).insert(token, Arc::clone(audience));
        ProgressToken { token, dispatcher: Arc::clone(self) }
    }

    /// Who wants progress under this token.
    pub(super) fn progress_audience(&self, token: u64) -> Option<Arc<dyn ClientChannel>> {
        lock(&self.tokens).get(&token).cloned()
    }

    /// Requests of clients that are under way.
    pub(super) fn in_flight(&self) -> usize {
        lock(&self.waiting).in_flight()
    }

    /// Whom a message concerns that came on the stream of this request, or on one that tells nothing.
    pub(super) fn whose(&self, origin: Option<u64>) -> Whose {
        lock(&self.waiting).whose(origin)
    }

    /// Who is behind a request that is under way.
    pub(super) fn audience(&self, id: u64) -> Option<Arc<dyn ClientChannel>> {
        lock(&self.waiting).audience(id)
    }

    /// When a request of this session is over, if there is one under way.
    pub(super) fn end_of_one(&self, session: u64) -> Option<CancellationToken> {
        lock(&self.waiting).end_of_one(session)
    }

    /// The server works for this session from now on, also while no request is under way. Gives the name of that work
    /// for [`Self::work_is_over`]; without that the session counts until the connection ends.
    pub(super) fn work_goes_on(&self, session: u64) -> u64 {
        let work = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.waiting).keep(work, session);
        work
    }

    /// See [`Self::work_goes_on`].
    pub(super) fn work_is_over(&self, work: u64) {
        lock(&self.waiting).settle(work);
    }

    /// Takes what came in: one message or a batch of them.
    pub(super) fn receive(self: &Arc<Self>, text: &str, origin: Option<u64>, outbox: &Arc<dyn Outbox>) {
        self.trace(false, text);
        let Some(messages) = message::read(text) else { return self.received_garbage(text, origin) };
        for message in messages {
            match message {
                Message::Response { named, outcome } => self.resolve(named, origin, outcome),
                Message::Notification { method, params } => self.notified(&method, params, origin),
                Message::Request { id, method, params } => self.asked(id, &method, params, origin, outbox),
            }
        }
    }

    fn resolve(&self, named: Named, origin: Option<u64>, outcome: Result<&str, ErrorObject>) {
        let id = match (named, &outcome) {
            (Named::Request(id), _) => Some(id),
            // An error without an id is about the request on whose stream it came.
            (Named::Nothing, Err(_)) if origin.is_some() => origin,
            (Named::Nothing, Err(error)) => return self.refused_something(error),
            (Named::Nothing, Ok(_)) | (Named::Unknown, _) => None,
        };
        let waiter = id.and_then(|id| lock(&self.waiting).settle(id));
        let Some(waiter) = waiter else {
            tracing::debug!(server = %self.target.name, ?id, "an answer came that nobody waits for");
            return;
        };
        let outcome = match outcome {
            Ok(result) if result.starts_with('{') => Ok(result.to_owned()),
            Ok(_) => Err(Failure::Lost("the server answered with a result that is not an object".into())),
            Err(error) => Err(Failure::Answered(error)),
        };
        waiter.end(outcome);
    }

    /// An error came that does not say what it is about. The only request there is would wait in vain if it was that
    /// one; but it may as well have been a message that has no answer.
    fn refused_something(&self, error: &ErrorObject) {
        let only = lock(&self.waiting).only();
        match only {
            Some(id) => {
                let what = format!("the server sent an error that does not say to which request: {error}");
                self.fail(id, Failure::Lost(what));
            }
            None => {
                tracing::debug!(server = %self.target.name, %error, "an error came that names no request");
            }
        }
    }

    /// What is not a message is passed over, unless it was one before something broke it: then the request that it
    /// must have been about would wait in vain.
    fn received_garbage(&self, text: &str, origin: Option<u64>) {
        self.count_garbage(text);
        if message::is_broken(text)
            && let Some(id) = origin.or_else(|| lock(&self.waiting).only())
        {
            self.fail(id, Failure::Lost("the server sent a message that cannot be read".into()));
        }
    }

    /// Ends one request.
    pub(super) fn fail(&self, id: u64, failure: Failure) {
        let mut waiting = lock(&self.waiting);
        let waiter = match failure {
            Failure::Lost(_) => waiting.abandon(id),
            Failure::Answered(_) | Failure::Unavailable(_) | Failure::Canceled => waiting.settle(id),
        };
        drop(waiting);
        if let Some(waiter) = waiter {
            waiter.end(Err(failure));
        }
    }

    /// Ends all requests under way, because one of them lost its answer and nobody can tell which.
    pub(super) fn fail_all(&self, reason: &str) {
        let waiters = lock(&self.waiting).abandon_all();
        for waiter in waiters {
            waiter.end(Err(Failure::Lost(reason.to_owned())));
        }
    }

    /// Ends the connection. The first reason stays.
    pub(super) fn end(&self, reason: impl Into<String>) {
        let reason = self.reason.get_or_init(|| reason.into());
        lock(&self.waiting).end();
        self.fail_all(reason);
        self.over.cancel();
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.waiting).has_ended()
    }

    /// Waits for the end, and says why.
    pub(super) async fn ended(&self) -> String {
        self.over.cancelled().await;
        self.why_ended()
    }

    pub(super) fn why_ended(&self) -> String {
        self.reason.get().cloned().unwrap_or_else(|| "the connection is closed".into())
    }

    /// Shows a frame to whoever wants to see it.
    pub(super) fn trace(&self, sent: bool, text: &str) {
        if let Some(trace) = &self.target.trace {
            trace.frame(sent, text);
        }
    }

    /// Counts what is not a message, and logs it ever more rarely: some servers print a lot.
    pub(super) fn count_garbage(&self, text: &str) {
        let count = self.garbage.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let excerpt = cut(text, crate::limits::EXCERPT_CHARS);
            tracing::debug!(server = %self.target.name, count, excerpt, "the server sent what is not a message");
        }
    }
}

/// A request under way. Dropping it before its outcome is there withdraws the request.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: u64,
    pub(super) audience: Arc<dyn ClientChannel>,
    outcome: oneshot::Receiver<Result<String, Failure>>,
    over: CancellationToken,
    outbox: Option<Arc<dyn Outbox>>,
    dispatcher: Arc<Dispatcher>,
}

impl Ticket {
    /// Waits for the outcome.
    ///
    /// Cancel-safety: nothing is lost.
    pub(super) async fn outcome(&mut self) -> Result<String, Failure> {
        (&mut self.outcome).await.unwrap_or_else(|_| Err(Failure::Lost(self.dispatcher.why_ended())))
    }

    /// The request went out only now. `outbox` is where its withdrawal is told.
    pub(super) fn was_sent(&mut self, outbox: Option<Arc<dyn Outbox>>) {
        self.outbox = outbox;
    }

    /// Forgets the request without telling the server, which is done with it.
    pub(super) fn forget(&mut self) {
        self.outbox = None;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut waiting = lock(&self.dispatcher.waiting);
        let open = match self.outbox {
            Some(_) => waiting.abandon(self.id),
            None => waiting.forget(self.id),
        };
        drop(waiting);
        self.over.cancel();
        if let (Some(_), Some(outbox)) = (open, &self.outbox) {
            outbox.post(message::cancelled(self.id));
        }
    }
}

/// A progress token that is in use.
#[derive(Debug)]
pub(super) struct ProgressToken {
    pub(super) token: u64,
    dispatcher: Arc<Dispatcher>,
}

impl Drop for ProgressToken {
    fn drop(&mut self) {
        lock(&self.dispatcher.tokens).remove(&self.token);
    }
}

/// Locks; a panic elsewhere leaves these maps whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
