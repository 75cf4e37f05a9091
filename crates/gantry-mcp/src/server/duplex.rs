//! A client with a connection of its own that carries messages both ways: stdio, HTTP+SSE, WebSocket.
//!
//! Messages that change the connection (a handshake, a cancellation, a response of the client) are handled while reading,
//! in their order; requests that take time run in tasks. Both eras may be spoken on one connection, and share its one
//! session.

use super::connection::Connection;
use super::in_flight::{InFlightGuard, InFlightRequests, too_many};
use super::listen::{ListenRequest, Listening};
use super::notifications::NotificationFeed;
use super::request_channel::ResponseMode;
use super::request_task::{Next, RequestTask};
use super::{Handler, Reply, Server, legacy, modern, no_batches};
use crate::ErrorObject;
use crate::envelope::{self, Batch, Id, Message, Request, failure};
use crate::limits::{
    CONNECTION_LISTENS, MESSAGES_WAITING, STDIO_ANSWERS_WAITING, STDIO_CLOSE_TIMEOUT, STDIO_DRAIN,
    STDIO_IN_FLIGHT,
};
use futures_util::stream::{Stream, StreamExt as _, unfold};
use http::StatusCode;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

impl Server {
    /// Opens a connection whose messages the caller carries: it sends messages of the client, and passes on those it
    /// receives. Dropping the sender ends the input, dropping the receiver the connection. `None` if too many are open.
    #[must_use]
    pub fn connect(
        &self,
        handler: Arc<dyn Handler>,
    ) -> Option<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<String>)> {
        let permit = Arc::clone(&self.inner.connections).try_acquire_owned().ok()?;
        let (messages, incoming) = mpsc::channel(MESSAGES_WAITING);
        let (responses, outgoing) = mpsc::channel(STDIO_ANSWERS_WAITING);
        let incoming = unfold(incoming, |mut incoming: mpsc::Receiver<Vec<u8>>| async move {
            Some((incoming.recv().await?, incoming))
        });
        let server = self.clone();
        self.in_background(async move {
            server.serve_messages(handler, incoming, responses).await;
            drop(permit);
        });
        Some((messages, outgoing))
    }

    /// Serves one client until its messages end or it stops reading, then waits a little for requests that are still
    /// running. Each item of `incoming` is one message; `outgoing` gets one message at a time.
    ///
    /// Dropping the future ends the connection at once; its session is still closed. `incoming` must not lose anything
    /// when its `next` is dropped.
    pub(super) async fn serve_messages(
        &self,
        handler: Arc<dyn Handler>,
        incoming: impl Stream<Item = Vec<u8>> + Send,
        outgoing: mpsc::Sender<String>,
    ) {
        let mut duplex = Duplex::new(self.clone(), handler, outgoing);
        duplex.read(incoming).await;
        duplex.drain().await;
        duplex.close().await;
    }
}

pub(super) struct Duplex {
    server: Server,
    handler: Arc<dyn Handler>,
    outgoing: mpsc::Sender<String>,
    /// Whether the handler has a session; the first request that needs one opens it.
    has_session: bool,
    /// Set by `initialize`, with its feed of notifications.
    connection: Option<(Arc<Connection>, NotificationFeed)>,
    number: u64,
    in_flight: InFlightRequests,
    /// Permits for requests and batches until their responses are queued.
    slots: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    /// Fires when no more messages are read.
    closing: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

/// The client does not read any more, or the server stops.
struct ConnectionClosed;

impl Duplex {
    pub(super) fn new(server: Server, handler: Arc<dyn Handler>, outgoing: mpsc::Sender<String>) -> Self {
        Self {
            number: server.client_number(),
            closing: server.inner.close_streams.child_token(),
            server,
            handler,
            outgoing,
            has_session: false,
            connection: None,
            in_flight: InFlightRequests::new(STDIO_IN_FLIGHT),
            slots: Arc::new(Semaphore::new(STDIO_IN_FLIGHT)),
            listens: Arc::new(Semaphore::new(CONNECTION_LISTENS)),
            tasks: JoinSet::new(),
        }
    }

    /// Handles messages until they end or the client stops reading.
    pub(super) async fn read(&mut self, incoming: impl Stream<Item = Vec<u8>>) {
        let mut incoming = pin!(incoming);
        loop {
            // Tasks that have ended would otherwise be kept as long as the connection.
            while self.tasks.try_join_next().is_some() {}
            let notification = async {
                match &mut self.connection {
                    Some((_, feed)) => feed.next().await,
                    None => std::future::pending().await,
                }
            };
            let handled = tokio::select! {
                message = incoming.next() => match message {
                    Some(message) => self.message(message).await,
                    None => return,
                },
                text = notification => self.send(text).await,
                () = self.outgoing.closed() => return,
                () = self.closing.cancelled() => return,
            };
            if let Err(ConnectionClosed) = handled {
                return;
            }
        }
    }

    async fn message(&mut self, message: Vec<u8>) -> Result<(), ConnectionClosed> {
        if message.trim_ascii().is_empty() {
            return Ok(());
        }
        match envelope::read(&message) {
            Ok(Message::Request(request)) => match self.request(request).await {
                Ok(()) => Ok(()),
                Err(reply) => self.send(reply.text).await,
            },
            Ok(Message::Notification(notification)) => {
                if let Some(id) = legacy::cancelled(&notification) {
                    self.in_flight.cancel(&id);
                }
                Ok(())
            }
            Ok(message @ Message::Response(_)) => {
                if let Some((connection, _)) = &self.connection {
                    connection.accept(&message);
                }
                Ok(())
            }
            Ok(Message::Batch(batch)) => self.batch(batch.into_owned()).await,
            Err(rejection) => self.send(rejection.response()).await,
        }
    }

    /// Starts a request.
    ///
    /// # Errors
    /// The response, where the request needs no work.
    async fn request(&mut self, request: Request<'_>) -> Result<(), Reply> {
        if modern::is_modern_request(&request.method, &request.params, None) {
            return self.modern_request(&request).await;
        }
        let Some((connection, _)) = &self.connection else {
            if request.method == "initialize" {
                let welcome = self.initialize(&request).await;
                return Err(welcome.unwrap_or_else(|error| refused(&request.id, &error)));
            }
            return Err(legacy::before_handshake(&request));
        };
        let request = legacy::parse(request, connection)?;
        let (slot, guard) = self.admit(&request.id)?;
        let task = self.server.start_legacy(connection, ResponseMode::Stream, request, guard.token());
        self.tasks.spawn(carry(task, guard, self.outgoing.clone(), slot));
        Ok(())
    }

    fn admit(&self, id: &Id<'_>) -> Result<(OwnedSemaphorePermit, InFlightGuard), Reply> {
        let slot = self.slot().map_err(|error| refused(id, &error))?;
        Ok((slot, self.in_flight.begin(id).map_err(|error| refused(id, &error))?))
    }

    async fn initialize(&mut self, request: &Request<'_>) -> Result<Reply, ErrorObject> {
        // Subscribed before the handler opens the session, so that no change is missed in between.
        let changes = self.server.changes();
        let (params, in_flight) = (&request.params, self.in_flight.clone());
        let version = params.negotiated_version()?;
        self.ensure_session().await?;
        let connection = Arc::new(Connection::new(&self.handler, version, params, in_flight, self.number));
        let feed = NotificationFeed::of_connection(&connection, changes);
        let welcome = self.server.welcome(&connection, &request.id);
        self.connection = Some((connection, feed));
        Ok(welcome)
    }

    async fn ensure_session(&mut self) -> Result<(), ErrorObject> {
        if !self.has_session {
            self.handler.open_session().await?;
            self.has_session = true;
        }
        Ok(())
    }

    async fn modern_request(&mut self, request: &Request<'_>) -> Result<(), Reply> {
        self.server.check_modern(&*self.handler, request, None)?;
        if request.method == "subscriptions/listen" {
            return self.listen(request).await.map_err(|error| refused(&request.id, &error));
        }
        let parsed = modern::parse(request, &*self.handler)?;
        self.ensure_session().await.map_err(|error| refused(&request.id, &error))?;
        let (slot, guard) = self.admit(&request.id)?;
        let task = self.server.start_modern(&self.handler, self.number, parsed, request, guard.token())?;
        self.tasks.spawn(carry(task, guard, self.outgoing.clone(), slot));
        Ok(())
    }

    async fn listen(&mut self, request: &Request<'_>) -> Result<(), ErrorObject> {
        let listen = ListenRequest::read(&request.params, &request.id, &self.handler.features())?;
        self.ensure_session().await?;
        let permit = Arc::clone(&self.listens).try_acquire_owned().map_err(|_full| {
            let message =
                format!("a connection listens at most {CONNECTION_LISTENS} times; cancel one first");
            ErrorObject::invalid_request(message)
        })?;
        let guard = self.in_flight.begin(&request.id)?;
        let id: Id<'static> = request.id.clone().into_owned();
        let (server, handler) = (self.server.clone(), Arc::clone(&self.handler));
        let (stop, outgoing) = (self.closing.clone(), self.outgoing.clone());
        self.tasks.spawn(async move {
            let cancelled = guard.token();
            let listening = async {
                let mut listening = Listening::begin(&server, handler, id, listen, stop).await;
                while let Some(text) = listening.next().await {
                    send(&outgoing, text).await;
                }
            };
            // Dropping the future takes the subscriptions back.
            if cancelled.run_until_cancelled(listening).await.is_none() {
                tracing::debug!("a client has cancelled subscriptions/listen");
            }
            drop((guard, permit));
        });
        Ok(())
    }

    /// Starts a batch, whose responses go out as one array.
    async fn batch(&mut self, batch: Batch<'static>) -> Result<(), ConnectionClosed> {
        let connection = self.connection.as_ref().map(|(connection, _)| Arc::clone(connection));
        let Some(connection) = connection.filter(|connection| connection.version.has_batches()) else {
            return self.send(failure(None, &no_batches())).await;
        };
        let (server, outgoing) = (self.server.clone(), self.outgoing.clone());
        let respond = async move |refusal: Option<ErrorObject>| match batch.messages() {
            Ok(messages) => server.batch(&connection, messages, refusal).await,
            Err(error) => Some(failure(None, &error)),
        };
        match self.slot() {
            Ok(slot) => {
                self.tasks.spawn(async move {
                    if let Some(text) = respond(None).await
                        && let Ok(room) = outgoing.reserve().await
                    {
                        drop(slot);
                        room.send(text);
                    }
                });
                Ok(())
            }
            Err(error) => match respond(Some(error)).await {
                Some(text) => self.send(text).await,
                None => Ok(()),
            },
        }
    }

    /// A request is refused rather than kept waiting: the message behind it may be the cancellation, or the response of
    /// the client, that makes room.
    fn slot(&self) -> Result<OwnedSemaphorePermit, ErrorObject> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_full| too_many(STDIO_IN_FLIGHT))
    }

    /// Sends a message. A client that does not read must not keep the connection from closing.
    async fn send(&self, text: String) -> Result<(), ConnectionClosed> {
        tokio::select! {
            biased;
            sent = self.outgoing.send(text) => sent.map_err(|_closed| ConnectionClosed),
            () = self.closing.cancelled() => Err(ConnectionClosed),
        }
    }

    /// Waits for running requests, then cancels them, then aborts them.
    async fn drain(&mut self) {
        self.closing.cancel();
        if timeout(STDIO_DRAIN, finished(&mut self.tasks)).await.is_ok() {
            return;
        }
        self.in_flight.cancel_all();
        if timeout(STDIO_CLOSE_TIMEOUT, finished(&mut self.tasks)).await.is_err() {
            tracing::warn!(running = self.tasks.len(), "calls went on after the client had gone");
            self.tasks.shutdown().await;
        }
    }

    async fn close(&mut self) {
        // Requests that wait for input of this client will get none.
        self.in_flight.cancel_all();
        if std::mem::take(&mut self.has_session) {
            self.handler.close_session().await;
        }
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        if self.has_session {
            self.server.close_session(Arc::clone(&self.handler));
        }
    }
}

/// Sends the messages of a request and its response. A client that has cancelled the request does not get the response.
async fn carry(
    mut task: RequestTask,
    guard: InFlightGuard,
    outgoing: mpsc::Sender<String>,
    slot: OwnedSemaphorePermit,
) {
    let token = guard.token();
    let mut is_cancelled = false;
    let reply = loop {
        tokio::select! {
            biased;
            // A resumed request runs with the token of the request that was sent first.
            () = token.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                task.cancel();
            }
            next = task.next() => match next {
                Next::Message(text, _) => send(&outgoing, text).await,
                Next::Released => {}
                Next::Response(reply) => break reply,
            },
        }
    };
    let Ok(room) = outgoing.reserve().await else {
        tracing::debug!("an MCP client left before its response");
        return;
    };
    if guard.is_cancelled_by_client() {
        return;
    }
    let reply = reply.delivered().await;
    // The client may use the id again as soon as it has the response.
    drop((guard, slot));
    room.send(reply.text);
}

fn refused(id: &Id<'_>, error: &ErrorObject) -> Reply {
    Reply::error(StatusCode::OK, Some(id), error)
}

async fn finished(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

async fn send(outgoing: &mpsc::Sender<String>, text: String) {
    if outgoing.send(text).await.is_err() {
        tracing::debug!("an MCP client left before its response");
    }
}
