//! Requests that are no tool calls: resources, prompts, completions, subscriptions, log levels and tasks.
//!
//! The group of servers finds the right one and asks it; this module decides which servers the caller can see. What it cannot see
//! does not exist for it: an agent reaches the resources and prompts of a server only if it has a tool of that server.

use super::{Runtime, Snapshot};
use crate::context::PipelineContext;
use crate::event::EventKind;
use crate::pipeline::timer::{PausableTimer, PausingClient};
use crate::session::Session;
use gantry_core::id::SessionId;
use gantry_core::toolset::SpawnContext;
use gantry_core::{Caller, Refusal, Toolset, raw};
use gantry_provider::client::{RequestContext, TASKS_EXTENSION};
use gantry_provider::code::INTERNAL_ERROR;
use gantry_provider::resources::{Features, ForwardRequest, ListKind};
use gantry_provider::server::RequestScope;
use gantry_provider::{BoxFuture, ErrorObject, Provider};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The servers that a caller can see.
pub(super) struct Visibility {
    snapshot: Arc<Snapshot>,
    /// None for a caller without an agent, which sees everything.
    toolset: Option<Arc<Toolset>>,
}

impl Visibility {
    fn has(&self, server: &str) -> bool {
        let of_server = |set: &Arc<Toolset>| set.tools().any(|tool| *tool.key.provider == *server);
        self.toolset.as_ref().is_none_or(of_server)
    }

    /// Whether this server is one of the runtime's and can be seen.
    fn can_see(&self, server: &dyn Provider) -> bool {
        self.snapshot.providers.has(server) && self.has(&server.origin().provider)
    }
}

struct Scope<'a> {
    session: &'a Session,
    visibility: Visibility,
    watch: Arc<PausableTimer>,
}

impl RequestScope for Scope<'_> {
    fn session(&self) -> SessionId {
        self.session.id()
    }

    fn caller(&self) -> &Caller {
        self.session.caller()
    }

    fn can_see(&self, server: &dyn Provider) -> bool {
        self.visibility.can_see(server)
    }

    fn timed_out<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Duration> {
        let snapshot = &self.visibility.snapshot;
        let own = snapshot.providers.get(server).and_then(|entry| entry.options.timeout.some());
        let limit = own.unwrap_or(snapshot.options.limits.tool_timeout.get());
        Box::pin(async move {
            self.watch.expired_after(limit).await;
            limit
        })
    }
}

impl Runtime {
    /// The resources, templates or prompts that a session sees, as one JSON array, in the order of the servers' ids.
    pub fn catalogue(&self, session: &Session, kind: ListKind) -> Arc<str> {
        let visibility = self.visibility(session.caller().agent.as_deref());
        self.servers.catalog(kind, &|server| visibility.can_see(server)).into()
    }

    /// What the servers that this agent, or a caller without one, sees offer besides tools.
    pub fn features(&self, agent: Option<&str>) -> Features {
        let visibility = self.visibility(agent);
        let features = self.servers.features(&|server| visibility.can_see(server));
        let mut extensions = features.extensions.as_deref().and_then(raw::members).unwrap_or_default();
        // Calls that wait for a person are tasks to clients that take them.
        if !extensions.iter().any(|(name, _)| name == TASKS_EXTENSION) {
            extensions.push((TASKS_EXTENSION.into(), "{}"));
        }
        let text = raw::object(extensions.iter().map(|(name, value)| (&**name, *value)));
        Features { extensions: Some(text), ..features }
    }

    /// Whether a session sees what this provider has.
    pub fn sees(&self, session: &Session, provider: &str) -> bool {
        self.visibility(session.caller().agent.as_deref()).has(provider)
    }

    /// Sends a request that is no tool call to the server that it is for, and returns the result as the session is to
    /// see it, the text of an object.
    ///
    /// # Errors
    /// What the server answered instead of a result; `-32602` for what is not there or not to be seen.
    pub async fn request(
        &self,
        session: &Arc<Session>,
        request: ForwardRequest,
    ) -> Result<String, ErrorObject> {
        let refused = |refusal: Refusal| ErrorObject::new(INTERNAL_ERROR, refusal.error().message.clone());
        // It counts as a running call until it is answered.
        let running = self.enter(&PipelineContext::new(session)).map_err(refused)?;
        let visibility = self.visibility(session.caller().agent.as_deref());
        let (method, subject) = (request.method, subject(&request.params));
        // Time in which the client is asked something does not count.
        let watch = Arc::<PausableTimer>::default();
        let RequestContext { client: audience, cancel } = request.context;
        let audience = Arc::new(PausingClient { audience, watch: Arc::clone(&watch) });
        let request = ForwardRequest { context: RequestContext { client: audience, cancel }, ..request };
        let scope = Scope { session, visibility, watch };
        let over = session.cancellation();
        // Cancel-safety: a request that is dropped is withdrawn.
        let answer = tokio::select! {
            biased;
            () = over.cancelled() => Err(ErrorObject::new(INTERNAL_ERROR, "the session is over")),
            answer = self.servers.request(request, &scope) => answer,
        };
        drop(running);
        if over.is_cancelled() {
            // It may have subscribed just after its subscriptions were dropped.
            self.drop_subscriptions(session.id());
        }
        let answered = EventKind::RequestAnswered {
            session: session.id(),
            method: method.as_str(),
            subject,
            status: if answer.is_ok() { "ok" } else { "failed" },
            error: answer.as_ref().err().map(|error| cut(&error.message).into()),
        };
        self.events.emit(Some(&session.caller().principal), answered);
        answer
    }

    /// Drops the subscriptions of a session that is over. Does not wait until the servers are notified.
    pub(super) fn drop_subscriptions(&self, session: SessionId) {
        let Some(notify_servers) = self.servers.end_session(session) else { return };
        // Without an async runtime no server can be notified.
        let Ok(runtime) = Handle::try_current() else { return };
        self.tasks.spawn_on(self.closing.clone().run_until_cancelled_owned(notify_servers), &runtime);
    }

    fn visibility(&self, agent: Option<&str>) -> Visibility {
        // An agent that is not configured has no tools, and sees nothing.
        let snapshot = self.snapshot();
        let none =
            || Arc::new(Toolset::resolve(snapshot.pool(), &Default::default(), &SpawnContext::top(0)).0);
        let resolved = |agent| snapshot.resolve_toolset(Some(agent), &snapshot.top());
        let toolset = agent.map(|agent| resolved(agent).map_or_else(|_| none(), |known| known.toolset));
        Visibility { snapshot, toolset }
    }
}

/// What a request is about, in the client's words.
fn subject(params: &str) -> Arc<str> {
    let about = raw::member(params, "ref").unwrap_or(params);
    let named =
        ["uri", "name", "taskId", "level"].iter().find_map(|member| raw::string_member(about, member));
    cut(&named.unwrap_or_default()).into()
}

/// What a message repeats of a client's words.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}
