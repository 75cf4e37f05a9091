//! Requests that are no tool calls: resources, prompts, completions, log levels and tasks, sent to the server that has
//! what is asked for, under the server's own names.
//!
//! What a caller cannot see does not exist for it: an agent reaches the resources and prompts of a server only if it
//! has a tool of that server, and everything else is answered like something that is not there.

use super::Runtime;
use super::pool::Built;
use super::shelf::is_mapped;
use crate::event::EventKind;
use crate::pipeline::stopwatch::{Patient, Stopwatch};
use crate::provider::mcp::mapping::{Shape, renamed, renamed_in};
use crate::provider::mcp::{McpServer, Picked};
use crate::servers::Features;
use crate::session::Session;
use gantry_core::toolset::Place;
use gantry_core::{Refusal, Toolset, raw};
use gantry_mcp::client::{Failure, ListKind, Outgoing};
use gantry_mcp::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_mcp::{ErrorObject, Method, Turn};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The extension by which calls are promises to finish later.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a caller can see of the servers.
pub(super) struct Sight {
    /// None for a caller without an agent, who sees everything that is not left out.
    toolset: Option<Arc<Toolset>>,
    outside: Arc<Built>,
}

impl Sight {
    fn has(&self, server: &str) -> bool {
        let of_server = |set: &Arc<Toolset>| set.tools().any(|tool| *tool.key.provider == *server);
        !self.outside.left_out.contains_key(server) && self.toolset.as_ref().is_none_or(of_server)
    }
}

/// A resource or a template as a client names it.
pub(super) struct Meant {
    /// The server that has it.
    pub(super) server: Arc<McpServer>,
    /// Its URI in the server's words.
    pub(super) own: String,
    /// Whether the client named it by the URI that Gantry shows.
    mapped: bool,
}

impl Runtime {
    /// The resources, templates or prompts that a session sees, as one JSON array, in the order of the servers' ids.
    #[must_use]
    pub fn catalogue(&self, session: &Session, kind: ListKind) -> Arc<str> {
        let sight = self.sight(session.caller().agent.as_deref());
        let sources = self.sources();
        let visible: BTreeSet<&str> =
            sources.servers().map(|server| &**server.id()).filter(|id| sight.has(id)).collect();
        self.upstreams.shelf.load().text(kind, |server| visible.contains(server)).into()
    }

    /// What the servers that this agent, or a caller without one, sees offer besides tools.
    #[must_use]
    pub fn features(&self, agent: Option<&str>) -> Features {
        let (sight, mut features) = (self.sight(agent), Features::default());
        let mut extensions: Vec<(String, String)> = Vec::new();
        for server in self.sources().servers().filter(|server| sight.has(server.id())) {
            let Some(listing) = server.listing() else { continue };
            features.resources |= listing.offers("resources");
            features.prompts |= listing.offers("prompts");
            features.completions |= listing.offers("completions");
            features.logging |= listing.offers("logging");
            let own = raw::member(&listing.about.capabilities, "extensions").and_then(raw::members);
            for (name, value) in own.unwrap_or_default() {
                if !extensions.iter().any(|(known, _)| *known == name) {
                    extensions.push((name.into_owned(), value.to_owned()));
                }
            }
        }
        // Calls that wait for a person are tasks to those who take them.
        if !extensions.iter().any(|(known, _)| known == TASKS) {
            extensions.push((TASKS.to_owned(), "{}".to_owned()));
        }
        let text = || raw::object(extensions.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        features.extensions = Some(text());
        features
    }

    /// Whether a session sees what this provider has.
    #[must_use]
    pub fn sees(&self, session: &Session, provider: &str) -> bool {
        self.sight(session.caller().agent.as_deref()).has(provider)
    }

    /// Sends a request that is no tool call to the server that it is for, and returns the result as the session is to
    /// see it, the text of an object.
    ///
    /// # Errors
    /// What the server answered instead of a result; `-32602` for what is not there or not to be seen.
    pub async fn request(&self, session: &Session, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let refused = |refusal: Refusal| ErrorObject::new(INTERNAL_ERROR, refusal.error().message.clone());
        let running = self.enter_request(session).map_err(refused)?;
        let sight = self.sight(session.caller().agent.as_deref());
        let (method, subject) = (request.method, subject(&request.params));
        let over = session.cancellation();
        // Cancel-safety: a request that is dropped is withdrawn.
        let answer = tokio::select! {
            biased;
            () = over.cancelled() => Err(ErrorObject::new(INTERNAL_ERROR, "the session is over")),
            answer = self.route(&sight, session, request) => answer,
        };
        drop(running);
        if over.is_cancelled() {
            // It may have asked to hear something just after all that was taken back.
            self.forget_wishes(session.id());
        }
        let told = EventKind::RequestAnswered {
            session: session.id(),
            method: method.as_str(),
            subject,
            status: if answer.is_ok() { "ok" } else { "failed" },
            error: answer.as_ref().err().map(|error| cut(&error.message).into()),
        };
        self.events.emit(Some(&session.caller().principal), told);
        answer
    }

    async fn route(
        &self,
        sight: &Sight,
        session: &Session,
        request: Outgoing<'_>,
    ) -> Result<String, ErrorObject> {
        match request.method {
            Method::ReadResource => self.read(sight, request).await,
            Method::GetPrompt => self.prompt(sight, request).await,
            Method::Complete => self.complete(sight, request).await,
            Method::Subscribe => self.subscribe(sight, session.id(), &uri(&request.params)?).await,
            Method::Unsubscribe => self.unsubscribe(sight, session, &request.params).await,
            Method::SetLevel => self.set_level(session, &request.params).await,
            Method::TaskGet | Method::TaskUpdate | Method::TaskCancel => {
                self.task(sight, session, request).await
            }
        }
    }

    pub(super) fn sight(&self, agent: Option<&str>) -> Sight {
        // An agent that is not configured has no tools, and sees nothing.
        let none = || Arc::new(Toolset::resolve(&self.pool(), &Default::default(), &Place::top(0)).0);
        let toolset = agent.map(|agent| self.toolset(Some(agent)).unwrap_or_else(|_| none()));
        Sight { toolset, outside: self.upstreams.outside.load_full() }
    }

    async fn read(&self, sight: &Sight, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let meant = self.resource(sight, &uri(&request.params)?)?;
        let params = renamed(&request.params, "uri", &meant.own).into_owned();
        let answer = self.send(&meant.server, Outgoing { params, ..request }).await;
        if !meant.mapped {
            return answer;
        }
        let show = |shape, text: &str| meant.server.mapping().show(shape, text).into_owned();
        match answer {
            Ok(result) => Ok(show(Shape::Contents, &result)),
            // A resource that is not there is named in the error.
            Err(error) => Err(ErrorObject { data: error.data.map(|data| show(Shape::Uri, &data)), ..error }),
        }
    }

    async fn prompt(&self, sight: &Sight, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let name = raw::string_member(&request.params, "name").ok_or_else(|| missing("name"))?.into_owned();
        let (server, own) = self.prompt_of(sight, &name)?;
        let params = renamed(&request.params, "name", &own).into_owned();
        let result = self.send(&server, Outgoing { params, ..request }).await?;
        Ok(server.mapping().show(Shape::Messages, &result).into_owned())
    }

    async fn complete(&self, sight: &Sight, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let reference = raw::member(&request.params, "ref").ok_or_else(|| missing("ref"))?;
        let (server, params) = if let Some(uri) = raw::string_member(reference, "uri") {
            let meant = self.resource(sight, &uri)?;
            (meant.server, renamed_in(&request.params, "ref", "uri", &meant.own).into_owned())
        } else {
            let name = raw::string_member(reference, "name").ok_or_else(|| missing("ref.name"))?;
            let (server, own) = self.prompt_of(sight, &name)?;
            (server, renamed_in(&request.params, "ref", "name", &own).into_owned())
        };
        self.send(&server, Outgoing { params, ..request }).await
    }

    async fn task(
        &self,
        sight: &Sight,
        session: &Session,
        request: Outgoing<'_>,
    ) -> Result<String, ErrorObject> {
        let shown =
            raw::string_member(&request.params, "taskId").ok_or_else(|| missing("taskId"))?.into_owned();
        let unknown = || ErrorObject::new(INVALID_PARAMS, "there is no such task");
        let task = self.upstreams.hub.seal.open(&shown, session.caller()).ok_or_else(unknown)?;
        let server = self.server(sight, &task.server).ok_or_else(unknown)?;
        let picked = server.of_task(&task).map_err(|absence| ErrorObject::new(INTERNAL_ERROR, absence))?;
        let picked = picked.ok_or_else(unknown)?;
        let params = renamed(&request.params, "taskId", &task.id).into_owned();
        let result = self.exchange(&server, &picked, Outgoing { params, ..request }).await?;
        let result = server.mapping().show(Shape::Task, &result);
        Ok(renamed(&result, "taskId", &shown).into_owned())
    }

    fn server(&self, sight: &Sight, id: &str) -> Option<Arc<McpServer>> {
        let sources = self.sources();
        sources.get(id).and_then(|source| source.server.clone()).filter(|server| sight.has(server.id()))
    }

    fn prompt_of(&self, sight: &Sight, name: &str) -> Result<(Arc<McpServer>, String), ErrorObject> {
        let shelf = self.upstreams.shelf.load();
        let found =
            shelf.prompt(name).and_then(|item| Some((self.server(sight, &item.server)?, item.own.clone())));
        found.ok_or_else(|| ErrorObject::new(INVALID_PARAMS, format!("there is no prompt {:?}", cut(name))))
    }

    /// The resource or template that a client means: by the URI that Gantry shows, or by the server's own if only one
    /// server can be meant.
    pub(super) fn resource(&self, sight: &Sight, shown: &str) -> Result<Meant, ErrorObject> {
        let sources = self.sources();
        let visible = || sources.servers().filter(|server| sight.has(server.id()));
        if is_mapped(shown) {
            let found = visible().filter(|server| !server.mapping().is_plain()).find_map(|server| {
                let own = server.mapping().own(shown)?.to_owned();
                Some(Meant { server: Arc::clone(server), own, mapped: true })
            });
            if let Some(meant) = found {
                return Ok(meant);
            }
        }
        let meant = |server: &Arc<McpServer>| Meant {
            server: Arc::clone(server),
            own: shown.to_owned(),
            mapped: false,
        };
        let shelf = self.upstreams.shelf.load();
        let owner = shelf.owner(shown, |server| sight.has(server));
        if let Some(server) = owner.and_then(|owner| visible().find(|server| server.id() == owner)) {
            return Ok(meant(server));
        }
        let offers =
            |server: &&Arc<McpServer>| server.listing().is_some_and(|known| known.offers("resources"));
        let mut plain = visible().filter(|server| server.mapping().is_plain()).filter(offers);
        match (plain.next(), plain.next()) {
            (Some(only), None) => Ok(meant(only)),
            _ => {
                let error =
                    ErrorObject::new(INVALID_PARAMS, format!("there is no resource {:?}", cut(shown)));
                Err(error.with_data(raw::object([("uri", raw::quoted(shown).as_str())])))
            }
        }
    }

    async fn send(&self, server: &McpServer, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let picked = server.pick().map_err(|absence| ErrorObject::new(INTERNAL_ERROR, absence))?;
        self.exchange(server, &picked, request).await
    }

    async fn exchange(
        &self,
        server: &McpServer,
        at: &Picked,
        request: Outgoing<'_>,
    ) -> Result<String, ErrorObject> {
        let limit = server.options().timeout.unwrap_or(self.setup().limits.tool_timeout);
        let watch = Stopwatch::start();
        let Turn { audience, cancel } = request.turn;
        let audience = Arc::new(Patient { audience, watch: Arc::clone(&watch) });
        let request = Outgoing { turn: Turn { audience, cancel }, ..request };
        // Cancel-safety: a request that is dropped is withdrawn.
        tokio::select! {
            answer = at.connection.request(request) => {
                answer.map_err(|failure| error(server.id(), server.hidden(failure)))
            },
            () = watch.ran_for(limit) => {
                let message =
                    format!("server {} did not answer within {} ms", server.id(), limit.as_millis());
                Err(ErrorObject::new(INTERNAL_ERROR, message))
            }
        }
    }
}

pub(super) fn uri(params: &str) -> Result<String, ErrorObject> {
    raw::string_member(params, "uri").map(std::borrow::Cow::into_owned).ok_or_else(|| missing("uri"))
}

pub(super) fn missing(member: &str) -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, format!("params.{member} is missing or of the wrong kind"))
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

pub(super) fn error(server: &str, failure: Failure) -> ErrorObject {
    match failure {
        Failure::Answered(error) => error,
        Failure::Unavailable(why) => {
            ErrorObject::new(INTERNAL_ERROR, format!("server {server} is not available: {why}"))
        }
        Failure::Lost(why) => {
            ErrorObject::new(INTERNAL_ERROR, format!("server {server} did not answer: {why}"))
        }
        Failure::Canceled => ErrorObject::new(INTERNAL_ERROR, "canceled"),
    }
}
