//! Writes the responses of this server.

use super::convert::{self, PROTOCOL_PREFIX};
use super::handler::Features;
use super::request::ResultKind;
use crate::client::ListKind;
use crate::envelope::{Id, success};
use crate::exchange::{Capabilities, ClientRequest};
use crate::{ErrorObject, Version, raw};
use std::fmt::Write as _;
use std::sync::Arc;

/// Clients that do not listen are not notified when a list changes, so they must not keep it.
pub(super) const NO_TTL: &str = "0";
/// The cache scope of every result, as JSON text.
pub(super) const PRIVATE: &str = "\"private\"";

/// What every response says about this server.
#[derive(Debug)]
pub(super) struct ResponseWriter {
    /// Name, title and version as a JSON object.
    pub(super) server_info: String,
}

/// The facts about a request that decide how its response is written.
#[derive(Debug)]
pub(super) struct ResponseContext<'a> {
    pub(super) kind: ResultKind,
    pub(super) version: Version,
    pub(super) capabilities: &'a Capabilities,
}

impl ResponseWriter {
    pub(super) fn initialize(
        &self,
        id: &Id<'_>,
        version: Version,
        features: &Features,
        instructions: Option<&str>,
    ) -> String {
        let result = present_members([
            ("protocolVersion", Some(&*raw::quoted(version.as_str()))),
            ("capabilities", Some(&capabilities(features, version))),
            ("serverInfo", Some(&self.server_info)),
            ("instructions", instructions.map(raw::quoted).as_deref()),
        ]);
        success(id, result.len(), |out| out.push_str(&result))
    }

    /// The response to `server/discover`. It names only the version that needs no handshake.
    pub(super) fn discover(&self, id: &Id<'_>, features: &Features, instructions: Option<&str>) -> String {
        let result = present_members([
            ("resultType", Some("\"complete\"")),
            ("supportedVersions", Some(&*format!("[\"{}\"]", Version::MODERN.as_str()))),
            ("capabilities", Some(&capabilities(features, Version::MODERN))),
            ("instructions", instructions.map(raw::quoted).as_deref()),
            ("ttlMs", Some(NO_TTL)),
            ("cacheScope", Some(PRIVATE)),
            ("_meta", Some(&self.meta())),
        ]);
        success(id, result.len(), |out| out.push_str(&result))
    }

    /// The response to a request that has ended.
    ///
    /// # Errors
    /// The error to respond with instead.
    pub(super) fn ended(
        &self,
        id: &Id<'_>,
        context: &ResponseContext<'_>,
        result: Result<Arc<str>, ErrorObject>,
    ) -> Result<String, ErrorObject> {
        let result = match (result, context.kind) {
            (Ok(items), ResultKind::List(kind)) => return Ok(self.list(id, context.version, kind, &items)),
            (Ok(result), ResultKind::Call | ResultKind::Forward(_)) => result,
            (Err(error), _) => convert::error(error, context)?.into(),
        };
        let mut written = Ok(());
        let text = success(id, 256 + self.server_info.len() + result.len(), |out| {
            written = convert::write(out, &result, context, self);
        });
        written.map(|()| text)
    }

    /// The response that asks the client for input (2026-07-28).
    pub(super) fn input_required(&self, id: &Id<'_>, requests: &[ClientRequest], state: &str) -> String {
        let requests: Vec<(&str, String)> = requests
            .iter()
            .map(|request| {
                let method = raw::quoted(&request.method);
                (request.key.as_str(), raw::object([("method", &*method), ("params", &request.params)]))
            })
            .collect();
        let result = present_members([
            ("resultType", Some("\"input_required\"")),
            ("inputRequests", Some(&*raw::object(requests.iter().map(|(key, request)| (*key, &**request))))),
            ("requestState", Some(&raw::quoted(state))),
            ("_meta", Some(&self.meta())),
        ]);
        success(id, result.len(), |out| out.push_str(&result))
    }

    /// The response that ends `subscriptions/listen`.
    pub(super) fn listen_ended(&self, id: &Id<'_>) -> String {
        success(id, 256 + self.server_info.len(), |out| {
            out.push_str("{\"resultType\":\"complete\",\"_meta\":{");
            write!(out, "\"{PROTOCOL_PREFIX}subscriptionId\":{},", id.text()).unwrap_or_default();
            write!(out, "\"{PROTOCOL_PREFIX}serverInfo\":{}}}}}", self.server_info).unwrap_or_default();
        })
    }

    /// The response to a list; `items` is the text of an array.
    fn list(&self, id: &Id<'_>, version: Version, kind: ListKind, items: &str) -> String {
        success(id, 256 + self.server_info.len() + items.len(), |out| {
            out.push_str(if version.is_modern() { "{\"resultType\":\"complete\"," } else { "{" });
            write!(out, "\"{}\":{items}", kind.member()).unwrap_or_default();
            if version.is_modern() {
                write!(out, ",\"ttlMs\":{NO_TTL},\"cacheScope\":{PRIVATE},\"_meta\":{}", self.meta())
                    .unwrap_or_default();
            }
            out.push('}');
        })
    }

    /// The `_meta` of a modern result: the name of this server.
    pub(super) fn meta(&self) -> String {
        format!("{{\"{PROTOCOL_PREFIX}serverInfo\":{}}}", self.server_info)
    }
}

/// The response to a request whose result has no members.
pub(super) fn empty(id: &Id<'_>) -> String {
    success(id, 2, |out| out.push_str("{}"))
}

/// The text of an object of the members that have a value.
pub(super) fn present_members<const N: usize>(members: [(&str, Option<&str>); N]) -> String {
    raw::object(members.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

fn capabilities(features: &Features, version: Version) -> String {
    let list_changed = "{\"listChanged\":true}";
    present_members([
        ("tools", Some(list_changed)),
        ("resources", features.resources.then_some("{\"subscribe\":true,\"listChanged\":true}")),
        ("prompts", features.prompts.then_some(list_changed)),
        ("completions", features.completions.then_some("{}")),
        ("logging", features.logging.then_some("{}")),
        ("extensions", features.extensions.as_deref().filter(|_| version.is_modern())),
    ])
}
