//! Calls that wait: for a person, or for their time.
//!
//! **Invariant:** what waits is a row of the store, durable before anybody hears of it. What is kept here, in memory, is
//! only who is waiting for which row, so that they hear of a change at once; losing it loses nothing.
//!
//! `hold` makes the rows, `decide` settles them by a person's word, the `clerk` runs what was approved or is due and ends
//! what nobody decided, `lapse` ends what has lost its key, `attend` waits with a caller, `webhook` tells others, `outcome`
//! tells what came of it.

mod attend;
mod clerk;
mod decide;
pub(crate) mod granting;
pub(crate) mod hold;
mod lapse;
mod outcome;
mod question;
mod resume;
mod webhook;

pub(crate) use clerk::run as look_after;
pub use decide::{Decider, Given, NotDecided};
pub(crate) use webhook::run as announce;

use crate::context::CallCx;
use crate::reply::Reply;
use gantry_core::State;
use gantry_core::error::ErrorCode;
use gantry_core::id::ApprovalId;
use gantry_store::ApprovalRow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long after a call that could not be run is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// Who waits for what in this process.
#[derive(Debug, Default)]
pub struct Approvals {
    // Invariant: never held across an await.
    desk: Mutex<Desk>,
    /// Woken when there may be something to do.
    work: Notify,
    /// When it was looked last for what has lost its key.
    looked_at_keys: lapse::Looked,
    /// Whether what processes that are gone left behind is taken care of here.
    adopting: AtomicBool,
    /// Moves on whenever something changed, for those who wait for anything at all.
    any: watch::Sender<u64>,
    /// The address of the page on which a person decides, without the approval's id; none if no server listens.
    page: Mutex<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Desk {
    waiting: HashMap<ApprovalId, Waiting>,
    /// What is being run here.
    running: HashSet<ApprovalId>,
    /// What could not be run, and when to try again.
    later: HashMap<ApprovalId, tokio::time::Instant>,
}

/// The callers that wait for one approval.
#[derive(Debug)]
struct Waiting {
    changed: watch::Sender<u64>,
    /// What they wait with, in the order in which they came.
    waiters: Vec<(u64, CallCx)>,
    /// Numbers them.
    count: u64,
    /// Whether somebody knows where it waits and may come back for it.
    told: bool,
}

impl Approvals {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what processes that are gone left behind is taken care of here.
    pub fn adopt(&self) {
        self.adopting.store(true, Ordering::Release);
        self.work.notify_one();
    }

    /// Sets the address of the page on which a person decides, without the approval's id; none if no server listens.
    pub fn set_page(&self, page: Option<Arc<str>>) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = page;
    }

    fn page(&self) -> Option<Arc<str>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_adopting(&self) -> bool {
        self.adopting.load(Ordering::Acquire)
    }

    /// Something happened to an approval: those who wait for it look again.
    pub(crate) fn changed(&self, id: ApprovalId) {
        if let Some(waiting) = self.desk().waiting.get(&id) {
            waiting.changed.send_modify(|count| *count += 1);
        }
        self.any.send_modify(|count| *count += 1);
        self.work.notify_one();
    }

    /// Moves on whenever an approval is asked for or changes in this process.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.any.subscribe()
    }

    /// A caller begins to wait.
    fn wait(self: &Arc<Self>, row: &ApprovalRow, cx: &CallCx) -> Waiter {
        let mut desk = self.desk();
        let waiting = desk.waiting.entry(row.id).or_insert_with(|| Waiting {
            changed: watch::Sender::new(0),
            waiters: Vec::new(),
            count: 0,
            told: false,
        });
        waiting.count += 1;
        waiting.waiters.push((waiting.count, cx.clone()));
        let (number, changed) = (waiting.count, waiting.changed.subscribe());
        Waiter { approvals: Arc::clone(self), id: row.id, number, changed }
    }

    /// Notes that a caller was told where the call waits.
    pub fn told(&self, id: ApprovalId) {
        if let Some(waiting) = self.desk().waiting.get_mut(&id) {
            waiting.told = true;
        }
    }

    /// The context of a caller who waits for a call and has not withdrawn it: the one who made it, or else another.
    fn waiter_of(&self, row: &ApprovalRow) -> Option<CallCx> {
        let desk = self.desk();
        let waiting = desk.waiting.get(&row.id)?;
        let there = || waiting.waiters.iter().map(|(_, cx)| cx).filter(|cx| !cx.cancel.is_cancelled());
        there().find(|cx| cx.id == row.call).or_else(|| there().next()).cloned()
    }

    /// Forgets what need not be put off any longer, or has ended meanwhile.
    fn tidy(&self) {
        let now = tokio::time::Instant::now();
        self.desk().later.retain(|_, time| *time > now);
    }

    /// Marks a call as run here, unless it is already or has to wait a little.
    fn begin(self: &Arc<Self>, id: ApprovalId) -> Option<Busy> {
        let mut desk = self.desk();
        if desk.later.get(&id).is_some_and(|time| *time > tokio::time::Instant::now()) {
            return None;
        }
        desk.later.remove(&id);
        desk.running.insert(id).then(|| Busy { approvals: Arc::clone(self), id })
    }
}

/// A caller that waits for an approval, until this is dropped.
#[derive(Debug)]
struct Waiter {
    approvals: Arc<Approvals>,
    id: ApprovalId,
    number: u64,
    changed: watch::Receiver<u64>,
}

impl Waiter {
    /// The same caller waits for what has taken the place of that approval. Who knew of the one may come back for the other.
    fn instead(&self, row: &ApprovalRow, cx: &CallCx) -> Self {
        let waiter = self.approvals.wait(row, cx);
        let mut desk = self.approvals.desk();
        let told = desk.waiting.get(&self.id).is_some_and(|before| before.told);
        if let Some(waiting) = desk.waiting.get_mut(&row.id) {
            waiting.told |= told;
        }
        drop(desk);
        waiter
    }

    /// Whether nobody else waits for the call or knows where it does.
    fn is_alone(&self) -> bool {
        let desk = self.approvals.desk();
        desk.waiting.get(&self.id).is_none_or(|waiting| waiting.waiters.len() <= 1 && !waiting.told)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut desk = self.approvals.desk();
        let Some(waiting) = desk.waiting.get_mut(&self.id) else { return };
        waiting.waiters.retain(|(number, _)| *number != self.number);
        if waiting.waiters.is_empty() {
            desk.waiting.remove(&self.id);
        }
    }
}

/// A call that is run here, until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    approvals: Arc<Approvals>,
    id: ApprovalId,
}

impl Busy {
    /// It has ended. If it could not even begin, it is tried again, later: the reason may pass. If somebody else was first
    /// with it, there will be nothing to try.
    pub(crate) fn ended(self, reply: &Reply) {
        let lost = reply.outcome.as_ref().err().is_some_and(|error| error.code == ErrorCode::AlreadyDecided);
        if lost || reply.state == State::ApprovedReady {
            self.postpone();
        }
    }

    /// It cannot be run now.
    fn postpone(&self) {
        let time = tokio::time::Instant::now() + AGAIN;
        self.approvals.desk().later.insert(self.id, time);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.approvals.desk().running.remove(&self.id);
        self.approvals.work.notify_one();
    }
}

#[cfg(test)]
mod tests;
