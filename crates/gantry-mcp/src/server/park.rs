//! Requests of 2026-07-28 that wait for answers of their clients while no connection belongs to them.
//!
//! A client of that version is asked by a result; it sends the request again, with the answers and with a
//! `requestState` that leads back to the work. The work is never begun a second time: a state that leads nowhere is an
//! error, because what it led to may have had an effect. Every round has a state of its own, so an old one leads nowhere.
//!
//! A state is random and says nothing. Whose it is, for which request and until when stands with the work that it leads to.

use super::{caller::Wishes, outbox::matched, running::Running};
use crate::{
    ErrorObject,
    exchange::ClientRequest,
    limits::{PARKED, PARKED_GRACE, PARKED_PER_IDENTITY, QUESTION_WAIT},
    raw,
};
use gantry_core::{digest::Digest, json};
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use tokio::time::Instant;
use uuid::Uuid;

/// All requests that wait for answers.
pub(super) struct Parks<I> {
    // Invariant: never held across an await.
    entries: Mutex<HashMap<Uuid, Parked<I>>>,
    /// Set when nobody can come back any more. Changed and read with the entries held.
    closed: AtomicBool,
    /// Counts what was parked.
    count: AtomicU64,
    /// Tells the states of this server from those of one before it.
    tag: String,
}

struct Parked<I> {
    identity: I,
    request: Digest,
    /// Which one it is of all.
    number: u64,
    expires: Instant,
    running: Running,
}

/// What a client sent a request again for.
pub(super) enum Redeemed {
    /// The work goes on.
    Resumed(Box<Running>),
    /// Answers are missing.
    ClientRequestError(Vec<ClientRequest>),
}

/// What tells a request from others: the method and the params, without what differs from round to round.
pub(super) fn digest(method: &str, params: &str) -> Digest {
    let params = raw::without(params, |key| matches!(key, "_meta" | "inputResponses" | "requestState"));
    let canonical = json::canonical(&params);
    let text = canonical.as_ref().map_or(params.as_str(), |canonical| canonical.text());
    Digest::of_parts(&[method.as_bytes(), text.as_bytes()])
}

impl<I: PartialEq> Parks<I> {
    pub(super) fn new() -> Self {
        let tag = Uuid::new_v4().simple().to_string();
        Self { entries: Mutex::default(), closed: AtomicBool::new(false), count: AtomicU64::new(0), tag }
    }

    /// Keeps a request until its client answers, and returns the state that leads back to it.
    ///
    /// # Errors
    /// Too many wait already, or the server stops; the request comes back.
    pub(super) fn park(
        &self,
        identity: I,
        request: Digest,
        mut running: Running,
    ) -> Result<String, Box<Running>> {
        self.sweep();
        let mut entries = self.entries();
        let own = entries.values().filter(|parked| parked.identity == identity).count();
        if self.closed.load(Relaxed) || entries.len() >= PARKED || own >= PARKED_PER_IDENTITY {
            return Err(Box::new(running));
        }
        running.detach();
        running.caller.presence.leave();
        let (id, expires) = (Uuid::new_v4(), Instant::now() + QUESTION_WAIT);
        let number = self.count.fetch_add(1, Relaxed);
        entries.insert(id, Parked { identity, request, number, expires, running });
        drop(entries);
        Ok(self.state(id))
    }

    /// Takes up a request whose client sent it again.
    ///
    /// # Errors
    /// The state does not lead to a request that waits for this client's answers.
    pub(super) fn redeem(
        &self,
        identity: &I,
        request: &Digest,
        state: &str,
        wishes: Wishes,
    ) -> Result<Redeemed, ErrorObject> {
        let id = self.read(state).ok_or_else(broken)?;
        let mut entries = self.entries();
        let parked = entries.get(&id).filter(|parked| parked.identity == *identity).ok_or_else(gone)?;
        if parked.request != *request {
            return Err(other_request());
        }
        if parked.expires <= Instant::now() {
            return Err(gone());
        }
        let questions = parked.running.caller.outbox.open_questions();
        let responses = wishes.responses.as_deref().unwrap_or("{}");
        let Some(answers) = matched(&questions, responses) else {
            return Ok(Redeemed::ClientRequestError(questions));
        };
        let Some(parked) = entries.remove(&id) else { return Err(gone()) };
        drop(entries);
        parked.running.caller.renew(Wishes { responses: None, ..wishes });
        parked.running.caller.presence.arrive();
        // Where the answers come too late for the work, because it went on or ended without them, its outcome still counts.
        let heard = parked.running.caller.outbox.answer(Ok(answers));
        tracing::trace!(heard, "a client came back with answers");
        Ok(Redeemed::Resumed(Box::new(parked.running)))
    }

    /// The state of the last such request of this client that waits for answers.
    ///
    /// Some clients send answers without the state. To run their request anew would be to run it twice, and it is the
    /// same request of the same client that the answers are for.
    pub(super) fn last(&self, identity: &I, request: &Digest) -> Option<String> {
        let now = Instant::now();
        let entries = self.entries();
        let meant = entries
            .iter()
            .filter(|(_, parked)| parked.expires > now)
            .filter(|(_, parked)| parked.request == *request && parked.identity == *identity);
        meant.max_by_key(|(_, parked)| parked.number).map(|(id, _)| self.state(*id))
    }

    /// Lets go of requests whose clients did not come back.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let late: Vec<_> =
            self.entries().extract_if(|_, parked| parked.expires + PARKED_GRACE < now).collect();
        drop(late);
    }

    /// Lets go of everything, and keeps nothing from now on.
    pub(super) fn close(&self) {
        let mut entries = self.entries();
        self.closed.store(true, Relaxed);
        let all = std::mem::take(&mut *entries);
        drop(entries);
        drop(all);
    }

    fn state(&self, id: Uuid) -> String {
        format!("{}-{}", self.tag, id.simple())
    }

    /// What a state leads to; `None` for anything that was not given out here.
    fn read(&self, state: &str) -> Option<Uuid> {
        let id = Uuid::try_parse(state.strip_prefix(&self.tag)?.strip_prefix('-')?).ok()?;
        // An id can be written in several ways; only one is given out.
        (self.state(id) == state).then_some(id)
    }

    /// A thread that panicked inside left the map whole: every change to it is one call.
    fn entries(&self) -> MutexGuard<'_, HashMap<Uuid, Parked<I>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken() -> ErrorObject {
    ErrorObject::invalid_params(
        "requestState is not one that this server gave out: send the exact text of the last answer, \
         or begin anew without requestState and inputResponses",
    )
}

fn other_request() -> ErrorObject {
    ErrorObject::invalid_params(
        "requestState belongs to another request: repeat the same method and params with it",
    )
}

/// The same for a state of somebody else, so that nobody learns what others wait for.
fn gone() -> ErrorObject {
    ErrorObject::invalid_params(
        "nothing waits for this requestState any more: it was answered already or took too long. The request was not \
         run again; see what it did before you begin anew without requestState and inputResponses",
    )
}
