//! Requests that are no tool calls: resources, prompts, completions, subscriptions, log levels and tasks, sent to the
//! server that has what is asked for, under the server's own names.
//!
//! What a caller cannot see does not exist for it: the engine says which servers that are, and everything else is
//! answered like something that is not there.

use crate::catalog::is_mapped;
use crate::context::UpstreamContext;
use crate::server::{Picked, UpstreamServer};
use crate::uri_map::{MessageKind, with_nested_member, with_string_member};
use gantry_core::raw;
use gantry_mcp::client::Failure;
use gantry_provider::ErrorObject;
use gantry_provider::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::resources::{Method, Outgoing};
use gantry_provider::server::RequestScope;
use std::borrow::Cow;
use std::sync::Arc;

/// A resource or a template as a client names it.
pub(crate) struct ResourceTarget {
    /// The server that has it.
    pub(crate) server: Arc<UpstreamServer>,
    /// Its URI as the server spells it.
    pub(crate) upstream_uri: String,
    /// Whether the client named it by the URI that Gantry shows.
    mapped: bool,
}

impl UpstreamContext {
    /// Sends a request to the server that it is for.
    ///
    /// # Errors
    /// What the server answered instead of a result; `-32602` for what is not there or not to be seen.
    pub(crate) async fn forward(
        &self,
        request: Outgoing<'_>,
        scope: &dyn RequestScope,
    ) -> Result<String, ErrorObject> {
        match request.method {
            Method::ReadResource => self.read(scope, request).await,
            Method::GetPrompt => self.prompt(scope, request).await,
            Method::Complete => self.complete(scope, request).await,
            Method::Subscribe => self.subscribe(scope, &uri(&request.params)?).await,
            Method::Unsubscribe => self.unsubscribe(scope, &uri(&request.params)?).await,
            Method::SetLevel => self.set_level(scope.session(), &request.params).await,
            Method::TaskGet | Method::TaskUpdate | Method::TaskCancel => self.task(scope, request).await,
        }
    }

    async fn read(&self, scope: &dyn RequestScope, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let target = self.resource(scope, &uri(&request.params)?)?;
        let params = with_string_member(&request.params, "uri", &target.upstream_uri).into_owned();
        let answer = send(&target.server, scope, Outgoing { params, ..request }).await;
        if !target.mapped {
            return answer;
        }
        let rewrite = |kind, text: &str| target.server.uri_map().rewrite(kind, text).into_owned();
        match answer {
            Ok(result) => Ok(rewrite(MessageKind::Contents, &result)),
            // A resource that is not there is named in the error.
            Err(error) => {
                Err(ErrorObject { data: error.data.map(|data| rewrite(MessageKind::Uri, &data)), ..error })
            }
        }
    }

    async fn prompt(&self, scope: &dyn RequestScope, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let name = raw::string_member(&request.params, "name").ok_or_else(|| missing("name"))?.into_owned();
        let (server, own) = self.prompt_of(scope, &name)?;
        let params = with_string_member(&request.params, "name", &own).into_owned();
        let result = send(&server, scope, Outgoing { params, ..request }).await?;
        Ok(server.uri_map().rewrite(MessageKind::Messages, &result).into_owned())
    }

    async fn complete(&self, scope: &dyn RequestScope, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let reference = raw::member(&request.params, "ref").ok_or_else(|| missing("ref"))?;
        let (server, params) = if let Some(uri) = raw::string_member(reference, "uri") {
            let target = self.resource(scope, &uri)?;
            let params = with_nested_member(&request.params, "ref", "uri", &target.upstream_uri).into_owned();
            (target.server, params)
        } else {
            let name = raw::string_member(reference, "name").ok_or_else(|| missing("ref.name"))?;
            let (server, own) = self.prompt_of(scope, &name)?;
            (server, with_nested_member(&request.params, "ref", "name", &own).into_owned())
        };
        send(&server, scope, Outgoing { params, ..request }).await
    }

    async fn task(&self, scope: &dyn RequestScope, request: Outgoing<'_>) -> Result<String, ErrorObject> {
        let token =
            raw::string_member(&request.params, "taskId").ok_or_else(|| missing("taskId"))?.into_owned();
        let unknown = || ErrorObject::new(INVALID_PARAMS, "there is no such task");
        let task = self.task_signer.verify(&token, scope.caller()).ok_or_else(unknown)?;
        let server = self.visible(scope, &task.server).ok_or_else(unknown)?;
        let picked = server.of_task(&task).map_err(|reason| ErrorObject::new(INTERNAL_ERROR, reason))?;
        let picked = picked.ok_or_else(unknown)?;
        let params = with_string_member(&request.params, "taskId", &task.id).into_owned();
        let result = exchange(&server, &picked, scope, Outgoing { params, ..request }).await?;
        let result = server.uri_map().rewrite(MessageKind::Task, &result);
        Ok(with_string_member(&result, "taskId", &token).into_owned())
    }

    /// The server of this id, if the caller can see it.
    fn visible(&self, scope: &dyn RequestScope, id: &str) -> Option<Arc<UpstreamServer>> {
        self.selected(&|server| scope.can_see(server)).into_iter().find(|server| **server.id() == *id)
    }

    fn prompt_of(
        &self,
        scope: &dyn RequestScope,
        name: &str,
    ) -> Result<(Arc<UpstreamServer>, String), ErrorObject> {
        let catalog = self.catalog.load();
        let found = catalog
            .prompt(name)
            .and_then(|item| Some((self.visible(scope, &item.server)?, item.own.clone())));
        found.ok_or_else(|| ErrorObject::new(INVALID_PARAMS, format!("there is no prompt {:?}", cut(name))))
    }

    /// The resource or template that a client names: by the URI that Gantry shows, or by the server's own if only one
    /// server can have it.
    pub(crate) fn resource(
        &self,
        scope: &dyn RequestScope,
        shown: &str,
    ) -> Result<ResourceTarget, ErrorObject> {
        let visible = self.selected(&|server| scope.can_see(server));
        if is_mapped(shown) {
            let found = visible.iter().filter(|server| !server.uri_map().is_plain()).find_map(|server| {
                let upstream_uri = server.uri_map().upstream_uri(shown)?.to_owned();
                Some(ResourceTarget { server: Arc::clone(server), upstream_uri, mapped: true })
            });
            if let Some(target) = found {
                return Ok(target);
            }
        }
        let target = |server: &Arc<UpstreamServer>| ResourceTarget {
            server: Arc::clone(server),
            upstream_uri: shown.to_owned(),
            mapped: false,
        };
        let catalog = self.catalog.load();
        let find = |id: &str| visible.iter().find(|server| **server.id() == *id);
        if let Some(server) = catalog.server_of(shown, |id| find(id).is_some()).and_then(|id| find(id)) {
            return Ok(target(server));
        }
        let offers =
            |server: &&Arc<UpstreamServer>| server.listing().is_some_and(|known| known.offers("resources"));
        let mut plain = visible.iter().filter(|server| server.uri_map().is_plain()).filter(offers);
        match (plain.next(), plain.next()) {
            (Some(only), None) => Ok(target(only)),
            _ => {
                let error =
                    ErrorObject::new(INVALID_PARAMS, format!("there is no resource {:?}", cut(shown)));
                Err(error.with_data(raw::object([("uri", raw::quoted(shown).as_str())])))
            }
        }
    }
}

async fn send(
    server: &UpstreamServer,
    scope: &dyn RequestScope,
    request: Outgoing<'_>,
) -> Result<String, ErrorObject> {
    let picked = server.pick().map_err(|reason| ErrorObject::new(INTERNAL_ERROR, reason))?;
    exchange(server, &picked, scope, request).await
}

async fn exchange(
    server: &UpstreamServer,
    at: &Picked,
    scope: &dyn RequestScope,
    request: Outgoing<'_>,
) -> Result<String, ErrorObject> {
    // Cancel-safety: a request that is dropped is withdrawn.
    tokio::select! {
        answer = at.connection.request(request) => {
            answer.map_err(|failure| error(server.id(), server.hidden(failure)))
        },
        limit = scope.timed_out(server.id()) => {
            let message = format!("server {} did not answer within {} ms", server.id(), limit.as_millis());
            Err(ErrorObject::new(INTERNAL_ERROR, message))
        }
    }
}

fn uri(params: &str) -> Result<String, ErrorObject> {
    raw::string_member(params, "uri").map(Cow::into_owned).ok_or_else(|| missing("uri"))
}

pub(crate) fn missing(member: &str) -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, format!("params.{member} is missing or of the wrong kind"))
}

/// What a message repeats of a client's words.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A failure as the client is told.
pub(crate) fn error(server: &str, failure: Failure) -> ErrorObject {
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
