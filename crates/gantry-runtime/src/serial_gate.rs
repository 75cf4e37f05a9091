//! Serialises long async operations in the order in which they came, such as switching the agent of a project: a mutex
//! that may be held across awaits.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Lets one operation in at a time.
#[derive(Debug)]
pub struct SerialGate(Semaphore);

impl Default for SerialGate {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

impl SerialGate {
    /// Waits until every operation that came before has ended; the next one enters when the permit is dropped. None once
    /// the gate is closed.
    pub async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }

    /// Lets no other operation in any more.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}
