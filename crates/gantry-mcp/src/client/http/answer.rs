//! One request over HTTP, from the POST to its answer, taken up again where its stream breaks.

use super::{EVENT_STREAM, LAST_EVENT_ID, Session, Side, refusal};
use crate::client::{
    dispatcher::{Outbox, Ticket},
    limits::{LAST_WORDS, MESSAGE_BYTES, REOPEN, RESUMES},
    link::{Call, Trouble},
    message,
    sse::SseParser,
    types::Failure,
};
use crate::exchange::Notice;
use futures_util::FutureExt as _;
use gantry_egress::{HttpError, HttpResponse};
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

impl Side {
    /// Posts a request and follows its answer.
    pub(super) async fn exchange(
        &self,
        ticket: &mut Ticket,
        call: &Call<'_>,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<String, Trouble> {
        let session = self.session();
        if session.over {
            return Err(Failure::Unavailable("the connection is closed".into()).into());
        }
        let session = if call.method == "initialize" { Session::default() } else { session };
        let mut headers = self.headers(&session);
        headers.extend(call.headers.clone());
        let text = message::request(ticket.id, call.method, call.params);
        self.dispatcher.trace(true, &text);
        let response = tokio::select! {
            biased;
            outcome = ticket.outcome() => return Ok(outcome?),
            response = self.site.post(&self.site.url, headers, text) => response?,
        };
        if !response.status().is_success() {
            return Err(refusal(response, session.id).await);
        }
        if call.method == "initialize" {
            self.remember_session(&response);
        }
        match content_type(response.headers()) {
            EVENT_STREAM => Ok(self.follow(response, ticket, outbox).await?),
            "application/json" => {
                let body = response.body(MESSAGE_BYTES).await?;
                match std::str::from_utf8(&body) {
                    Ok(text) => self.dispatcher.receive(text, Some(ticket.id), outbox),
                    Err(_) => self.dispatcher.count_garbage("(not UTF-8)"),
                }
                let nothing = || Err(Failure::Lost("the server sent no answer to the request".into()));
                Ok(ticket.outcome().now_or_never().unwrap_or_else(nothing)?)
            }
            other => {
                let status = response.status();
                let what =
                    format!("the server answered with HTTP {status} and content of the kind {other:?}");
                Err(Failure::Lost(what).into())
            }
        }
    }

    /// Reads a stream until the outcome is there.
    async fn follow(
        &self,
        mut response: HttpResponse,
        ticket: &mut Ticket,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<String, Failure> {
        let mut parser = SseParser::new(MESSAGE_BYTES);
        let mut attempts = 0;
        loop {
            let chunk = tokio::select! {
                biased;
                outcome = ticket.outcome() => {
                    finish(response);
                    return outcome;
                }
                chunk = response.chunk() => chunk,
            };
            let broken = match chunk {
                Ok(Some(chunk)) => {
                    attempts = 0;
                    self.take(&chunk, &mut parser, Some(ticket.id), outbox)?;
                    tokio::task::coop::consume_budget().await;
                    continue;
                }
                Ok(None) => Failure::Lost("the server ended the stream before the answer".into()),
                Err(error) => error.into(),
            };
            response = loop {
                attempts += 1;
                if self.modern || parser.last_id().is_none() || attempts > RESUMES {
                    return Err(broken);
                }
                ticket.audience.notify(Notice::Released);
                sleep(parser.retry().unwrap_or(REOPEN[0]).min(REOPEN[1])).await;
                match self.open_stream(parser.last_id()).await {
                    Ok(Some(response)) => break response,
                    Ok(None) => return Err(broken),
                    Err(_) => {}
                }
            };
            parser.restart();
        }
    }

    /// Hands the messages in a chunk of a stream over.
    pub(super) fn take(
        &self,
        chunk: &[u8],
        parser: &mut SseParser,
        origin: Option<u64>,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<(), Failure> {
        let mut events = Vec::new();
        let pushed = parser.push(chunk, &mut events);
        for event in events.iter().filter(|event| event.kind == "message") {
            self.dispatcher.receive(&event.data, origin, outbox);
        }
        pushed.map_err(|error| Failure::Lost(error.to_string()))
    }

    /// Opens a stream with GET, after the event with this id if there is one. `None` if the server has none to offer.
    pub(super) async fn open_stream(&self, after: Option<&str>) -> Result<Option<HttpResponse>, HttpError> {
        let mut headers = self.headers(&self.session());
        if let Some(id) = after.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.site.get(headers).await?;
        let status = response.status();
        if status.is_server_error() {
            let address = self.site.url.clone();
            return Err(HttpError::Broken { address, reason: format!("HTTP {status}") });
        }
        let stream = status.is_success() && content_type(response.headers()) == EVENT_STREAM;
        Ok(stream.then_some(response))
    }
}

/// Reads what is left of a stream, so that its connection can be used again.
fn finish(mut response: HttpResponse) {
    tokio::spawn(timeout(LAST_WORDS, async move { while let Ok(Some(_)) = response.chunk().await {} }));
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
