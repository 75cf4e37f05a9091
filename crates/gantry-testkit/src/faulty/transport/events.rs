//! Frames as server-sent events.

use super::super::server::Frame;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderValue, header};
use std::io;
use tokio::sync::mpsc;

/// An event stream: what is there already, then what comes. An error in it aborts the connection in the middle.
pub(super) fn stream(first: io::Result<Bytes>, frames: mpsc::Receiver<Frame>, until: Until) -> Response {
    let rest = stream::unfold(Some(frames), move |frames| async move {
        let mut frames = frames?;
        let frame = frames.recv().await?;
        let last = until == Until::Answer && matches!(frame, Frame::Answer(..));
        Some((event(frame), (!last).then_some(frames)))
    });
    let body = stream::once(std::future::ready(first)).chain(rest);
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// When an event stream ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// After the answer to its request.
    Answer,
    /// When its last writer is gone.
    Dropped,
}

pub(super) fn event(frame: Frame) -> io::Result<Bytes> {
    match frame {
        Frame::Answer(text, _) | Frame::Note(text) => Ok(format!("event: message\ndata: {text}\n\n").into()),
        Frame::Garbage(text) => Ok(text.into()),
        Frame::HangUp => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}
