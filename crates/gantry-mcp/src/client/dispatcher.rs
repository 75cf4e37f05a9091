//! Who waits for what on one connection: requests under way, progress tokens, and how it all ends.
//!
//! Every link feeds what comes in to [`Dispatcher::receive`], with the request on whose stream it came where the
//! transport tells. Receiving never waits.

use super::{
    limits::{QUESTIONS, UNDER_WAY},
    message::{self, Message},
    types::{Failure, Target},
};
use crate::{ErrorObject, envelope::cut, exchange::Audience};
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

/// Sends a message that nobody waits for. It never waits; what does not fit is dropped.
pub(super) trait Outbox: Send + Sync + Debug {
    /// Sends it.
    fn post(&self, text: String);
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
    tokens: Mutex<BTreeMap<u64, Arc<dyn Audience>>>,
    garbage: AtomicU64,
    /// Changes of tools, resources and prompts that wait for a slow receiver.
    pub(super) late_changes: [AtomicBool; 3],
    pub(super) over: CancellationToken,
    reason: OnceLock<String>,
}

#[derive(Debug, Default)]
struct Waiting {
    ended: bool,
    requests: BTreeMap<u64, Waiter>,
}

#[derive(Debug)]
struct Waiter {
    asker: Asker,
    reply: oneshot::Sender<Result<String, Failure>>,
}

/// The client behind a request that is under way.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub(super) audience: Arc<dyn Audience>,
    /// The request is Gantry's own: it is no part of anybody's session.
    pub(super) own: bool,
    /// Fires when the request is over.
    pub(super) over: CancellationToken,
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
        audience: Arc<dyn Audience>,
        own: bool,
        outbox: Option<Arc<dyn Outbox>>,
    ) -> Result<Ticket, Failure> {
        let (reply, outcome) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let over = CancellationToken::new();
        let mut waiting = lock(&self.waiting);
        if waiting.ended {
            return Err(Failure::Unavailable(self.why_ended()));
        }
        if waiting.requests.len() >= UNDER_WAY {
            let name = &self.target.name;
            return Err(Failure::Unavailable(format!(
                "{UNDER_WAY} requests are under way at {name} already"
            )));
        }
        let asker = Asker { audience: Arc::clone(&audience), own, over: over.clone() };
        waiting.requests.insert(id, Waiter { asker, reply });
        Ok(Ticket { id, audience, outcome, over, outbox, dispatcher: Arc::clone(self) })
    }

    /// A token under which the server can report progress to this client.
    pub(super) fn progress_token(self: &Arc<Self>, audience: &Arc<dyn Audience>) -> ProgressToken {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.tokens).insert(token, Arc::clone(audience));
        ProgressToken { token, dispatcher: Arc::clone(self) }
    }

    /// Who wants progress under this token.
    pub(super) fn progress_audience(&self, token: u64) -> Option<Arc<dyn Audience>> {
        lock(&self.tokens).get(&token).cloned()
    }

    /// Requests of clients that are under way.
    pub(super) fn in_flight(&self) -> usize {
        lock(&self.waiting).requests.values().filter(|waiter| !waiter.asker.own).count()
    }

    /// For whom a message came: for the request on whose stream it came, or else for the only session that has
    /// requests under way. With several sessions nobody can tell, and it is for none.
    pub(super) fn asker(&self, origin: Option<u64>) -> Option<Asker> {
        let waiting = lock(&self.waiting);
        if let Some(id) = origin {
            return waiting.requests.get(&id).map(|waiter| waiter.asker.clone());
        }
        let mut askers = waiting.requests.values().map(|waiter| &waiter.asker).filter(|asker| !asker.own);
        let last = askers.next_back()?;
        let session = last.audience.session();
        askers.all(|asker| asker.audience.session() == session).then(|| last.clone())
    }

    /// Takes what came in: one message or a batch of them.
    pub(super) fn receive(self: &Arc<Self>, text: &str, origin: Option<u64>, outbox: &Arc<dyn Outbox>) {
        self.trace(false, text);
        let Some(messages) = message::read(text) else { return self.received_garbage(text, origin) };
        for message in messages {
            match message {
                Message::Response { id, outcome } => self.resolve(id, origin, outcome),
                Message::Notification { method, params } => self.notified(&method, params, origin),
                Message::Request { id, method, params } => self.asked(id, &method, params, origin, outbox),
            }
        }
    }

    fn resolve(&self, id: Option<u64>, origin: Option<u64>, outcome: Result<&str, ErrorObject>) {
        let mut waiting = lock(&self.waiting);
        // An error without an id is about the request on whose stream it came, or about the only one there is.
        let only =
            || (waiting.requests.len() == 1).then(|| waiting.requests.keys().next().copied()).flatten();
        let waiter = id.or(origin).or_else(only).and_then(|id| waiting.requests.remove(&id));
        drop(waiting);
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
        let waiter = lock(&self.waiting).requests.remove(&id);
        if let Some(waiter) = waiter {
            waiter.end(Err(failure));
        }
    }

    /// Ends all requests under way, because one of them lost its answer and nobody can tell which.
    pub(super) fn fail_all(&self, reason: &str) {
        let requests = std::mem::take(&mut lock(&self.waiting).requests);
        for waiter in requests.into_values() {
            waiter.end(Err(Failure::Lost(reason.to_owned())));
        }
    }

    /// Ends the connection. The first reason stays.
    pub(super) fn end(&self, reason: impl Into<String>) {
        let reason = self.reason.get_or_init(|| reason.into());
        lock(&self.waiting).ended = true;
        self.fail_all(reason);
        self.over.cancel();
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
            let excerpt = cut(text, crate::limits::ECHO_CHARS);
            tracing::debug!(server = %self.target.name, count, excerpt, "the server sent what is not a message");
        }
    }
}

impl Waiting {
    /// The only request under way: the only one of a client, or else the only one of Gantry's own.
    fn only(&self) -> Option<u64> {
        let those = |own: bool| self.requests.iter().filter(move |(_, waiter)| waiter.asker.own == own);
        let mut those = if those(false).next().is_some() { those(false) } else { those(true) };
        those.next().filter(|_| those.next().is_none()).map(|(id, _)| *id)
    }
}

impl Waiter {
    fn end(self, outcome: Result<String, Failure>) {
        let heard = self.reply.send(outcome).is_ok();
        tracing::trace!(heard, "a request is over");
        self.asker.over.cancel();
    }
}

/// A request under way. Dropping it before its outcome is there withdraws the request.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: u64,
    pub(super) audience: Arc<dyn Audience>,
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

    /// Forgets the request without telling the server.
    pub(super) fn forget(&mut self) {
        self.outbox = None;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.over.cancel();
        let open = lock(&self.dispatcher.waiting).requests.remove(&self.id).is_some();
        if let (true, Some(outbox)) = (open, &self.outbox) {
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
