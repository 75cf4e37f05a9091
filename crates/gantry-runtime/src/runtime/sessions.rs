//! Sessions of a runtime: opened, renewed, closed.

use super::{Relocation, Runtime, unknown_agent};
use crate::context::PipelineContext;
use crate::event::EventKind;
use crate::session::{Session, SessionHead, session_key, shared_key};
use gantry_core::Budget;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::id::SessionId;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::{SpawnContext, Warning};
use gantry_core::{Caller, EntryPoint};
use gantry_store::SessionRow;
use std::sync::Arc;

impl Runtime {
    /// Opens a session of its own for a connected client or a run.
    pub async fn open_session(
        self: &Arc<Self>,
        caller: Caller,
        door: EntryPoint,
    ) -> Result<Arc<Session>, Refusal> {
        self.settled().await;
        self.open(self.root_session(SessionId::generate(), caller, door)).await
    }

    /// Opens a session for an agent that a call spawns, one step deeper: its tools are those of its own definition,
    /// cut down to what `narrowed` matches. Whether the parent may spawn this agent is for the caller to check.
    ///
    /// # Errors
    /// The agent is not configured, or agents may not call agents that deep.
    pub async fn spawn_session(
        self: &Arc<Self>,
        above: &PipelineContext,
        agent: &str,
        narrowed: Option<Vec<Pattern>>,
    ) -> Result<Arc<Session>, Refusal> {
        let (snapshot, depth) = (self.snapshot(), above.session.place().depth.saturating_add(1));
        let (max_depth, agents) = (snapshot.options.limits.max_depth.into(), &snapshot.options.agents);
        let known = agents.get_key_value(agent);
        let (name, _) = known.ok_or_else(|| unknown_agent(agent, agents.keys()))?;
        if depth > max_depth {
            let message = format!(
                "agent {agent} would run at depth {depth}, and agents may call agents {max_depth} deep; \
                 nothing was run. `defaults.maxDepth` sets this"
            );
            return Err(Refusal::new(ErrorCode::PermissionDenied, message));
        }
        let caller = Arc::new(Caller {
            agent: Some(Arc::clone(name)),
            parent_agents: above.caller().path().cloned().collect(),
            ..above.caller().clone()
        });
        let place = SpawnContext { depth, max_depth, parent_limit: narrowed.map(Into::into) };
        let (door, parent) = (above.session.door(), Some((above.id, above.cancel.clone())));
        let (id, root_agent) = (SessionId::generate(), above.session.head.root_agent.clone());
        let new = SessionHead { id, caller, door, place, shared: false, root_agent, parent };
        let child = self.open(new).await?;
        // What else looks wrong with an agent's tools is logged when the configuration is read.
        let resolved = child.resolved();
        let too_deep = resolved.warnings.iter().filter(|warning| matches!(warning, Warning::MaxDepth { .. }));
        too_deep.for_each(|warning| tracing::warn!("agent {name} at depth {depth}: {warning}"));
        Ok(child)
    }

    /// The session that requests without a connection of their own share: one per identity, agent and entry point,
    /// for as long as it is used.
    pub async fn shared_session(
        self: &Arc<Self>,
        caller: Caller,
        door: EntryPoint,
    ) -> Result<Arc<Session>, Refusal> {
        let key = shared_key(&caller, door);
        let retention = self.snapshot().options.limits.output_retention.get();
        let oldest = crate::clock::now_us() - i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        match self.sessions.shared(&key) {
            Some(session) if session.last_used_us() >= oldest => {
                self.renew(&session)?;
                return Ok(session);
            }
            // It was unused for so long that its time is over, and with it its budget and its outputs.
            Some(session) => self.close_session(&session).await,
            None => {}
        }
        // Another process may have had one lately: `gantry call` is a new process each time.
        let stored = self.store.resumable_session(&key.0, oldest).await.unwrap_or_else(|error| {
            tracing::warn!(
                "the session of {} could not be looked up, so a new one is opened: {error}",
                caller.principal
            );
            None
        });
        let id = stored.map_or_else(SessionId::generate, |row| row.id);
        self.open(SessionHead { shared: true, ..self.root_session(id, caller, door) }).await
    }

    /// The session of a held call that goes on, and whether it had to be brought back for that.
    pub(crate) async fn restore_session(
        self: &Arc<Self>,
        id: SessionId,
        caller: Caller,
        door: &str,
    ) -> Result<(Arc<Session>, bool), Refusal> {
        if let Some(live) = self.sessions.get(id).filter(|live| !live.cancellation().is_cancelled()) {
            return Ok((live, false));
        }
        let door = [EntryPoint::Cli, EntryPoint::Http, EntryPoint::Mcp]
            .into_iter()
            .find(|known| known.as_str() == door);
        let new = self.root_session(id, caller, door.unwrap_or(EntryPoint::Http));
        // It was opened once; that it is brought back, perhaps time and again, is no news.
        self.register(new).await
    }

    fn root_session(&self, id: SessionId, caller: Caller, door: EntryPoint) -> SessionHead {
        SessionHead {
            id,
            root_agent: caller.agent.clone(),
            caller: Arc::new(caller),
            door,
            place: self.snapshot().top(),
            shared: false,
            parent: None,
        }
    }

    async fn open(self: &Arc<Self>, new: SessionHead) -> Result<Arc<Session>, Refusal> {
        let (session, is_new) = self.register(new).await?;
        if is_new {
            let caller = session.caller();
            let opened = EventKind::SessionOpened {
                session: session.id(),
                principal: Arc::clone(&caller.principal),
                agent: caller.agent.clone(),
                door: session.door().as_str(),
            };
            self.events.emit(Some(&caller.principal), opened);
        }
        Ok(session)
    }

    /// Makes a session, unless another request has opened the same shared one in the meantime. Says whether it is new.
    async fn register(self: &Arc<Self>, new: SessionHead) -> Result<(Arc<Session>, bool), Refusal> {
        let snapshot = self.snapshot();
        let resolved = snapshot.resolve_toolset(new.caller.agent.as_deref(), &new.place)?;
        let budget = snapshot.options.limits.context_budget_tokens.map(|tokens| Budget::new(tokens.get()));
        let session = Arc::new(Session::new(new, Arc::downgrade(self), resolved, budget));
        if self.outputs.has_any(session.id()) {
            session.note_output();
        }
        let forgotten = match self.sessions.insert(&session) {
            Ok(forgotten) => forgotten,
            Err(first) => return Ok((first, false)),
        };
        // Closing this runtime, or evicting this caller from it, has seen either the session or this.
        if self.closing.is_cancelled() {
            session.evict(&"this part of Gantry is shutting down".into());
        } else if let Some(why) = self.is_closed_to(&session) {
            session.evict(&why);
            self.sessions.remove(session.id());
        }
        for forgotten in forgotten {
            self.finish(&forgotten).await;
        }
        Ok((session, true))
    }

    /// From now on callers of this agent, and callers that name no agent, belong to another runtime; none lets all in again.
    pub(crate) fn close_to(&self, elsewhere: Option<Relocation>) {
        self.relocation.store(elsewhere.map(Arc::new));
    }

    /// Why a session does not belong here, if it does not.
    pub(crate) fn is_closed_to(&self, session: &Session) -> Option<Arc<str>> {
        let elsewhere = self.relocation.load();
        let Relocation { agent, why } = elsewhere.as_deref()?;
        let root = &session.head.root_agent;
        (agent.is_none() || root.is_none() || root == agent).then(|| Arc::clone(why))
    }

    /// Puts a session on record with its first call; one that only looked around is no run.
    pub(crate) async fn record_session(&self, session: &Session) {
        if !session.is_unrecorded() {
            return;
        }
        let row = SessionRow {
            id: session.id(),
            key: session_key(session.caller(), session.door()),
            parent: session.head.parent.as_ref().map(|(call, _)| *call),
            started_us: session.started_us,
            last_us: session.started_us,
            ended_us: None,
        };
        if let Err(error) = self.store.open_session(row).await {
            tracing::warn!("session {} could not be recorded: {error}", session.id());
        }
    }

    /// Starts a new execution of a session: what it sees is resolved anew.
    pub fn renew(&self, session: &Session) -> Result<(), Refusal> {
        let snapshot = self.snapshot();
        if !snapshot.is_current(&session.resolved()) {
            session.renew(snapshot.resolve_toolset(session.caller().agent.as_deref(), session.place())?);
        }
        Ok(())
    }

    /// Ends a session: its calls are cancelled and it is forgotten.
    pub async fn close_session(&self, session: &Session) {
        if self.sessions.remove(session.id()).is_some() {
            self.finish(session).await;
        }
    }

    async fn finish(&self, session: &Session) {
        session.cancellation().cancel();
        self.drop_subscriptions(session.id());
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
        self.finish(&session).await;
        true
    }
}
