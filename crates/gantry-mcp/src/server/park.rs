//! Requests of 2026-07-28 that wait for answers of their clients while no connection belongs to them.
//!
//! A client of that version is asked by a result; it sends the request again, with the answers and with a
//! `requestState` that leads back to the work. The work is never begun a second time: a state that leads nowhere is an
//! error, because what it led to may have had an effect. Every round has a state of its own, so an old one leads nowhere.

use super::{caller::Wishes, outbox::matched, running::Running};
use crate::{
    ErrorObject,
    exchange::Question,
    limits::{PARKED, PARKED_GRACE, PARKED_PER_IDENTITY, QUESTION_WAIT},
    raw,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gantry_core::{digest::Digest, json};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tokio::time::Instant;
use uuid::Uuid;

const ID_BYTES: usize = 16;
const EXPIRY_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
const SEALED_BYTES: usize = ID_BYTES + EXPIRY_BYTES + DIGEST_BYTES;
const MAC_BYTES: usize = 32;
const KEY_BYTES: usize = 64;

/// All requests that wait for answers.
pub(super) struct Parks<I> {
    // Invariant: never held across an await.
    entries: Mutex<HashMap<Uuid, Parked<I>>>,
    /// Set when nobody can come back any more. Changed and read with the entries held.
    closed: AtomicBool,
    /// Seals states; it lives as long as what they lead to.
    key: [u8; KEY_BYTES],
    started: Instant,
}

struct Parked<I> {
    identity: I,
    request: Digest,
    expires: Instant,
    running: Running,
}

/// What a client sent a request again for.
pub(super) enum Redeemed {
    /// The work goes on.
    Resumed(Box<Running>),
    /// Answers are missing.
    Unanswered(Vec<Question>),
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
        let mut key = [0; KEY_BYTES];
        for part in key.chunks_exact_mut(ID_BYTES) {
            part.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self { entries: Mutex::default(), closed: AtomicBool::new(false), key, started: Instant::now() }
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
        let (id, expires) = (Uuid::new_v4(), Instant::now() + QUESTION_WAIT);
        entries.insert(id, Parked { identity, request, expires, running });
        drop(entries);
        Ok(self.seal(id, expires, &request))
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
        let (id, sealed) = self.unseal(state).ok_or_else(broken)?;
        let mut entries = self.entries();
        let parked = entries.get(&id).filter(|parked| parked.identity == *identity).ok_or_else(gone)?;
        if parked.request != *request || sealed != *request {
            return Err(other_request());
        }
        if parked.expires <= Instant::now() {
            return Err(gone());
        }
        let questions = parked.running.caller.outbox.open_questions();
        let responses = wishes.responses.as_deref().unwrap_or("{}");
        let Some(answers) = matched(&questions, responses) else {
            return Ok(Redeemed::Unanswered(questions));
        };
        let Some(parked) = entries.remove(&id) else { return Err(gone()) };
        drop(entries);
        parked.running.caller.renew(Wishes { responses: None, ..wishes });
        // Where the answers come too late for the work, because it went on or ended without them, its outcome still counts.
        let heard = parked.running.caller.outbox.answer(Ok(answers));
        tracing::trace!(heard, "a client came back with answers");
        Ok(Redeemed::Resumed(Box::new(parked.running)))
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

    fn seal(&self, id: Uuid, expires: Instant, request: &Digest) -> String {
        let expires = u64::try_from((expires - self.started).as_millis()).unwrap_or(u64::MAX);
        let mut sealed = Vec::with_capacity(SEALED_BYTES + MAC_BYTES);
        sealed.extend_from_slice(id.as_bytes());
        sealed.extend_from_slice(&expires.to_be_bytes());
        sealed.extend_from_slice(request.as_bytes());
        let mac = self.mac(&sealed).finalize().into_bytes();
        sealed.extend_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// What a state leads to; `None` for anything that was not sealed here.
    fn unseal(&self, state: &str) -> Option<(Uuid, Digest)> {
        let bytes = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (sealed, mac) = bytes.split_at_checked(SEALED_BYTES)?;
        self.mac(sealed).verify_slice(mac).ok()?;
        let (id, rest) = sealed.split_at_checked(ID_BYTES)?;
        let (_, request) = rest.split_at_checked(EXPIRY_BYTES)?;
        Some((Uuid::from_slice(id).ok()?, Digest::from_bytes(request.try_into().ok()?)))
    }

    fn mac(&self, sealed: &[u8]) -> Hmac<Sha256> {
        // A key of exactly one block needs no preparation, so making the MAC cannot fail.
        let mut mac = Hmac::<Sha256>::new(&self.key.into());
        mac.update(sealed);
        mac
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
