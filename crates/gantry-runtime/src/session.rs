//! Sessions: one run of an agent, or one connected client, with its toolset, its budget and its stored outputs.

use arc_swap::ArcSwap;
use gantry_core::budget::Budget;
use gantry_core::id::SessionId;
use gantry_core::{Caller, Door, Toolset};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Live sessions that are remembered; the longest idle ones are forgotten beyond that. More than the MCP door keeps,
/// so that it is the door that decides which of its clients has to begin anew.
const MAX_SESSIONS: usize = 20_000;

/// One session.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    caller: Caller,
    door: Door,
    toolset: ArcSwap<Toolset>,
    budget: Option<Budget>,
    has_outputs: AtomicBool,
    recorded: AtomicBool,
    started_us: i64,
    last_used_us: AtomicI64,
    cancel: CancellationToken,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        caller: Caller,
        door: Door,
        toolset: Arc<Toolset>,
        budget: Option<Budget>,
    ) -> Self {
        let now = crate::clock::now_us();
        Self {
            id,
            caller,
            door,
            toolset: ArcSwap::new(toolset),
            budget,
            has_outputs: AtomicBool::new(false),
            recorded: AtomicBool::new(false),
            started_us: now,
            last_used_us: AtomicI64::new(now),
            cancel: CancellationToken::new(),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Who it is for.
    #[must_use]
    pub fn caller(&self) -> &Caller {
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
        self.toolset.load_full()
    }

    /// Starts a new execution: from here on the session sees this toolset.
    pub(crate) fn renew(&self, toolset: Arc<Toolset>) {
        self.toolset.store(toolset);
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
    door: Door,
}

impl StandingKey {
    pub(crate) fn of(caller: &Caller, door: Door) -> Self {
        Self {
            project: Arc::clone(&caller.project),
            principal: Arc::clone(&caller.principal),
            agent: caller.agent.clone(),
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

    pub(crate) fn remove(&self, id: SessionId) -> Option<Arc<Session>> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        live.standing.retain(|_, standing| *standing != id);
        live.by_id.remove(&id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.values().cloned().collect()
    }
}
