//! What sessions are subscribed to: resources of servers, and log messages from some level on.
//!
//! A server gets one subscription however many sessions want the same, and it ends with the last of them. A session
//! that subscribes twice has to unsubscribe twice, because several streams of one client may share a session.

use gantry_core::id::SessionId;
use gantry_provider::client::LogLevel;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Resources that one session may subscribe to.
const PER_SESSION: usize = 1000;

/// Resources that all sessions together may subscribe to.
const TOTAL: usize = 20_000;

/// The log level of sessions that have not chosen one; the protocol leaves it to Gantry, and gantry-mcp uses the same.
const UNCHOSEN: LogLevel = LogLevel::Info;

/// A resource of a server, by the server's own URI.
type Resource = (Arc<str>, Arc<str>);

/// The subscriptions of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// The sessions that are subscribed to a resource, and how often.
    watchers: HashMap<Resource, BTreeMap<SessionId, usize>>,
    watched: HashMap<SessionId, BTreeSet<Resource>>,
    levels: HashMap<SessionId, LogLevel>,
}

impl Subscriptions {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes a session to a resource.
    ///
    /// # Errors
    /// There are too many subscriptions already.
    pub(crate) fn subscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> Result<(), String> {
        let mut held = self.held();
        let resource = (Arc::clone(server), Arc::from(uri));
        let own = held.watched.get(&session).map_or(0, BTreeSet::len);
        let known = held.watchers.get(&resource).is_some_and(|watchers| watchers.contains_key(&session));
        if !known && own >= PER_SESSION {
            return Err(format!("this session watches {own} resources already; unsubscribe from some first"));
        }
        let is_new = !held.watchers.contains_key(&resource);
        if is_new && held.watchers.len() >= TOTAL {
            return Err(format!(
                "all sessions together watch {TOTAL} resources, and no more are possible; try again when some of them \
                 are let go"
            ));
        }
        held.watched.entry(session).or_default().insert(resource.clone());
        let watchers = held.watchers.entry(resource).or_default();
        *watchers.entry(session).or_default() += 1;
        Ok(())
    }

    /// Takes one subscription of a session back. Returns whether it was the last one to the resource.
    pub(crate) fn unsubscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> bool {
        let mut held = self.held();
        let resource = (Arc::clone(server), Arc::from(uri));
        let count = held.watchers.get_mut(&resource).and_then(|watchers| watchers.get_mut(&session));
        if let Some(count) = count.filter(|count| **count > 1) {
            *count -= 1;
            return false;
        }
        if let Some(own) = held.watched.get_mut(&session) {
            own.remove(&resource);
            if own.is_empty() {
                held.watched.remove(&session);
            }
        }
        held.forget(session, &resource)
    }

    /// Whether any session is subscribed to a resource.
    pub(crate) fn has_subscriber(&self, server: &Arc<str>, uri: &str) -> bool {
        self.held().watchers.contains_key(&(Arc::clone(server), Arc::from(uri)))
    }

    /// The resources of a server that sessions are subscribed to.
    pub(crate) fn uris_of(&self, server: &str) -> Vec<Arc<str>> {
        let held = self.held();
        held.watchers.keys().filter(|(of, _)| **of == *server).map(|(_, uri)| Arc::clone(uri)).collect()
    }

    /// Sets the log level of a session. Returns the level that servers are to use, if it is another now.
    pub(crate) fn set_level(&self, session: SessionId, level: LogLevel) -> Option<LogLevel> {
        let mut held = self.held();
        let before = held.level();
        held.levels.insert(session, level);
        held.level().filter(|level| Some(*level) != before)
    }

    /// The lowest level that any session has chosen.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.held().level()
    }

    /// The lowest level that any session gets: those that have not chosen one get [`UNCHOSEN`] and above.
    pub(crate) fn least_level(&self) -> LogLevel {
        self.level().map_or(UNCHOSEN, |level| level.min(UNCHOSEN))
    }

    /// Ends the subscriptions of a session. Returns the resources that no session is subscribed to any more.
    pub(crate) fn end(&self, session: SessionId) -> Vec<Resource> {
        let mut held = self.held();
        held.levels.remove(&session);
        let own = held.watched.remove(&session).unwrap_or_default();
        own.into_iter().filter(|resource| held.forget(session, resource)).collect()
    }
}

impl Held {
    fn level(&self) -> Option<LogLevel> {
        self.levels.values().min().copied()
    }

    /// Removes a session from a resource. Returns whether it was there and the last one.
    fn forget(&mut self, session: SessionId, resource: &Resource) -> bool {
        let Some(watchers) = self.watchers.get_mut(resource) else { return false };
        let last = watchers.remove(&session).is_some() && watchers.is_empty();
        if last {
            self.watchers.remove(resource);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_once_and_let_go_with_the_last_session() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        let (ann, bob) = (SessionId::mint(), SessionId::mint());
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
        assert_eq!(subscriptions.end(bob), [(server, Arc::from("a:b"))]);
        assert!(subscriptions.uris_of("s").is_empty());
    }

    #[test]
    fn servers_talk_as_much_as_the_most_curious_session_wants() {
        let subscriptions = Subscriptions::default();
        let (ann, bob) = (SessionId::mint(), SessionId::mint());
        assert_eq!(subscriptions.set_level(ann, LogLevel::Error), Some(LogLevel::Error));
        assert_eq!(subscriptions.set_level(bob, LogLevel::Debug), Some(LogLevel::Debug));
        assert_eq!(subscriptions.set_level(ann, LogLevel::Info), None);
        subscriptions.end(bob);
        assert_eq!(subscriptions.level(), Some(LogLevel::Info));
    }

    #[test]
    fn one_session_cannot_watch_without_end() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        let ann = SessionId::mint();
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
    fn all_sessions_together_cannot_watch_without_end_and_who_is_refused_is_told_why() {
        let (subscriptions, server): (_, Arc<str>) = (Subscriptions::default(), "s".into());
        for n in 0..TOTAL / PER_SESSION {
            let session = SessionId::mint();
            for m in 0..PER_SESSION {
                assert_eq!(subscriptions.subscribe(session, &server, &format!("a:{n}:{m}")), Ok(()));
            }
        }
        let late = SessionId::mint();
        let refused = subscriptions.subscribe(late, &server, "a:more").unwrap_err();
        assert!(refused.contains("all sessions together watch 20000 resources"), "{refused}");
        assert_eq!(
            subscriptions.subscribe(late, &server, "a:1:1"),
            Ok(()),
            "what is watched anyway costs nothing"
        );
    }

    #[test]
    fn who_has_chosen_no_level_hears_what_is_worth_telling() {
        let subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.least_level(), LogLevel::Info);
        let ann = SessionId::mint();
        subscriptions.set_level(ann, LogLevel::Error);
        assert_eq!(subscriptions.least_level(), LogLevel::Info, "others may not have chosen");
        subscriptions.set_level(ann, LogLevel::Debug);
        assert_eq!(subscriptions.least_level(), LogLevel::Debug);
    }
}
