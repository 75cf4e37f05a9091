//! MCP over a pair of byte streams: one message per line, many requests at once.
//!
//! What changes the connection (a handshake, a cancel) is done while reading, in the order of the lines; what takes
//! time runs in tasks. Both eras may be spoken on one connection, and share its one session.

use super::{
    Handler, Job, Lane, Peer, Server, Step, flight::Flights, legacy, modern, no_batches, params::Params,
};
use crate::{
    ErrorObject, Version,
    envelope::{self, Incoming, Message, Request, failure},
    error::code,
    limits::{LINE_BYTES, STDIO_ANSWERS_WAITING, STDIO_DRAIN, STDIO_IN_FLIGHT, STDIO_LAST_WORDS},
    lines::{self, Line, Lines},
};
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

impl<H: Handler> Server<H> {
    /// Serves one connection until its input ends, then waits a little for what is still running.
    ///
    /// Dropping the future ends the connection at once; its session is still closed.
    ///
    /// # Errors
    /// When the input cannot be read or the output cannot be written.
    pub async fn serve<R, W>(&self, identity: H::Identity, reader: R, writer: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (answers, queue) = mpsc::channel(STDIO_ANSWERS_WAITING);
        let writing = AbortOnDropHandle::new(tokio::spawn(lines::write(writer, queue)));
        let mut connection = Connection::new(self.clone(), identity, answers);
        let read = connection.read(Lines::new(reader)).await;
        connection.drain().await;
        connection.close().await;
        // The last sender is gone, so the writer ends, unless nobody reads what it writes.
        drop(connection);
        let written = timeout(STDIO_LAST_WORDS, writing).await;
        read?;
        match written {
            Ok(Ok(result)) => result,
            Ok(Err(stopped)) => Err(io::Error::other(stopped)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the last answers were not read")),
        }
    }
}

/// One connection.
struct Connection<H: Handler> {
    server: Server<H>,
    identity: H::Identity,
    answers: mpsc::Sender<String>,
    /// The session, from the first request that needs one.
    session: Option<Arc<H::Session>>,
    /// What `initialize` has led to.
    version: Option<Version>,
    flights: Flights,
    slots: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// The other side does not read answers any more.
struct Deaf;

impl<H: Handler> Connection<H> {
    fn new(server: Server<H>, identity: H::Identity, answers: mpsc::Sender<String>) -> Self {
        Self {
            server,
            identity,
            answers,
            session: None,
            version: None,
            flights: Flights::new(STDIO_IN_FLIGHT),
            slots: Arc::new(Semaphore::new(STDIO_IN_FLIGHT)),
            tasks: JoinSet::new(),
        }
    }

    /// Handles lines until the input ends or nobody listens any more.
    async fn read<R: AsyncRead + Unpin>(&mut self, mut lines: Lines<R>) -> io::Result<()> {
        loop {
            // Cancel-safety: a line that is half read stays in `lines`.
            let line = tokio::select! {
                line = lines.next() => line?,
                () = self.answers.closed() => None,
            };
            let handled = match line {
                Some(Line::Whole(line)) => self.line(line).await,
                Some(Line::TooLong) => {
                    let message = format!("a line has at most {LINE_BYTES} bytes; this one was skipped");
                    self.answer(failure(None, &ErrorObject::new(code::PARSE_ERROR, message))).await
                }
                None => return Ok(()),
            };
            if let Err(Deaf) = handled {
                return Ok(());
            }
        }
    }

    async fn line(&mut self, line: Vec<u8>) -> Result<(), Deaf> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match envelope::read(&line) {
            Ok(Incoming::One(Message::Request(request))) => self.request(request).await,
            Ok(Incoming::One(Message::Notification(notification))) => {
                if let Some(id) = legacy::withdrawn(&notification) {
                    self.flights.withdraw(&id);
                }
                Ok(())
            }
            Ok(Incoming::One(Message::Response(_))) => {
                self.server.ignore();
                Ok(())
            }
            Ok(Incoming::Batch(_)) => self.batch(line).await,
            Err(rejection) => self.answer(rejection.answer()).await,
        }
    }

    async fn request(&mut self, request: Request<'_>) -> Result<(), Deaf> {
        let params = match Params::read(request.params) {
            Ok(params) => params,
            Err(error) => return self.answer(failure(Some(&request.id), &error)).await,
        };
        let step = if modern::speaks(&request.method, &params, None) {
            self.server.modern_step(&self.identity, request, &params, None)
        } else {
            match self.version {
                Some(version) => legacy::step(request, &params, version),
                None if request.method == "initialize" => return self.initialize(&request, &params).await,
                None => legacy::step_before_handshake(&request),
            }
        };
        match step {
            Step::Answer(reply) => self.answer(reply.text).await,
            Step::Run(job) => self.run(job, &params).await,
        }
    }

    async fn initialize(&mut self, request: &Request<'_>, params: &Params<'_>) -> Result<(), Deaf> {
        let answer = match self.handshake(params).await {
            Ok(version) => self.server.welcome(&self.identity, &request.id, version).text,
            Err(error) => failure(Some(&request.id), &error),
        };
        self.answer(answer).await
    }

    async fn handshake(&mut self, params: &Params<'_>) -> Result<Version, ErrorObject> {
        let version = Version::negotiate(&params.asked_version()?);
        self.session(version, params).await?;
        self.version = Some(version);
        Ok(version)
    }

    /// The session of this connection, opened if it is the first time that one is needed.
    async fn session(
        &mut self,
        version: Version,
        params: &Params<'_>,
    ) -> Result<Arc<H::Session>, ErrorObject> {
        if let Some(session) = &self.session {
            return Ok(Arc::clone(session));
        }
        let peer = Peer { identity: &self.identity, version, client: params.client() };
        let session = self.server.inner.handler.open(peer).await?;
        self.session = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Starts a job as soon as there is a slot for it; until then, nothing more is read.
    async fn run(&mut self, job: Job, params: &Params<'_>) -> Result<(), Deaf> {
        let session = match self.session(job.version, params).await {
            Ok(session) => session,
            Err(error) => return self.answer(failure(Some(&job.id), &error)).await,
        };
        let slot = self.slot().await?;
        let flight = match self.flights.begin(&job.id) {
            Ok(flight) => flight,
            Err(error) => return self.answer(failure(Some(&job.id), &error)).await,
        };
        let (server, answers) = (self.server.clone(), self.answers.clone());
        self.tasks.spawn(async move {
            let reply = server.run(&session, job, flight.token()).await;
            let withdrawn = flight.is_withdrawn();
            // The id must be free before the client can see its answer.
            drop(flight);
            if !withdrawn {
                send(&answers, reply.text).await;
            }
            drop(slot);
        });
        Ok(())
    }

    /// Starts a batch, whose answers go out as one array.
    async fn batch(&mut self, line: Vec<u8>) -> Result<(), Deaf> {
        let version = self.version.filter(|version| version.has_batches());
        let (Some(version), Some(session)) = (version, self.session.clone()) else {
            return self.answer(failure(None, &no_batches())).await;
        };
        let slot = self.slot().await?;
        let lane = Lane { session, version, flights: self.flights.clone() };
        let (server, answers) = (self.server.clone(), self.answers.clone());
        self.tasks.spawn(async move {
            if let Ok(Incoming::Batch(batch)) = envelope::read(&line) {
                let answer = match batch.messages() {
                    Ok(messages) => server.batch(&lane, messages).await,
                    Err(error) => Some(failure(None, &error)),
                };
                if let Some(answer) = answer {
                    send(&answers, answer).await;
                }
            }
            drop(slot);
        });
        Ok(())
    }

    async fn slot(&mut self) -> Result<OwnedSemaphorePermit, Deaf> {
        while self.tasks.try_join_next().is_some() {}
        Arc::clone(&self.slots).acquire_owned().await.map_err(|_closed| Deaf)
    }

    async fn answer(&self, text: String) -> Result<(), Deaf> {
        self.answers.send(text).await.map_err(|_closed| Deaf)
    }

    /// Lets what is running come to its end, then cancels it, then gives up on it.
    async fn drain(&mut self) {
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

async fn finished(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

async fn send(answers: &mpsc::Sender<String>, text: String) {
    if answers.send(text).await.is_err() {
        tracing::debug!("an MCP client left before its answer");
    }
}
