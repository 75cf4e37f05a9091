//! Tells servers what sessions are subscribed to: which resources to report, and how much to log.
//!
//! A server gets one request however many sessions want the same, and gets it again when it reconnects. Requests about one
//! resource are sent one after the other, and each says what the subscriptions are when its turn comes; so the last one
//! carries the newest state. A connection remembers what it has asked for, so asking twice costs nothing.

use crate::context::UpstreamContext;
use crate::forward::{Answer, string_param, to_error_object};
use crate::server::UpstreamServer;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use gantry_core::id::SessionId;
use gantry_mcp::client::{Connection, Failure};
use gantry_provider::client::LogLevel;
use gantry_provider::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::server::{RequestScope, Server as _};
use gantry_provider::{BoxFuture, ErrorObject};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// The result of requests that ask for nothing back.
const DONE: &str = "{}";

/// How long a server may take to answer one request.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests that are sent to one server at once.
const AT_ONCE: usize = 16;

/// When the subscriptions that a server did not answer after it reconnected are sent again; the wait doubles each time.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_AT_MOST: Duration = Duration::from_secs(120);

impl UpstreamContext {
    pub(crate) async fn subscribe(&self, scope: &dyn RequestScope, uri: &str) -> Answer {
        let target = self.find_resource(scope, uri)?;
        let (session, id, own) = (scope.session(), target.server.id(), &target.upstream_uri);
        if let Some(reason) = target.server.unavailable_reason() {
            return Err(ErrorObject::new(INTERNAL_ERROR, reason));
        }
        let subscribed = self.subscriptions.subscribe(session, id, own);
        subscribed.map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        // Also if there is a subscription already: the server may be about to refuse the one who came first.
        if let Err(failure) = target.server.sync_subscription(own, None).await {
            self.subscriptions.unsubscribe(session, id, own);
            return Err(to_error_object(id, failure));
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn unsubscribe(&self, scope: &dyn RequestScope, uri: &str) -> Answer {
        let target = self.find_resource(scope, uri)?;
        if self.subscriptions.unsubscribe(scope.session(), target.server.id(), &target.upstream_uri) {
            target.server.unsubscribe_from(vec![target.upstream_uri.into()]).await;
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn set_level(&self, session: SessionId, params: &str) -> Answer {
        let word = string_param(params, "level")?;
        let level = LogLevel::parse(&word).ok_or_else(|| {
            let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            ErrorObject::new(INVALID_PARAMS, format!("there is no level {word:?}; there are {known}"))
        })?;
        if self.subscriptions.set_level(session, level) {
            push_log_level(&self.servers()).await;
        }
        Ok(DONE.to_owned())
    }

    /// Drops what a session that is over had subscribed to. Returns the work of telling the servers, if there is any.
    pub(crate) fn drop_subscriptions(&self, session: SessionId) -> Option<BoxFuture<'static, ()>> {
        let (unwatched, is_other_level) = self.subscriptions.end(session);
        if unwatched.is_empty() && !is_other_level {
            return None;
        }
        let servers = self.servers();
        Some(Box::pin(async move {
            join_all(servers.iter().map(|server| {
                let own = unwatched.iter().filter(|(id, _)| id == server.id());
                server.unsubscribe_from(own.map(|(_, uri)| Arc::clone(uri)).collect())
            }))
            .await;
            if is_other_level {
                push_log_level(&servers).await;
            }
        }))
    }
}

/// Tells all servers that log how much to log now.
async fn push_log_level(servers: &[Arc<UpstreamServer>]) {
    let logging =
        servers.iter().filter(|server| server.listing().is_some_and(|listing| listing.offers("logging")));
    let pushed = logging.map(|server| async { server.push_log_level(&server.all_connections()).await });
    join_all(pushed).await;
}

/// Puts requests about one resource to one server in order. The key of log levels is an empty URI.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionTurns(Mutex<HashMap<Arc<str>, Arc<Semaphore>>>);

impl SubscriptionTurns {
    /// Sends a request when its turn has come. Its answer is waited for, but not longer than [`SUBSCRIBE_TIMEOUT`].
    async fn run(
        &self,
        uri: &str,
        request: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(uri.into()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let request = async {
            let _turn = turn.acquire().await;
            request.await
        };
        let no_answer = || Failure::Lost("no answer in time".into());
        timeout(SUBSCRIBE_TIMEOUT, request).await.unwrap_or_else(|_| Err(no_answer()))
    }
}

impl UpstreamServer {
    /// Subscribes one connection, or all of the server, to a resource, or unsubscribes them, as the subscriptions of
    /// sessions say once it is its turn.
    ///
    /// # Errors
    /// A replica refuses it.
    pub(crate) async fn sync_subscription(
        &self,
        uri: &str,
        only: Option<&Arc<Connection>>,
    ) -> Result<(), Failure> {
        let request = async {
            let is_wanted = self.context.subscriptions.has_subscriber(self.id(), uri);
            let connections = only.map_or_else(|| self.connections(), |only| vec![Arc::clone(only)]);
            let answers = join_all(connections.iter().map(|connection| connection.watch(uri, is_wanted)));
            answers.await.into_iter().collect()
        };
        self.subscription_turns.run(uri, request).await
    }

    /// Tells the server that no session is subscribed to these resources any more; a failure is only logged.
    async fn unsubscribe_from(&self, uris: Vec<Arc<str>>) {
        let requests = stream::iter(uris).map(|uri| async move {
            if let Err(failure) = self.sync_subscription(&uri, None).await {
                tracing::debug!("{}: {uri} is still subscribed to: {failure}", self.id());
            }
        });
        requests.buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    /// Sets the log level of these connections.
    pub(super) async fn push_log_level(&self, connections: &[Arc<Connection>]) {
        let request = async {
            let Some(level) = self.context.subscriptions.level() else { return Ok(()) };
            let answers = join_all(connections.iter().map(|connection| connection.set_log_level(level)));
            answers.await.into_iter().collect()
        };
        if let Err(failure) = self.subscription_turns.run("", request).await {
            tracing::debug!("{}: it does not take a log level: {failure}", self.id());
        }
    }

    /// Brings a new connection up to date, for as long as it takes, and never returns.
    pub(super) async fn resubscribe(&self, connection: &Arc<Connection>) -> Infallible {
        self.push_log_level(std::slice::from_ref(connection)).await;
        let mut left: Vec<Arc<str>> = self.context.subscriptions.uris_of(self.id()).into_iter().collect();
        let mut wait = AGAIN;
        loop {
            let requests = stream::iter(left).map(|uri| self.resubscribe_one(connection, uri));
            left = requests.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
            let Some(uri) = left.first() else { return std::future::pending().await };
            let (id, n) = (self.id(), left.len());
            tracing::warn!("{id}: it does not answer {n} subscriptions; {uri} is one of them");
            sleep(wait).await;
            wait = (wait * 2).min(AGAIN_AT_MOST);
        }
    }

    /// Subscribes a new connection to one resource. Returns the resource if that has to be tried again.
    async fn resubscribe_one(&self, connection: &Arc<Connection>, uri: Arc<str>) -> Option<Arc<str>> {
        match self.sync_subscription(&uri, Some(connection)).await {
            Ok(()) => None,
            Err(Failure::Answered(error)) => {
                tracing::warn!("{}: it refuses the subscription to {uri}: {error}", self.id());
                None
            }
            Err(Failure::Unavailable(_) | Failure::Lost(_) | Failure::Canceled) => Some(uri),
        }
    }
}
