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

/// The operation that is in; the next one enters when this is dropped.
#[derive(Debug)]
pub struct GateGuard<'a>(#[expect(dead_code, reason = "held for its end")] Option<SemaphorePermit<'a>>);

impl SerialGate {
    /// Waits until every operation that came before has ended.
    pub async fn enter(&self) -> GateGuard<'_> {
        // The semaphore is never closed, so there is always a permit in the end.
        GateGuard(self.0.acquire().await.ok())
    }
}
