//! The requests that are under way in one session or connection, so that they can be cancelled by their id.

use crate::{ErrorObject, envelope::Id};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// All requests in flight of one session or connection.
#[derive(Debug, Clone)]
pub(super) struct Flights {
    shared: Arc<Mutex<HashMap<Box<str>, Entry>>>,
    all: CancellationToken,
    limit: usize,
}

#[derive(Debug)]
struct Entry {
    cancel: CancellationToken,
    withdrawn: bool,
}

impl Flights {
    pub(super) fn new(limit: usize) -> Self {
        Self { shared: Arc::default(), all: CancellationToken::new(), limit }
    }

    /// Notes that a request begins.
    pub(super) fn begin(&self, id: &Id<'_>) -> Result<Flight, ErrorObject> {
        let key: Box<str> = id.key().into();
        let mut entries = lock(&self.shared);
        if entries.contains_key(&key) {
            let message = "a request with this id is still running; use a new id for every request";
            return Err(ErrorObject::invalid_request(message));
        }
        if entries.len() >= self.limit {
            return Err(too_many(self.limit));
        }
        let cancel = self.all.child_token();
        entries.insert(key.clone(), Entry { cancel: cancel.clone(), withdrawn: false });
        drop(entries);
        Ok(Flight { shared: Arc::clone(&self.shared), key, cancel })
    }

    /// Cancels one request for the client. An unknown id is no error: the answer may have crossed the cancel.
    pub(super) fn withdraw(&self, id: &Id<'_>) {
        if let Some(entry) = lock(&self.shared).get_mut(id.key()) {
            entry.withdrawn = true;
            entry.cancel.cancel();
        }
    }

    /// Cancels everything that runs and everything that begins from now on.
    pub(super) fn cancel_all(&self) {
        self.all.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.shared).is_empty()
    }
}

/// One request that is under way. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    shared: Arc<Mutex<HashMap<Box<str>, Entry>>>,
    key: Box<str>,
    cancel: CancellationToken,
}

impl Flight {
    pub(super) fn token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Whether the client has withdrawn the request and must not be sent an answer.
    pub(super) fn is_withdrawn(&self) -> bool {
        lock(&self.shared).get(&self.key).is_some_and(|entry| entry.withdrawn)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.shared).remove(&self.key);
    }
}

/// The refusal of a request for which there is no room.
pub(super) fn too_many(limit: usize) -> ErrorObject {
    let message = format!("{limit} requests are running already; wait until one of them is answered");
    ErrorObject::invalid_request(message)
}

/// A thread that panicked inside left the map whole: every change to it is one call.
fn lock(shared: &Mutex<HashMap<Box<str>, Entry>>) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
