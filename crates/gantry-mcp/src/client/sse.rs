//! HTTP+SSE of 2024-11-05: everything comes in on one stream of events, and goes out to an address that the stream names.

use super::dispatcher::Dispatcher;
use super::duplex::Duplex;
use super::http::{HttpEndpoint, error_response};
use super::limits::{MESSAGE_BYTES, POST_WAIT};
use super::queue::{Frame, Frames};
use super::transport::TransportError;
use super::types::UpstreamError;
use gantry_egress::{HttpResponse, SseEvent, SseParser, Url};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::timeout;

pub(super) async fn open(frames: Frames, endpoint: HttpEndpoint) -> Result<Duplex, TransportError> {
    let response = endpoint.get(endpoint.headers.clone()).await?;
    if !response.status().is_success() {
        return Err(error_response(&frames.dispatcher.target, response, false, None).await);
    }
    let mut events = Events { response, parser: SseParser::new(MESSAGE_BYTES), ready: VecDeque::new() };
    let address = loop {
        match events.next().await {
            Ok(event) if event.kind.as_deref() == Some("endpoint") => break event.data,
            Ok(_) => {}
            Err(reason) => {
                return Err(UpstreamError::NotSent(format!("no address came to send to: {reason}")).into());
            }
        }
    };
    let address = resolve(&endpoint.url, address.trim()).map_err(UpstreamError::NotSent)?;
    let poster = Poster { endpoint, address, dispatcher: Arc::clone(&frames.dispatcher) };
    Ok(Duplex::start(
        frames,
        None,
        |dispatcher| async move {
            loop {
                match events.next().await {
                    Ok(event) if event.is_message() => dispatcher.receive(&event.data, None),
                    Ok(_) => {}
                    Err(reason) => return reason,
                }
                tokio::task::coop::consume_budget().await;
            }
        },
        |frames| async move {
            frames.for_each(|frame| poster.post(frame)).await;
            // Hanging up is all there is to do at the end.
            poster.dispatcher.end("the connection was closed");
            Ok(())
        },
    ))
}

struct Events {
    response: HttpResponse,
    parser: SseParser,
    /// Limit: what one chunk holds.
    ready: VecDeque<SseEvent>,
}

impl Events {
    async fn next(&mut self) -> Result<SseEvent, String> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let chunk = self.response.chunk().await.map_err(|error| error.to_string())?;
            let chunk = chunk.ok_or("the server ended the stream")?;
            let mut events = Vec::new();
            let pushed = self.parser.push(&chunk, &mut events);
            pushed.map_err(|error| error.to_string())?;
            self.ready.extend(events);
        }
    }
}

struct Poster {
    endpoint: HttpEndpoint,
    address: String,
    dispatcher: Arc<Dispatcher>,
}

impl Poster {
    async fn post(&self, frame: Frame) {
        let posted = async {
            let headers = self.endpoint.headers.clone();
            let response = self.endpoint.post(&self.address, headers, frame.text).await?;
            if response.status().is_success() {
                return Ok(());
            }
            Err(error_response(&self.dispatcher.target, response, false, frame.id).await)
        };
        let error = match timeout(POST_WAIT, posted).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => UpstreamError::from(error),
            Err(_) => UpstreamError::OutcomeUnknown("the server did not take the request in time".into()),
        };
        match frame.id {
            Some(id) => self.dispatcher.fail(id, error),
            None => tracing::debug!(server = %self.dispatcher.target.name, %error, "a message was not taken"),
        }
    }
}

/// The address that an endpoint means, which must be on the same server: requests carry secrets.
fn resolve(base: &str, endpoint: &str) -> Result<String, String> {
    let refused = |what: &str| format!("the server names {endpoint:?} as the address to send to, {what}");
    if endpoint.contains(char::is_whitespace) {
        return Err(refused("which is not an address"));
    }
    let resolved = Url::parse(base).and_then(|base| Ok((base.join(endpoint)?, base)));
    let (target, base) = resolved.map_err(|error| refused(&format!("which is not an address: {error}")))?;
    let server = |url: &Url| (url.origin(), url.username().to_owned(), url.password().map(str::to_owned));
    if server(&target) == server(&base) { Ok(target.into()) } else { Err(refused("which is another server")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_on_the_same_server_or_refused() {
        let base = "https://a.example:8443/v1/sse?x=1";
        for (endpoint, address) in [
            ("/messages?s=1", "https://a.example:8443/messages?s=1"),
            ("messages", "https://a.example:8443/v1/messages"),
            ("?s=1", "https://a.example:8443/v1/sse?s=1"),
            ("https://a.example:8443/m", "https://a.example:8443/m"),
            ("//a.example:8443/m", "https://a.example:8443/m"),
        ] {
            assert_eq!(resolve(base, endpoint).as_deref(), Ok(address), "{endpoint}");
        }
        for endpoint in [
            "https://b.example/m",
            "//b.example/m",
            "http://a.example:8443/m",
            "https://u@a.example:8443/m",
            "/a b",
        ] {
            assert!(resolve(base, endpoint).is_err(), "{endpoint}");
        }
    }
}
