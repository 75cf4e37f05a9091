//! Brings a server up to date with the subscriptions of sessions: which resources to report, and how much to log.
//!
//! Requests about one resource are sent one after the other, and each reads the subscriptions when its turn comes; so
//! the last request always carries the newest state. A connection remembers what it has asked for, so asking twice costs
//! nothing.

use crate::server::UpstreamServer;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use gantry_mcp::client::{Connection, Failure};
use std::convert::Infallible;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// How long a server may take to answer one request.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests that are sent to one server at once.
const AT_ONCE: usize = 16;

/// How often a server that reconnected is asked for a subscription, and how long after the last attempt.
const TRIES: usize = 3;
const AGAIN: Duration = Duration::from_secs(5);

/// Locks that put requests to one server in order: one for log levels, and a few that the resources share.
#[derive(Debug)]
pub(super) struct SubscriptionLocks {
    resources: [Semaphore; AT_ONCE],
    level: Semaphore,
}

impl Default for SubscriptionLocks {
    fn default() -> Self {
        Self { resources: std::array::from_fn(|_| Semaphore::new(1)), level: Semaphore::new(1) }
    }
}

impl SubscriptionLocks {
    fn of(&self, uri: &str) -> &Semaphore {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(uri);
        let [first, ..] = &self.resources;
        usize::try_from(hash % AT_ONCE as u64).ok().and_then(|n| self.resources.get(n)).unwrap_or(first)
    }
}

/// Waits for an answer, but not longer than [`SUBSCRIBE_TIMEOUT`].
async fn in_time(request: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    timeout(SUBSCRIBE_TIMEOUT, request)
        .await
        .unwrap_or_else(|_| Err(Failure::Lost("no answer in time".into())))
}

impl UpstreamServer {
    /// Subscribes the server's connections to a resource, or unsubscribes them, as the subscriptions of sessions say once
    /// the lock is held.
    ///
    /// # Errors
    /// A replica refuses it.
    pub(crate) async fn sync_subscription(&self, uri: &str) -> Result<(), Failure> {
        in_time(async {
            let turn = self.subscription_locks.of(uri).acquire().await;
            let is_wanted = self.context.subscriptions.has_subscriber(self.id(), uri);
            let connections = self.connections();
            let answers =
                join_all(connections.iter().map(|connection| connection.watch(uri, is_wanted))).await;
            drop(turn);
            answers.into_iter().collect()
        })
        .await
    }

    /// The same for many resources; a failure is only logged.
    pub(crate) async fn sync_subscriptions(&self, uris: Vec<Arc<str>>) {
        let requests = stream::iter(uris).map(|uri| async move {
            if let Err(failure) = self.sync_subscription(&uri).await {
                tracing::debug!("{}: {uri} is still subscribed to: {failure}", self.id());
            }
        });
        requests.buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    /// Sets the log level of the server's connections.
    pub(crate) async fn push_log_level(&self) {
        self.push_log_level_to(&self.all_connections()).await;
    }

    async fn push_log_level_to(&self, connections: &[Arc<Connection>]) {
        let pushed = in_time(async {
            let turn = self.subscription_locks.level.acquire().await;
            let Some(level) = self.context.subscriptions.level() else { return Ok(()) };
            let answers =
                join_all(connections.iter().map(|connection| connection.set_log_level(level))).await;
            drop(turn);
            answers.into_iter().collect()
        });
        if let Err(failure) = pushed.await {
            tracing::debug!("{}: it does not take a log level: {failure}", self.id());
        }
    }

    /// Brings a new connection up to date, for as long as it takes, and never returns.
    pub(super) async fn resubscribe(&self, connection: &Arc<Connection>) -> Infallible {
        self.push_log_level_to(std::slice::from_ref(connection)).await;
        let mut left = self.context.subscriptions.uris_of(self.id());
        for n in 0..TRIES {
            if left.is_empty() {
                break;
            }
            if n > 0 {
                sleep(AGAIN).await;
            }
            let requests = stream::iter(left).map(|uri| self.resubscribe_one(connection, uri));
            left = requests.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        }
        if let [uri, ..] = &left[..] {
            let (id, n) = (self.id(), left.len());
            tracing::warn!("{id}: it refuses {n} subscriptions; {uri} is one of them");
        }
        std::future::pending().await
    }

    /// Subscribes a new connection to one resource. Returns the resource if that has to be tried again.
    async fn resubscribe_one(&self, connection: &Connection, uri: Arc<str>) -> Option<Arc<str>> {
        let turn = self.subscription_locks.of(&uri).acquire().await;
        if !self.context.subscriptions.has_subscriber(self.id(), &uri) {
            return None;
        }
        let subscribed = in_time(connection.watch(&uri, true)).await;
        drop(turn);
        match subscribed {
            Ok(()) => None,
            Err(Failure::Answered(error)) => {
                tracing::warn!("{}: it refuses the subscription to {uri}: {error}", self.id());
                None
            }
            Err(Failure::Unavailable(_) | Failure::Lost(_) | Failure::Canceled) => Some(uri),
        }
    }
}
