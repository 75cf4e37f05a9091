//! What MCP clients get of the runtime: the protocol is gantry-mcp's, the work is the runtime's.

use super::answer::{answer, refused};
use super::seated::Seated;
use super::{Client, Tools, tasks};
use gantry_core::{CallRequest, Priority};
use gantry_mcp::client::{ForwardRequest, ListKind};
use gantry_mcp::error::code::INVALID_PARAMS;
use gantry_mcp::headers::{HeaderParam, header_params};
use gantry_mcp::{
    Answer, Change, ErrorObject, Features, ForwardMethod, Handler, Inquiry, Peer, RequestContext, ServerInfo,
    ToolCall, Version,
};
use gantry_runtime::{ChangeNotice, Reply, Runtime};
use serde::Deserialize;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio_util::sync::DropGuard;

/// How long a client may stay away before it comes back for the outcome of its call; no question waits longer for one.
const AWAY: std::time::Duration = gantry_mcp::limits::QUESTION_WAIT;

impl Handler for Tools {
    type Identity = Client;
    type Session = Seated;
    type Told = ChangeNotice;

    fn server_info(&self) -> ServerInfo {
        ServerInfo {
            name: "gantry".into(),
            title: Some("Gantry".into()),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    fn instructions(&self, client: &Client) -> Option<String> {
        let context = self.projects.peek(&client.project, client.agent.as_deref())?;
        context.runtime.instructions(context.agent.as_deref())
    }

    fn features(&self, client: &Client) -> Features {
        let context = self.projects.peek(&client.project, client.agent.as_deref());
        context.map(|context| context.runtime.features(context.agent.as_deref())).unwrap_or_default()
    }

    async fn open(&self, peer: Peer<'_, Client>) -> Result<Arc<Seated>, ErrorObject> {
        self.seat(peer.identity, false).await
    }

    async fn standing(&self, peer: Peer<'_, Client>) -> Result<Arc<Seated>, ErrorObject> {
        self.seat(peer.identity, true).await
    }

    async fn list(
        &self,
        seated: &Arc<Seated>,
        kind: ListKind,
        version: Version,
    ) -> Result<Arc<str>, ErrorObject> {
        let (runtime, session) = self.current(seated).await?;
        // A client that lists begins anew: it sees, and can call, what there is now.
        runtime.renew(&session).map_err(|refusal| refused(&refusal))?;
        Ok(match kind {
            ListKind::Tools => runtime.definitions(&session, !version.is_modern()),
            ListKind::Resources | ListKind::Templates | ListKind::Prompts => {
                runtime.catalogue(&session, kind)
            }
        })
    }

    fn header_params(&self, seated: &Arc<Seated>, tool: &str) -> Vec<HeaderParam> {
        let toolset = seated.session().toolset();
        let Ok(tool) = toolset.find(tool) else { return Vec::new() };
        let schema = &tool.spec.input_schema;
        // Hardly any tool has them, and only a definition of a server's own can. The text of a schema is ours, so that
        // the word is not hidden in it by escapes; a description of the tool may well have it.
        if tool.spec.raw.is_none() || !schema.as_str().contains("\"x-mcp-header\"") {
            return Vec::new();
        }
        header_params(&schema.value()).unwrap_or_default()
    }

    async fn call_tool(
        &self,
        seated: &Arc<Seated>,
        call: ToolCall,
        turn: RequestContext,
    ) -> Result<Answer, ErrorObject> {
        let (wishes, modern) = (Wishes::of(&call)?, call.version.is_modern());
        let request = CallRequest {
            tool: call.name,
            arguments: call.arguments,
            priority: wishes.priority,
            idempotency_key: wishes.idempotency_key,
            ..CallRequest::default()
        };
        let RequestContext { client: audience, cancel } = turn;
        let (runtime, mut cx, entered) = self.enter(seated).await?;
        let as_task = tasks::takes(&runtime, &*audience, modern);
        cx.meta = call.meta.map(|meta| meta.get().into());
        cx.client = Arc::clone(&audience);
        cx.decider = seated.client().identity.decider("elicitation").map(Arc::new);
        let (token, id) = (cx.cancel.clone(), cx.id);
        let entered = match entered {
            Ok(entered) => entered,
            Err(refusal) => return answer(&Reply::rejected_before_entry(id, &refusal)),
        };
        // The call runs on when this future is dropped, and then nobody is left here to hear `cancel`. A client of
        // 2026-07-28 withdraws its call by hanging up, which is just that; older ones want it to go on.
        let hang_up = modern.then(|| token.clone().drop_guard());
        let mut reply = pin!(async {
            let reply = runtime.run(entered, cx.clone(), request).await;
            if as_task { reply } else { runtime.wait_if_held(&cx, reply).await }
        });
        let reply = tokio::select! {
            reply = &mut reply => reply,
            () = cancel.cancelled() => {
                tracing::debug!("call {id} was withdrawn by its client");
                token.cancel();
                reply.await
            }
        };
        if as_task && reply.is_held() {
            drop(hang_up.map(DropGuard::disarm));
            return Ok(tasks::begun(&reply));
        }
        given(&runtime, &reply, &RequestContext { client: audience, cancel }).await;
        drop(hang_up.map(DropGuard::disarm));
        answer(&reply)
    }

    async fn request(
        &self,
        seated: &Arc<Seated>,
        inquiry: Inquiry,
        turn: RequestContext,
    ) -> Result<Answer, ErrorObject> {
        let (runtime, session) = self.current(seated).await?;
        let Inquiry { method, params, meta, version: _ } = inquiry;
        if matches!(method, ForwardMethod::TaskGet | ForwardMethod::TaskUpdate | ForwardMethod::TaskCancel)
            && let Some(call) = tasks::own(&params)
        {
            return tasks::ask(&runtime, &session, method, call).await;
        }
        let outgoing = ForwardRequest { method, params, meta, context: turn };
        let result = runtime.request(&session, outgoing).await?;
        Ok(Answer::Raw { result: result.into() })
    }

    fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.projects.services().changes()
    }

    fn concerns(&self, seated: &Arc<Seated>, told: &ChangeNotice) -> bool {
        let (session, client) = (seated.session(), seated.client());
        if session.is_evicted() {
            // It has nothing any more, and looks at its lists when those of its new place are there.
            let place = self.projects.peek(&client.project, client.agent.as_deref());
            return matches!(told.change, Change::ListChanged { .. })
                && place.is_some_and(|place| place.runtime.instance_id == told.runtime);
        }
        let (Change::ListChanged { provider, .. }
        | Change::Updated { provider, .. }
        | Change::Log { provider, .. }
        | Change::ElicitationComplete { provider, .. }) = &told.change;
        let home = session.runtime().filter(|home| home.instance_id == told.runtime);
        home.is_some_and(|home| match &**provider {
            // Those who have moved here are told that all their lists are others, also if they were quicker than the news.
            "" => seated.has_moved_to(&home),
            provider => home.sees(&session, provider),
        })
    }

    async fn close(&self, seated: Arc<Seated>) {
        self.end(&seated).await;
    }
}

/// Notes that the outcome of a held call is given to its client, if that is there or comes back for it. To one that does
/// not, nothing was given: the same call again gets the outcome.
async fn given(runtime: &Runtime, reply: &Reply, turn: &RequestContext) {
    if reply.approval.is_none() || !reply.state.is_over() {
        return;
    }
    let present = async {
        tokio::select! {
            biased;
            () = turn.client.present() => true,
            () = turn.cancel.cancelled() => false,
        }
    };
    if tokio::time::timeout(AWAY, present).await.unwrap_or(false) {
        runtime.collect(reply).await;
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
