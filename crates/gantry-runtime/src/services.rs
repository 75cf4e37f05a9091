//! What all runtimes of a process share: the ledger, the stream of events, the queues, what clients are told, and which
//! calls run.

mod withdrawal;

use crate::approvals::Approvals;
use crate::event::{ApprovalChanged, EventKind, Events};
use crate::queue::{self, Queues};
use arc_swap::ArcSwap;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::{CallId, SessionId};
use gantry_provider::resources::Change;
use gantry_store::{ApprovalRow, Recovery, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// Changes that a slow reader may fall behind before it misses some. Every session holds its reader whether it reads or
/// not, so with the limit of one change this bounds what is kept.
const CHANGES: usize = 1024;

/// What is set up for the process as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The queues, which all projects share.
    pub queues: Vec<queue::Options>,
    /// Calls in flight at once; more are shed.
    pub max_calls: usize,
}

impl Default for Process {
    fn default() -> Self {
        Self { queues: Vec::new(), max_calls: 1024 }
    }
}

/// A change, and the runtime in which it happened: two projects may have servers of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNotice {
    /// The number of the runtime.
    pub from: u64,
    /// The change.
    pub change: Change,
}

impl AsRef<Change> for ChangeNotice {
    fn as_ref(&self) -> &Change {
        &self.change
    }
}

/// What all runtimes of a process share.
#[derive(Debug)]
pub struct Services {
    pub(crate) store: Store,
    pub(crate) events: Events,
    pub(crate) queues: ArcSwap<Queues>,
    pub(crate) changes: broadcast::Sender<ChangeNotice>,
    pub(crate) approvals: Arc<Approvals>,
    /// By call, and by a number of its own: a held call that goes on has the id of the one that was held, and may begin
    /// before that one has left.
    running: Mutex<BTreeMap<(CallId, u64), Call>>,
    /// Woken whenever a call has ended.
    ended: Notify,
    max_calls: AtomicUsize,
    numbers: AtomicU64,
}

/// A call that runs or waits for its turn.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) cancel: CancellationToken,
    pub(crate) principal: Arc<str>,
    pub(crate) session: SessionId,
    /// The number of its runtime.
    pub(crate) runtime: u64,
}

impl Services {
    /// Shares this ledger. What the process before left open is told.
    #[must_use]
    pub fn new(store: Store, recovery: &Recovery, process: Process) -> Arc<Self> {
        let events = Events::default();
        if !recovery.unknown.is_empty() {
            let calls = recovery.unknown.iter().map(|row| row.head.id).collect();
            events.emit(None, EventKind::CallsRecovered { calls });
        }
        Arc::new(Self {
            store,
            events,
            queues: ArcSwap::from_pointee(Queues::new(process.queues)),
            changes: broadcast::channel(CHANGES).0,
            approvals: Arc::default(),
            running: Mutex::default(),
            ended: Notify::new(),
            max_calls: AtomicUsize::new(process.max_calls),
            numbers: AtomicU64::new(1),
        })
    }

    /// Who waits for what.
    #[must_use]
    pub fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    /// Tells everybody that an approval was asked for or has changed.
    pub(crate) fn tell(&self, row: &ApprovalRow) {
        let events = self.events.of(&row.project);
        events.emit(Some(&row.principal), EventKind::Approval(Box::new(ApprovalChanged::of(row))));
        self.approvals.changed(row.id);
        if let Some(before) = row.supersedes {
            self.approvals.changed(before);
        }
    }

    /// What connected clients may want to hear of, from now on.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.changes.subscribe()
    }

    /// A number that no runtime and no running call had before.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn set_max_calls(&self, max: usize) {
        self.max_calls.store(max, Ordering::Relaxed);
    }

    /// Counts a call as running, unless there are too many. Calls below another call are never shed: their parent was let
    /// in and waits for them.
    pub(crate) fn enter(self: &Arc<Self>, id: CallId, call: Call, child: bool) -> Result<Running, Refusal> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !child && running.len() >= self.max_calls.load(Ordering::Relaxed) {
            let message = format!("{} calls run already. Nothing was run; try again later.", running.len());
            return Err(Refusal::new(ErrorCode::QueueFull, message));
        }
        let entry = (id, self.next_number());
        running.insert(entry, call);
        Ok(Running { services: Arc::clone(self), entry })
    }

    /// Cancels a running call, of the principal `own`, or of any principal if there is none. Returns whether there was one.
    pub fn cancel_call(&self, id: CallId, own: Option<&str>) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let found = these(&running, id, own).inspect(|call| call.cancel.cancel());
        found.count() > 0
    }

    /// Cancels every one of these calls. Returns how many there were.
    pub(crate) fn cancel_these(&self, these: impl Fn(&Call) -> bool) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().filter(|call| these(call)).inspect(|call| call.cancel.cancel()).count()
    }

    /// Whether a call of the principal `own`, or of any principal if there is none, runs or waits in this process.
    #[must_use]
    pub fn is_running(&self, id: CallId, own: Option<&str>) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        these(&running, id, own).next().is_some()
    }

    /// How many of these calls run.
    pub(crate) fn count(&self, these: impl Fn(&Call) -> bool) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().filter(|call| these(call)).count()
    }

    /// Waits until none of these calls runs any more, for as long as `grace`. Returns how many still do.
    pub(crate) async fn ended(&self, these: impl Fn(&Call) -> bool, grace: Duration) -> usize {
        let none_left = async {
            loop {
                // Asked for before looking, so that a call that ends in between wakes us.
                let ended = self.ended.notified();
                if self.count(&these) == 0 {
                    return;
                }
                ended.await;
            }
        };
        match tokio::time::timeout(grace, none_left).await {
            Ok(()) => 0,
            Err(_) => self.count(&these),
        }
    }
}

/// The call of this id in flight, of the principal `own` or of any principal if there is none.
fn these<'a>(
    running: &'a BTreeMap<(CallId, u64), Call>,
    id: CallId,
    own: Option<&'a str>,
) -> impl Iterator<Item = &'a Call> {
    let found = running.range((id, 0)..=(id, u64::MAX)).map(|(_, call)| call);
    found.filter(move |call| own.is_none_or(|own| *call.principal == *own))
}

/// A call that counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    services: Arc<Services>,
    entry: (CallId, u64),
}

impl Drop for Running {
    fn drop(&mut self) {
        self.services.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.entry);
        self.services.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call {
            cancel: CancellationToken::new(),
            principal: "ann".into(),
            session: SessionId::mint(),
            runtime: 1,
        }
    }

    #[tokio::test]
    async fn a_call_that_goes_on_still_runs_when_the_one_that_was_held_has_left() {
        let home = tempfile::tempdir().unwrap();
        let (store, recovery) = Store::open(gantry_store::Options::new(home.path().join("l.db"))).unwrap();
        let services = Services::new(store, &recovery, Process::default());
        let (id, first, second) = (CallId::mint(), call(), call());
        let held = services.enter(id, first.clone(), false).unwrap();
        let resumed = services.enter(id, second.clone(), false).unwrap();
        assert_eq!(services.count(|_| true), 2);
        drop(held);
        assert!(services.is_running(id, Some("ann")) && services.count(|_| true) == 1);
        assert!(!services.is_running(id, Some("ben")) && !services.cancel_call(id, Some("ben")));
        assert!(services.cancel_call(id, Some("ann")));
        assert!(second.cancel.is_cancelled() && !first.cancel.is_cancelled());
        drop(resumed);
        assert!(!services.is_running(id, None) && !services.cancel_call(id, None));
    }
}
