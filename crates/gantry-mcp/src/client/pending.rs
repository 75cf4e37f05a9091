//! The requests pending on one connection, and the client that a message of the server belongs to.
//!
//! A cancelled request may still run on the server, so its session counts as a possible recipient of unattributed
//! messages until the server answers or [`CANCELLED_TTL`] has passed; for a task, until the connection ends.

use super::limits::MAX_IN_FLIGHT;
use super::types::Answer;
use crate::exchange::ClientChannel;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Gantry's own requests on one connection: lists, health checks, subscriptions, ends of tasks. They are counted apart,
/// so that a connection full of calls does not look dead.
pub(super) const MAX_OWN_IN_FLIGHT: usize = 64;
/// How long a cancelled request is assumed to run, unless the server answers it before.
pub(super) const CANCELLED_TTL: Duration = Duration::from_secs(10);
/// Cancelled requests that are told apart. With more than these, only [`CANCELLED_TTL`] ends the assumption.
pub(super) const MAX_ORPHANS: usize = 4096;
/// Stands for the requests beyond [`MAX_ORPHANS`]; no request has this id.
const UNRECOGNISED: u64 = 0;

#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// No further request is taken.
    pub(super) closed: bool,
    /// Requests of clients. Limit: [`MAX_IN_FLIGHT`].
    clients: BTreeMap<u64, PendingRequest>,
    /// Gantry's own requests. Limit: [`MAX_OWN_IN_FLIGHT`].
    own: BTreeMap<u64, PendingRequest>,
    /// Requests whose clients no longer wait, while the server may still run them. Limit: [`MAX_ORPHANS`] and
    /// [`UNRECOGNISED`].
    orphans: HashMap<u64, Orphan>,
}

#[derive(Debug)]
struct Orphan {
    /// `None` for several.
    session: Option<u64>,
    /// `None` for as long as the connection lasts.
    until: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) owner: RequestOwner,
    pub(super) reply: oneshot::Sender<Answer>,
    /// It stands for a running task, and the server does not know its id as one of a request.
    pub(super) is_task: bool,
}

#[derive(Debug, Clone)]
pub(super) struct RequestOwner {
    pub(super) client: Arc<dyn ClientChannel>,
    pub(super) ended: CancellationToken,
}

/// The client that a message of the server belongs to.
#[derive(Debug)]
pub(super) enum Recipient {
    Client(RequestOwner),
    /// No client: the server works for none.
    None,
    /// One of several clients, or one that no longer waits.
    Ambiguous,
}

impl PendingRequests {
    pub(super) fn add(&mut self, id: u64, own: bool, request: PendingRequest) -> Result<(), String> {
        let (requests, limit, whose) = if own {
            (&mut self.own, MAX_OWN_IN_FLIGHT, "requests of Gantry's own")
        } else {
            (&mut self.clients, MAX_IN_FLIGHT, "requests")
        };
        if requests.len() >= limit {
            return Err(format!("{limit} {whose}"));
        }
        requests.insert(id, request);
        Ok(())
    }

    /// The server has answered a request, or never got it.
    pub(super) fn complete(&mut self, id: u64) -> Option<PendingRequest> {
        self.orphans.remove(&id);
        self.remove(id)
    }

    /// Removes a request that the server never got or has answered, unless it was orphaned before.
    pub(super) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        self.clients.remove(&id).or_else(|| self.own.remove(&id))
    }

    /// Removes a request that the server may still run.
    pub(super) fn orphan(&mut self, id: u64) -> Option<PendingRequest> {
        let Some(request) = self.clients.remove(&id) else { return self.own.remove(&id) };
        if self.orphans.len() >= MAX_ORPHANS {
            self.forget_expired();
        }
        let session = Some(request.owner.client.session());
        let until = (!request.is_task).then(|| Instant::now() + CANCELLED_TTL);
        if self.orphans.len() < MAX_ORPHANS {
            self.orphans.insert(id, Orphan { session, until });
        } else {
            let others = self.orphans.entry(UNRECOGNISED).or_insert(Orphan { session, until });
            others.session = others.session.filter(|other| Some(*other) == session);
            others.until = others.until.and(until);
        }
        Some(request)
    }

    fn forget_expired(&mut self) {
        let now = Instant::now();
        self.orphans.retain(|_, orphan| orphan.until.is_none_or(|until| now < until));
    }

    /// Removes all requests; the server may still run them.
    pub(super) fn orphan_all(&mut self) -> Vec<PendingRequest> {
        let ids: Vec<u64> = self.clients.keys().chain(self.own.keys()).copied().collect();
        ids.into_iter().filter_map(|id| self.orphan(id)).collect()
    }

    /// A pending request stands for a running task from now on.
    pub(super) fn mark_task(&mut self, id: u64) {
        if let Some(request) = self.clients.get_mut(&id) {
            request.is_task = true;
        }
    }

    pub(super) fn client(&self, id: u64) -> Option<Arc<dyn ClientChannel>> {
        self.clients.get(&id).map(|request| Arc::clone(&request.owner.client))
    }

    /// Fires when a pending request of this session has ended; `None` if there is none.
    pub(super) fn end_of_any(&self, session: u64) -> Option<CancellationToken> {
        let mut owners = self.clients.values().map(|request| &request.owner);
        owners.find(|owner| owner.client.session() == session).map(|owner| owner.ended.clone())
    }

    /// The recipient of a message: the client of the request on whose stream it came (`origin`), or else of the only
    /// session that the server may be working for.
    pub(super) fn recipient(&mut self, origin: Option<u64>) -> Recipient {
        if let Some(request) = origin.and_then(|id| self.clients.get(&id)) {
            return Recipient::Client(request.owner.clone());
        }
        self.forget_expired();
        let is_idle = self.clients.is_empty() && self.orphans.is_empty();
        match origin {
            Some(id) if is_idle && self.own.contains_key(&id) => Recipient::None,
            None if is_idle => Recipient::None,
            None => self.only_session().map_or(Recipient::Ambiguous, Recipient::Client),
            Some(_) => Recipient::Ambiguous,
        }
    }

    /// The owner of the newest request, if all requests and orphans are of its session.
    fn only_session(&self) -> Option<RequestOwner> {
        let newest = &self.clients.values().next_back()?.owner;
        let session = newest.client.session();
        let is_only = self.clients.values().all(|request| request.owner.client.session() == session)
            && self.orphans.values().all(|orphan| orphan.session == Some(session));
        is_only.then(|| newest.clone())
    }

    /// The only request of a client, or else the only one of Gantry's own. Tasks are not answered.
    pub(super) fn only(&self) -> Option<u64> {
        let of_clients = self.clients.iter().filter(|(_, request)| !request.is_task).map(|(id, _)| *id);
        let mut ids: Vec<u64> = of_clients.take(2).collect();
        if ids.is_empty() {
            ids = self.own.keys().copied().take(2).collect();
        }
        if let [id] = *ids { Some(id) } else { None }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.clients.contains_key(&id) || self.own.contains_key(&id)
    }

    /// Requests of clients.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.clients.len()
    }
}

impl PendingRequest {
    pub(super) fn end(self, outcome: Answer) {
        self.reply.send(outcome).ok(); // The caller may have gone.
        self.owner.ended.cancel();
    }
}
