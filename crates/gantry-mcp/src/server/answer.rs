//! The results that this server sends, written straight into the answer.

use super::{
    convert::{self, Additions, PROTOCOL_PREFIX},
    handler::{Answer, Features, ServerInfo, ToolAnswer},
    running::{Done, Outcome, Subject, Topic},
};
use crate::{
    ErrorObject, Version,
    client::ListKind,
    envelope::{Id, success},
    exchange::ClientRequest,
    raw,
};
use gantry_core::json::write_string;
use std::fmt::Write as _;

/// What the server says about itself in every answer.
#[derive(Debug)]
pub(super) struct About {
    /// Name, title and version as a JSON object.
    server_info: String,
    /// How long a modern client may keep what it got, in milliseconds.
    ttl_ms: u128,
}

impl About {
    pub(super) fn new(info: &ServerInfo, ttl: std::time::Duration) -> Self {
        let mut server_info = String::from("{\"name\":");
        write_string(&mut server_info, &info.name);
        if let Some(title) = &info.title {
            server_info.push_str(",\"title\":");
            write_string(&mut server_info, title);
        }
        server_info.push_str(",\"version\":");
        write_string(&mut server_info, &info.version);
        server_info.push('}');
        Self { server_info, ttl_ms: ttl.as_millis() }
    }

    /// The answer to `initialize`.
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

    /// The answer to `server/discover`. It names only the version that needs no handshake.
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
            self.write_cache_hints(out);
            self.write_meta(out, Version::MODERN, None);
            out.push('}');
        })
    }

    /// The answer to a request that has ended.
    ///
    /// # Errors
    /// What is to be said instead.
    pub(super) fn ended(
        &self,
        id: &Id<'_>,
        about: &Subject,
        outcome: Outcome,
    ) -> Result<String, ErrorObject> {
        let answer = match (outcome, about.topic) {
            (Ok(Done::List(items)), Topic::List(kind)) => {
                return Ok(self.list(id, about.version, kind, &items));
            }
            (Ok(Done::List(items)), Topic::Call | Topic::Other(_)) => Answer::Raw { result: items },
            (Ok(Done::Answer(answer)), _) => answer,
            (Err(error), topic) => Answer::Own(convert::error(error, topic, about.version)?),
        };
        match answer {
            Answer::Own(answer) => Ok(self.called(id, about.version, &answer)),
            Answer::Raw { result } => self.passed(id, about, &result),
        }
    }

    /// The answer that passes a server's result on.
    fn passed(&self, id: &Id<'_>, about: &Subject, result: &str) -> Result<String, ErrorObject> {
        let additions = Additions { server_info: &self.server_info, ttl_ms: self.ttl_ms };
        let mut written = Ok(());
        let text = success(id, 256 + self.server_info.len() + result.len(), |out| {
            written = convert::write(out, result, about, additions);
        });
        written.map(|()| text)
    }

    /// The answer that asks the client for what is missing (2026-07-28).
    pub(super) fn questions(&self, id: &Id<'_>, questions: &[ClientRequest], state: &str) -> String {
        let size: usize =
            questions.iter().map(|question| 64 + question.key.len() + question.params.len()).sum();
        success(id, 256 + self.server_info.len() + state.len() + size, |out| {
            out.push_str("{\"resultType\":\"input_required\",\"inputRequests\":{");
            for (at, question) in questions.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_string(out, &question.key);
                out.push_str(":{\"method\":");
                write_string(out, &question.method);
                out.push_str(",\"params\":");
                out.push_str(&question.params);
                out.push('}');
            }
            out.push_str("},\"requestState\":");
            write_string(out, state);
            self.write_meta(out, Version::MODERN, None);
            out.push('}');
        })
    }

    /// The answer that ends `subscriptions/listen`.
    pub(super) fn listened(&self, id: &Id<'_>) -> String {
        success(id, 256 + self.server_info.len(), |out| {
            out.push_str("{\"resultType\":\"complete\",\"_meta\":{");
            write!(out, "\"{PROTOCOL_PREFIX}subscriptionId\":{},", id.text()).unwrap_or_default();
            write!(out, "\"{PROTOCOL_PREFIX}serverInfo\":{}}}}}", self.server_info).unwrap_or_default();
        })
    }

    /// The answer to a list; `items` is the text of an array.
    fn list(&self, id: &Id<'_>, version: Version, kind: ListKind, items: &str) -> String {
        success(id, 256 + self.server_info.len() + items.len(), |out| {
            out.push('{');
            write_result_type(out, version);
            write!(out, "\"{}\":", kind.member()).unwrap_or_default();
            out.push_str(items);
            if version.is_modern() {
                self.write_cache_hints(out);
            }
            self.write_meta(out, version, None);
            out.push('}');
        })
    }

    /// The answer to `tools/call`.
    fn called(&self, id: &Id<'_>, version: Version, answer: &ToolAnswer) -> String {
        let structured = answer.structured.as_deref().filter(|text| version.carries_structured(text));
        let meta = answer.meta.as_deref();
        let size = answer.content.len() + structured.map_or(0, str::len) + meta.map_or(0, str::len);
        success(id, 256 + self.server_info.len() + size, |out| {
            out.push('{');
            write_result_type(out, version);
            out.push_str("\"content\":");
            out.push_str(&answer.content);
            if let Some(structured) = structured {
                out.push_str(",\"structuredContent\":");
                out.push_str(structured);
            }
            write!(out, ",\"isError\":{}", answer.is_error).unwrap_or_default();
            self.write_meta(out, version, meta);
            out.push('}');
        })
    }

    fn write_cache_hints(&self, out: &mut String) {
        write!(out, ",\"ttlMs\":{},\"cacheScope\":\"private\"", self.ttl_ms).unwrap_or_default();
    }

    /// Writes `_meta`: the handler's own keys, and for modern clients who is speaking.
    fn write_meta(&self, out: &mut String, version: Version, meta: Option<&str>) {
        // What is not an object cannot be merged; leaving it out keeps the answer well formed.
        let members = meta.and_then(raw::members).unwrap_or_default();
        let own = version.is_modern().then_some((PROTOCOL_PREFIX, "serverInfo", self.server_info.as_str()));
        let passed = members.iter().filter(|(key, _)| !key.starts_with(PROTOCOL_PREFIX));
        let passed = passed.map(|(key, value)| ("", &**key, *value));
        let mut opened = false;
        for (prefix, key, value) in own.into_iter().chain(passed) {
            out.push_str(if opened { "," } else { ",\"_meta\":{" });
            opened = true;
            write_string(out, &format!("{prefix}{key}"));
            out.push(':');
            out.push_str(value);
        }
        if opened {
            out.push('}');
        }
    }
}

/// The answer to a request whose result has no members.
pub(super) fn empty(id: &Id<'_>) -> String {
    success(id, 2, |out| out.push_str("{}"))
}

fn write_result_type(out: &mut String, version: Version) {
    if version.is_modern() {
        out.push_str("\"resultType\":\"complete\",");
    }
}

fn write_instructions(out: &mut String, instructions: Option<&str>) {
    if let Some(instructions) = instructions {
        out.push_str(",\"instructions\":");
        write_string(out, instructions);
    }
}

/// What a client of this version is told that there is.
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
