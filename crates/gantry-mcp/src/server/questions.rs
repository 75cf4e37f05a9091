//! The questions that a legacy client was asked as requests of their own, until it answers them.

use crate::{
    ErrorObject, envelope::Response, error::code, exchange::ClientResponse, limits::QUESTIONS_WAITING, raw,
};
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;

/// All open questions of one session or connection.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: AtomicU64,
    // Invariant: never held across an await.
    waiting: Mutex<HashMap<u64, oneshot::Sender<ClientResponse>>>,
}

impl Questions {
    /// Opens a question; `None` if too many are open.
    pub(super) fn open(self: &Arc<Self>) -> Option<Pending> {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.len() >= QUESTIONS_WAITING {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        waiting.insert(id, answer);
        drop(waiting);
        Some(Pending { id, answered, questions: Arc::clone(self) })
    }

    /// Passes an answer on; `false` if nobody waits for it.
    pub(super) fn answer(&self, response: &Response<'_>) -> bool {
        let id = response.id.as_ref().and_then(|id| id.key().parse::<u64>().ok());
        let Some(waiting) = id.and_then(|id| self.lock().remove(&id)) else { return false };
        let answer = match response.outcome {
            Ok(result) if result.get().starts_with('{') => Ok(result.get().to_owned()),
            Ok(_) => Err(ErrorObject::invalid_request("the client's result is not an object")),
            Err(error) => Err(error_object(error)),
        };
        waiting.send(answer).is_ok()
    }

    /// A thread that panicked inside left the map whole: every change to it is one call.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ClientResponse>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open question. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Pending {
    /// The id of the request that asks it.
    pub(super) id: u64,
    answered: oneshot::Receiver<ClientResponse>,
    questions: Arc<Questions>,
}

impl Pending {
    /// Waits for the answer; `None` when nobody can give it any more.
    pub(super) async fn answer(&mut self) -> Option<ClientResponse> {
        (&mut self.answered).await.ok()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.id);
    }
}

fn error_object(error: &RawValue) -> ErrorObject {
    let text = error.get();
    let code = raw::member(text, "code").and_then(|code| code.parse().ok()).unwrap_or(code::INTERNAL_ERROR);
    let message = raw::string_member(text, "message").unwrap_or_default();
    let object = ErrorObject::new(code, message);
    match raw::member(text, "data") {
        Some(data) => object.with_data(data.to_owned()),
        None => object,
    }
}
