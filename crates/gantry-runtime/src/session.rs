//! Sessions: one run of an agent, or one connected client, with its toolset, its budget and its stored outputs.

use crate::runtime::Runtime;
use arc_swap::ArcSwap;
use gantry_core::Budget;
use gantry_core::id::{CallId, SessionId};
use gantry_core::toolset::{SpawnContext, Warning};
use gantry_core::{Caller, EntryPoint, Role, Toolset};
use gantry_store::SessionKey;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// Live sessions that are remembered; the longest idle ones are forgotten beyond that. More than the MCP
/// entry point keeps, so that it decides which of its clients has to begin anew.
const MAX_SESSIONS: usize = 20_000;

#[derive(Debug)]
pub struct Session {
    pub(crate) head: SessionHead,
    runtime: Weak<Runtime>,
    resolved: ArcSwap<Resolved>,
    budget: Option<Budget>,
    has_outputs: AtomicBool,
    recorded: AtomicBool,
    /// Why its runtime has evicted it, once it has.
    evicted: OnceLock<Arc<str>>,
    pub(crate) started_us: i64,
    last_used_us: AtomicI64,
    cancel: CancellationToken,
}

/// What a session sees, and the revision of the set-up under which that was found out.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) revision: u64,
    pub(crate) toolset: Arc<Toolset>,
    pub(crate) warnings: Arc<[Warning]>,
    /// Whether every server was ready once or had failed by then; if not, more tools may have come since.
    pub(crate) discovered: bool,
}

#[derive(Debug)]
pub(crate) struct SessionHead {
    pub(crate) id: SessionId,
    pub(crate) caller: Arc<Caller>,
    pub(crate) door: EntryPoint,
    pub(crate) place: SpawnContext,
    /// Whether requests without a connection of their own share it.
    pub(crate) shared: bool,
    /// The agent for which all this began: its own, or that of the session at the top.
    pub(crate) root_agent: Option<Arc<str>>,
    /// The call that it is below, and what stops that.
    pub(crate) parent: Option<(CallId, CancellationToken)>,
}

impl Session {
    pub(crate) fn new(
        head: SessionHead,
        runtime: Weak<Runtime>,
        resolved: Resolved,
        budget: Option<Budget>,
    ) -> Self {
        let now = crate::clock::now_us();
        // What stops the call stops all that is below it.
        let cancel = head.parent.as_ref().map_or_else(CancellationToken::new, |(_, call)| call.child_token());
        Self {
            head,
            runtime,
            resolved: ArcSwap::from_pointee(resolved),
            budget,
            has_outputs: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            evicted: OnceLock::new(),
            started_us: now,
            last_used_us: AtomicI64::new(now),
            cancel,
        }
    }

    pub fn runtime(&self) -> Option<Arc<Runtime>> {
        self.runtime.upgrade()
    }

    /// Whether its runtime has evicted it, because the project switches to another agent or the project is gone. Its client
    /// may open a new one in the runtime where it belongs now.
    pub fn is_evicted(&self) -> bool {
        self.evicted.get().is_some()
    }

    /// Why its runtime has evicted it, if it has.
    pub(crate) fn eviction_reason(&self) -> Option<Arc<str>> {
        self.evicted.get().cloned()
    }

    /// From here on it takes no more calls, for this reason.
    pub(crate) fn evict(&self, why: &Arc<str>) {
        self.evicted.set(Arc::clone(why)).ok(); // The first reason is the one that began it.
    }

    /// Its depth among agents that call agents.
    pub fn place(&self) -> &SpawnContext {
        &self.head.place
    }

    pub(crate) fn id(&self) -> SessionId {
        self.head.id
    }

    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.head.caller
    }

    pub(crate) fn door(&self) -> EntryPoint {
        self.head.door
    }

    pub fn toolset(&self) -> Arc<Toolset> {
        Arc::clone(&self.resolved.load().toolset)
    }

    /// Starts a new execution: from here on the session sees this toolset.
    pub(crate) fn renew(&self, resolved: Resolved) {
        self.resolved.store(Arc::new(resolved));
    }

    pub(crate) fn resolved(&self) -> Arc<Resolved> {
        self.resolved.load_full()
    }

    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Whether an output was stored for it, so that `tool_output` has something to read.
    pub(crate) fn has_outputs(&self) -> bool {
        self.has_outputs.load(Ordering::Acquire)
    }

    pub(crate) fn note_output(&self) {
        self.has_outputs.store(true, Ordering::Release);
    }

    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether it is still to be recorded; true once, for the call that is to do it.
    pub(crate) fn is_unrecorded(&self) -> bool {
        !self.recorded.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn mark_used(&self, now_us: i64) {
        self.last_used_us.store(now_us, Ordering::Relaxed);
    }

    pub(crate) fn last_used_us(&self) -> i64 {
        self.last_used_us.load(Ordering::Relaxed)
    }
}

/// What makes two requests without a connection of their own belong to one session. The role is part of it: a key that was
/// made anew under an old name may be of another one.
pub(crate) type SharedKey = (SessionKey, Role);

pub(crate) fn shared_key(caller: &Caller, door: EntryPoint) -> SharedKey {
    (session_key(caller, door), caller.role)
}

/// The identity, agent and entry point of a session, as the store keeps them.
pub(crate) fn session_key(caller: &Caller, door: EntryPoint) -> SessionKey {
    SessionKey {
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent: caller.agent.clone(),
        door: door.as_str().into(),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Live>);

#[derive(Debug, Default)]
struct Live {
    by_id: HashMap<SessionId, Arc<Session>>,
    shared: HashMap<SharedKey, Arc<Session>>,
}

impl Sessions {
    /// Remembers a session and returns those that had to be forgotten for it.
    ///
    /// # Errors
    /// Another request has opened the same shared session in the meantime: here it is.
    pub(crate) fn insert(&self, session: &Arc<Session>) -> Result<Vec<Arc<Session>>, Arc<Session>> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if session.head.shared {
            match live.shared.entry(shared_key(session.caller(), session.door())) {
                Entry::Occupied(first) => return Err(Arc::clone(first.get())),
                Entry::Vacant(place) => drop(place.insert(Arc::clone(session))),
            }
        }
        live.by_id.insert(session.id(), Arc::clone(session));
        let mut forgotten = Vec::new();
        while live.by_id.len() > MAX_SESSIONS {
            let Some(oldest) = live.by_id.values().min_by_key(|s| s.last_used_us()).map(|s| s.id()) else {
                break;
            };
            forgotten.extend(live.by_id.remove(&oldest));
            live.shared.retain(|_, shared| shared.id() != oldest);
        }
        Ok(forgotten)
    }

    pub(crate) fn shared(&self, key: &SharedKey) -> Option<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).shared.get(key).cloned()
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        live.shared.retain(|_, shared| shared.id() != id);
        live.by_id.remove(&id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.values().cloned().collect()
    }
}
