//! The lists, calls and other requests of an MCP client, passed on to the runtime.

use super::Gateway;
use super::result::{refused, result};
use super::session::SessionKind;
use super::tasks;
use crate::api::calls::admit;
use gantry_core::{CallRequest, raw};
use gantry_mcp::client::ListKind;
use gantry_mcp::exchange::BoxFuture;
use gantry_mcp::headers::{HeaderParam, header_params};
use gantry_mcp::{
    Change, ChangeNotice, ErrorObject, Features, ForwardMethod, ForwardRequest, Handler, Outcome, Receipt,
    RequestContext, Version,
};
use gantry_runtime::Reply;
use std::any::Any;
use std::pin::pin;
use std::sync::Arc;
use tokio_util::sync::DropGuard;

impl Handler for Gateway {
    fn is_same(&self, other: &dyn Handler) -> bool {
        (other as &dyn Any).downcast_ref::<Self>().is_some_and(|other| {
            self.identity == other.identity && self.project == other.project && self.agent == other.agent
        })
    }

    fn instructions(&self) -> Option<String> {
        let context = self.projects.peek(&self.project, self.agent.as_deref())?;
        context.runtime.instructions(context.agent.as_deref())
    }

    fn features(&self) -> Features {
        let context = self.projects.peek(&self.project, self.agent.as_deref());
        context.map(|context| context.runtime.features(context.agent.as_deref())).unwrap_or_default()
    }

    fn open_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>> {
        Box::pin(self.begin_session(SessionKind::Own))
    }

    fn join_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>> {
        Box::pin(self.begin_session(SessionKind::Shared))
    }

    fn list(&self, kind: ListKind, version: Version) -> BoxFuture<'_, Result<Arc<str>, ErrorObject>> {
        Box::pin(async move {
            let (runtime, session) = self.current().await?;
            // A client that lists begins anew: it sees, and can call, what there is now.
            runtime.renew(&session).map_err(|refusal| refused(&refusal))?;
            Ok(match kind {
                ListKind::Tools => runtime.definitions(&session, !version.is_modern()),
                ListKind::Resources | ListKind::Templates | ListKind::Prompts => {
                    runtime.catalogue(&session, kind)
                }
            })
        })
    }

    fn header_params(&self, tool: &str) -> Result<Vec<HeaderParam>, ErrorObject> {
        let toolset = self.session()?.load().toolset();
        let Ok(tool) = toolset.find(tool) else { return Ok(Vec::new()) };
        let schema = &tool.spec.input_schema;
        // Hardly any tool has them, and only a definition of a server's own can. Gantry writes the text of a schema, so
        // that no escapes hide the word in it.
        if tool.spec.raw.is_none() || !schema.as_str().contains("\"x-mcp-header\"") {
            return Ok(Vec::new());
        }
        Ok(header_params(&schema.value()).unwrap_or_default())
    }

    fn call_tool(
        &self,
        call: CallRequest,
        meta: Option<Arc<str>>,
        version: Version,
        context: RequestContext,
    ) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let outcome = self.call(call, meta, version.is_modern(), context).await;
            outcome.unwrap_or_else(|error| Err(error).into())
        })
    }

    fn request(&self, request: ForwardRequest) -> BoxFuture<'_, Result<String, ErrorObject>> {
        Box::pin(async move {
            let (runtime, session) = self.current().await?;
            let method = request.method;
            if matches!(
                method,
                ForwardMethod::TaskGet | ForwardMethod::TaskUpdate | ForwardMethod::TaskCancel
            ) && let Some(task) = raw::string_member(&request.params, "taskId")
                && let Ok(call) = task.parse()
            {
                // The task is one of Gantry's own.
                return tasks::request(&runtime, &session, method, call).await;
            }
            runtime.request(&session, request).await
        })
    }

    fn is_visible(&self, notice: &ChangeNotice) -> bool {
        let Ok(current) = self.session() else { return false };
        let session = current.load();
        if session.is_evicted() {
            // It sees no provider any more. Its client is notified by the runtime that takes over.
            let context = self.projects.peek(&self.project, self.agent.as_deref());
            return matches!(notice.change, Change::ListChanged { .. })
                && context.is_some_and(|context| context.runtime.instance_id == notice.runtime);
        }
        let (Change::ListChanged { provider, .. }
        | Change::Updated { provider, .. }
        | Change::Log { provider, .. }
        | Change::ElicitationComplete { provider, .. }) = &notice.change;
        let home = session.runtime().filter(|home| home.instance_id == notice.runtime);
        home.is_some_and(|home| match &**provider {
            // A client that has moved to this runtime is notified that all its lists have changed, also if it moved
            // before the notice came.
            "" => current.has_moved(),
            provider => home.sees(&session, provider),
        })
    }

    fn close_session(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Ok(current) = self.session() {
                current.close().await;
            }
        })
    }
}

impl Gateway {
    async fn call(
        &self,
        call: CallRequest,
        meta: Option<Arc<str>>,
        modern: bool,
        context: RequestContext,
    ) -> Result<Outcome, ErrorObject> {
        let RequestContext { client, cancel } = context;
        let (runtime, mut cx, entered) = admit(|| self.current()).await?;
        let as_task = tasks::is_wanted(&runtime, &*client, modern);
        cx.meta = meta;
        cx.client = client;
        cx.decider = self.identity.approver("elicitation").map(Arc::new);
        let (token, id) = (cx.cancel.clone(), cx.id);
        let entered = match entered {
            Ok(entered) => entered,
            Err(refusal) => return Ok(result(&Reply::rejected_before_entry(id, &refusal)).into()),
        };
        // The call runs on when this future is dropped, and `cancel` is watched no longer. A client of 2026-07-28
        // withdraws its call by hanging up, which drops this future; older ones want the call to go on.
        let cancel_on_drop = modern.then(|| token.clone().drop_guard());
        let mut reply = pin!(async {
            let reply = runtime.run(entered, cx.clone(), call).await;
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
        drop(cancel_on_drop.map(DropGuard::disarm));
        if as_task && reply.is_held() {
            return Ok(Ok(tasks::begun(&reply)).into());
        }
        let result = result(&reply);
        // Records that the client has the outcome of a held call. A client that does not get it gets it from the same
        // call again.
        let was_held = reply.approval.is_some() && reply.state.is_over();
        let runtime = Arc::clone(&runtime);
        let receipt = was_held.then(|| Box::pin(async move { runtime.collect(&reply).await }) as Receipt);
        Ok(Outcome { result, receipt })
    }
}
