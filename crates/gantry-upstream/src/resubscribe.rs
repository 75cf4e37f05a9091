//! Telling a server what sessions want to hear: which resources somebody watches, and how much to log.
//!
//! Whoever tells looks at the subscriptions when its turn comes, so the last word is always the newest wish. A connection knows
//! what it was told already, so telling twice costs nothing.

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

/// How long a server may take to hear one wish.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Subscriptions that one server is told at once.
const AT_ONCE: usize = 16;

/// How often a server that comes back is told a wish, and how long after the last time.
const TRIES: usize = 3;
const AGAIN: Duration = Duration::from_secs(5);

/// Whose turn it is to tell a server something. Resources share a few turns; what matters is that there is one for each.
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

/// Waits a moment for a server to take a wish.
async fn in_time(request: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    timeout(SUBSCRIBE_TIMEOUT, request)
        .await
        .unwrap_or_else(|_| Err(Failure::Lost("no answer in time".into())))
}

impl UpstreamServer {
    /// Tells the server whether somebody watches a resource now: while this waited for its turn, the last may have left,
    /// or the first come.
    ///
    /// # Errors
    /// A replica does not take it.
    pub(crate) async fn sync_subscription(&self, uri: &str) -> Result<(), Failure> {
        in_time(async {
            let turn = self.subscription_locks.of(uri).acquire().await;
            let is_watched = self.context.subscriptions.has_subscriber(self.id(), uri);
            let connections = self.connections();
            let answers =
                join_all(connections.iter().map(|connection| connection.watch(uri, is_watched))).await;
            drop(turn);
            answers.into_iter().collect()
        })
        .await
    }

    /// Tells the server of many resources whether somebody watches them now, as far as it takes it.
    pub(crate) async fn sync_subscriptions(&self, uris: Vec<Arc<str>>) {
        let requests = stream::iter(uris).map(|uri| async move {
            if let Err(failure) = self.sync_subscription(&uri).await {
                tracing::debug!("{}: {uri} is still watched: {failure}", self.id());
            }
        });
        requests.buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    /// Tells the server how much to log now.
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

    /// Tells a new connection what sessions want to hear, for as long as it takes, and never returns.
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
            tracing::warn!("{id}: it does not take that {n} resources are watched; {uri} is one of them");
        }
        std::future::pending().await
    }

    /// Tells a new connection of one resource. Returns it if that has to be done again.
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
                tracing::warn!("{}: {uri} cannot be watched any more: {error}", self.id());
                None
            }
            Err(Failure::Unavailable(_) | Failure::Lost(_) | Failure::Canceled) => Some(uri),
        }
    }
}
