//! What sessions want to hear from servers: which resources they watch, and from which level on they want log messages.
//!
//! A server is asked once however many sessions want the same, and asked no more when the last of them is gone. A
//! session that wants something twice has to take it back twice: several streams of one client may share a session.

use gantry_core::id::SessionId;
use gantry_provider::client::LogLevel;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Resources that one session may watch.
const PER_SESSION: usize = 1000;

/// Resources that all sessions together may watch.
const TOTAL: usize = 20_000;

/// What sessions hear that have not chosen a level: the protocol leaves that to Gantry, whose server side says so too.
const UNCHOSEN: LogLevel = LogLevel::Info;

/// A resource of a server, by the server's own URI.
type Resource = (Arc<str>, Arc<str>);

/// What all sessions want.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Who watches a resource, and how often.
    watchers: HashMap<Resource, BTreeMap<SessionId, usize>>,
    watched: HashMap<SessionId, BTreeSet<Resource>>,
    levels: HashMap<SessionId, LogLevel>,
}

impl Subscriptions {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session wants to hear of a resource.
    ///
    /// # Errors
    /// It watches too many already.
    pub(crate) fn watch(&self, session: SessionId, server: &Arc<str>, uri: &str) -> Result<(), String> {
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

    /// A session takes one wish to hear of a resource back. Returns whether it was the last of all.
    pub(crate) fn unwatch(&self, session: SessionId, server: &Arc<str>, uri: &str) -> bool {
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

    /// Whether somebody watches a resource.
    pub(crate) fn has_subscriber(&self, server: &Arc<str>, uri: &str) -> bool {
        self.held().watchers.contains_key(&(Arc::clone(server), Arc::from(uri)))
    }

    /// The resources of a server that somebody watches.
    pub(crate) fn uris_of(&self, server: &str) -> Vec<Arc<str>> {
        let held = self.held();
        held.watchers.keys().filter(|(of, _)| **of == *server).map(|(_, uri)| Arc::clone(uri)).collect()
    }

    /// From which level on a session wants log messages. Returns the level that servers are to use, if it is another now.
    pub(crate) fn set_level(&self, session: SessionId, level: LogLevel) -> Option<LogLevel> {
        let mut held = self.held();
        let before = held.level();
        held.levels.insert(session, level);
        held.level().filter(|level| Some(*level) != before)
    }

    /// The most talkative level that any session wants.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.held().level()
    }

    /// The least level that any session may want: who has not chosen one hears [`UNCHOSEN`] and above.
    pub(crate) fn least_level(&self) -> LogLevel {
        self.level().map_or(UNCHOSEN, |level| level.min(UNCHOSEN))
    }

    /// A session is over. Returns the resources that nobody watches any more.
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

    /// Takes a watcher away. Returns whether it was there and the last.
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
        assert_eq!(subscriptions.watch(ann, &server, "a:b"), Ok(()));
        assert!(subscriptions.has_subscriber(&server, "a:b"));
        assert_eq!(subscriptions.watch(ann, &server, "a:b"), Ok(()));
        assert_eq!(subscriptions.watch(bob, &server, "a:b"), Ok(()));
        assert!(!subscriptions.unwatch(bob, &server, "a:b"));
        assert!(!subscriptions.unwatch(ann, &server, "a:b"), "wanted twice, taken back once");
        assert!(subscriptions.unwatch(ann, &server, "a:b"));
        assert!(!subscriptions.unwatch(ann, &server, "a:b"), "what is not wanted cannot be taken back");
        assert_eq!(subscriptions.watch(bob, &server, "a:b"), Ok(()));
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
            subscriptions.watch(ann, &server, &format!("a:{n}")).unwrap();
        }
        let refused = subscriptions.watch(ann, &server, "a:more").unwrap_err();
        assert!(refused.contains("this session watches 1000 resources already"), "{refused}");
        assert_eq!(
            subscriptions.watch(ann, &server, "a:1"),
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
                assert_eq!(subscriptions.watch(session, &server, &format!("a:{n}:{m}")), Ok(()));
            }
        }
        let late = SessionId::mint();
        let refused = subscriptions.watch(late, &server, "a:more").unwrap_err();
        assert!(refused.contains("all sessions together watch 20000 resources"), "{refused}");
        assert_eq!(
            subscriptions.watch(late, &server, "a:1:1"),
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
