//! What sessions are subscribed to: resources of servers, and log messages from some level on.
//!
//! A server gets one subscription however many sessions want the same, gets it again when it reconnects, and is rid of it
//! with the last session. A session that subscribes twice has to unsubscribe twice, because several streams of one client
//! may share a session.
//!
//! Requests about one resource are sent one after the other, and each says what the subscriptions are when its turn comes;
//! so the last one carries the newest state. A connection remembers what it has asked for, so asking twice costs nothing.

use crate::context::UpstreamContext;
use crate::forward::{Answer, string_param, to_error_object};
use crate::server::UpstreamServer;
use futures_util::future::{join_all, ready};
use futures_util::{StreamExt as _, stream};
use gantry_core::id::SessionId;
use gantry_mcp::client::{Connection, UpstreamError};
use gantry_provider::client::LogLevel;
use gantry_provider::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::server::{RequestScope, Server as _};
use gantry_provider::{BoxFuture, ErrorObject};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The result of requests that ask for nothing back.
const DONE: &str = "{}";

/// Resources that one session may subscribe to.
const PER_SESSION: usize = 1000;

/// Resources that all sessions together may subscribe to.
const TOTAL: usize = 20_000;

/// The log level of sessions that have not chosen one; the protocol leaves it to Gantry, and gantry-mcp uses the same.
const UNCHOSEN: LogLevel = LogLevel::Info;

/// How long a server may take to answer one request.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests that are sent to one server at once.
const AT_ONCE: usize = 16;

/// When the subscriptions that a server did not answer after it reconnected are sent again; the wait doubles each time.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_AT_MOST: Duration = Duration::from_secs(120);

/// A resource of a server, by the server's own URI.
type Resource = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    /// The resources of each session, and how often it has subscribed to each.
    resources: HashMap<SessionId, HashMap<Resource, usize>>,
    /// How many sessions are subscribed to each resource.
    subscribers: HashMap<Resource, usize>,
    levels: HashMap<SessionId, LogLevel>,
}

impl Subscriptions {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> Result<(), String> {
        let mut guard = self.sessions();
        let Sessions { resources, subscribers, .. } = &mut *guard;
        let resource = (Arc::clone(server), Arc::from(uri));
        let own = resources.get(&session);
        let n_own = own.map_or(0, HashMap::len);
        if n_own >= PER_SESSION && own.is_some_and(|own| !own.contains_key(&resource)) {
            return Err(format!(
                "this session watches {n_own} resources already; unsubscribe from some first"
            ));
        }
        if subscribers.len() >= TOTAL && !subscribers.contains_key(&resource) {
            return Err(format!(
                "all sessions together watch {TOTAL} resources, and no more are possible; try again when some of them \
                 are let go"
            ));
        }
        let count = resources.entry(session).or_default().entry(resource.clone()).or_default();
        *count += 1;
        if *count == 1 {
            *subscribers.entry(resource).or_default() += 1;
        }
        Ok(())
    }

    /// Takes one subscription of a session back. Returns whether it was the last one to the resource.
    fn unsubscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> bool {
        let mut guard = self.sessions();
        let Sessions { resources, subscribers, .. } = &mut *guard;
        let resource = (Arc::clone(server), Arc::from(uri));
        let own = resources.get_mut(&session);
        own.is_some_and(|own| count_down(own, &resource)) && count_down(subscribers, &resource)
    }

    pub(crate) fn has_subscriber(&self, server: &Arc<str>, uri: &str) -> bool {
        self.sessions().subscribers.contains_key(&(Arc::clone(server), Arc::from(uri)))
    }

    fn uris_of(&self, server: &str) -> Vec<Arc<str>> {
        let sessions = self.sessions();
        let own = sessions.subscribers.keys().filter(|(of, _)| **of == *server);
        own.map(|(_, uri)| Arc::clone(uri)).collect()
    }

    /// Sets the log level of a session. Returns whether servers are to use another level now.
    pub(crate) fn set_level(&self, session: SessionId, level: LogLevel) -> bool {
        let mut sessions = self.sessions();
        let before = sessions.lowest_level();
        sessions.levels.insert(session, level);
        sessions.lowest_level() != before
    }

    fn level(&self) -> Option<LogLevel> {
        self.sessions().lowest_level()
    }

    /// The lowest level that any session gets: those that have not chosen one get [`UNCHOSEN`] and above.
    pub(crate) fn least_level(&self) -> LogLevel {
        self.level().map_or(UNCHOSEN, |level| level.min(UNCHOSEN))
    }

    /// Ends the subscriptions of a session. Returns the resources that no session is subscribed to any more, and whether
    /// servers are to use another log level now.
    fn end(&self, session: SessionId) -> (Vec<Resource>, bool) {
        let mut sessions = self.sessions();
        let before = sessions.lowest_level();
        sessions.levels.remove(&session);
        let level = sessions.lowest_level();
        let own = sessions.resources.remove(&session).unwrap_or_default();
        let unwatched = own.into_keys().filter(|resource| count_down(&mut sessions.subscribers, resource));
        (unwatched.collect(), level.is_some() && level != before)
    }
}

impl Sessions {
    fn lowest_level(&self) -> Option<LogLevel> {
        self.levels.values().copied().min()
    }
}

/// Counts one less. Returns whether it was the last one.
fn count_down(counts: &mut HashMap<Resource, usize>, resource: &Resource) -> bool {
    let Some(count) = counts.get_mut(resource) else { return false };
    *count -= 1;
    *count == 0 && counts.remove(resource).is_some()
}

impl UpstreamContext {
    pub(crate) async fn subscribe(
        &self,
        scope: &dyn RequestScope,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Answer {
        let target = self.find_resource(scope, uri)?;
        let (session, id, own) = (scope.session(), target.server.id(), &target.upstream_uri);
        if let Some(reason) = target.server.unavailable_reason() {
            return Err(ErrorObject::new(INTERNAL_ERROR, reason));
        }
        let subscribed = self.subscriptions.subscribe(session, id, own);
        subscribed.map_err(|why| ErrorObject::new(INVALID_PARAMS, why))?;
        // Also if there is a subscription already: the server may be about to refuse the first one.
        let mut synced = target.server.sync_subscription(own, None).await;
        if matches!(synced, Err(UpstreamError::NotSent(_)))
            && target.server.pick_reconnected(None, cancel).await.is_some()
        {
            synced = target.server.sync_subscription(own, None).await;
        }
        if let Err(failure) = synced {
            if self.subscriptions.unsubscribe(session, id, own) {
                // A connection may still want the resource, or another replica may have taken it.
                target.server.sync_subscriptions(vec![own.as_str().into()], None).await;
            }
            return Err(to_error_object(&target.server, failure));
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn unsubscribe(&self, scope: &dyn RequestScope, uri: &str) -> Answer {
        let target = self.find_resource(scope, uri)?;
        if self.subscriptions.unsubscribe(scope.session(), target.server.id(), &target.upstream_uri) {
            target.server.sync_subscriptions(vec![target.upstream_uri.into()], None).await;
        }
        Ok(DONE.to_owned())
    }

    pub(crate) async fn set_level(&self, session: SessionId, params: &str) -> Answer {
        let word = string_param(params, "level")?;
        let level = LogLevel::parse(&word).ok_or_else(|| {
            let known = LogLevel::ALL.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", ");
            ErrorObject::new(INVALID_PARAMS, format!("there is no level {word:?}; there are {known}"))
        })?;
        if self.subscriptions.set_level(session, level) {
            join_all(self.servers().iter().map(|server| server.push_log_level(None))).await;
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
                server.sync_subscriptions(own.map(|(_, uri)| Arc::clone(uri)).collect(), None)
            }))
            .await;
            if is_other_level {
                join_all(servers.iter().map(|server| server.push_log_level(None))).await;
            }
        }))
    }
}

/// Puts requests about one resource to one server in order. The key of log levels is an empty URI.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionTurns(Mutex<HashMap<Arc<str>, Arc<Semaphore>>>);

impl SubscriptionTurns {
    /// Sends a request when its turn has come. Its answer is waited for, but not longer than [`SUBSCRIBE_TIMEOUT`].
    async fn run(
        &self,
        uri: &str,
        request: impl Future<Output = Result<(), UpstreamError>>,
    ) -> Result<(), UpstreamError> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(uri.into()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let request = async {
            let _turn = turn.acquire().await;
            request.await
        };
        let no_answer = || UpstreamError::OutcomeUnknown("no answer in time".into());
        timeout(SUBSCRIBE_TIMEOUT, request).await.unwrap_or_else(|_| Err(no_answer()))
    }
}

impl UpstreamServer {
    /// Subscribes one connection, or all of the server, to a resource, or unsubscribes them, as the subscriptions of
    /// sessions say once it is its turn.
    pub(crate) async fn sync_subscription(
        &self,
        uri: &str,
        only: Option<&Arc<Connection>>,
    ) -> Result<(), UpstreamError> {
        let request = async {
            let is_wanted = self.context.subscriptions.has_subscriber(self.id(), uri);
            let connections = only.map_or_else(|| self.connections(), |only| vec![Arc::clone(only)]);
            let answers = join_all(connections.iter().map(|connection| connection.watch(uri, is_wanted)));
            answers.await.into_iter().collect()
        };
        self.subscription_turns.run(uri, request).await
    }

    /// The same for many resources. Returns those that were not answered.
    async fn sync_subscriptions(&self, uris: Vec<Arc<str>>, only: Option<&Arc<Connection>>) -> Vec<Arc<str>> {
        let requests = stream::iter(uris).map(|uri| async move {
            let (failure, id) = (self.sync_subscription(&uri, only).await.err()?, self.id());
            let is_refused = matches!(failure, UpstreamError::Rpc(_));
            // On a new connection, sessions lose what is refused.
            if is_refused && only.is_some() {
                tracing::warn!("{id}: it refuses the subscription to {uri}: {failure}");
            } else {
                tracing::debug!("{id}: the subscription to {uri} is not changed: {failure}");
            }
            (!is_refused).then_some(uri)
        });
        requests.buffer_unordered(AT_ONCE).filter_map(ready).collect().await
    }

    /// Sets the log level of one connection, or of all of the server.
    pub(super) async fn push_log_level(&self, only: Option<&Arc<Connection>>) {
        let request = async {
            let Some(level) = self.context.subscriptions.level() else { return Ok(()) };
            let connections = only.map_or_else(|| self.all_connections(), |only| vec![Arc::clone(only)]);
            let answers = join_all(connections.iter().map(|connection| connection.set_log_level(level)));
            answers.await.into_iter().collect()
        };
        if let Err(failure) = self.subscription_turns.run("", request).await {
            tracing::debug!("{}: it does not take a log level: {failure}", self.id());
        }
    }

    /// Brings a new connection up to date, for as long as it takes, and never returns.
    pub(super) async fn resubscribe(&self, connection: &Arc<Connection>) -> Infallible {
        let (id, only) = (self.id(), Some(connection));
        self.push_log_level(only).await;
        let (mut left, mut wait) = (self.context.subscriptions.uris_of(id), AGAIN);
        loop {
            left = self.sync_subscriptions(left, only).await;
            let Some(uri) = left.first() else { return std::future::pending().await };
            tracing::warn!("{id}: it does not answer {} subscriptions; {uri} is one of them", left.len());
            sleep(wait).await;
            wait = (wait * 2).min(AGAIN_AT_MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_once_and_let_go_with_the_last_session() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        let (ann, bob) = (SessionId::generate(), SessionId::generate());
        assert!(!subscriptions.has_subscriber(&server, "a:b"));
        assert_eq!(subscriptions.subscribe(ann, &server, "a:b"), Ok(()));
        assert!(subscriptions.has_subscriber(&server, "a:b"));
        assert_eq!(subscriptions.subscribe(ann, &server, "a:b"), Ok(()));
        assert_eq!(subscriptions.subscribe(bob, &server, "a:b"), Ok(()));
        assert!(!subscriptions.unsubscribe(bob, &server, "a:b"));
        assert!(!subscriptions.unsubscribe(ann, &server, "a:b"), "wanted twice, taken back once");
        assert!(subscriptions.unsubscribe(ann, &server, "a:b"));
        assert!(!subscriptions.unsubscribe(ann, &server, "a:b"), "what is not wanted cannot be taken back");
        assert_eq!(subscriptions.subscribe(bob, &server, "a:b"), Ok(()));
        assert_eq!(subscriptions.end(bob), (vec![(server, Arc::from("a:b"))], false));
        assert!(subscriptions.uris_of("s").is_empty());
    }

    #[test]
    fn servers_talk_as_much_as_the_most_curious_session_wants() {
        let subscriptions = Subscriptions::default();
        let (ann, bob) = (SessionId::generate(), SessionId::generate());
        assert!(subscriptions.set_level(ann, LogLevel::Error));
        assert!(subscriptions.set_level(bob, LogLevel::Debug));
        assert!(!subscriptions.set_level(ann, LogLevel::Info));
        assert!(subscriptions.end(bob).1);
        assert_eq!(subscriptions.level(), Some(LogLevel::Info));
        assert!(!subscriptions.end(ann).1, "no session is left whose level could be sent");
    }

    #[test]
    fn one_session_cannot_watch_without_end() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        let ann = SessionId::generate();
        for n in 0..PER_SESSION {
            subscriptions.subscribe(ann, &server, &format!("a:{n}")).unwrap();
        }
        let refused = subscriptions.subscribe(ann, &server, "a:more").unwrap_err();
        assert!(refused.contains("this session watches 1000 resources already"), "{refused}");
        assert_eq!(
            subscriptions.subscribe(ann, &server, "a:1"),
            Ok(()),
            "what it watches already it may ask for again"
        );
    }

    #[test]
    fn subscriptions_of_all_sessions_are_limited_and_a_refusal_gives_the_reason() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        for n in 0..TOTAL / PER_SESSION {
            let session = SessionId::generate();
            for m in 0..PER_SESSION {
                assert_eq!(subscriptions.subscribe(session, &server, &format!("a:{n}:{m}")), Ok(()));
            }
        }
        let late = SessionId::generate();
        let refused = subscriptions.subscribe(late, &server, "a:more").unwrap_err();
        assert!(refused.contains("all sessions together watch 20000 resources"), "{refused}");
        assert_eq!(
            subscriptions.subscribe(late, &server, "a:1:1"),
            Ok(()),
            "what is watched anyway costs nothing"
        );
    }

    #[test]
    fn without_a_chosen_level_a_session_gets_info_and_above() {
        let subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.least_level(), LogLevel::Info);
        let ann = SessionId::generate();
        subscriptions.set_level(ann, LogLevel::Error);
        assert_eq!(subscriptions.least_level(), LogLevel::Info, "others may not have chosen");
        subscriptions.set_level(ann, LogLevel::Debug);
        assert_eq!(subscriptions.least_level(), LogLevel::Debug);
    }
}
