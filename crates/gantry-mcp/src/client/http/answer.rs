//! One request over HTTP, from the POST to its answer, taken up again where its stream breaks.

use super::{EVENT_STREAM, LAST_EVENT_ID, Session, Side, refusal};
use crate::client::{
    dispatcher::{Outbox, Ticket},
    limits::{LAST_WORDS, MESSAGE_BYTES, POLL, REOPEN, RESUMES},
    link::{Call, Trouble},
    message,
    types::Failure,
};
use crate::exchange::ServerNotification;
use futures_util::FutureExt as _;
use gantry_egress::{HttpError, HttpResponse, SseParser};
use http::{HeaderMap, HeaderValue, StatusCode, header};
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
        let session = self.open_session()?;
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
            return Err(refusal(response, session.id, Some(ticket.id)).await);
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
                    if self.take(&chunk, &mut parser, Some(ticket.id), outbox)? {
                        attempts = 0;
                    }
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
                ticket.audience.notify(ServerNotification::Released);
                sleep(parser.retry().unwrap_or(REOPEN[0]).clamp(POLL[0], REOPEN[1])).await;
                match self.open_stream(parser.last_id()).await {
                    Ok(Opened::Stream(response)) => break response,
                    Ok(Opened::Nothing) => return Err(broken),
                    // It may not have noticed yet that the first stream is gone.
                    Ok(Opened::NotNow(_)) | Err(_) => {}
                }
            };
            parser.restart();
        }
    }

    /// Hands the messages in a chunk of a stream over. Says whether it brought anything: a message, or an event to go on
    /// after.
    pub(super) fn take(
        &self,
        chunk: &[u8],
        parser: &mut SseParser,
        origin: Option<u64>,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<bool, Failure> {
        let last_id = parser.last_id().map(str::to_owned);
        let mut events = Vec::new();
        let pushed = parser.push(chunk, &mut events);
        let mut brought = parser.last_id() != last_id.as_deref();
        for event in events.iter().filter(|event| event.is_message()) {
            self.dispatcher.receive(&event.data, origin, outbox);
            brought = true;
        }
        pushed.map(|()| brought).map_err(|error| Failure::Lost(error.to_string()))
    }

    /// Opens a stream with GET, after the event with this id if there is one.
    pub(super) async fn open_stream(&self, after: Option<&str>) -> Result<Opened, HttpError> {
        let mut headers = self.headers(&self.session());
        if let Some(id) = after.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.site.get(headers).await?;
        Ok(match response.status() {
            status if status.is_success() && content_type(response.headers()) == EVENT_STREAM => {
                Opened::Stream(response)
            }
            status if status.is_success() => Opened::Nothing,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Opened::Nothing,
            status => Opened::NotNow(status),
        })
    }
}

/// What a server says to a GET.
pub(super) enum Opened {
    Stream(HttpResponse),
    /// It has no such stream.
    Nothing,
    /// It may have one later: it is busy, or believes that one is still open.
    NotNow(StatusCode),
}

/// Reads what is left of a stream, so that its connection can be used again.
fn finish(mut response: HttpResponse) {
    tokio::spawn(timeout(LAST_WORDS, async move { while let Ok(Some(_)) = response.chunk().await {} }));
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
