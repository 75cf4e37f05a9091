//! What an MCP client has in its project: a session, and a new one when the project turns to another agent.
//!
//! The client stays connected. What it had before is gone: the new session has other tools, another budget, other stored
//! outputs, and the client is told to look at its lists again.

use super::answer::refused;
use super::{Client, Tools};
use arc_swap::ArcSwap;
use gantry_core::{EntryPoint, Refusal};
use gantry_mcp::ErrorObject;
use gantry_mcp::error::code::INVALID_REQUEST;
use gantry_runtime::projects::MOVES;
use gantry_runtime::serial_gate::SerialGate;
use gantry_runtime::{Admitted, PipelineContext, Runtime, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A client and the session that it has now.
#[derive(Debug)]
pub struct Seated {
    client: Client,
    /// Whether the session is shared by all requests of such clients, or the client's own.
    standing: bool,
    session: ArcSwap<Session>,
    /// The number of the runtime to which it has moved last; none has the number 0.
    moved_to: AtomicU64,
    /// Held while it moves.
    moving: SerialGate,
    closed: AtomicBool,
}

impl Tools {
    /// Gives a client its first session.
    pub(super) async fn seat(&self, client: &Client, standing: bool) -> Result<Arc<Seated>, ErrorObject> {
        let session = self.begin(client, standing).await.map_err(|refusal| refused(&refusal))?;
        let (client, session) = (client.clone(), ArcSwap::new(session));
        let (moved_to, moving, closed) = (AtomicU64::new(0), SerialGate::default(), AtomicBool::new(false));
        Ok(Arc::new(Seated { client, standing, session, moved_to, moving, closed }))
    }

    async fn begin(&self, client: &Client, standing: bool) -> Result<Arc<Session>, Refusal> {
        let context = self.projects.context(&client.project, client.agent.as_deref()).await?;
        let caller = client.identity.caller(&context.runtime.project, context.agent.as_deref());
        if standing {
            context.runtime.shared_session(caller, EntryPoint::Mcp).await
        } else {
            context.runtime.open_session(caller, EntryPoint::Mcp).await
        }
    }

    /// The session that the client has now, and where. One that its project has let go of is followed by a new one; one
    /// that a person canceled is not.
    pub(super) async fn current(&self, seated: &Seated) -> Result<(Arc<Runtime>, Arc<Session>), ErrorObject> {
        let mut moves = 0;
        loop {
            let session = self.following(seated).await.map_err(|refusal| refused(&refusal))?;
            let home = session.runtime().filter(|_| !session.cancellation().is_cancelled());
            match home {
                Some(home) => return Ok((home, session)),
                // Its project has let go of it just now, which comes before it is ended.
                None if session.is_evicted() && moves < MOVES => moves += 1,
                None => {
                    let message = "this session was canceled; connect again";
                    return Err(ErrorObject::new(INVALID_REQUEST, message));
                }
            }
        }
    }

    /// The session that the client has, or the one that follows it.
    async fn following(&self, seated: &Seated) -> Result<Arc<Session>, Refusal> {
        let session = seated.session.load_full();
        if !session.is_evicted() {
            return Ok(session);
        }
        let _moving = seated.moving.enter().await;
        let session = seated.session.load_full();
        if !session.is_evicted() {
            return Ok(session);
        }
        let fresh = self.begin(&seated.client, seated.standing).await?;
        let number = fresh.runtime().map_or(0, |home| home.instance_id);
        seated.moved_to.store(number, Ordering::Release);
        seated.session.store(Arc::clone(&fresh));
        // The client may have gone meanwhile, and nobody would close what it has now.
        if seated.closed.load(Ordering::Acquire) {
            self.end(seated).await;
        }
        Ok(fresh)
    }

    /// Lets a call of the client in where the client is now.
    pub(super) async fn enter(
        &self,
        seated: &Seated,
    ) -> Result<(Arc<Runtime>, PipelineContext, Result<Admitted, Refusal>), ErrorObject> {
        let mut moves = 0;
        loop {
            let (runtime, session) = self.current(seated).await?;
            let cx = PipelineContext::new(&session);
            let entered = runtime.enter(&cx);
            // The project may have turned to another agent in between. Nothing was run, and there is a new place.
            if entered.is_err() && session.is_evicted() && moves < MOVES {
                moves += 1;
                continue;
            }
            return Ok((runtime, cx, entered));
        }
    }

    /// The client is gone.
    pub(super) async fn end(&self, seated: &Seated) {
        seated.closed.store(true, Ordering::Release);
        let session = seated.session();
        if let Some(home) = session.runtime() {
            home.close_session(&session).await;
        }
    }
}

impl Seated {
    /// Who the client is.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether it had a session elsewhere before it had one in this runtime.
    pub(super) fn has_moved_to(&self, runtime: &Runtime) -> bool {
        self.moved_to.load(Ordering::Acquire) == runtime.instance_id
    }

    /// The session that it had last.
    pub(super) fn session(&self) -> Arc<Session> {
        self.session.load_full()
    }
}
