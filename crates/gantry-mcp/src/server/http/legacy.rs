//! Requests and streams of sessions with a handshake.

use super::{Accept, Answer, Events, SESSION_HEADER};
use crate::envelope::Request;
use crate::limits::{SESSION_IN_FLIGHT, STREAM_AFTER};
use crate::server::connection::Connection;
use crate::server::event_log::{EventLogs, EventPosition, SESSION_STREAM};
use crate::server::in_flight::{InFlightGuard, InFlightRequests};
use crate::server::notifications::{NotificationFeed, SessionEvents};
use crate::server::outgoing::Delivery;
use crate::server::request_channel::ResponseMode;
use crate::server::request_task::{Next, RequestTask};
use crate::server::sessions::HttpSession;
use crate::server::{Body, EventStream, Handler, Reply, Server, legacy};
use crate::{ErrorObject, Version};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const LAST_EVENT: &str = "last-event-id";

impl Server {
    pub(super) async fn post_legacy(
        &self,
        accept: Accept,
        session: Arc<HttpSession>,
        request: Request<'_>,
    ) -> Answer {
        let request = legacy::parse(request, &session.connection)?;
        let refused = |error| Reply::error(StatusCode::OK, Some(&request.id), &error);
        let guard = session.connection.in_flight.begin(&request.id).map_err(refused)?;
        let (mode, wait) = if accept.takes_events() {
            (ResponseMode::Stream, STREAM_AFTER)
        } else {
            (ResponseMode::Single, Duration::MAX)
        };
        let mut task = self.start_legacy(&session.connection, mode, request, guard.token());
        if accept.events == Events::Preferred {
            return Ok(self.stream(session, task, guard, None));
        }
        Ok(match timeout(wait, task.next()).await {
            Ok(Next::Response(reply)) => {
                drop(guard);
                self.inner.sessions.touch(&session);
                reply.delivered().await.into()
            }
            Ok(Next::Message(text, delivery)) => self.stream(session, task, guard, Some((&text, delivery))),
            // A stream shows the client, and the proxies in between, that the request is running.
            Ok(Next::Released) | Err(_) => self.stream(session, task, guard, None),
        })
    }

    /// Answers with events. From here on the request runs whether the client reads them or not.
    fn stream(
        &self,
        session: Arc<HttpSession>,
        task: RequestTask,
        guard: InFlightGuard,
        first: Option<(&str, Delivery)>,
    ) -> Response<Body> {
        let stream = session.logs.open();
        if sends_priming_event(&session) {
            session.logs.prime(stream);
        }
        if let Some((first, delivery)) = first {
            session.logs.push(stream, first, delivery, None);
        }
        let reader = session.logs.read(EventPosition { stream, event: 0 });
        let server = self.clone();
        tokio::spawn(async move { server.pump(&session, task, guard, stream).await });
        match reader {
            Some(reader) => EventStream::new(reader).into_response(),
            None => super::unknown_session(None).into(),
        }
    }

    async fn pump(&self, session: &HttpSession, mut task: RequestTask, guard: InFlightGuard, stream: u64) {
        let reply = loop {
            match task.next().await {
                Next::Message(text, delivery) => session.logs.push(stream, &text, delivery, None),
                // Only a client that was given an id to come back with can be disconnected.
                Next::Released if sends_priming_event(session) => session.logs.release(stream),
                Next::Released => {}
                Next::Response(reply) => break reply,
            }
        };
        // The id must be free before the client can see the response.
        drop(guard);
        session.logs.push(stream, &reply.text, Delivery::Required, reply.receipt);
        session.logs.end(stream);
        self.inner.sessions.make_room(&self.inner.log_budget);
        self.inner.sessions.touch(session);
    }

    pub(super) async fn post_initialize(&self, handler: &Arc<dyn Handler>, request: &Request<'_>) -> Answer {
        // Subscribed before the handler opens the session, so that no change is missed in between.
        let changes = self.changes();
        let in_flight = InFlightRequests::new(SESSION_IN_FLIGHT);
        let refused = |error| Reply::error(StatusCode::OK, Some(&request.id), &error);
        let version = request.params.negotiated_version().map_err(refused)?;
        handler.open_session().await.map_err(refused)?;
        let (params, number) = (&request.params, self.client_number());
        let connection = Arc::new(Connection::new(handler, version, params, in_flight, number));
        let welcome = self.welcome(&connection, &request.id);
        let feed = NotificationFeed::of_connection(&connection, changes);
        let logs = EventLogs::new(Arc::clone(&self.inner.log_budget));
        let (id, evicted) = self.inner.sessions.insert(connection, logs, feed);
        if let Some(evicted) = evicted {
            tracing::warn!("too many MCP sessions; the one that was idle for longest was closed");
            self.terminate(&evicted);
        }
        let mut response = Response::from(welcome);
        if let Ok(value) = HeaderValue::from_str(&id.simple().to_string()) {
            response.headers_mut().insert(SESSION_HEADER, value);
        }
        Ok(response)
    }

    pub(super) fn get_stream(&self, headers: &HeaderMap, session: &Arc<HttpSession>) -> Answer {
        let position = match headers.get(LAST_EVENT) {
            Some(id) => id.to_str().ok().and_then(|id| session.logs.position(id)),
            None => Some(session.logs.end_position(SESSION_STREAM)),
        };
        let Some(position) = position else {
            let message = "this stream cannot be resumed any more; leave Last-Event-ID out to open a new one";
            return Err(Reply::error(StatusCode::BAD_REQUEST, None, &ErrorObject::invalid_request(message)));
        };
        let reader = session.logs.read(position).ok_or_else(|| super::unknown_session(None))?;
        if position.stream != SESSION_STREAM {
            return Ok(EventStream::new(reader).into_response());
        }
        if sends_priming_event(session) {
            session.logs.prime(SESSION_STREAM);
        }
        Ok(EventStream::new(SessionEvents::open(self, session, reader)).into_response())
    }
}

/// Whether streams begin with an event that has an id and no message. Clients before 2025-11-25 refuse it.
fn sends_priming_event(session: &HttpSession) -> bool {
    session.connection.version >= Version::V2025_11_25
}
