//! HTTP+SSE of 2024-11-05: everything comes in on one stream of events, and goes out to an address that the stream names.

use super::{
    dispatcher::Dispatcher,
    duplex::{Duplex, Ends, Frame},
    http::{Site, refusal},
    limits::{MESSAGE_BYTES, POST_WAIT, POSTS},
    link::Trouble,
    types::Failure,
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use gantry_egress::{HttpResponse, SseEvent, SseParser};
use http::{Uri, uri};
use std::{collections::VecDeque, sync::Arc};
use tokio::time::timeout;

/// Opens the stream and waits for the address.
pub(super) async fn open(dispatcher: &Arc<Dispatcher>, site: Site) -> Result<Duplex, Trouble> {
    let response = site.get(site.headers.clone()).await?;
    if !response.status().is_success() {
        return Err(refusal(response, None, None).await);
    }
    let mut events = Events { response, parser: SseParser::new(MESSAGE_BYTES), ready: VecDeque::new() };
    let endpoint = loop {
        match events.next().await {
            Ok(event) if event.kind.as_deref() == Some("endpoint") => break event.data,
            Ok(_) => {}
            Err(reason) => {
                return Err(Failure::Unavailable(format!("no address came to send to: {reason}")).into());
            }
        }
    };
    let address = resolve(&site.url, endpoint.trim()).map_err(Failure::Unavailable)?;
    let (duplex, ends) = Duplex::open(dispatcher, None);
    let Ends { dispatcher, outbox, frames, no_more, stop } = ends;
    let post_stop = stop.clone();
    let poster = Poster { site, address, dispatcher: Arc::clone(&dispatcher) };
    tokio::spawn(async move {
        tokio::select! {
            () = poster.run(frames, &no_more) => {}
            () = post_stop.cancelled() => {}
        }
        // Hanging up is all there is to say at the end.
        poster.dispatcher.end("the connection was closed");
    });
    tokio::spawn(async move {
        let read = async {
            loop {
                match events.next().await {
                    Ok(event) if event.is_message() => dispatcher.receive(&event.data, None, &outbox),
                    Ok(_) => {}
                    Err(reason) => return reason,
                }
                tokio::task::coop::consume_budget().await;
            }
        };
        let ended = dispatcher.ended();
        tokio::select! {
            reason = read => dispatcher.end(reason),
            () = stop.cancelled() => {}
            _ = ended => {}
        }
    });
    Ok(duplex)
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
    site: Site,
    address: String,
    dispatcher: Arc<Dispatcher>,
}

impl Poster {
    async fn run(
        &self,
        mut frames: tokio::sync::mpsc::Receiver<Frame>,
        no_more: &tokio_util::sync::CancellationToken,
    ) {
        let mut posts = FuturesUnordered::new();
        loop {
            tokio::select! {
                frame = Ends::next_frame(&mut frames, no_more), if posts.len() < POSTS => match frame {
                    Some(frame) => posts.push(self.post(frame)),
                    None => break,
                },
                Some(()) = posts.next(), if !posts.is_empty() => {}
            }
        }
        while posts.next().await.is_some() {}
    }

    async fn post(&self, frame: Frame) {
        let posted = async {
            let headers = self.site.headers.clone();
            let response = self.site.post(&self.address, headers, frame.text).await?;
            if response.status().is_success() { Ok(()) } else { Err(refusal(response, None, frame.id).await) }
        };
        let failure = match timeout(POST_WAIT, posted).await {
            Ok(Ok(())) => return,
            Ok(Err(trouble)) => Failure::from(trouble),
            Err(_) => Failure::Lost("the server did not take the request in time".into()),
        };
        match frame.id {
            Some(id) => self.dispatcher.fail(id, failure),
            None => {
                tracing::debug!(server = %self.dispatcher.target.name, %failure, "a message was not taken")
            }
        }
    }
}

/// The address that an endpoint means, which must be on the same server: requests carry secrets.
fn resolve(base: &str, endpoint: &str) -> Result<String, String> {
    let refused = |what: &str| format!("the server names {endpoint:?} as the address to send to, {what}");
    let wrong = |error: http::Error| refused(&format!("which is not an address: {error}"));
    let base = Uri::try_from(base).map_err(|error| wrong(error.into()))?;
    let (Some(scheme), Some(authority)) = (base.scheme(), base.authority()) else {
        return Err(refused("and its own address is not a whole one"));
    };
    let absolute = endpoint.contains("://");
    if absolute || endpoint.starts_with("//") {
        let whole = if absolute { endpoint.to_owned() } else { format!("{scheme}:{endpoint}") };
        let target = Uri::try_from(&*whole).map_err(|error| wrong(error.into()))?;
        let same = target.scheme() == Some(scheme) && target.authority() == Some(authority);
        return if same { Ok(whole) } else { Err(refused("which is another server")) };
    }
    let path = if endpoint.starts_with('/') {
        endpoint.to_owned()
    } else if endpoint.starts_with('?') {
        format!("{}{endpoint}", base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{endpoint}")
    };
    let parts = uri::Builder::new().scheme(scheme.clone()).authority(authority.clone()).path_and_query(path);
    parts.build().map(|target| target.to_string()).map_err(wrong)
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
