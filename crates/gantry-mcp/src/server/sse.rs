//! MCP over HTTP+SSE (2024-11-05): one stream of events for all messages to the client, and a URL of its own for all
//! messages from it.

use super::body::{Source, message};
use super::http::{empty, refuse, unknown_session};
use super::{Body, EventStream, Handler, Server};
use crate::limits::CONNECTIONS;
use crate::{ErrorObject, lock};
use bytes::Bytes;
use http::{Response, StatusCode};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The open connections, each found by its random id and by the client that opened it.
#[derive(Clone, Default)]
pub(super) struct SseConnections {
    // Invariant: never held across an await. Limit: as many as there are connections.
    open: Arc<Mutex<HashMap<Uuid, SseConnection>>>,
}

struct SseConnection {
    handler: Arc<dyn Handler>,
    messages: mpsc::Sender<Vec<u8>>,
}

impl SseConnections {
    fn find(&self, id: &str, handler: &dyn Handler) -> Option<mpsc::Sender<Vec<u8>>> {
        let id = Uuid::try_parse(id).ok()?;
        let open = lock(&self.open);
        open.get(&id).filter(|found| found.handler.is_same(handler)).map(|found| found.messages.clone())
    }
}

impl Server {
    /// Answers the GET that opens a connection; the first event has the URL to POST to, `endpoint` with a
    /// `sessionId`.
    #[must_use]
    pub fn sse(&self, handler: &Arc<dyn Handler>, endpoint: &str) -> Response<Body> {
        let Some((messages, outgoing)) = self.connect(Arc::clone(handler)) else {
            let message = format!("{CONNECTIONS} connections are open already; close one and try again");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, None, &ErrorObject::invalid_request(message));
        };
        let id = Uuid::new_v4();
        let connections = self.inner.sse_connections.clone();
        lock(&connections.open).insert(id, SseConnection { handler: Arc::clone(handler), messages });
        let first = Bytes::from(format!("event: endpoint\ndata: {endpoint}?sessionId={}\n\n", id.simple()));
        EventStream::new(SseEvents { first: Some(first), outgoing, id, connections }).into_response()
    }

    /// Answers a POST of such a client; the response to its message goes to its stream.
    pub async fn sse_message(&self, handler: &Arc<dyn Handler>, id: &str, body: Bytes) -> Response<Body> {
        let messages = self.inner.sse_connections.find(id, &**handler);
        let Some(messages) = messages else { return unknown_session(None).into() };
        match messages.send(body.into()).await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(_closed) => unknown_session(None).into(),
        }
    }
}

/// The events of one client. Dropping them ends the connection.
struct SseEvents {
    first: Option<Bytes>,
    outgoing: mpsc::Receiver<String>,
    id: Uuid,
    connections: SseConnections,
}

impl Source for SseEvents {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        self.outgoing.recv().await.map(|text| message(&text))
    }
}

impl Drop for SseEvents {
    fn drop(&mut self) {
        lock(&self.connections.open).remove(&self.id);
    }
}
