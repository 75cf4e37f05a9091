//! The results that this server sends, written straight into the answer.

use super::handler::{ServerInfo, ToolAnswer};
use crate::{
    Version,
    envelope::{Id, success},
};
use gantry_core::json::write_string;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt::Write as _;

const CAPABILITIES: &str = "{\"tools\":{}}";
/// The keys of `_meta` that belong to the protocol: what an upstream said with them was said to Gantry.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

/// What the server says about itself in every answer.
#[derive(Debug)]
pub(super) struct About {
    /// Name, title and version as a JSON object.
    server_info: String,
    /// How long a modern client may keep a list, in milliseconds.
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
    pub(super) fn initialize(&self, id: &Id<'_>, version: Version, instructions: Option<&str>) -> String {
        let size = 128 + self.server_info.len() + instructions.map_or(0, str::len);
        success(id, size, |out| {
            write!(out, "{{\"protocolVersion\":\"{}\",\"capabilities\":{CAPABILITIES}", version.as_str())
                .unwrap_or_default();
            out.push_str(",\"serverInfo\":");
            out.push_str(&self.server_info);
            write_instructions(out, instructions);
            out.push('}');
        })
    }

    /// The answer to `server/discover`. It names only the version that needs no handshake.
    pub(super) fn discover(&self, id: &Id<'_>, instructions: Option<&str>) -> String {
        let size = 256 + self.server_info.len() + instructions.map_or(0, str::len);
        success(id, size, |out| {
            write!(
                out,
                "{{\"resultType\":\"complete\",\"supportedVersions\":[\"{}\"],\"capabilities\":{CAPABILITIES}",
                Version::MODERN.as_str()
            )
            .unwrap_or_default();
            write_instructions(out, instructions);
            self.write_cache_hints(out);
            self.write_meta(out, Version::MODERN, None);
            out.push('}');
        })
    }

    /// The answer to `tools/list`; `tools` is the text of an array.
    pub(super) fn tools(&self, id: &Id<'_>, version: Version, tools: &str) -> String {
        success(id, 256 + self.server_info.len() + tools.len(), |out| {
            out.push('{');
            write_result_type(out, version);
            out.push_str("\"tools\":");
            out.push_str(tools);
            if version.is_modern() {
                self.write_cache_hints(out);
            }
            self.write_meta(out, version, None);
            out.push('}');
        })
    }

    /// The answer to `tools/call`.
    pub(super) fn called(&self, id: &Id<'_>, version: Version, answer: &ToolAnswer) -> String {
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
        let members = meta.and_then(|meta| serde_json::from_str::<Members<'_>>(meta).ok());
        let members = members.map(|Members(members)| members).unwrap_or_default();
        let own = version.is_modern().then_some((PROTOCOL_PREFIX, "serverInfo", self.server_info.as_str()));
        let passed = members.iter().filter(|(key, _)| !key.starts_with(PROTOCOL_PREFIX));
        let passed = passed.map(|(key, value)| ("", key.as_str(), value.get()));
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

/// The members of an object in their order, values as text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Ordered)
    }
}

struct Ordered;

impl<'de> Visitor<'de> for Ordered {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        // Limit: the text is part of a result, which the handler has bounded.
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
