//! MCP in front of the runtime, over HTTP and stdio: the protocol is gantry-mcp's, the work is the runtime's.

use crate::Identity;
use gantry_core::error::ErrorCode;
use gantry_core::id::CallId;
use gantry_core::json::write_string;
use gantry_core::{CallRequest, Door, Priority, Refusal};
use gantry_mcp::client::ListKind;
use gantry_mcp::error::code::METHOD_NOT_FOUND;
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};
use gantry_mcp::headers::HeaderParam;
use gantry_mcp::{
    Answer, Change, ErrorObject, Features, Handler, Inquiry, Peer, Server, ServerInfo, ToolAnswer, ToolCall,
    Turn, Version,
};
use gantry_runtime::{CallCx, Reply, Runtime, Session};
use serde::Deserialize;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio_util::sync::DropGuard;

/// An MCP server in front of a runtime.
pub type Endpoint = Server<Tools>;

/// The MCP server in front of this runtime.
#[must_use]
pub fn endpoint(runtime: Arc<Runtime>) -> Endpoint {
    let changes = broadcast::channel(1).0;
    Server::new(Tools { runtime, changes }, &gantry_mcp::Options::default())
}

/// Who speaks MCP, and as which agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Who.
    pub identity: Identity,
    /// As which agent.
    pub agent: Option<Arc<str>>,
}

/// The runtime's tools, for MCP.
#[derive(Debug)]
pub struct Tools {
    runtime: Arc<Runtime>,
    changes: broadcast::Sender<Change>,
}

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

    fn features(&self, _client: &Client) -> Features {
        Features::default()
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
        _kind: ListKind,
        version: Version,
    ) -> Result<Arc<str>, ErrorObject> {
        alive(session)?;
        // A client that lists begins anew: it sees, and can call, what there is now.
        self.runtime.renew(session).map_err(|refusal| refused(&refusal))?;
        Ok(self.runtime.definitions(session, !version.is_modern()))
    }

    fn header_params(&self, _session: &Arc<Session>, _tool: &str) -> Vec<HeaderParam> {
        Vec::new()
    }

    async fn call_tool(
        &self,
        session: &Arc<Session>,
        call: ToolCall,
        turn: Turn,
    ) -> Result<Answer, ErrorObject> {
        let cancel = turn.cancel;
        alive(session)?;
        let (wishes, modern) = (Wishes::of(&call)?, call.version.is_modern());
        let request = CallRequest {
            tool: call.name,
            arguments: call.arguments,
            priority: wishes.priority,
            idempotency_key: wishes.idempotency_key,
            ..CallRequest::default()
        };
        let cx = CallCx::new(session);
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
        answer(&reply).map(Answer::Own)
    }

    async fn request(
        &self,
        _session: &Arc<Session>,
        inquiry: Inquiry,
        _turn: Turn,
    ) -> Result<Answer, ErrorObject> {
        let message = format!("there is no {} here yet", inquiry.method.as_str());
        Err(ErrorObject::new(METHOD_NOT_FOUND, message))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn concerns(&self, _session: &Arc<Session>, _change: &Change) -> bool {
        false
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

fn refused(refusal: &Refusal) -> ErrorObject {
    let internal = refusal.error().code == ErrorCode::InternalError;
    let code = if internal { INTERNAL_ERROR } else { INVALID_PARAMS };
    ErrorObject::new(code, refusal.error().message.clone())
}

fn answer(reply: &Reply) -> Result<ToolAnswer, ErrorObject> {
    match &reply.outcome {
        Ok(shaped) => {
            let promised = reply.tool.as_ref().is_some_and(|tool| tool.spec.output_schema.is_some());
            let structured = shaped.structured().filter(|_| promised);
            Ok(ToolAnswer {
                content: text_block(shaped.text()),
                // Clients refuse a result that lacks the structure its tool promises, unless it is marked as an
                // error; a handle that stands for a stored output lacks it.
                is_error: promised && structured.is_none(),
                structured: structured.map(str::to_owned),
                meta: None,
            })
        }
        Err(error) if error.code == ErrorCode::ToolNotFound => {
            Err(ErrorObject::new(INVALID_PARAMS, error.message.clone()))
        }
        Err(error) => Ok(ToolAnswer {
            content: text_block(&error.conversation()),
            structured: None,
            is_error: true,
            meta: Some(error_meta(reply.id, error)),
        }),
    }
}

fn text_block(text: &str) -> String {
    let mut block = String::with_capacity(text.len() + 32);
    block.push_str("[{\"type\":\"text\",\"text\":");
    write_string(&mut block, text);
    block.push_str("}]");
    block
}

/// The error for programs; what models read is the text.
fn error_meta(id: CallId, error: &gantry_core::ToolError) -> String {
    json!({ "gantry/call": id, "gantry/error": error }).to_string()
}
