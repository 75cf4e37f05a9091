//! The runtime session of a gateway. It is replaced when the project switches to another agent; the client stays connected.
//!
//! The new session has other tools, another budget and other stored outputs, and the client is notified that its lists
//! have changed.

use super::Gateway;
use super::result::refused;
use arc_swap::ArcSwap;
use gantry_core::{EntryPoint, Refusal};
use gantry_mcp::ErrorObject;
use gantry_mcp::error::code::INVALID_REQUEST;
use gantry_runtime::projects::MOVES;
use gantry_runtime::serial_gate::SerialGate;
use gantry_runtime::{Runtime, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct CurrentSession {
    kind: SessionKind,
    session: ArcSwap<Session>,
    /// Whether it has moved from one runtime to another.
    has_moved: AtomicBool,
    /// Held while it moves.
    moving: SerialGate,
    closed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionKind {
    /// The client has it for itself.
    Own,
    /// All requests of an identity without a session of their own share it.
    Shared,
}

impl Gateway {
    /// Opens a session, or joins the shared one.
    pub(super) async fn begin_session(&self, kind: SessionKind) -> Result<(), ErrorObject> {
        let session = self.new_session(kind).await.map_err(|refusal| refused(&refusal))?;
        self.session.get_or_init(|| CurrentSession {
            kind,
            session: ArcSwap::new(session),
            has_moved: AtomicBool::new(false),
            moving: SerialGate::default(),
            closed: AtomicBool::new(false),
        });
        Ok(())
    }

    /// The session that the handler has begun.
    pub(super) fn session(&self) -> Result<&CurrentSession, ErrorObject> {
        let missing = || ErrorObject::new(INVALID_REQUEST, "this client has no session; connect again");
        self.session.get().ok_or_else(missing)
    }

    async fn new_session(&self, kind: SessionKind) -> Result<Arc<Session>, Refusal> {
        let context = self.projects.context(&self.project, self.agent.as_deref()).await?;
        let caller = self.identity.model_caller(&context.runtime.project, context.agent);
        match kind {
            SessionKind::Own => context.runtime.open_session(caller, EntryPoint::Mcp).await,
            SessionKind::Shared => context.runtime.shared_session(caller, EntryPoint::Mcp).await,
        }
    }

    /// The current session and its runtime. A session that its project has evicted is replaced by a new one; one that a
    /// person canceled is not.
    pub(super) async fn current(&self) -> Result<(Arc<Runtime>, Arc<Session>), ErrorObject> {
        let current = self.session()?;
        let mut moves = 0;
        loop {
            let session = self.replaced_if_evicted(current).await.map_err(|refusal| refused(&refusal))?;
            let home = session.runtime().filter(|_| !session.cancellation().is_cancelled());
            match home {
                Some(home) => return Ok((home, session)),
                // A project evicts a session before it ends it.
                None if session.is_evicted() && moves < MOVES => moves += 1,
                None => {
                    let message = "this session was canceled; connect again";
                    return Err(ErrorObject::new(INVALID_REQUEST, message));
                }
            }
        }
    }

    async fn replaced_if_evicted(&self, current: &CurrentSession) -> Result<Arc<Session>, Refusal> {
        let session = current.load();
        if !session.is_evicted() {
            return Ok(session);
        }
        let _moving = current.moving.enter().await;
        let session = current.load();
        if !session.is_evicted() {
            return Ok(session);
        }
        let fresh = self.new_session(current.kind).await?;
        current.has_moved.store(true, Ordering::Release);
        current.session.store(Arc::clone(&fresh));
        // If the client has left meanwhile, the old session was closed instead of this one.
        if current.closed.load(Ordering::Acquire) {
            current.close().await;
        }
        Ok(fresh)
    }
}

impl CurrentSession {
    /// Closes the session because the client has left. A shared one stays.
    pub(super) async fn close(&self) {
        if self.kind == SessionKind::Shared {
            return;
        }
        self.closed.store(true, Ordering::Release);
        let session = self.load();
        if let Some(home) = session.runtime() {
            home.close_session(&session).await;
        }
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Acquire)
    }

    pub(super) fn load(&self) -> Arc<Session> {
        self.session.load_full()
    }
}
