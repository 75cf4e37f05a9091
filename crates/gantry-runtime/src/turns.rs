//! One after the other: work that takes a while and must not overlap, such as turning a project to another agent.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Lets one in at a time, in the order in which they came.
#[derive(Debug)]
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a>(#[expect(dead_code, reason = "held for its end")] Option<SemaphorePermit<'a>>);

impl Turns {
    /// Waits until everybody who came before is done.
    pub async fn mine(&self) -> Turn<'_> {
        // It is never closed, so there is always a permit in the end.
        Turn(self.0.acquire().await.ok())
    }
}
