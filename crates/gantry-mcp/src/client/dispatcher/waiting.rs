//! The requests of one connection that its server may be working on, and whose a message is that comes from there.
//!
//! A request that was withdrawn, or whose answer got lost, may still run: servers are free to ignore a withdrawal. What
//! such a request asks or logs must not pass for something of another client, so its session is kept until the server
//! has answered it. A server that heeds a withdrawal never answers, so after a while the session is forgotten all the
//! same; otherwise one withdrawn call would keep everybody else from being asked for as long as the connection lasts.

use crate::{
    client::{limits::UNDER_WAY, types::Failure},
    exchange::ClientChannel,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

/// Gantry's own requests on one connection: lists, health checks, subscriptions, ends of tasks. They are counted apart,
/// so that a connection full of calls does not look dead.
pub(in crate::client) const OWN_UNDER_WAY: usize = 64;
/// How long a request that nobody waits for is taken to be still running, unless it is answered before.
pub(in crate::client) const DOUBT: Duration = Duration::from_secs(10);
/// Requests that nobody waits for and that may still run, of which the session is kept. Beyond that nobody can tell
/// any more whose a message is, until all of them are out of doubt.
pub(in crate::client) const ABANDONED: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    ended: bool,
    /// Requests of clients. Limit: [`UNDER_WAY`].
    clients: BTreeMap<u64, Waiter>,
    /// Gantry's own requests. Limit: [`OWN_UNDER_WAY`].
    own: BTreeMap<u64, Waiter>,
    /// Requests that may run without being under way here. Limit: [`ABANDONED`].
    abandoned: BTreeMap<u64, Abandoned>,
    /// There were more of them than are kept; until when one of the others may run.
    overflowed: Option<Instant>,
}

/// A request that may run although nobody waits for it.
#[derive(Debug)]
struct Abandoned {
    session: u64,
    /// Until when it is taken to be running; nothing said means until it is settled.
    until: Option<Instant>,
}

impl Abandoned {
    fn may_run(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Who waits for the answer to a request.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) asker: Asker,
    pub(super) reply: oneshot::Sender<Result<String, Failure>>,
}

/// The client behind a request that is under way.
#[derive(Debug, Clone)]
pub(in crate::client) struct Asker {
    pub(in crate::client) audience: Arc<dyn ClientChannel>,
    /// Fires when the request is over.
    pub(in crate::client) over: CancellationToken,
}

/// Whom a message of the server concerns.
#[derive(Debug)]
pub(in crate::client) enum Whose {
    /// The client of this request.
    Client(Asker),
    /// No client: the server works for none.
    NoClient,
    /// One of several clients, or one that is gone; nobody can tell which.
    Unclear,
}

impl Waiting {
    /// Takes a request in.
    ///
    /// # Errors
    /// There are too many; says how many.
    pub(super) fn admit(&mut self, id: u64, own: bool, waiter: Waiter) -> Result<(), String> {
        let (requests, limit, whose) = if own {
            (&mut self.own, OWN_UNDER_WAY, "requests of Gantry's own")
        } else {
            (&mut self.clients, UNDER_WAY, "requests")
        };
        if requests.len() >= limit {
            return Err(format!("{limit} {whose}"));
        }
        requests.insert(id, waiter);
        Ok(())
    }

    /// The server is done with a request.
    pub(super) fn settle(&mut self, id: u64) -> Option<Waiter> {
        self.abandoned.remove(&id);
        self.forget(id)
    }

    /// No client waits for the request any more, and the server never got it or is done with it, unless it was abandoned.
    pub(super) fn forget(&mut self, id: u64) -> Option<Waiter> {
        self.clients.remove(&id).or_else(|| self.own.remove(&id))
    }

    /// No client waits for the request any more, but the server may still be working on it.
    pub(super) fn abandon(&mut self, id: u64) -> Option<Waiter> {
        let Some(waiter) = self.clients.remove(&id) else { return self.own.remove(&id) };
        self.remember(id, waiter.asker.audience.session(), Some(Instant::now() + DOUBT));
        Some(waiter)
    }

    /// Abandons all requests.
    pub(super) fn abandon_all(&mut self) -> Vec<Waiter> {
        let ids: Vec<u64> = self.clients.keys().chain(self.own.keys()).copied().collect();
        ids.into_iter().filter_map(|id| self.abandon(id)).collect()
    }

    /// Something runs for this session that is not under way here, until it is settled.
    pub(super) fn keep(&mut self, id: u64, session: u64) {
        self.remember(id, session, None);
    }

    fn remember(&mut self, id: u64, session: u64, until: Option<Instant>) {
        let now = Instant::now();
        if self.abandoned.len() >= ABANDONED {
            self.abandoned.retain(|_, request| request.may_run(now));
        }
        if self.abandoned.len() < ABANDONED {
            self.abandoned.insert(id, Abandoned { session, until });
        } else {
            self.overflowed = Some(now + DOUBT);
        }
    }

    /// Takes nothing more in.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Requests of clients that are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.clients.len()
    }

    /// The client of a request, or the part of Gantry behind it.
    pub(super) fn audience(&self, id: u64) -> Option<Arc<dyn ClientChannel>> {
        let waiter = self.clients.get(&id).or_else(|| self.own.get(&id))?;
        Some(Arc::clone(&waiter.asker.audience))
    }

    /// When a request of this session is over, if there is one under way.
    pub(super) fn end_of_one(&self, session: u64) -> Option<CancellationToken> {
        let mut askers = self.clients.values().map(|waiter| &waiter.asker);
        askers.find(|asker| asker.audience.session() == session).map(|asker| asker.over.clone())
    }

    /// Whom a message concerns: the client of the request on whose stream it came, or else of the only session that
    /// the server may be working for.
    pub(super) fn whose(&self, origin: Option<u64>) -> Whose {
        if let Some(waiter) = origin.and_then(|id| self.clients.get(&id)) {
            return Whose::Client(waiter.asker.clone());
        }
        let now = Instant::now();
        let overflowed = self.overflowed.is_some_and(|until| now < until);
        let mut doubtful = self.abandoned.values().filter(|request| request.may_run(now));
        let idle = self.clients.is_empty() && doubtful.next().is_none() && !overflowed;
        match origin {
            Some(id) if idle && self.own.contains_key(&id) => Whose::NoClient,
            None if idle => Whose::NoClient,
            None if !overflowed => self.only_session(now).map_or(Whose::Unclear, Whose::Client),
            Some(_) | None => Whose::Unclear,
        }
    }

    /// The newest request of the only session.
    fn only_session(&self, now: Instant) -> Option<Asker> {
        let last = &self.clients.values().next_back()?.asker;
        let session = last.audience.session();
        let mut abandoned = self.abandoned.values().filter(|request| request.may_run(now));
        let all = self.clients.values().all(|waiter| waiter.asker.audience.session() == session)
            && abandoned.all(|request| request.session == session);
        all.then(|| last.clone())
    }

    /// The only request under way: the only one of a client, or else the only one of Gantry's own.
    pub(super) fn only(&self) -> Option<u64> {
        let requests = if self.clients.is_empty() { &self.own } else { &self.clients };
        let mut ids = requests.keys();
        ids.next().filter(|_| ids.next().is_none()).copied()
    }
}

impl Waiter {
    pub(super) fn end(self, outcome: Result<String, Failure>) {
        let heard = self.reply.send(outcome).is_ok();
        tracing::trace!(heard, "a request is over");
        self.asker.over.cancel();
    }
}
