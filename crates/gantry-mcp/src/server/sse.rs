//! MCP over HTTP+SSE (2024-11-05): one stream of events for everything the client hears, and an address of its own for
//! everything it says.

use super::{
    Body, EventStream, Handler, Server,
    body::{Source, message},
    http::{empty, refuse, unknown_session},
};
use crate::{ErrorObject, limits::CONNECTIONS};
use bytes::Bytes;
use http::{Response, StatusCode};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The open connections, each found by its random id and by the identity that opened it.
pub(super) struct Doors<I> {
    // Invariant: never held across an await.
    open: Arc<Mutex<HashMap<Uuid, Door<I>>>>,
}

struct Door<I> {
    identity: I,
    messages: mpsc::Sender<Vec<u8>>,
}

impl<I: Clone + PartialEq> Doors<I> {
    pub(super) fn new() -> Self {
        Self { open: Arc::default() }
    }

    fn find(&self, id: &str, identity: &I) -> Option<mpsc::Sender<Vec<u8>>> {
        let id = Uuid::try_parse(id).ok()?;
        let open = lock(&self.open);
        open.get(&id).filter(|door| door.identity == *identity).map(|door| door.messages.clone())
    }
}

impl<H: Handler> Server<H> {
    /// Answers the GET that opens a connection; the client is told to POST to `endpoint` with a `sessionId`.
    #[must_use]
    pub fn sse(&self, identity: &H::Identity, endpoint: &str) -> Response<Body> {
        let Some((messages, outgoing)) = self.connect(identity.clone()) else {
            let message = format!("{CONNECTIONS} connections are open already; close one and try again");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, None, &ErrorObject::invalid_request(message));
        };
        let id = Uuid::new_v4();
        let door = Door { identity: identity.clone(), messages };
        // Limit: as many as there are connections.
        lock(&self.inner.doors.open).insert(id, door);
        let first = Bytes::from(format!("event: endpoint\ndata: {endpoint}?sessionId={}\n\n", id.simple()));
        EventStream::new(Events {
            first: Some(first),
            outgoing,
            id,
            open: Arc::clone(&self.inner.doors.open),
        })
        .into_response()
    }

    /// Answers a POST of such a client; what there is to say goes to its stream.
    pub async fn sse_message(&self, identity: &H::Identity, id: &str, body: Bytes) -> Response<Body> {
        let Some(messages) = self.inner.doors.find(id, identity) else { return unknown_session(None).into() };
        match messages.send(body.into()).await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(_closed) => unknown_session(None).into(),
        }
    }
}

/// What one client hears. Dropping it ends the connection.
struct Events<I> {
    first: Option<Bytes>,
    outgoing: mpsc::Receiver<String>,
    id: Uuid,
    open: Arc<Mutex<HashMap<Uuid, Door<I>>>>,
}

impl<I: Send + 'static> Source for Events<I> {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        self.outgoing.recv().await.map(|text| message(&text))
    }
}

impl<I> Drop for Events<I> {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.id);
    }
}

/// A thread that panicked inside left the map whole: every change to it is one call.
fn lock<I>(open: &Mutex<HashMap<Uuid, Door<I>>>) -> MutexGuard<'_, HashMap<Uuid, Door<I>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
