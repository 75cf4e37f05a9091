//! Requests that are no tool calls: resources, prompts, completions, subscriptions, log levels and tasks, sent to the
//! server that has what is asked for, under the server's own names.
//!
//! The engine says which servers a caller can see. A request about any other server is answered like one about something
//! that does not exist.

use crate::context::UpstreamContext;
use crate::server::UpstreamServer;
use crate::uri_map::{self, with_string_at};
use gantry_core::raw;
use gantry_mcp::client::UpstreamError;
use gantry_provider::ErrorObject;
use gantry_provider::code::{INTERNAL_ERROR, INVALID_PARAMS};
use gantry_provider::resources::{ForwardMethod, ForwardRequest};
use gantry_provider::server::RequestScope;
use std::borrow::Cow;
use std::sync::Arc;

/// The result of a request, the text of an object; or the error that the client gets.
pub(crate) type Answer = Result<String, ErrorObject>;

pub(crate) struct ResourceTarget {
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
    pub(crate) async fn forward(&self, request: ForwardRequest, scope: &dyn RequestScope) -> Answer {
        match request.method {
            ForwardMethod::ReadResource => self.read_resource(scope, request).await,
            ForwardMethod::GetPrompt => self.get_prompt(scope, request).await,
            ForwardMethod::Complete => self.complete(scope, request).await,
            ForwardMethod::Subscribe => {
                self.subscribe(scope, &string_param(&request.params, "uri")?, &request.context.cancel).await
            }
            ForwardMethod::Unsubscribe => {
                self.unsubscribe(scope, &string_param(&request.params, "uri")?).await
            }
            ForwardMethod::SetLevel => self.set_level(scope.session(), &request.params).await,
            ForwardMethod::TaskGet | ForwardMethod::TaskUpdate | ForwardMethod::TaskCancel => {
                self.forward_task(scope, request).await
            }
        }
    }

    async fn read_resource(&self, scope: &dyn RequestScope, request: ForwardRequest) -> Answer {
        let target = self.find_resource(scope, &string_param(&request.params, "uri")?)?;
        let params = with_string_at(&request.params, &["uri"], &target.upstream_uri);
        let answer = send(&target.server, scope, ForwardRequest { params, ..request }).await;
        if !target.mapped {
            return answer;
        }
        let rewrite = |kind, text: &str| target.server.uri_map.rewrite(kind, text).into_owned();
        match answer {
            Ok(result) => Ok(rewrite(uri_map::CONTENTS, &result)),
            // A resource that is not there is named in the error.
            Err(error) => {
                Err(ErrorObject { data: error.data.map(|data| rewrite(uri_map::OBJECT, &data)), ..error })
            }
        }
    }

    async fn get_prompt(&self, scope: &dyn RequestScope, request: ForwardRequest) -> Answer {
        let name = string_param(&request.params, "name")?;
        let (server, own) = self.find_prompt(scope, &name)?;
        let params = with_string_at(&request.params, &["name"], &own);
        let result = send(&server, scope, ForwardRequest { params, ..request }).await?;
        Ok(server.uri_map.rewrite(uri_map::PROMPT, &result).into_owned())
    }

    async fn complete(&self, scope: &dyn RequestScope, request: ForwardRequest) -> Answer {
        let reference = raw::member(&request.params, "ref").ok_or_else(|| missing_param("ref"))?;
        let (server, params) = if let Some(uri) = raw::string_member(reference, "uri") {
            let target = self.find_resource(scope, &uri)?;
            (target.server, with_string_at(&request.params, &["ref", "uri"], &target.upstream_uri))
        } else {
            let name = raw::string_member(reference, "name").ok_or_else(|| missing_param("ref.name"))?;
            let (server, own) = self.find_prompt(scope, &name)?;
            (server, with_string_at(&request.params, &["ref", "name"], &own))
        };
        send(&server, scope, ForwardRequest { params, ..request }).await
    }

    async fn forward_task(&self, scope: &dyn RequestScope, request: ForwardRequest) -> Answer {
        let token = string_param(&request.params, "taskId")?;
        let unknown = || ErrorObject::new(INVALID_PARAMS, "there is no such task");
        let task = self.task_signer.verify(&token, scope.caller()).ok_or_else(unknown)?;
        let server = self.visible_server(scope, &task.server).ok_or_else(unknown)?;
        let picked =
            server.pick_for_task(&task).map_err(|reason| ErrorObject::new(INTERNAL_ERROR, reason))?;
        let picked = picked.ok_or_else(unknown)?;
        let params = with_string_at(&request.params, &["taskId"], &task.id);
        let request = ForwardRequest { params, ..request };
        let result = within_limit(&server, scope, picked.ready.connection.request(&request)).await?;
        let result = server.uri_map.rewrite(uri_map::TASK, &result);
        Ok(with_string_at(&result, &["taskId"], &token))
    }

    fn visible_server(&self, scope: &dyn RequestScope, id: &str) -> Option<Arc<UpstreamServer>> {
        self.selected_servers(&|server| scope.can_see(server)).into_iter().find(|server| **server.id() == *id)
    }

    fn find_prompt(
        &self,
        scope: &dyn RequestScope,
        name: &str,
    ) -> Result<(Arc<UpstreamServer>, String), ErrorObject> {
        let catalog = self.catalog.load();
        let found = catalog
            .prompt(name)
            .and_then(|item| Some((self.visible_server(scope, &item.server)?, item.own.clone())));
        found.ok_or_else(|| {
            ErrorObject::new(INVALID_PARAMS, format!("there is no prompt {:?}", shorten(name)))
        })
    }

    /// The resource or template that a client names: by the URI that Gantry shows, or by the server's own if only one
    /// server can have it.
    pub(crate) fn find_resource(
        &self,
        scope: &dyn RequestScope,
        shown: &str,
    ) -> Result<ResourceTarget, ErrorObject> {
        let visible = self.selected_servers(&|server| scope.can_see(server));
        let target = |server: &Arc<UpstreamServer>, uri: &str, mapped| ResourceTarget {
            server: Arc::clone(server),
            upstream_uri: uri.to_owned(),
            mapped,
        };
        let mut prefixed = visible.iter().filter(|server| !server.uri_map.is_plain());
        let found =
            prefixed.find_map(|server| Some(target(server, server.uri_map.upstream_uri(shown)?, true)));
        if let Some(target) = found {
            return Ok(target);
        }
        let catalog = self.catalog.load();
        let find = |id: &str| visible.iter().find(|server| **server.id() == *id);
        if let Some(server) = catalog.server_of(shown, |id| find(id).is_some()).and_then(|id| find(id)) {
            return Ok(target(server, shown, false));
        }
        let offers =
            |server: &&Arc<UpstreamServer>| server.listing().is_some_and(|known| known.offers("resources"));
        let mut plain = visible.iter().filter(|server| server.uri_map.is_plain()).filter(offers);
        match (plain.next(), plain.next()) {
            (Some(only), None) => Ok(target(only, shown, false)),
            _ => {
                let error =
                    ErrorObject::new(INVALID_PARAMS, format!("there is no resource {:?}", shorten(shown)));
                Err(error.with_data(raw::object([("uri", raw::quoted(shown).as_str())])))
            }
        }
    }
}

/// Sends a request to any replica; once more if it was not sent because the connection had ended.
async fn send(server: &UpstreamServer, scope: &dyn RequestScope, request: ForwardRequest) -> Answer {
    let mut picked = server.pick_any().map_err(|reason| ErrorObject::new(INTERNAL_ERROR, reason))?;
    let sent = async {
        let outcome = picked.ready.connection.request(&request).await;
        if matches!(outcome, Err(UpstreamError::NotSent(_)))
            && picked.ready.connection.has_ended()
            && let Some(reconnected) = server.pick_reconnected(None, &request.context.cancel).await
        {
            picked = reconnected;
            return picked.ready.connection.request(&request).await;
        }
        outcome
    };
    within_limit(server, scope, sent).await
}

/// Waits for the outcome of a request, but not longer than the server may take.
///
/// Cancel-safety: a request that is dropped is cancelled at the server.
async fn within_limit(
    server: &UpstreamServer,
    scope: &dyn RequestScope,
    outcome: impl Future<Output = Result<String, UpstreamError>>,
) -> Answer {
    tokio::select! {
        outcome = outcome => outcome.map_err(|error| to_error_object(server, error)),
        limit = scope.timed_out(server.id()) => {
            let message = format!("server {} did not answer within {} ms", server.id(), limit.as_millis());
            Err(ErrorObject::new(INTERNAL_ERROR, message))
        }
    }
}

pub(crate) fn string_param(params: &str, member: &str) -> Result<String, ErrorObject> {
    raw::string_member(params, member).map(Cow::into_owned).ok_or_else(|| missing_param(member))
}

fn missing_param(member: &str) -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, format!("params.{member} is missing or of the wrong kind"))
}

/// The part of a client's text that an error message repeats.
fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

pub(crate) fn to_error_object(server: &UpstreamServer, error: UpstreamError) -> ErrorObject {
    let (id, mask) = (server.id(), |why| server.secrets.mask(why));
    let message = match error {
        UpstreamError::Rpc(error) => return error,
        UpstreamError::NotSent(why) => format!("server {id} is not available: {}", mask(why)),
        UpstreamError::OutcomeUnknown(why) => format!("server {id} did not answer: {}", mask(why)),
        UpstreamError::Canceled => "canceled".to_owned(),
    };
    ErrorObject::new(INTERNAL_ERROR, message)
}
