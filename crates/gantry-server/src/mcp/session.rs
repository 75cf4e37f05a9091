//! The session of an MCP client in its project, and a new one when the project switches to another agent.
//!
//! The client stays connected. The new session has other tools, another budget and other stored outputs, and the client
//! is notified that its lists have changed.

use super::Client;
use super::result::refused;
use arc_swap::ArcSwap;
use gantry_core::{EntryPoint, Refusal};
use gantry_mcp::ErrorObject;
use gantry_mcp::error::code::INVALID_REQUEST;
use gantry_runtime::projects::MOVES;
use gantry_runtime::serial_gate::SerialGate;
use gantry_runtime::{Admitted, PipelineContext, Runtime, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A client and its current session.
#[derive(Debug)]
pub(super) struct ClientSession {
    client: Client,
    /// Whether all requests of such clients share the session.
    shared: bool,
    session: ArcSwap<Session>,
    /// The instance id of the runtime to which it has moved last; no runtime has the id 0.
    moved_to: AtomicU64,
    /// Held while it moves.
    moving: SerialGate,
    closed: AtomicBool,
}

impl ClientSession {
    pub(super) async fn open(client: &Client, shared: bool) -> Result<Self, ErrorObject> {
        let session = begin(client, shared).await.map_err(|refusal| refused(&refusal))?;
        let (client, session) = (client.clone(), ArcSwap::new(session));
        let (moved_to, moving, closed) = (AtomicU64::new(0), SerialGate::default(), AtomicBool::new(false));
        Ok(Self { client, shared, session, moved_to, moving, closed })
    }

    /// The current session and its runtime. A session that its project has evicted is replaced by a new one; one that a
    /// person canceled is not.
    pub(super) async fn current(&self) -> Result<(Arc<Runtime>, Arc<Session>), ErrorObject> {
        let mut moves = 0;
        loop {
            let session = self.replaced_if_evicted().await.map_err(|refusal| refused(&refusal))?;
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

    async fn replaced_if_evicted(&self) -> Result<Arc<Session>, Refusal> {
        let session = self.session();
        if !session.is_evicted() {
            return Ok(session);
        }
        let _moving = self.moving.enter().await;
        let session = self.session();
        if !session.is_evicted() {
            return Ok(session);
        }
        let fresh = begin(&self.client, self.shared).await?;
        let number = fresh.runtime().map_or(0, |home| home.instance_id);
        self.moved_to.store(number, Ordering::Release);
        self.session.store(Arc::clone(&fresh));
        // If the client has left meanwhile, the old session was closed in place of this one.
        if self.closed.load(Ordering::Acquire) {
            self.end().await;
        }
        Ok(fresh)
    }

    /// Admits a call in the current session.
    pub(super) async fn enter(
        &self,
    ) -> Result<(Arc<Runtime>, PipelineContext, Result<Admitted, Refusal>), ErrorObject> {
        let mut moves = 0;
        loop {
            let (runtime, session) = self.current().await?;
            let cx = PipelineContext::new(&session);
            let entered = runtime.enter(&cx);
            // The project may have switched to another agent in between. The call did not run, and there is a new session.
            if entered.is_err() && session.is_evicted() && moves < MOVES {
                moves += 1;
                continue;
            }
            return Ok((runtime, cx, entered));
        }
    }

    /// Closes the session because the client has left.
    pub(super) async fn end(&self) {
        self.closed.store(true, Ordering::Release);
        let session = self.session();
        if let Some(home) = session.runtime() {
            home.close_session(&session).await;
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the client has moved to this runtime from another one.
    pub(super) fn has_moved_to(&self, runtime: &Runtime) -> bool {
        self.moved_to.load(Ordering::Acquire) == runtime.instance_id
    }

    pub(super) fn session(&self) -> Arc<Session> {
        self.session.load_full()
    }
}

async fn begin(client: &Client, shared: bool) -> Result<Arc<Session>, Refusal> {
    let context = client.projects.context(&client.project, client.agent.as_deref()).await?;
    let caller = client.identity.caller(&context.runtime.project, context.agent.as_deref());
    if shared {
        context.runtime.shared_session(caller, EntryPoint::Mcp).await
    } else {
        context.runtime.open_session(caller, EntryPoint::Mcp).await
    }
}
