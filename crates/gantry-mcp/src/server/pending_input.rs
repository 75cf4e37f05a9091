//! Requests of 2026-07-28 that wait for input from their clients, while no request of the client waits for them.
//!
//! A client of that version is asked by a result; it sends the request again, with the input and with the
//! `requestState` of the result. The work is never started a second time: an unknown state is an error, because the work
//! may have had an effect. Every round has a state of its own, so an old one is unknown.
//!
//! A state is random and carries no data. Its client, its request and its deadline are kept with the work.

use super::handler::Handler;
use super::request_channel::{RequestOptions, matching_responses};
use super::request_task::RunningRequest;
use crate::exchange::{ClientRequest, ClientResponse};
use crate::limits::{PARKED, PARKED_GRACE, PARKED_PER_IDENTITY, QUESTION_WAIT};
use crate::{ErrorObject, lock, raw};
use gantry_core::digest::Digest;
use gantry_core::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

pub(super) struct PendingInputs {
    // Invariant: never held across an await.
    state: Mutex<State>,
    /// Tells the states of this server from those of an earlier one.
    tag: String,
}

#[derive(Default)]
struct State {
    entries: HashMap<Uuid, PendingInput>,
    /// Set when the server stops and clients cannot come back.
    closed: bool,
    /// The number of the last entry.
    last: u64,
}

struct PendingInput {
    handler: Arc<dyn Handler>,
    request: Digest,
    number: u64,
    expires: Instant,
    running: Box<RunningRequest>,
    requests: Vec<ClientRequest>,
    responses: oneshot::Sender<Vec<ClientResponse>>,
}

/// Identifies a request of a client: its method and its params, without what differs from round to round.
pub(super) struct ParkKey {
    handler: Arc<dyn Handler>,
    method: Box<str>,
    params: Box<str>,
}

impl ParkKey {
    pub(super) fn new(handler: &Arc<dyn Handler>, method: &str, params: &str) -> Self {
        Self { handler: Arc::clone(handler), method: method.into(), params: params.into() }
    }

    fn digest(&self) -> Digest {
        let is_round = |key: &str| matches!(key, "_meta" | "inputResponses" | "requestState");
        let params = raw::without(&self.params, is_round);
        let canonical = json::canonical(&params);
        let text = canonical.as_ref().map_or(params.as_str(), |canonical| canonical.text());
        Digest::of_parts(&[self.method.as_bytes(), text.as_bytes()])
    }
}

pub(super) enum Resumed {
    Running(Box<RunningRequest>),
    StillRequired(Vec<ClientRequest>),
}

impl PendingInputs {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), tag: Uuid::new_v4().simple().to_string() }
    }

    /// Keeps a request until its client responds, and returns its state.
    ///
    /// # Errors
    /// Too many requests wait already, or the server stops; the request comes back.
    pub(super) fn park(
        &self,
        key: ParkKey,
        mut running: Box<RunningRequest>,
        requests: &[ClientRequest],
        responses: oneshot::Sender<Vec<ClientResponse>>,
    ) -> Result<String, Box<RunningRequest>> {
        self.expire();
        let request = key.digest();
        let mut state = lock(&self.state);
        let own = state.entries.values().filter(|entry| entry.handler.is_same(&*key.handler)).count();
        if state.closed || state.entries.len() >= PARKED || own >= PARKED_PER_IDENTITY {
            tracing::warn!(
                "a client was not asked for input: too many requests wait for input, or the server stops"
            );
            return Err(running);
        }
        running.detach();
        running.channel.leave();
        state.last += 1;
        let (id, number, expires) = (Uuid::new_v4(), state.last, Instant::now() + QUESTION_WAIT);
        let requests = requests.to_vec();
        let entry =
            PendingInput { handler: key.handler, request, number, expires, running, requests, responses };
        state.entries.insert(id, entry);
        Ok(self.state_text(id))
    }

    /// Resumes a request that its client has sent again.
    ///
    /// # Errors
    /// No request of this client waits under this state.
    pub(super) fn resume(
        &self,
        key: &ParkKey,
        state: &str,
        options: RequestOptions,
    ) -> Result<Resumed, ErrorObject> {
        let id = self.parse_state(state).ok_or_else(unknown_state)?;
        let request = key.digest();
        let mut state = lock(&self.state);
        let entry =
            state.entries.get(&id).filter(|entry| entry.handler.is_same(&*key.handler)).ok_or_else(gone)?;
        if entry.request != request {
            return Err(other_request());
        }
        if entry.expires <= Instant::now() {
            return Err(gone());
        }
        // Work that went on or ended without responses needs none; its outcome still counts.
        let needed = if entry.responses.is_closed() { &[] } else { entry.requests.as_slice() };
        let Some(responses) = matching_responses(needed, options.responses.as_deref().unwrap_or("{}")) else {
            return Ok(Resumed::StillRequired(entry.requests.clone()));
        };
        let entry = state.entries.remove(&id).ok_or_else(gone)?;
        drop(state);
        entry.running.channel.come_back(RequestOptions { responses: None, ..options });
        let accepted = entry.responses.send(responses).is_ok();
        tracing::trace!(accepted, "a client came back with input");
        Ok(Resumed::Running(entry.running))
    }

    /// The state of the newest such request of this client that waits for input.
    ///
    /// Some clients send input without the state. Starting their request anew would run it twice, and the input is for
    /// the same request of the same client.
    pub(super) fn last_state(&self, key: &ParkKey) -> Option<String> {
        let (now, request) = (Instant::now(), key.digest());
        let state = lock(&self.state);
        let waiting = state.entries.iter().filter(|(_, entry)| {
            entry.expires > now && entry.request == request && entry.handler.is_same(&*key.handler)
        });
        waiting.max_by_key(|(_, entry)| entry.number).map(|(id, _)| self.state_text(*id))
    }

    /// Drops requests whose clients did not come back.
    pub(super) fn expire(&self) {
        let now = Instant::now();
        let late: Vec<_> =
            lock(&self.state).entries.extract_if(|_, entry| entry.expires + PARKED_GRACE < now).collect();
        // After the lock was released: dropping work runs code of the handler.
        drop(late);
    }

    /// Drops all requests, and keeps none from now on.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let all = std::mem::take(&mut state.entries);
        drop(state);
        drop(all);
    }

    fn state_text(&self, id: Uuid) -> String {
        format!("{}-{}", self.tag, id.simple())
    }

    /// The id in a state; `None` for a text that this server did not give out.
    fn parse_state(&self, state: &str) -> Option<Uuid> {
        let id = Uuid::try_parse(state.strip_prefix(&self.tag)?.strip_prefix('-')?).ok()?;
        // An id has several spellings; only one is given out.
        (self.state_text(id) == state).then_some(id)
    }
}

fn unknown_state() -> ErrorObject {
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

/// The same for a state of another client, so that clients learn nothing about each other.
fn gone() -> ErrorObject {
    ErrorObject::invalid_params(
        "nothing waits for this requestState any more: it was answered already or took too long. The request was not \
         run again; see what it did before you begin anew without requestState and inputResponses",
    )
}
