//! Bodies of HTTP responses: whole, or server-sent events.

use crate::limits::KEEP_ALIVE;
use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use http::{HeaderValue, Response, header};
use std::fmt::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::timeout;

#[derive(Debug)]
pub enum Body {
    Whole(Bytes),
    Events(EventStream),
}

/// Server-sent events, each with its empty line. Comments keep a silent stream alive.
pub struct EventStream(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl Stream for EventStream {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }
}

pub(super) trait Source: Send + 'static {
    /// The next event; `None` when there are no more. The future may be dropped at any time.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

impl EventStream {
    pub(super) fn new(source: impl Source) -> Self {
        let events = unfold(source, |mut source| async move {
            match timeout(KEEP_ALIVE, source.next()).await {
                Ok(Some(event)) => Some((event, source)),
                Ok(None) => None,
                Err(_silent) => Some((Bytes::from_static(b": alive\n\n"), source)),
            }
        });
        Self(Box::pin(events))
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::Events(self));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Proxies that buffer a response would hold every event back.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

pub(super) fn event(id: Option<fmt::Arguments<'_>>, retry_ms: Option<u32>, data: &str) -> Bytes {
    let mut out = String::with_capacity(96 + data.len());
    if let Some(id) = id {
        writeln!(out, "id: {id}").unwrap_or_default();
    }
    if let Some(retry) = retry_ms {
        writeln!(out, "retry: {retry}").unwrap_or_default();
    }
    // An event without data is no message.
    if !data.is_empty() {
        out.push_str("event: message\n");
    }
    out.push_str("data: ");
    // Between the tokens of JSON a blank means the same as a line end, which would break the event in two.
    for (at, line) in data.split(['\n', '\r']).enumerate() {
        out.push_str(if at > 0 { " " } else { "" });
        out.push_str(line);
    }
    out.push_str("\n\n");
    Bytes::from(out)
}

/// The text of an event that is a message and nothing else.
pub(super) fn message(data: &str) -> Bytes {
    event(None, None, data)
}
