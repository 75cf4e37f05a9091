//! The runtime: a few handles that the stages share, and the one way for a call to enter.

mod detached;
mod forward;
mod hearing;
mod lifecycle;
mod pool;
mod rebuild;
mod shelf;
mod sources;
mod upstreams;
mod view;

use crate::cache::Cache;
use crate::context::CallCx;
use crate::event::{EventKind, Events};
use crate::outputs::Outputs;
use crate::pipeline;
use crate::provider::Provider;
use crate::queue::Queues;
use crate::reply::Reply;
use crate::session::{Session, Sessions, StandingKey};
use arc_swap::ArcSwap;
use detached::Detached;
use gantry_core::budget::Budget;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::{CallId, SessionId};
use gantry_core::policy::Policies;
use gantry_core::toolset::{Pool, Selection};
use gantry_core::{CallRequest, Caller, Door, Tool, Toolset};
use gantry_store::{SessionKey, SessionRow, Store};
use rebuild::Upstreams;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
pub use view::Explanation;

/// Why a runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tools of the project clash.
    #[error("{0}")]
    Pool(String),
    /// A tool names a queue that is not there.
    #[error("tool {tool} names queue {queue}, which is not configured; add it under queues")]
    UnknownQueue { tool: String, queue: String },
}

/// The limits that the stages look at for every call.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) tool_timeout: Duration,
    pub(crate) response_max_bytes: usize,
    context_budget: Option<u64>,
    retention: Duration,
    max_calls: usize,
}

/// The governed pipeline and what it works on. One per project.
#[derive(Debug)]
pub struct Runtime {
    project: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) policies: ArcSwap<Policies>,
    pool: ArcSwap<Pool>,
    upstreams: Upstreams,
    agents: HashMap<Arc<str>, Selection>,
    /// What each agent sees of the pool, resolved once; callers without an agent are under the empty name.
    toolsets: Mutex<HashMap<Box<str>, Arc<Toolset>>>,
    pub(crate) output_tool: Arc<Tool>,
    output_provider: Arc<dyn Provider>,
    pub(crate) queues: Queues,
    pub(crate) cache: Cache,
    pub(crate) outputs: Outputs,
    pub(crate) store: Store,
    pub(crate) events: Arc<Events>,
    sessions: Sessions,
    running: Mutex<HashMap<CallId, (CancellationToken, Arc<str>)>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Runtime {
    /// Runs one call, to its end even if nobody waits for it any more.
    pub async fn call(self: &Arc<Self>, cx: CallCx, request: CallRequest) -> Reply {
        let id = cx.id;
        match self.enter(&cx) {
            Ok(running) => Detached::new(&self.tasks, running.through(cx, request)).await,
            Err(refusal) => Reply::shed(id, &refusal),
        }
    }

    /// Runs one call that nobody waits for; from here on it is found by its id.
    ///
    /// # Errors
    /// It was not let in, and nothing will run.
    pub fn defer(self: &Arc<Self>, cx: CallCx, request: CallRequest) -> Result<(), Refusal> {
        let running = self.enter(&cx)?;
        self.tasks.spawn(running.through(cx, request));
        Ok(())
    }

    /// Counts a call as running, unless there are too many or the runtime closes.
    fn enter(self: &Arc<Self>, cx: &CallCx) -> Result<Running, Refusal> {
        if self.closing.is_cancelled() {
            let message = "Gantry is shutting down; nothing was run. Try again later.";
            return Err(Refusal::new(ErrorCode::UpstreamUnavailable, message));
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Calls below another call are never shed: their parent was let in and waits for them.
        if cx.parent.is_none() && running.len() >= self.limits.max_calls {
            let message = format!("{} calls run already. Nothing was run; try again later.", running.len());
            return Err(Refusal::new(ErrorCode::QueueFull, message));
        }
        running.insert(cx.id, (cx.cancel.clone(), Arc::clone(&cx.caller().principal)));
        Ok(Running { rt: Arc::clone(self), id: cx.id })
    }

    /// Cancels a running call, if it is one of `own`'s or anybody's calls may be cancelled. Returns whether it was.
    pub fn cancel_call(&self, id: CallId, own: Option<&str>) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let found = running.get(&id).filter(|(_, principal)| own.is_none_or(|own| **principal == *own));
        found.inspect(|(token, _)| token.cancel()).is_some()
    }

    /// Whether a call, one of `own`'s or anybody's, runs or waits in this process.
    #[must_use]
    pub fn is_running(&self, id: CallId, own: Option<&str>) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&id).is_some_and(|(_, principal)| own.is_none_or(|own| **principal == *own))
    }

    /// Opens a session of its own for a connected client or a run.
    ///
    /// # Errors
    /// The agent is not configured.
    pub async fn open_session(&self, caller: Caller, door: Door) -> Result<Arc<Session>, Refusal> {
        self.settled().await;
        self.begin(SessionId::mint(), caller, door, None).await
    }

    /// The session that requests without a connection of their own share: one per identity, agent and door, for as
    /// long as it is used.
    ///
    /// # Errors
    /// The agent is not configured.
    pub async fn standing_session(&self, caller: Caller, door: Door) -> Result<Arc<Session>, Refusal> {
        let key = StandingKey::of(&caller, door);
        let oldest =
            crate::clock::now_us() - i64::try_from(self.limits.retention.as_micros()).unwrap_or(i64::MAX);
        match self.sessions.standing(&key) {
            Some(session) if session.last_used_us() >= oldest => {
                self.renew(&session)?;
                return Ok(session);
            }
            // Nobody used it for so long that its time is over, and with it its budget and its outputs.
            Some(session) => self.close_session(&session).await,
            None => {}
        }
        // Another process may have had one lately: `gantry call` is a new process each time.
        let stored =
            self.store.standing_session(&stored_key(&caller, door), oldest).await.unwrap_or_else(|error| {
                tracing::warn!(
                    "the session of {} could not be looked up, so a new one is opened: {error}",
                    caller.principal
                );
                None
            });
        self.begin(stored.map_or_else(SessionId::mint, |row| row.id), caller, door, Some(key)).await
    }

    async fn begin(
        &self,
        id: SessionId,
        caller: Caller,
        door: Door,
        key: Option<StandingKey>,
    ) -> Result<Arc<Session>, Refusal> {
        let toolset = self.toolset(caller.agent.as_deref())?;
        let budget = self.limits.context_budget.map(Budget::new);
        let session = Arc::new(Session::new(id, caller, door, toolset, budget));
        if self.outputs.has_any(id) {
            session.note_output();
        }
        let forgotten = match self.sessions.insert(&session, key) {
            Ok(forgotten) => forgotten,
            Err(first) => return Ok(first),
        };
        for forgotten in forgotten {
            self.end(&forgotten).await;
        }
        let caller = session.caller();
        let opened = EventKind::SessionOpened {
            session: id,
            principal: Arc::clone(&caller.principal),
            agent: caller.agent.clone(),
            door: door.as_str(),
        };
        self.events.emit(Some(&caller.principal), opened);
        Ok(session)
    }

    /// Puts a session on record with its first call; one that only looked around is no run.
    pub(crate) async fn record_session(&self, session: &Session) {
        if !session.is_unrecorded() {
            return;
        }
        let row = SessionRow {
            id: session.id(),
            key: stored_key(session.caller(), session.door()),
            parent: None,
            started_us: session.started_us(),
            last_us: session.started_us(),
            ended_us: None,
        };
        if let Err(error) = self.store.open_session(row).await {
            tracing::warn!("session {} could not be recorded: {error}", session.id());
        }
    }

    /// Starts a new execution of a session: what it sees is resolved anew.
    ///
    /// # Errors
    /// The agent is no longer configured.
    pub fn renew(&self, session: &Session) -> Result<(), Refusal> {
        if session.toolset().is_of(&self.pool.load()) {
            return Ok(());
        }
        let toolset = self.toolset(session.caller().agent.as_deref())?;
        session.renew(toolset);
        Ok(())
    }

    /// Ends a session: its calls are cancelled and it is forgotten.
    pub async fn close_session(&self, session: &Session) {
        if self.sessions.remove(session.id()).is_some() {
            self.end(session).await;
        }
    }

    async fn end(&self, session: &Session) {
        session.cancellation().cancel();
        self.forget_wishes(session.id());
        if let Err(error) = self.store.close_session(session.id(), crate::clock::now_us()).await {
            tracing::warn!("the end of session {} could not be recorded: {error}", session.id());
        }
        let closed = EventKind::SessionClosed { session: session.id() };
        self.events.emit(Some(&session.caller().principal), closed);
    }

    /// Cancels everything that a session has queued or running. Returns whether it is known here.
    pub async fn cancel_session(&self, id: SessionId) -> bool {
        let Some(session) = self.sessions.remove(id) else { return false };
        self.events.emit(Some(&session.caller().principal), EventKind::SessionCanceled { session: id });
        self.end(&session).await;
        true
    }

    fn toolset(&self, agent: Option<&str>) -> Result<Arc<Toolset>, Refusal> {
        let everything = Selection::everything();
        let selection = match agent {
            None => &everything,
            Some(name) => self.agents.get(name).ok_or_else(|| {
                let mut known: Vec<&str> = self.agents.keys().map(|name| &**name).collect();
                known.sort_unstable();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let message = format!("there is no agent {name:?}; configured: {known}");
                Refusal::new(ErrorCode::PermissionDenied, message)
            })?,
        };
        let pool = self.pool.load_full();
        let mut resolved = self.toolsets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(toolset) = resolved.get(agent.unwrap_or_default()).filter(|toolset| toolset.is_of(&pool))
        {
            return Ok(Arc::clone(toolset));
        }
        let toolset = Arc::new(Toolset::resolve(&pool, selection).0);
        resolved.insert(agent.unwrap_or_default().into(), Arc::clone(&toolset));
        Ok(toolset)
    }

    pub(crate) fn provider(&self, id: &str) -> Result<Arc<dyn Provider>, Refusal> {
        if *id == *self.output_tool.key.provider {
            return Ok(Arc::clone(&self.output_provider));
        }
        let sources = self.upstreams.sources.load();
        sources.get(id).map(|source| Arc::clone(&source.provider)).ok_or_else(|| {
            Refusal::new(
                ErrorCode::UpstreamUnavailable,
                format!("provider {id} is not there any more; nothing was run"),
            )
        })
    }
}

fn stored_key(caller: &Caller, door: Door) -> SessionKey {
    SessionKey {
        project: Arc::clone(&caller.project),
        principal: Arc::clone(&caller.principal),
        agent: caller.agent.clone(),
        door: door.as_str().into(),
    }
}

/// A call that counts as running until this is dropped.
struct Running {
    rt: Arc<Runtime>,
    id: CallId,
}

impl Running {
    /// Takes the call through the pipeline.
    async fn through(self, cx: CallCx, request: CallRequest) -> Reply {
        pipeline::run(&self.rt, &cx, &request).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.rt.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
