//! The requests in flight of one client, which can be cancelled by their ids.

use crate::envelope::Id;
use crate::{ErrorObject, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub(super) struct InFlightRequests(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    // Invariant: never held across an await.
    entries: Mutex<HashMap<Arc<str>, CancellationToken>>,
    /// The parent of all tokens. A request that waits for input has no entry here, and is cancelled with it all the same.
    all: CancellationToken,
    limit: usize,
}

impl InFlightRequests {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { entries: Mutex::default(), all: CancellationToken::new(), limit }))
    }

    /// Registers a request until the guard is dropped.
    pub(super) fn begin(&self, id: &Id<'_>) -> Result<InFlightGuard, ErrorObject> {
        let key: Arc<str> = id.key().as_ref().into();
        let mut entries = lock(&self.0.entries);
        if entries.contains_key(&key) {
            let message = "a request with this id is still running; use a new id for every request";
            return Err(ErrorObject::invalid_request(message));
        }
        if entries.len() >= self.0.limit {
            return Err(too_many(self.0.limit));
        }
        let cancel = self.0.all.child_token();
        entries.insert(Arc::clone(&key), cancel.clone());
        Ok(InFlightGuard { requests: self.clone(), key, cancel })
    }

    /// Cancels one request for the client. An unknown id is no error: the response may have crossed the cancellation.
    pub(super) fn cancel(&self, id: &Id<'_>) {
        if let Some(cancel) = lock(&self.0.entries).get(id.key().as_ref()) {
            cancel.cancel();
        }
    }

    /// Cancels all requests that run and all that begin from now on.
    pub(super) fn cancel_all(&self) {
        self.0.all.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0.entries).is_empty()
    }
}

#[derive(Debug)]
pub(super) struct InFlightGuard {
    requests: InFlightRequests,
    key: Arc<str>,
    cancel: CancellationToken,
}

impl InFlightGuard {
    pub(super) fn token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Whether the client has cancelled the request and must not be sent a response.
    pub(super) fn is_cancelled_by_client(&self) -> bool {
        self.cancel.is_cancelled() && !self.requests.0.all.is_cancelled()
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        lock(&self.requests.0.entries).remove(&self.key);
    }
}

pub(super) fn too_many(limit: usize) -> ErrorObject {
    let message = format!("{limit} requests are running already; wait until one of them is answered");
    ErrorObject::invalid_request(message)
}
