//! Everything that the client of one request is sent before its response: in order, bounded.
//!
//! Not an mpsc channel: that allocates its first block of slots at once, and most requests send nothing before their
//! response.

use crate::exchange::{ClientRequest, ClientResponse};
use crate::limits::{OUTGOING_BYTES, OUTGOING_MESSAGES, QUESTIONS_WAITING};
use crate::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::sync::{Notify, oneshot};

/// Whether a message may be dropped on the way to a client that reads too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    BestEffort,
    Required,
}

#[derive(Debug)]
pub(super) enum Outgoing {
    Message(String, Delivery),
    /// Requests that a modern client gets as a result.
    InputRequired(Vec<ClientRequest>, oneshot::Sender<Vec<ClientResponse>>),
    /// Nothing will be sent for a while.
    Released,
}

#[derive(Debug, Default)]
pub(super) struct OutgoingQueue {
    // Invariant: never held across an await.
    queue: Mutex<Queue>,
    pushed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Outgoing>,
    bytes: usize,
    /// Set when the request has ended.
    closed: bool,
}

impl OutgoingQueue {
    /// Queues something; `false` if the request has ended or too much waits already.
    pub(super) fn push(&self, outgoing: Outgoing) -> bool {
        // Limit: notifications leave room for requests to the client, which must not be dropped.
        let (messages, bytes) = match &outgoing {
            Outgoing::Message(_, Delivery::BestEffort) | Outgoing::Released => {
                (OUTGOING_MESSAGES, OUTGOING_BYTES)
            }
            Outgoing::Message(_, Delivery::Required) | Outgoing::InputRequired(..) => {
                (OUTGOING_MESSAGES + QUESTIONS_WAITING, usize::MAX)
            }
        };
        let mut queue = lock(&self.queue);
        let total = queue.bytes.saturating_add(outgoing.bytes());
        if queue.closed || queue.waiting.len() >= messages || total > bytes {
            return false;
        }
        queue.bytes = total;
        queue.waiting.push_back(outgoing);
        drop(queue);
        self.pushed.notify_one();
        true
    }

    pub(super) fn pop(&self) -> Option<Outgoing> {
        let mut queue = lock(&self.queue);
        let outgoing = queue.waiting.pop_front()?;
        queue.bytes -= outgoing.bytes();
        Some(outgoing)
    }

    /// Waits for the next thing to send. Only one task may wait at a time.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&self) -> Outgoing {
        loop {
            if let Some(outgoing) = self.pop() {
                return outgoing;
            }
            self.pushed.notified().await;
        }
    }

    /// Drops all that waits, and takes nothing more: the request has ended.
    pub(super) fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        // After the lock was released: dropping a request wakes the task that waits for its response.
        drop(waiting);
    }
}

impl Outgoing {
    fn bytes(&self) -> usize {
        match self {
            Self::Message(text, _) => text.len(),
            Self::InputRequired(..) | Self::Released => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize, delivery: Delivery) -> Outgoing {
        Outgoing::Message("x".repeat(bytes), delivery)
    }

    #[test]
    fn notifications_are_bounded_and_leave_room_for_questions() {
        let queue = OutgoingQueue::default();
        let queued = (0..).take_while(|_| queue.push(message(1, Delivery::BestEffort))).count();
        assert_eq!(queued, OUTGOING_MESSAGES);
        assert!(!queue.push(Outgoing::Released), "it may be dropped as well");
        let queued = (0..).take_while(|_| queue.push(message(1, Delivery::Required))).count();
        assert_eq!(queued, QUESTIONS_WAITING);
        queue.pop().expect("a message");
        assert!(queue.push(message(OUTGOING_BYTES, Delivery::Required)), "however long it is");
    }

    #[test]
    fn the_bytes_of_notifications_are_bounded_and_count_until_they_are_sent() {
        let queue = OutgoingQueue::default();
        assert!(queue.push(message(OUTGOING_BYTES, Delivery::BestEffort)));
        assert!(!queue.push(message(1, Delivery::BestEffort)));
        queue.pop().expect("the message");
        assert!(queue.push(message(1, Delivery::BestEffort)));
    }

    #[tokio::test]
    async fn all_arrive_in_order_also_at_a_reader_that_waits_and_none_after_the_end() {
        let queue = std::sync::Arc::new(OutgoingQueue::default());
        let reader = tokio::spawn({
            let queue = std::sync::Arc::clone(&queue);
            async move { [queue.next().await.bytes(), queue.next().await.bytes()] }
        });
        tokio::task::yield_now().await;
        assert!(queue.push(message(1, Delivery::Required)) && queue.push(message(2, Delivery::Required)));
        assert_eq!(reader.await.expect("the reader"), [1, 2]);
        let (sender, mut responses) = oneshot::channel();
        assert!(queue.push(Outgoing::InputRequired(Vec::new(), sender)));
        queue.close();
        assert!(
            responses.try_recv().is_err() && queue.pop().is_none(),
            "the one who asked is not kept waiting"
        );
        assert!(!queue.push(message(1, Delivery::Required)));
    }
}
