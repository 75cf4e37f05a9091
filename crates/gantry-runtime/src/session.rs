//! Sessions: one run of an agent, or one connected client, with its toolset, its budget and its stored outputs.

use crate::runtime::Runtime;
use arc_swap::ArcSwap;
use gantry_core::budget::Budget;
use gantry_core::id::{CallId, SessionId};
use gantry_core::toolset::{Place, Warning};
use gantry_core::{Caller, Door, Role, Toolset};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// Live sessions that are remembered; the longest idle ones are forgotten beyond that. More than the MCP door keeps,
/// so that it is the door that decides which of its clients has to begin anew.
const MAX_SESSIONS: usize = 20_000;

/// One session.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    caller: Arc<Caller>,
    door: Door,
    home: Weak<Runtime>,
    place: Place,
    standing: bool,
    root: Option<Arc<str>>,
    parent: Option<CallId>,
    resolved: ArcSwap<Resolved>,
    budget: Option<Budget>,
    has_outputs: AtomicBool,
    recorded: AtomicBool,
    /// Why its runtime lets go of it, once it does.
    leaving: OnceLock<Arc<str>>,
    started_us: i64,
    last_used_us: AtomicI64,
    cancel: CancellationToken,
}

/// What a session sees, and the revision of the set-up under which that was found out.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) revision: u64,
    pub(crate) toolset: Arc<Toolset>,
    /// What was odd about it.
    pub(crate) warnings: Arc<[Warning]>,
    /// Whether every server had given its verdict by then; if not, more tools may have come since.
    pub(crate) settled: bool,
}

/// What a session begins with.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) id: SessionId,
    pub(crate) caller: Caller,
    pub(crate) door: Door,
    pub(crate) place: Place,
    /// Whether requests without a connection of their own share it.
    pub(crate) standing: bool,
    /// The agent at the top, for a session below a call.
    pub(crate) root: Option<Arc<str>>,
    /// The call that it is below, and what stops that.
    pub(crate) parent: Option<(CallId, CancellationToken)>,
}

impl Session {
    pub(crate) fn new(begin: Begin, home: Weak<Runtime>, resolved: Resolved, budget: Option<Budget>) -> Self {
        let now = crate::clock::now_us();
        let Begin { id, caller, door, place, standing, root, parent } = begin;
        // What stops the call stops all that is below it.
        let cancel = parent.as_ref().map_or_else(CancellationToken::new, |(_, call)| call.child_token());
        Self {
            id,
            caller: Arc::new(caller),
            door,
            home,
            place,
            standing,
            root,
            parent: parent.map(|(call, _)| call),
            resolved: ArcSwap::from_pointee(resolved),
            budget,
            has_outputs: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            leaving: OnceLock::new(),
            started_us: now,
            last_used_us: AtomicI64::new(now),
            cancel,
        }
    }

    /// The runtime that it belongs to, as long as that is there.
    #[must_use]
    pub fn home(&self) -> Option<Arc<Runtime>> {
        self.home.upgrade()
    }

    /// Whether its runtime lets go of it, because the project turns to another agent or the project is gone. Its client
    /// may begin a new one where the project is now.
    #[must_use]
    pub fn is_displaced(&self) -> bool {
        self.leaving.get().is_some()
    }

    /// Why its runtime lets go of it, if it does.
    pub(crate) fn leaves_because(&self) -> Option<Arc<str>> {
        self.leaving.get().cloned()
    }

    /// From here on it takes no more calls, for this reason.
    pub(crate) fn leave(&self, why: &Arc<str>) {
        self.leaving.set(Arc::clone(why)).ok(); // The first reason is the one that began it.
    }

    /// Where it stands among agents that call agents.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether requests without a connection of their own share it.
    pub(crate) fn is_standing(&self) -> bool {
        self.standing
    }

    /// The agent for which all this began: its own, or that of the session at the top.
    pub(crate) fn root(&self) -> Option<&Arc<str>> {
        if self.parent.is_some() { self.root.as_ref() } else { self.caller.agent.as_ref() }
    }

    /// The call that it is below.
    pub(crate) fn parent(&self) -> Option<CallId> {
        self.parent
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Who it is for.
    #[must_use]
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// By which door it came.
    #[must_use]
    pub fn door(&self) -> Door {
        self.door
    }

    /// The tools that it sees.
    #[must_use]
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

    /// Its budget of tokens for tool results, if it has one.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Whether an output was stored for it, so that `tool_output` has something to read.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        self.has_outputs.load(Ordering::Acquire)
    }

    pub(crate) fn note_output(&self) {
        self.has_outputs.store(true, Ordering::Release);
    }

    /// Fires when the session is cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// When it began.
    pub(crate) fn started_us(&self) -> i64 {
        self.started_us
    }

    /// Whether it is still to be recorded; true once, for the call that is to do it.
    pub(crate) fn is_unrecorded(&self) -> bool {
        !self.recorded.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn touch(&self, now_us: i64) {
        self.last_used_us.store(now_us, Ordering::Relaxed);
    }

    pub(crate) fn last_used_us(&self) -> i64 {
        self.last_used_us.load(Ordering::Relaxed)
    }
}

/// What makes two requests without a connection of their own belong to one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StandingKey {
    project: Arc<str>,
    principal: Arc<str>,
    agent: Option<Arc<str>>,
    /// A key that was made anew under an old name may be of another role.
    role: Role,
    door: Door,
}

impl StandingKey {
    pub(crate) fn of(caller: &Caller, door: Door) -> Self {
        Self {
            project: Arc::clone(&caller.project),
            principal: Arc::clone(&caller.principal),
            agent: caller.agent.clone(),
            role: caller.role,
            door,
        }
    }
}

/// The live sessions of this process.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Live>);

#[derive(Debug, Default)]
struct Live {
    by_id: HashMap<SessionId, Arc<Session>>,
    standing: HashMap<StandingKey, SessionId>,
}

impl Sessions {
    /// Remembers a session and returns those that had to be forgotten for it.
    ///
    /// # Errors
    /// Another request has opened the same standing session in the meantime: here it is.
    pub(crate) fn insert(
        &self,
        session: &Arc<Session>,
        key: Option<StandingKey>,
    ) -> Result<Vec<Arc<Session>>, Arc<Session>> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = key.as_ref().and_then(|key| live.standing.get(key)).and_then(|id| live.by_id.get(id));
        if let Some(first) = first {
            return Err(Arc::clone(first));
        }
        live.by_id.insert(session.id(), Arc::clone(session));
        if let Some(key) = key {
            live.standing.insert(key, session.id());
        }
        let mut forgotten = Vec::new();
        while live.by_id.len() > MAX_SESSIONS {
            let Some(oldest) = live.by_id.values().min_by_key(|s| s.last_used_us()).map(|s| s.id()) else {
                break;
            };
            forgotten.extend(live.by_id.remove(&oldest));
            live.standing.retain(|_, id| *id != oldest);
        }
        Ok(forgotten)
    }

    pub(crate) fn standing(&self, key: &StandingKey) -> Option<Arc<Session>> {
        let live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        live.standing.get(key).and_then(|id| live.by_id.get(id)).cloned()
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        live.standing.retain(|_, standing| *standing != id);
        live.by_id.remove(&id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.values().cloned().collect()
    }
}
