//! One request over HTTP, from the POST to its answer; a stream that breaks is resumed.

use super::{EVENT_STREAM, HttpSession, LAST_EVENT_ID, error_response};
use crate::client::dispatcher::RequestGuard;
use crate::client::limits::{CLOSE_TIMEOUT, MESSAGE_BYTES, POLL, REOPEN, RESUMES};
use crate::client::message;
use crate::client::transport::{Call, TransportError};
use crate::client::types::{Answer, UpstreamError};
use crate::exchange::ServerNotification;
use futures_util::FutureExt as _;
use gantry_egress::{HttpError, HttpResponse, SseParser};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::{sleep, timeout};

impl HttpSession {
    pub(super) async fn exchange(
        &self,
        request: &mut RequestGuard,
        call: &Call<'_>,
    ) -> Result<String, TransportError> {
        let (mut headers, in_session) = self.headers();
        headers.extend(call.headers.clone());
        let text = message::request(request.id, call.method, call.params);
        self.dispatcher.trace(true, &text);
        let response = tokio::select! {
            biased;
            outcome = request.outcome() => return Ok(outcome?),
            response = self.endpoint.post(&self.endpoint.url, headers, text) => response?,
        };
        if !response.status().is_success() {
            return Err(error_response(&self.dispatcher.target, response, in_session, Some(request.id)).await);
        }
        if call.method == "initialize" {
            self.set_id(&response);
        }
        match content_type(response.headers()) {
            EVENT_STREAM => Ok(self.follow(response, request).await?),
            "application/json" => {
                let body = response.body(MESSAGE_BYTES).await?;
                self.dispatcher.receive_bytes(&body, Some(request.id));
                let nothing = || {
                    let what = "the server sent no answer to the request";
                    Err(UpstreamError::OutcomeUnknown(what.into()))
                };
                Ok(request.outcome().now_or_never().unwrap_or_else(nothing)?)
            }
            other => {
                let status = response.status();
                let what =
                    format!("the server answered with HTTP {status} and content of the kind {other:?}");
                Err(UpstreamError::OutcomeUnknown(what).into())
            }
        }
    }

    /// Reads a stream until the outcome is there.
    async fn follow(&self, mut response: HttpResponse, request: &mut RequestGuard) -> Answer {
        let mut parser = SseParser::new(MESSAGE_BYTES);
        let mut attempts = 0;
        loop {
            let chunk = tokio::select! {
                biased;
                outcome = request.outcome() => {
                    finish(response);
                    return outcome;
                }
                chunk = response.chunk() => chunk,
            };
            let broken = match chunk {
                Ok(Some(chunk)) => {
                    if self.take(&chunk, &mut parser, Some(request.id))? {
                        attempts = 0;
                    }
                    tokio::task::coop::consume_budget().await;
                    continue;
                }
                Ok(None) => {
                    UpstreamError::OutcomeUnknown("the server ended the stream before the answer".into())
                }
                Err(error) => error.into(),
            };
            response = loop {
                attempts += 1;
                if self.is_modern || parser.last_id().is_none() || attempts > RESUMES {
                    return Err(broken);
                }
                request.owner.client.notify(ServerNotification::Released);
                sleep(parser.retry().unwrap_or(REOPEN[0]).clamp(POLL[0], REOPEN[1])).await;
                match self.open_stream(parser.last_id()).await {
                    Ok(Opened::Stream(response)) => break response,
                    Ok(Opened::Nothing) => return Err(broken),
                    // The server may not have noticed yet that the first stream broke.
                    Ok(Opened::NotNow(_)) | Err(_) => {}
                }
            };
            parser.restart();
        }
    }

    /// Hands the messages in a chunk of a stream over. Returns whether it brought a message, or an event to resume after.
    pub(super) fn take(
        &self,
        chunk: &[u8],
        parser: &mut SseParser,
        origin: Option<u64>,
    ) -> Result<bool, UpstreamError> {
        let last_id = parser.last_id().map(str::to_owned);
        let mut events = Vec::new();
        let pushed = parser.push(chunk, &mut events);
        let mut brought = parser.last_id() != last_id.as_deref();
        for event in events.iter().filter(|event| event.is_message()) {
            self.dispatcher.receive(&event.data, origin);
            brought = true;
        }
        pushed.map(|()| brought).map_err(|error| UpstreamError::OutcomeUnknown(error.to_string()))
    }

    /// Opens a stream with GET, after the event with this id if there is one.
    pub(super) async fn open_stream(&self, after: Option<&str>) -> Result<Opened, HttpError> {
        let (mut headers, _) = self.headers();
        if let Some(id) = after.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.endpoint.get(headers).await?;
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

pub(super) enum Opened {
    Stream(HttpResponse),
    /// It has no such stream.
    Nothing,
    /// It may have one later: it is busy, or believes that one is still open.
    NotNow(StatusCode),
}

/// Reads what is left of a stream, so that its connection can be used again.
fn finish(mut response: HttpResponse) {
    tokio::spawn(timeout(CLOSE_TIMEOUT, async move { while let Ok(Some(_)) = response.chunk().await {} }));
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
