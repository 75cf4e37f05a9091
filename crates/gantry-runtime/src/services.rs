//! What all runtimes of a process share: the ledger, the stream of events, the queues, the channel of notifications for
//! clients, and the calls in flight.

mod withdrawal;

use crate::approvals::Approvals;
use crate::event::{EventKind, Events};
use crate::queue::{self, Queues};
use arc_swap::ArcSwap;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::{CallId, SessionId};
use gantry_provider::resources::ChangeNotice;
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOptions {
    pub queues: Vec<queue::Options>,
    /// Calls in flight at once; more are shed.
    pub max_calls: usize,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self { queues: Vec::new(), max_calls: 1024 }
    }
}

#[derive(Debug)]
pub struct Services {
    pub(crate) store: Store,
    pub events: Events,
    pub(crate) queues: ArcSwap<Queues>,
    pub(crate) changes: broadcast::Sender<ChangeNotice>,
    pub(crate) approvals: Arc<Approvals>,
    /// By a number of its own: a held call that goes on has the id of the one that was held, and may begin before that one
    /// has left.
    running: Mutex<BTreeMap<u64, InFlightCall>>,
    /// Woken whenever a call has ended.
    ended: Notify,
    pub(crate) max_calls: AtomicUsize,
    next_id: AtomicU64,
}

/// A call that runs or waits for its turn.
#[derive(Debug, Clone)]
pub(crate) struct InFlightCall {
    pub(crate) id: CallId,
    pub(crate) cancel: CancellationToken,
    pub(crate) principal: Arc<str>,
    pub(crate) session: SessionId,
    /// The instance id of its runtime.
    pub(crate) runtime: u64,
}

impl InFlightCall {
    /// Whether it is this call, of the principal `own` or of any principal if there is none.
    fn is(&self, id: CallId, own: Option<&str>) -> bool {
        self.id == id && own.is_none_or(|own| *self.principal == *own)
    }
}

impl Services {
    /// Services on this ledger. Calls that the process before left open are reported as an event.
    pub fn new(store: Store, recovery: &Recovery, process: ProcessOptions) -> Arc<Self> {
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
            next_id: AtomicU64::new(1),
        })
    }

    pub fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    /// Announces that an approval was asked for or has changed.
    pub(crate) fn announce(&self, row: &ApprovalRow) {
        let events = self.events.for_project(&row.project);
        events.emit(Some(&row.principal), EventKind::Approval(Arc::new(row.without_arguments())));
        self.approvals.changed(row.call);
    }

    /// Notifications for connected clients, from now on.
    pub fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.changes.subscribe()
    }

    /// An id that no runtime and no running call had before.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a call as running, unless there are too many. Calls below another call are never shed: their parent was let
    /// in and waits for them.
    pub(crate) fn enter(self: &Arc<Self>, call: InFlightCall, child: bool) -> Result<Admitted, Refusal> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !child && running.len() >= self.max_calls.load(Ordering::Relaxed) {
            let message = format!("{} calls run already. Nothing was run; try again later.", running.len());
            return Err(Refusal::new(ErrorCode::QueueFull, message));
        }
        let entry = self.next_id();
        running.insert(entry, call);
        Ok(Admitted { services: Arc::clone(self), entry })
    }

    /// Cancels a running call, of the principal `own`, or of any principal if there is none. Returns whether there was one.
    pub fn cancel_call(&self, id: CallId, own: Option<&str>) -> bool {
        self.cancel_where(|call| call.is(id, own)) > 0
    }

    /// Cancels every one of these calls. Returns how many there were.
    pub(crate) fn cancel_where(&self, these: impl Fn(&InFlightCall) -> bool) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().filter(|call| these(call)).inspect(|call| call.cancel.cancel()).count()
    }

    /// Whether a call of the principal `own`, or of any principal if there is none, runs or waits in this process.
    pub fn is_running(&self, id: CallId, own: Option<&str>) -> bool {
        self.count_where(|call| call.is(id, own)) > 0
    }

    pub(crate) fn count_where(&self, these: impl Fn(&InFlightCall) -> bool) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().filter(|call| these(call)).count()
    }

    /// Waits until none of these calls runs any more, for as long as `grace`. Returns how many still do.
    pub(crate) async fn wait_until_ended(
        &self,
        these: impl Fn(&InFlightCall) -> bool,
        grace: Duration,
    ) -> usize {
        let none_left = async {
            loop {
                // Asked for before looking, so that a call that ends in between wakes us.
                let ended = self.ended.notified();
                if self.count_where(&these) == 0 {
                    return;
                }
                ended.await;
            }
        };
        match tokio::time::timeout(grace, none_left).await {
            Ok(()) => 0,
            Err(_) => self.count_where(&these),
        }
    }
}

/// A call that was admitted; it counts as running until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    services: Arc<Services>,
    entry: u64,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.services.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.entry);
        self.services.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: CallId) -> InFlightCall {
        InFlightCall {
            id,
            cancel: CancellationToken::new(),
            principal: "ann".into(),
            session: SessionId::generate(),
            runtime: 1,
        }
    }

    #[tokio::test]
    async fn a_call_that_goes_on_still_runs_when_the_one_that_was_held_has_left() {
        let home = tempfile::tempdir().unwrap();
        let (store, recovery) = Store::open(gantry_store::Options::new(home.path().join("l.db"))).unwrap();
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let id = CallId::generate();
        let (first, second) = (call(id), call(id));
        let held = services.enter(first.clone(), false).unwrap();
        let resumed = services.enter(second.clone(), false).unwrap();
        assert_eq!(services.count_where(|_| true), 2);
        drop(held);
        assert!(services.is_running(id, Some("ann")) && services.count_where(|_| true) == 1);
        assert!(!services.is_running(id, Some("ben")) && !services.cancel_call(id, Some("ben")));
        assert!(services.cancel_call(id, Some("ann")));
        assert!(second.cancel.is_cancelled() && !first.cancel.is_cancelled());
        drop(resumed);
        assert!(!services.is_running(id, None) && !services.cancel_call(id, None));
    }
}
