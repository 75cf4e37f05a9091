//! Writes the responses of this server.

use super::{
    convert::{self, PROTOCOL_PREFIX},
    handler::{Features, ServerInfo},
    request::ResultKind,
};
use crate::{
    ErrorObject, Version,
    client::ListKind,
    envelope::{Id, success},
    exchange::{Capabilities, ClientRequest},
};
use gantry_core::json::write_string;
use std::{fmt::Write as _, sync::Arc};

/// Clients that do not listen are not notified when a list changes, so they must not keep it.
const CACHE_HINTS: &str = ",\"ttlMs\":0,\"cacheScope\":\"private\"";

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
    pub(super) fn new(info: &ServerInfo) -> Self {
        let mut server_info = String::from("{\"name\":");
        write_string(&mut server_info, &info.name);
        if let Some(title) = &info.title {
            server_info.push_str(",\"title\":");
            write_string(&mut server_info, title);
        }
        server_info.push_str(",\"version\":");
        write_string(&mut server_info, &info.version);
        server_info.push('}');
        Self { server_info }
    }

    /// The response to `initialize`.
    pub(super) fn initialize(
        &self,
        id: &Id<'_>,
        version: Version,
        features: &Features,
        instructions: Option<&str>,
    ) -> String {
        let size = 256 + self.server_info.len() + instructions.map_or(0, str::len);
        success(id, size, |out| {
            write!(out, "{{\"protocolVersion\":\"{}\",\"capabilities\":", version.as_str())
                .unwrap_or_default();
            write_capabilities(out, features, version);
            out.push_str(",\"serverInfo\":");
            out.push_str(&self.server_info);
            write_instructions(out, instructions);
            out.push('}');
        })
    }

    /// The response to `server/discover`. It names only the version that needs no handshake.
    pub(super) fn discover(&self, id: &Id<'_>, features: &Features, instructions: Option<&str>) -> String {
        let size = 384 + self.server_info.len() + instructions.map_or(0, str::len);
        success(id, size, |out| {
            write!(
                out,
                "{{\"resultType\":\"complete\",\"supportedVersions\":[\"{}\"],\"capabilities\":",
                Version::MODERN.as_str()
            )
            .unwrap_or_default();
            write_capabilities(out, features, Version::MODERN);
            write_instructions(out, instructions);
            out.push_str(CACHE_HINTS);
            self.write_meta(out);
            out.push('}');
        })
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
        let size: usize = requests.iter().map(|request| 64 + request.key.len() + request.params.len()).sum();
        success(id, 256 + self.server_info.len() + state.len() + size, |out| {
            out.push_str("{\"resultType\":\"input_required\",\"inputRequests\":{");
            for (at, request) in requests.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_string(out, &request.key);
                out.push_str(":{\"method\":");
                write_string(out, &request.method);
                out.push_str(",\"params\":");
                out.push_str(&request.params);
                out.push('}');
            }
            out.push_str("},\"requestState\":");
            write_string(out, state);
            self.write_meta(out);
            out.push('}');
        })
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
            write!(out, "\"{}\":", kind.member()).unwrap_or_default();
            out.push_str(items);
            if version.is_modern() {
                out.push_str(CACHE_HINTS);
                self.write_meta(out);
            }
            out.push('}');
        })
    }

    /// Writes the `_meta` of a modern result: the name of this server.
    pub(super) fn write_meta(&self, out: &mut String) {
        write!(out, ",\"_meta\":{{\"{PROTOCOL_PREFIX}serverInfo\":{}}}", self.server_info)
            .unwrap_or_default();
    }
}

/// The response to a request whose result has no members.
pub(super) fn empty(id: &Id<'_>) -> String {
    success(id, 2, |out| out.push_str("{}"))
}

fn write_instructions(out: &mut String, instructions: Option<&str>) {
    if let Some(instructions) = instructions {
        out.push_str(",\"instructions\":");
        write_string(out, instructions);
    }
}

/// The capabilities that a client of this version is told of.
fn write_capabilities(out: &mut String, features: &Features, version: Version) {
    out.push_str("{\"tools\":{\"listChanged\":true}");
    if features.resources {
        out.push_str(",\"resources\":{\"subscribe\":true,\"listChanged\":true}");
    }
    if features.prompts {
        out.push_str(",\"prompts\":{\"listChanged\":true}");
    }
    if features.completions {
        out.push_str(",\"completions\":{}");
    }
    if features.logging {
        out.push_str(",\"logging\":{}");
    }
    if let Some(extensions) = features.extensions.as_deref().filter(|_| version.is_modern()) {
        out.push_str(",\"extensions\":");
        out.push_str(extensions);
    }
    out.push('}');
}
