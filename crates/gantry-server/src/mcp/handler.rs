//! What MCP clients get of the runtime: the protocol is gantry-mcp's, the work is the runtime's.

use super::answer::{answer, refused};
use super::{Client, Tools};
use gantry_core::{CallRequest, Door, Priority};
use gantry_mcp::client::{ListKind, Outgoing};
use gantry_mcp::error::code::{INVALID_PARAMS, INVALID_REQUEST};
use gantry_mcp::headers::{HeaderParam, header_params};
use gantry_mcp::{
    Answer, Change, ErrorObject, Features, Handler, Inquiry, Peer, ServerInfo, ToolCall, Turn, Version,
};
use gantry_runtime::{CallCx, Session};
use serde::Deserialize;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio_util::sync::DropGuard;

impl Tools {
    fn caller(&self, client: &Client) -> gantry_core::Caller {
        client.identity.caller(self.runtime.project(), client.agent.as_deref())
    }
}

impl Handler for Tools {
    type Identity = Client;
    type Session = Session;

    fn server_info(&self) -> ServerInfo {
        ServerInfo {
            name: "gantry".into(),
            title: Some("Gantry".into()),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    fn instructions(&self, client: &Client) -> Option<String> {
        self.runtime.instructions(client.agent.as_deref())
    }

    fn features(&self, client: &Client) -> Features {
        self.runtime.features(client.agent.as_deref())
    }

    async fn open(&self, peer: Peer<'_, Client>) -> Result<Arc<Session>, ErrorObject> {
        self.runtime
            .open_session(self.caller(peer.identity), Door::Mcp)
            .await
            .map_err(|refusal| refused(&refusal))
    }

    async fn standing(&self, peer: Peer<'_, Client>) -> Result<Arc<Session>, ErrorObject> {
        self.runtime
            .standing_session(self.caller(peer.identity), Door::Mcp)
            .await
            .map_err(|refusal| refused(&refusal))
    }

    async fn list(
        &self,
        session: &Arc<Session>,
        kind: ListKind,
        version: Version,
    ) -> Result<Arc<str>, ErrorObject> {
        alive(session)?;
        // A client that lists begins anew: it sees, and can call, what there is now.
        self.runtime.renew(session).map_err(|refusal| refused(&refusal))?;
        Ok(match kind {
            ListKind::Tools => self.runtime.definitions(session, !version.is_modern()),
            ListKind::Resources | ListKind::Templates | ListKind::Prompts => {
                self.runtime.catalogue(session, kind)
            }
        })
    }

    fn header_params(&self, session: &Arc<Session>, tool: &str) -> Vec<HeaderParam> {
        let toolset = session.toolset();
        let Ok(tool) = toolset.find(tool) else { return Vec::new() };
        // Hardly any tool has them, and only a definition of a server's own can.
        if !tool.spec.raw.as_ref().is_some_and(|raw| raw.contains("x-mcp-header")) {
            return Vec::new();
        }
        header_params(&tool.spec.input_schema).unwrap_or_default()
    }

    async fn call_tool(
        &self,
        session: &Arc<Session>,
        call: ToolCall,
        turn: Turn,
    ) -> Result<Answer, ErrorObject> {
        alive(session)?;
        let (wishes, modern) = (Wishes::of(&call)?, call.version.is_modern());
        let request = CallRequest {
            tool: call.name,
            arguments: call.arguments,
            priority: wishes.priority,
            idempotency_key: wishes.idempotency_key,
            ..CallRequest::default()
        };
        let Turn { audience, cancel } = turn;
        let cx = CallCx::new(session).heard_by(audience, call.meta.map(|meta| meta.get().into()));
        let (token, id) = (cx.cancel.clone(), cx.id);
        // The call runs on when this future is dropped, and then nobody is left here to hear `cancel`. A client of
        // 2026-07-28 withdraws its call by hanging up, which is just that; older ones want it to go on.
        let hang_up = modern.then(|| token.clone().drop_guard());
        let mut reply = pin!(self.runtime.call(cx, request));
        let reply = tokio::select! {
            reply = &mut reply => reply,
            () = cancel.cancelled() => {
                tracing::debug!("call {id} was withdrawn by its client");
                token.cancel();
                reply.await
            }
        };
        drop(hang_up.map(DropGuard::disarm));
        answer(&reply)
    }

    async fn request(
        &self,
        session: &Arc<Session>,
        inquiry: Inquiry,
        turn: Turn,
    ) -> Result<Answer, ErrorObject> {
        alive(session)?;
        let Inquiry { method, params, meta, version: _ } = inquiry;
        let outgoing = Outgoing { method, params, meta: meta.as_deref(), turn };
        let result = self.runtime.request(session, outgoing).await?;
        Ok(Answer::Raw { result: result.into() })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.runtime.changes()
    }

    fn concerns(&self, session: &Arc<Session>, change: &Change) -> bool {
        let (Change::ListChanged { provider, .. }
        | Change::Updated { provider, .. }
        | Change::Log { provider, .. }
        | Change::ElicitationComplete { provider, .. }) = change;
        self.runtime.sees(session, provider)
    }

    async fn close(&self, session: Arc<Session>) {
        self.runtime.close_session(&session).await;
    }
}

/// What a client may say about a call besides its arguments, in `_meta`.
#[derive(Debug, Default, Deserialize)]
struct Wishes {
    #[serde(rename = "gantry/priority", default)]
    priority: Priority,
    #[serde(rename = "gantry/idempotencyKey")]
    idempotency_key: Option<String>,
}

impl Wishes {
    fn of(call: &ToolCall) -> Result<Self, ErrorObject> {
        // Parsed whenever there is any: a key may be written with escapes, and one that is missed is a call that runs twice.
        match &call.meta {
            Some(meta) => serde_json::from_str(meta.get())
                .map_err(|error| ErrorObject::new(INVALID_PARAMS, format!("_meta cannot be read: {error}"))),
            None => Ok(Self::default()),
        }
    }
}

/// A session that a person cancelled takes no more requests; its client has to begin anew.
fn alive(session: &Session) -> Result<(), ErrorObject> {
    if session.cancellation().is_cancelled() {
        let message = "this session was canceled; connect again";
        return Err(ErrorObject::new(INVALID_REQUEST, message));
    }
    Ok(())
}
