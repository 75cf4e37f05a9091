//! Held calls: those that wait for a person, or for their time.
//!
//! **Invariant:** a held call is a row of the store, durable before it is announced. Memory only has which callers wait
//! for which row, so that they are notified of a change at once; losing it loses nothing.
//!
//! `hold` makes the rows, `decide` settles them by a person's decision, the `worker` runs what was approved or is due and
//! ends what expired, `key_expiry` ends the calls of keys that have ended, `poll` publishes changed rows to waiting callers,
//! `wait` waits with a caller, `webhook` sends messages about the rows, `outcome` makes replies of them.

mod decide;
pub(crate) mod grants;
pub(crate) mod hold;
mod key_expiry;
mod outcome;
mod poll;
mod question;
mod resume;
mod wait;
mod webhook;
mod worker;

pub use decide::{Decider, DecisionError, DecisionInput};
pub(crate) use poll::run as publish_changes;
pub(crate) use webhook::run as deliver_webhooks;
pub(crate) use worker::run as run_due;

use crate::context::PipelineContext;
use crate::reply::Reply;
use gantry_core::State;
use gantry_core::error::ErrorCode;
use gantry_core::id::{ApprovalId, CallId};
use gantry_provider::task;
use gantry_store::ApprovalRow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long after a held call that could not be run is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// The held calls of this process: which callers wait for them, and which of them run.
#[derive(Debug, Default)]
pub struct Approvals {
    // Invariant: never held across an await.
    waiters: Mutex<Waiters>,
    /// Wakes the worker: there may be a call to run or to end.
    work: Notify,
    /// Wakes the poller: a row that callers wait for may have changed.
    poll: Notify,
    /// Whether this process takes over what processes that are gone have left.
    takes_over: AtomicBool,
    /// Moves on whenever an approval changes in this process, for callers that wait for any of them.
    any: watch::Sender<u64>,
    /// The address of the page on which a person decides, without the approval's id; none if no server listens.
    page: Mutex<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Waiters {
    waiting: HashMap<CallId, Waiting>,
    /// Those in `waiting` whose rows may have changed since they were read.
    changed: HashSet<CallId>,
    /// Approvals whose calls run here, or are to be tried again in a moment.
    running: HashSet<ApprovalId>,
}

/// The callers that wait for one held call.
#[derive(Debug)]
struct Waiting {
    /// The newest approval of the call.
    row: watch::Sender<Arc<ApprovalRow>>,
    /// What they wait with, in the order in which they came.
    waiters: Vec<Arc<PipelineContext>>,
    /// Whether a caller was given an id, and may come back for the outcome.
    reported: bool,
}

impl Approvals {
    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this process takes over what processes that are gone have left.
    pub fn take_over_orphans(&self) {
        self.takes_over.store(true, Ordering::Release);
        self.work.notify_one();
    }

    fn takes_over_orphans(&self) -> bool {
        self.takes_over.load(Ordering::Acquire)
    }

    /// Sets the address of the page on which a person decides, without the approval's id; none if no server listens.
    pub fn set_page(&self, page: Option<Arc<str>>) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = page;
    }

    fn page(&self) -> Option<Arc<str>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that an approval of this call was asked for or has changed: it is read again for the callers that wait for it.
    pub(crate) fn changed(&self, call: CallId) {
        self.read_again(call);
        self.any.send_modify(|count| *count += 1);
        self.work.notify_one();
    }

    /// Has the poller read the row of a call again, if a caller waits for it.
    fn read_again(&self, call: CallId) {
        let mut waiters = self.waiters();
        if waiters.waiting.contains_key(&call) {
            waiters.changed.insert(call);
            self.poll.notify_one();
        }
    }

    /// Moves on whenever an approval is asked for or changes in this process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.any.subscribe()
    }

    /// A caller begins to wait. Its row is read once more, so a change before this moment is not missed.
    fn wait(self: &Arc<Self>, row: &Arc<ApprovalRow>, cx: &PipelineContext) -> Waiter {
        let mut waiters = self.waiters();
        let waiting = waiters.waiting.entry(row.call).or_insert_with(|| Waiting {
            row: watch::Sender::new(Arc::clone(row)),
            waiters: Vec::new(),
            reported: false,
        });
        if waiting.row.borrow().step < row.step {
            waiting.row.send_replace(Arc::clone(row));
        }
        let (cx, receiver) = (Arc::new(cx.clone()), waiting.row.subscribe());
        waiting.waiters.push(Arc::clone(&cx));
        drop(waiters);
        self.read_again(row.call);
        Waiter { approvals: Arc::clone(self), call: row.call, cx, row: receiver }
    }

    /// Notes that a caller was given the id of a held call, or of its approval.
    pub(crate) fn mark_reported(&self, call: CallId) {
        if let Some(waiting) = self.waiters().waiting.get_mut(&call) {
            waiting.reported = true;
        }
    }

    /// The context of a caller that waits for a call and has not withdrawn it: the one that made it, or else another.
    fn waiter_of(&self, row: &ApprovalRow) -> Option<PipelineContext> {
        let waiters = self.waiters();
        let waiting = waiters.waiting.get(&row.call)?;
        let there = || waiting.waiters.iter().filter(|cx| !cx.cancel.is_cancelled());
        there().find(|cx| cx.id == row.call).or_else(|| there().next()).map(|cx| (**cx).clone())
    }

    /// Marks a call as run here, unless it is already or is to be tried again in a moment.
    fn begin(self: &Arc<Self>, id: ApprovalId) -> Option<RunningGuard> {
        self.waiters().running.insert(id).then(|| RunningGuard { approvals: Arc::clone(self), id })
    }
}

/// A caller that waits for a held call, until this is dropped.
#[derive(Debug)]
struct Waiter {
    approvals: Arc<Approvals>,
    call: CallId,
    cx: Arc<PipelineContext>,
    /// The newest approval of the call, as it was read last.
    row: watch::Receiver<Arc<ApprovalRow>>,
}

impl Waiter {
    /// Whether no other caller waits for the call, and none was given its id.
    fn is_alone(&self) -> bool {
        let waiters = self.approvals.waiters();
        waiters.waiting.get(&self.call).is_none_or(|waiting| waiting.waiters.len() <= 1 && !waiting.reported)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.approvals.waiters();
        let Some(waiting) = waiters.waiting.get_mut(&self.call) else { return };
        waiting.waiters.retain(|cx| !Arc::ptr_eq(cx, &self.cx));
        if waiting.waiters.is_empty() {
            waiters.waiting.remove(&self.call);
            waiters.changed.remove(&self.call);
        }
    }
}

/// A held call that counts as running here until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    approvals: Arc<Approvals>,
    id: ApprovalId,
}

impl RunningGuard {
    /// The call has ended. If it could not even begin, it is tried again: the reason may pass. If another process was first
    /// with it, there will be nothing to try.
    pub(crate) fn ended(self, reply: &Reply) {
        let lost = reply.outcome.as_ref().err().is_some_and(|error| error.code == ErrorCode::AlreadyDecided);
        if lost || reply.state == State::ApprovedReady {
            self.retry_later();
        }
    }

    /// The call cannot be run now. It counts as running until it is tried again.
    fn retry_later(self) {
        task::spawn("retry held call", async move {
            tokio::time::sleep(RETRY).await;
            drop(self);
        });
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.approvals.waiters().running.remove(&self.id);
        self.approvals.work.notify_one();
    }
}

#[cfg(test)]
mod tests;
