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
pub(crate) struct Subscriptions(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    by_id: HashMap<SessionId, SessionSubscriptions>,
    /// How many sessions are subscribed to each resource.
    subscribers: HashMap<Resource, usize>,
}

/// What one session is subscribed to.
#[derive(Debug, Default)]
struct SessionSubscriptions {
    /// The resources, and how often it has subscribed to each.
    resources: BTreeMap<Resource, usize>,
    level: Option<LogLevel>,
}

impl Subscriptions {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes a session to a resource.
    ///
    /// # Errors
    /// There are too many subscriptions already.
    pub(crate) fn subscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> Result<(), String> {
        let mut guard = self.sessions();
        let Sessions { by_id, subscribers } = &mut *guard;
        let resource = (Arc::clone(server), Arc::from(uri));
        let own = by_id.get(&session).map(|own| &own.resources);
        let n_own = own.map_or(0, BTreeMap::len);
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
        let count = by_id.entry(session).or_default().resources.entry(resource.clone()).or_default();
        *count += 1;
        if *count == 1 {
            *subscribers.entry(resource).or_default() += 1;
        }
        Ok(())
    }

    /// Takes one subscription of a session back. Returns whether it was the last one to the resource.
    pub(crate) fn unsubscribe(&self, session: SessionId, server: &Arc<str>, uri: &str) -> bool {
        let mut sessions = self.sessions();
        let resource = (Arc::clone(server), Arc::from(uri));
        let Some(own) = sessions.by_id.get_mut(&session) else { return false };
        match own.resources.get_mut(&resource) {
            None => return false,
            Some(count) if *count > 1 => {
                *count -= 1;
                return false;
            }
            Some(_) => drop(own.resources.remove(&resource)),
        }
        sessions.remove_subscriber(&resource)
    }

    /// Whether any session is subscribed to a resource.
    pub(crate) fn has_subscriber(&self, server: &Arc<str>, uri: &str) -> bool {
        self.sessions().subscribers.contains_key(&(Arc::clone(server), Arc::from(uri)))
    }

    /// The resources of a server that sessions are subscribed to.
    pub(crate) fn uris_of(&self, server: &str) -> BTreeSet<Arc<str>> {
        let sessions = self.sessions();
        let own = sessions.subscribers.keys().filter(|(of, _)| **of == *server);
        own.map(|(_, uri)| Arc::clone(uri)).collect()
    }

    /// Sets the log level of a session. Returns whether servers are to use another level now.
    pub(crate) fn set_level(&self, session: SessionId, level: LogLevel) -> bool {
        let mut sessions = self.sessions();
        let before = sessions.lowest_level();
        sessions.by_id.entry(session).or_default().level = Some(level);
        sessions.lowest_level() != before
    }

    /// The lowest level that any session has chosen.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.sessions().lowest_level()
    }

    /// The lowest level that any session gets: those that have not chosen one get [`UNCHOSEN`] and above.
    pub(crate) fn least_level(&self) -> LogLevel {
        self.level().map_or(UNCHOSEN, |level| level.min(UNCHOSEN))
    }

    /// Ends the subscriptions of a session. Returns the resources that no session is subscribed to any more, and whether
    /// servers are to use another log level now.
    pub(crate) fn end(&self, session: SessionId) -> (Vec<Resource>, bool) {
        let mut sessions = self.sessions();
        let before = sessions.lowest_level();
        let own = sessions.by_id.remove(&session).unwrap_or_default().resources;
        let level = sessions.lowest_level();
        let unwatched = own.into_keys().filter(|resource| sessions.remove_subscriber(resource)).collect();
        (unwatched, level.is_some() && level != before)
    }
}

impl Sessions {
    /// Counts one subscriber less of a resource. Returns whether it was the last one.
    fn remove_subscriber(&mut self, resource: &Resource) -> bool {
        let Some(count) = self.subscribers.get_mut(resource) else { return false };
        *count -= 1;
        *count == 0 && self.subscribers.remove(resource).is_some()
    }

    fn lowest_level(&self) -> Option<LogLevel> {
        self.by_id.values().filter_map(|session| session.level).min()
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
        assert_eq!(subscriptions.end(bob), (vec![(server, Arc::from("a:b"))], false));
        assert!(subscriptions.uris_of("s").is_empty());
    }

    #[test]
    fn servers_talk_as_much_as_the_most_curious_session_wants() {
        let subscriptions = Subscriptions::default();
        let (ann, bob) = (SessionId::mint(), SessionId::mint());
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
