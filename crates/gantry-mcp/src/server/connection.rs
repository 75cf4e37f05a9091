//! A client with a connection of its own that carries messages both ways: stdio, HTTP+SSE, WebSocket.
//!
//! What changes the connection (a handshake, a cancel, an answer to a question) is done while reading, in the order of
//! the messages; what takes time runs in tasks. Both eras may be spoken on one connection, and share its one session.

use super::{
    Handler, Lane, Live, Peer, Server, Step, Work,
    caller::Habits,
    flight::{Flight, Flights, too_many},
    lane::Reach,
    legacy,
    listen::{Listening, Wanted},
    live::Spoken,
    modern,
    news::{News, Wants},
    no_batches,
    params::Params,
    request::Job,
    start::ModernClient,
};
use crate::{
    ErrorObject, Version,
    envelope::{self, Id, Incoming, Message, Request, failure},
    exchange::Capabilities,
    limits::{
        CONNECTION_LISTENS, MESSAGES_WAITING, STDIO_ANSWERS_WAITING, STDIO_DRAIN, STDIO_IN_FLIGHT,
        STDIO_LAST_WORDS,
    },
};
use futures_util::stream::{Stream, StreamExt as _, unfold};
use std::{pin::pin, sync::Arc};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

impl<H: Handler> Server<H> {
    /// Opens a connection whose messages the caller carries: what it sends is read, what it receives is to be passed on.
    /// Dropping the sender ends the input, dropping the receiver the connection. `None` if too many are open already.
    #[must_use]
    pub fn connect(&self, identity: H::Identity) -> Option<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<String>)> {
        let place = Arc::clone(&self.inner.connections).try_acquire_owned().ok()?;
        let (messages, incoming) = mpsc::channel(MESSAGES_WAITING);
        let (answers, outgoing) = mpsc::channel(STDIO_ANSWERS_WAITING);
        let incoming = unfold(incoming, |mut incoming: mpsc::Receiver<Vec<u8>>| async move {
            Some((incoming.recv().await?, incoming))
        });
        let server = self.clone();
        self.in_background(async move {
            server.serve_messages(identity, incoming, answers).await;
            drop(place);
        });
        Some((messages, outgoing))
    }

    /// Serves one client until its messages end or nobody takes answers any more, then waits a little for what is still
    /// running. Each item of `incoming` is one message; `outgoing` gets one message at a time.
    ///
    /// Dropping the future ends the connection at once; its session is still closed. `incoming` must not lose anything
    /// when its `next` is dropped.
    pub async fn serve_messages(
        &self,
        identity: H::Identity,
        incoming: impl Stream<Item = Vec<u8>> + Send,
        outgoing: mpsc::Sender<String>,
    ) {
        let mut connection = Connection::new(self.clone(), identity, outgoing);
        connection.read(incoming).await;
        connection.drain().await;
        connection.close().await;
    }
}

/// One connection.
pub(super) struct Connection<H: Handler> {
    server: Server<H>,
    identity: H::Identity,
    answers: mpsc::Sender<String>,
    /// The session, from the first request that needs one.
    session: Option<Arc<H::Session>>,
    /// What `initialize` has led to.
    lane: Option<Arc<Lane<H>>>,
    /// What happens apart from requests, from the handshake on.
    news: Option<News<H>>,
    number: u64,
    flights: Flights,
    /// Room for requests and batches until the client can have their answers.
    slots: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    /// Fires when nothing more is read.
    closing: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

/// The other side does not read answers any more, or nothing more is to be said to it.
struct Deaf;

impl<H: Handler> Connection<H> {
    pub(super) fn new(server: Server<H>, identity: H::Identity, answers: mpsc::Sender<String>) -> Self {
        Self {
            number: server.number(),
            closing: server.inner.hang_up.child_token(),
            server,
            identity,
            answers,
            session: None,
            lane: None,
            news: None,
            flights: Flights::new(STDIO_IN_FLIGHT),
            slots: Arc::new(Semaphore::new(STDIO_IN_FLIGHT)),
            listens: Arc::new(Semaphore::new(CONNECTION_LISTENS)),
            tasks: JoinSet::new(),
        }
    }

    /// Handles messages until they end or nobody listens any more.
    pub(super) async fn read(&mut self, incoming: impl Stream<Item = Vec<u8>>) {
        let mut incoming = pin!(incoming);
        loop {
            // What has ended would otherwise be kept as long as the connection.
            while self.tasks.try_join_next().is_some() {}
            let news = async {
                match &mut self.news {
                    Some(news) => news.next().await,
                    None => std::future::pending().await,
                }
            };
            let handled = tokio::select! {
                message = incoming.next() => match message {
                    Some(message) => self.message(message).await,
                    None => return,
                },
                text = news => self.answer(text).await,
                () = self.answers.closed() => return,
                () = self.closing.cancelled() => return,
            };
            if let Err(Deaf) = handled {
                return;
            }
        }
    }

    async fn message(&mut self, message: Vec<u8>) -> Result<(), Deaf> {
        if message.trim_ascii().is_empty() {
            return Ok(());
        }
        match envelope::read(&message) {
            Ok(Incoming::One(Message::Request(request))) => self.request(request).await,
            Ok(Incoming::One(Message::Notification(notification))) => {
                if let Some(id) = legacy::withdrawn(&notification) {
                    self.flights.withdraw(&id);
                }
                Ok(())
            }
            Ok(Incoming::One(message @ Message::Response(_))) => {
                match &self.lane {
                    Some(lane) => self.server.take(lane, &message),
                    None => self.server.ignore(),
                }
                Ok(())
            }
            Ok(Incoming::Batch(_)) => self.batch(message).await,
            Err(rejection) => self.answer(rejection.answer()).await,
        }
    }

    async fn request(&mut self, request: Request<'_>) -> Result<(), Deaf> {
        let params = match Params::read(request.params) {
            Ok(params) => params,
            Err(error) => return self.answer(failure(Some(&request.id), &error)).await,
        };
        if modern::speaks(&request.method, &params, None) {
            let step = self.server.modern_step(&self.identity, &request, &params, None);
            return match step {
                Step::Answer(reply) => self.answer(reply.text).await,
                Step::Run(Work::Job(job)) => self.run_modern(job, &request.method, &params).await,
                Step::Run(Work::Listen(id, wanted)) => self.listen(id, wanted, &params).await,
            };
        }
        let Some(lane) = self.lane.clone() else {
            if request.method == "initialize" {
                return self.initialize(&request, &params).await;
            }
            return self.answer(legacy::before_handshake(&request).text).await;
        };
        match self.server.legacy_step(&self.identity, &lane, request, &params) {
            Step::Answer(reply) => self.answer(reply.text).await,
            Step::Run(job) => self.run_legacy(&lane, job).await,
        }
    }

    async fn initialize(&mut self, request: &Request<'_>, params: &Params<'_>) -> Result<(), Deaf> {
        let changes = self.server.inner.handler.changes();
        let lane = match self.handshake(params).await {
            Ok(lane) => Arc::new(lane),
            Err(error) => return self.answer(failure(Some(&request.id), &error)).await,
        };
        let features = self.server.inner.handler.features(&self.identity);
        let wants = Wants::Session { habits: Arc::clone(&lane.habits), features };
        self.news = Some(News::new(self.server.clone(), Arc::clone(&lane.session), changes, wants));
        let welcome = self.server.welcome(&self.identity, &request.id, lane.version).text;
        self.lane = Some(lane);
        self.answer(welcome).await
    }

    async fn handshake(&mut self, params: &Params<'_>) -> Result<Lane<H>, ErrorObject> {
        let version = Version::negotiate(&params.asked_version()?);
        let capabilities = Arc::new(params.declared());
        let session = self.session(version, params, &capabilities).await?;
        let logging = self.server.inner.handler.features(&self.identity).logging;
        Ok(Lane {
            session,
            version,
            flights: self.flights.clone(),
            capabilities,
            number: self.number,
            questions: Arc::default(),
            habits: Arc::new(Habits::new(logging)),
        })
    }

    /// The session of this connection, opened if it is the first time that one is needed.
    async fn session(
        &mut self,
        version: Version,
        params: &Params<'_>,
        capabilities: &Capabilities,
    ) -> Result<Arc<H::Session>, ErrorObject> {
        if let Some(session) = &self.session {
            return Ok(Arc::clone(session));
        }
        let peer = Peer { identity: &self.identity, version, client: params.client(), capabilities };
        let session = self.server.inner.handler.open(peer).await?;
        self.session = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn run_legacy(&mut self, lane: &Arc<Lane<H>>, job: Job) -> Result<(), Deaf> {
        let (slot, flight) = match self.begin(&job.id) {
            Ok(begun) => begun,
            Err(error) => return self.answer(failure(Some(&job.id), &error)).await,
        };
        let caller = lane.caller(Reach::Open, job.wishes.clone());
        let live = self.server.live(lane, job, caller, flight.token());
        self.tasks.spawn(carry(live, flight, self.answers.clone(), slot));
        Ok(())
    }

    async fn run_modern(&mut self, job: Job, method: &str, params: &Params<'_>) -> Result<(), Deaf> {
        let capabilities = Arc::new(params.declared_here());
        let session = match self.session(job.version, params, &capabilities).await {
            Ok(session) => session,
            Err(error) => return self.answer(failure(Some(&job.id), &error)).await,
        };
        let (slot, flight) = match self.begin(&job.id) {
            Ok(begun) => begun,
            Err(error) => return self.answer(failure(Some(&job.id), &error)).await,
        };
        let client = ModernClient {
            identity: &self.identity,
            capabilities,
            number: self.number,
            cancel: flight.token(),
        };
        match self.server.modern_live(&session, job, method, params, client) {
            Ok(live) => {
                self.tasks.spawn(carry(live, flight, self.answers.clone(), slot));
                Ok(())
            }
            Err(reply) => self.answer(reply.text).await,
        }
    }

    async fn listen(&mut self, id: Id<'static>, wanted: Wanted, params: &Params<'_>) -> Result<(), Deaf> {
        let capabilities = params.declared_here();
        let session = match self.session(Version::MODERN, params, &capabilities).await {
            Ok(session) => session,
            Err(error) => return self.answer(failure(Some(&id), &error)).await,
        };
        let Ok(place) = Arc::clone(&self.listens).try_acquire_owned() else {
            let message =
                format!("a connection listens at most {CONNECTION_LISTENS} times; cancel one first");
            return self.answer(failure(Some(&id), &ErrorObject::invalid_request(message))).await;
        };
        let flight = match self.flights.begin(&id) {
            Ok(flight) => flight,
            Err(error) => return self.answer(failure(Some(&id), &error)).await,
        };
        let (server, stop, answers) = (self.server.clone(), self.closing.clone(), self.answers.clone());
        self.tasks.spawn(async move {
            let withdrawn = flight.token();
            let listening = async {
                let mut listening = Listening::begin(server, session, id, wanted, stop).await;
                while let Some(text) = listening.next().await {
                    send(&answers, text).await;
                }
            };
            // Withdrawn or not, what was watched is given back when the future is dropped.
            if withdrawn.run_until_cancelled(listening).await.is_none() {
                tracing::debug!("a client no longer listens");
            }
            drop((flight, place));
        });
        Ok(())
    }

    /// Starts a batch, whose answers go out as one array.
    async fn batch(&mut self, message: Vec<u8>) -> Result<(), Deaf> {
        let lane = self.lane.clone().filter(|lane| lane.version.has_batches());
        let Some(lane) = lane else { return self.answer(failure(None, &no_batches())).await };
        let slot = match self.slot() {
            Ok(slot) => slot,
            Err(error) => return self.refuse_batch(&lane, &message, &error).await,
        };
        let (server, answers, identity) = (self.server.clone(), self.answers.clone(), self.identity.clone());
        self.tasks.spawn(async move {
            if let Ok(Incoming::Batch(batch)) = envelope::read(&message) {
                let answer = match batch.messages() {
                    Ok(messages) => server.batch(&identity, &lane, messages).await,
                    Err(error) => Some(failure(None, &error)),
                };
                if let Some(answer) = answer {
                    send_last(&answers, slot, |_| Some(answer)).await;
                }
            }
        });
        Ok(())
    }

    async fn refuse_batch(&self, lane: &Lane<H>, message: &[u8], error: &ErrorObject) -> Result<(), Deaf> {
        let Ok(Incoming::Batch(batch)) = envelope::read(message) else { return Ok(()) };
        let answer = match batch.messages() {
            Ok(messages) => self.server.refuse_batch(lane, messages, error),
            Err(error) => Some(failure(None, &error)),
        };
        match answer {
            Some(answer) => self.answer(answer).await,
            None => Ok(()),
        }
    }

    /// Notes that a request begins, if there is room for it. It is refused rather than kept waiting: behind it there may
    /// be the cancel, or the answer to a question, that makes room.
    fn begin(&self, id: &Id<'_>) -> Result<(OwnedSemaphorePermit, Flight), ErrorObject> {
        Ok((self.slot()?, self.flights.begin(id)?))
    }

    fn slot(&self) -> Result<OwnedSemaphorePermit, ErrorObject> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_full| too_many(STDIO_IN_FLIGHT))
    }

    /// Sends something. A client that does not read must not keep the connection from closing.
    async fn answer(&self, text: String) -> Result<(), Deaf> {
        tokio::select! {
            biased;
            sent = self.answers.send(text) => sent.map_err(|_closed| Deaf),
            () = self.closing.cancelled() => Err(Deaf),
        }
    }

    /// Lets what is running come to its end, then cancels it, then gives up on it.
    async fn drain(&mut self) {
        self.closing.cancel();
        if timeout(STDIO_DRAIN, finished(&mut self.tasks)).await.is_ok() {
            return;
        }
        self.flights.cancel_all();
        if timeout(STDIO_LAST_WORDS, finished(&mut self.tasks)).await.is_err() {
            tracing::warn!(running = self.tasks.len(), "calls went on after the client had gone");
            self.tasks.shutdown().await;
        }
    }

    async fn close(&mut self) {
        // What waits for answers of this client has nobody left to answer.
        self.flights.cancel_all();
        if let Some(session) = self.session.take() {
            self.server.inner.handler.close(session).await;
        }
    }
}

impl<H: Handler> Drop for Connection<H> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.server.retire(session);
        }
    }
}

/// Sends what a request says until its answer, which a client that withdrew it does not get.
async fn carry<H: Handler>(
    mut live: Live<H>,
    flight: Flight,
    answers: mpsc::Sender<String>,
    slot: OwnedSemaphorePermit,
) {
    let token = flight.token();
    let mut told = false;
    let reply = loop {
        tokio::select! {
            biased;
            () = token.cancelled(), if !told => {
                told = true;
                live.cancel();
            }
            spoken = live.next() => match spoken {
                Spoken::Message(text, _) => send(&answers, text).await,
                Spoken::Last(reply) => break reply,
            },
        }
    };
    let text = |(flight, _): &(Flight, _)| (!flight.is_withdrawn()).then_some(reply.text);
    send_last(&answers, (flight, slot), text).await;
}

async fn finished(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// Waits until the client can have an answer, and frees what was held for its request before it has it: the client may
/// use it again at once.
async fn send_last<T>(answers: &mpsc::Sender<String>, held: T, text: impl FnOnce(&T) -> Option<String>) {
    let Ok(room) = answers.reserve().await else {
        tracing::debug!("an MCP client left before its answer");
        return;
    };
    let text = text(&held);
    drop(held);
    if let Some(text) = text {
        room.send(text);
    }
}

async fn send(answers: &mpsc::Sender<String>, text: String) {
    if answers.send(text).await.is_err() {
        tracing::debug!("an MCP client left before its answer");
    }
}
