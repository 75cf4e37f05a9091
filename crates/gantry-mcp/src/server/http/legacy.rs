//! Requests and streams of sessions with a handshake.

use super::{SESSION_HEADER, prefers_events, refuse, takes_events};
use crate::{
    ErrorObject, Version,
    envelope::Request,
    limits::{SESSION_IN_FLIGHT, STREAM_AFTER},
    server::{
        Body, EventStream, Handler, Lane, Live, Peer, Server, Step,
        body::Source,
        caller::Habits,
        flight::{Flight, Flights},
        lane::Reach,
        live::Spoken,
        news::{Common, CommonEvents},
        outbox::Care,
        params::Params,
        ring::{self, Place, Reader, Streams},
        sessions::Entry,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

const LAST_EVENT: &str = "last-event-id";

impl<H: Handler> Server<H> {
    pub(super) async fn post_legacy(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        entry: Arc<Entry<H>>,
        request: Request<'_>,
        params: &Params<'_>,
    ) -> Response<Body> {
        let job = match self.legacy_step(identity, &entry.lane, request, params) {
            Step::Run(job) => job,
            Step::Answer(reply) => return reply.into(),
        };
        let flight = match entry.lane.flights.begin(&job.id) {
            Ok(flight) => flight,
            Err(error) => return refuse(StatusCode::OK, Some(&job.id), &error),
        };
        let reach = if takes_events(headers) { Reach::Open } else { Reach::OnlyTheAnswer };
        let caller = entry.lane.caller(reach, job.wishes.clone());
        let mut live = self.live(&entry.lane, job, caller, flight.token());
        if prefers_events(headers) {
            return self.stream(entry, live, flight, None);
        }
        let patience = match reach {
            Reach::Open => STREAM_AFTER,
            Reach::OnlyTheAnswer => Duration::MAX,
        };
        match timeout(patience, live.next_or_pause()).await {
            Ok(Some(Spoken::Last(reply))) => {
                drop(flight);
                self.inner.sessions.touch(&entry);
                reply.into()
            }
            Ok(Some(Spoken::Message(text, care))) => self.stream(entry, live, flight, Some((&text, care))),
            // A stream shows whoever waits, and whatever stands in between, that the request is alive.
            Ok(None) | Err(_) => self.stream(entry, live, flight, None),
        }
    }

    /// Answers with events. From here on the request goes on whether somebody reads them or not.
    fn stream(
        &self,
        entry: Arc<Entry<H>>,
        live: Live<H>,
        flight: Flight,
        first: Option<(&str, Care)>,
    ) -> Response<Body> {
        let presence = live.presence();
        let stream = entry.streams.open(presence.clone());
        if primed(&entry.lane) {
            entry.streams.prime(stream);
        }
        if let Some((first, care)) = first {
            entry.streams.push(stream, first, care);
        }
        let reader = entry.streams.read(Place { stream, event: 0 });
        // The client is there as long as it reads.
        presence.inspect(|presence| presence.leave());
        let server = self.clone();
        tokio::spawn(async move { server.pump(&entry, live, flight, stream).await });
        match reader {
            Some(reader) => EventStream::new(Resumable(reader)).into_response(),
            None => super::unknown_session(None).into(),
        }
    }

    async fn pump(&self, entry: &Entry<H>, mut live: Live<H>, flight: Flight, stream: u64) {
        let reply = loop {
            match live.next_or_pause().await {
                Some(Spoken::Message(text, care)) => entry.streams.push(stream, &text, care),
                // Only a client that was given an id to come back with can be let go.
                None if primed(&entry.lane) => entry.streams.let_go(stream),
                None => {}
                Some(Spoken::Last(reply)) => break reply,
            }
        };
        // The id must be free before the client can see its answer.
        drop(flight);
        entry.streams.push(stream, &reply.text, Care::MustArrive);
        entry.streams.end(stream);
        self.inner.sessions.touch(entry);
    }

    pub(super) async fn post_initialize(
        &self,
        identity: &H::Identity,
        request: &Request<'_>,
        params: &Params<'_>,
    ) -> Response<Body> {
        // Asked before the handler makes the session, so that no change is missed in between.
        let common = Common::new(self.inner.handler.changes());
        let lane = match self.handshake(identity, params).await {
            Ok(lane) => lane,
            Err(error) => return refuse(StatusCode::OK, Some(&request.id), &error),
        };
        let version = lane.version;
        let streams = Streams::new(Arc::clone(&self.inner.replay));
        let (id, evicted) = self.inner.sessions.insert(identity.clone(), lane, streams, common);
        if let Some(evicted) = evicted {
            tracing::warn!("too many MCP sessions; the one that was idle for longest was closed");
            self.dismiss(&evicted);
        }
        let mut response = Response::from(self.welcome(identity, &request.id, version));
        if let Ok(value) = HeaderValue::from_str(&id.simple().to_string()) {
            response.headers_mut().insert(SESSION_HEADER, value);
        }
        response
    }

    async fn handshake(&self, identity: &H::Identity, params: &Params<'_>) -> Result<Lane<H>, ErrorObject> {
        let version = Version::negotiate(&params.asked_version()?);
        let capabilities = Arc::new(params.declared());
        let peer = Peer { identity, version, client: params.client(), capabilities: &capabilities };
        let session = self.inner.handler.open(peer).await?;
        Ok(Lane {
            session,
            version,
            flights: Flights::new(SESSION_IN_FLIGHT),
            capabilities,
            number: self.number(),
            questions: Arc::default(),
            habits: Arc::new(Habits::new(self.inner.handler.features(identity).logging)),
        })
    }

    pub(super) fn get_stream(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        entry: &Arc<Entry<H>>,
    ) -> Response<Body> {
        let place = match headers.get(LAST_EVENT) {
            Some(id) => id.to_str().ok().and_then(|id| entry.streams.place(id)),
            None => Some(entry.streams.now(ring::COMMON)),
        };
        let Some(place) = place else {
            let message = "this stream cannot be resumed any more; leave Last-Event-ID out to open a new one";
            return refuse(StatusCode::BAD_REQUEST, None, &ErrorObject::invalid_request(message));
        };
        let Some(reader) = entry.streams.read(place) else { return super::unknown_session(None).into() };
        if place.stream != ring::COMMON {
            return EventStream::new(Resumable(reader)).into_response();
        }
        if primed(&entry.lane) {
            entry.streams.prime(ring::COMMON);
        }
        let features = self.inner.handler.features(identity);
        EventStream::new(CommonEvents::new(self.clone(), Arc::clone(entry), features, reader)).into_response()
    }
}

/// Whether streams begin with an event that has an id and no message. Clients before 2025-11-25 take it for a broken one.
fn primed<H: Handler>(lane: &Lane<H>) -> bool {
    lane.version >= Version::V2025_11_25
}

/// The events of a request's stream.
struct Resumable(Reader);

impl Source for Resumable {
    async fn next(&mut self) -> Option<Bytes> {
        self.0.next().await
    }
}
