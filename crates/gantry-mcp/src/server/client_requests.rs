//! The requests that a legacy client was sent, until it responds to them.

use crate::envelope::Response;
use crate::exchange::ClientResponse;
use crate::limits::QUESTIONS_WAITING;
use crate::{ErrorObject, lock};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct ClientRequests {
    last_id: AtomicU64,
    // Invariant: never held across an await.
    pending: Mutex<HashMap<u64, oneshot::Sender<ClientResponse>>>,
}

impl ClientRequests {
    /// Registers a request and returns its id; `None` if too many are pending.
    pub(super) fn open(&self) -> Option<(u64, oneshot::Receiver<ClientResponse>)> {
        let (sender, response) = oneshot::channel();
        let mut pending = lock(&self.pending);
        if pending.len() >= QUESTIONS_WAITING {
            return None;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        pending.insert(id, sender);
        Some((id, response))
    }

    /// Forgets a request; `false` if the client has responded to it.
    pub(super) fn close(&self, id: u64) -> bool {
        lock(&self.pending).remove(&id).is_some()
    }

    /// Passes a response on; `false` if no request is pending for it.
    pub(super) fn respond(&self, response: &Response<'_>) -> bool {
        let id = response.id.as_ref().and_then(|id| id.key().parse::<u64>().ok());
        let Some(sender) = id.and_then(|id| lock(&self.pending).remove(&id)) else { return false };
        let response = match response.outcome {
            Ok(result) if result.starts_with('{') => Ok(result.to_owned()),
            Ok(_) => Err(ErrorObject::invalid_request("the client's result is not an object")),
            Err(error) => Err(ErrorObject::parse(error)),
        };
        sender.send(response).is_ok()
    }
}
