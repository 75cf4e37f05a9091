//! Whether the client of a request is there: a request may go on while nobody reads what it says.

use std::sync::Arc;
use tokio::sync::watch;

/// Counts who is there to be given the answer of one request.
#[derive(Debug)]
pub(super) struct Presence(watch::Sender<usize>);

impl Default for Presence {
    /// Whoever sent the request.
    fn default() -> Self {
        Self(watch::Sender::new(1))
    }
}

impl Presence {
    pub(super) fn arrive(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(super) fn leave(&self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }

    pub(super) fn is_there(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until somebody is there.
    pub(super) async fn somebody(&self) {
        let mut count = self.0.subscribe();
        while *count.borrow_and_update() == 0 {
            if count.changed().await.is_err() {
                // No sender is left. It does not happen: the sender is borrowed here.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Somebody who is there until this is dropped.
#[derive(Debug)]
pub(super) struct Attending(Arc<Presence>);

impl Attending {
    pub(super) fn new(presence: &Arc<Presence>) -> Self {
        presence.arrive();
        Self(Arc::clone(presence))
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.leave();
    }
}
