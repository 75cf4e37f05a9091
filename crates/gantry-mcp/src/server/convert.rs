//! Results of other servers, written the way a client of another version takes them.
//!
//! Only what the client's version cannot take is changed. Everything else passes as it came: the order of keys, the
//! text of numbers, members that nobody here knows.

use super::{
    handler::ToolAnswer,
    running::{Subject, Topic},
};
use crate::{ErrorObject, ForwardMethod, Version, error::code, raw};
use std::{borrow::Cow, fmt::Write as _};

/// The keys of `_meta` that belong to the protocol: what an upstream said with them was said to Gantry.
pub(super) const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";
/// The extension whose results are promises to finish later.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// What older versions use for a missing resource.
const RESOURCE_NOT_FOUND: i32 = -32002;
/// What older versions use for a request that needs the user to open an address first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// What is added to the results that a modern client gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Additions<'a> {
    /// The object that says who answers.
    pub(super) server_info: &'a str,
    /// How long a result may be kept, in milliseconds.
    pub(super) ttl_ms: u128,
}

type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Writes a result.
///
/// # Errors
/// The text is not a result that a client of this version can take.
pub(super) fn write(
    out: &mut String,
    result: &str,
    about: &Subject,
    additions: Additions<'_>,
) -> Result<(), ErrorObject> {
    let result = result.trim_ascii();
    let Some(members) = raw::members(result) else {
        return Err(ErrorObject::new(code::INTERNAL_ERROR, "the server's result is not an object"));
    };
    check_kind(&members, about)?;
    if about.version.is_modern() {
        write_modern(out, result, &members, about.topic, additions);
    } else {
        write_legacy(out, result, &members, about);
    }
    Ok(())
}

fn find<'a>(members: &Members<'a>, key: &str) -> Option<&'a str> {
    members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// Refuses kinds of results that the client would not understand.
fn check_kind(members: &Members<'_>, about: &Subject) -> Result<(), ErrorObject> {
    let kind = find(members, "resultType").and_then(raw::string);
    match kind.as_deref() {
        None | Some("complete") => Ok(()),
        Some("task") if about.topic == Topic::Call && about.capabilities.has_extension(TASKS) => Ok(()),
        Some(other) => {
            let message = format!(
                "the server answered with a result of the kind {other:?}, which this client did not ask for"
            );
            Err(ErrorObject::new(code::INTERNAL_ERROR, message))
        }
    }
}

/// The scope of everything that Gantry answers, as JSON text.
const PRIVATE: &str = "\"private\"";

fn write_modern(
    out: &mut String,
    result: &str,
    members: &Members<'_>,
    topic: Topic,
    additions: Additions<'_>,
) {
    let has = |key: &str| find(members, key).is_some();
    out.push('{');
    if !has("resultType") {
        out.push_str("\"resultType\":\"complete\"");
        out.push_str(if members.is_empty() { "" } else { "," });
    }
    let mut hints = String::new();
    if topic == Topic::Other(ForwardMethod::ReadResource) {
        if !has("ttlMs") {
            write!(hints, ",\"ttlMs\":{}", additions.ttl_ms).unwrap_or_default();
        }
        if !has("cacheScope") {
            hints.push_str(",\"cacheScope\":\"private\"");
        }
    }
    let meta = find(members, "_meta").map(|meta| own_meta(meta, additions.server_info));
    // What a server shows to everybody, Gantry shows to those who may see it.
    let is_public = find(members, "cacheScope").is_some_and(|scope| scope != PRIVATE);
    if meta.is_some() || is_public {
        let changed = |key: &str, value| match key {
            "_meta" => meta.as_deref().unwrap_or(value),
            "cacheScope" => PRIVATE,
            _ => value,
        };
        write_members(out, members.iter().map(|(key, value)| (&**key, changed(key, value))));
    } else {
        out.push_str(result.get(1..result.len().saturating_sub(1)).unwrap_or_default());
    }
    out.push_str(&hints);
    if meta.is_none() {
        out.push_str(",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
        out.push_str(additions.server_info);
        out.push('}');
    }
    out.push('}');
}

fn write_members<'a>(out: &mut String, members: impl Iterator<Item = (&'a str, &'a str)>) {
    for (at, (key, value)) in members.enumerate() {
        if at > 0 {
            out.push(',');
        }
        gantry_core::json::write_string(out, key);
        out.push(':');
        out.push_str(value);
    }
}

/// A `_meta` that says who answers, and nothing else that belongs to the protocol.
fn own_meta(meta: &str, server_info: &str) -> String {
    raw::with(&foreign_meta(meta), "io.modelcontextprotocol/serverInfo", server_info)
}

fn foreign_meta(meta: &str) -> String {
    raw::without(meta, |key| key.starts_with(PROTOCOL_PREFIX))
}

fn write_legacy(out: &mut String, result: &str, members: &Members<'_>, about: &Subject) {
    let kept: Vec<Option<Cow<'_, str>>> =
        members.iter().map(|(key, value)| legacy_member(key, value, about)).collect();
    if kept.iter().all(|value| matches!(value, Some(Cow::Borrowed(_)))) {
        out.push_str(result);
        return;
    }
    out.push('{');
    let kept = members.iter().zip(&kept);
    write_members(out, kept.filter_map(|((key, _), value)| Some((&**key, value.as_deref()?))));
    out.push('}');
}

/// A member as a legacy client takes it, borrowed where it is as it was; `None` where it knows no such member.
fn legacy_member<'a>(key: &str, value: &'a str, about: &Subject) -> Option<Cow<'a, str>> {
    let version = about.version;
    let no_links = version < Version::V2025_06_18 && value.contains("resource_link");
    match (key, about.topic) {
        ("resultType" | "ttlMs" | "cacheScope", _) => None,
        ("_meta", _) if value.contains("io.modelcontextprotocol") || value.contains("\\u00") => {
            let meta = foreign_meta(value);
            (meta != "{}").then_some(Cow::Owned(meta))
        }
        ("structuredContent", Topic::Call) => {
            version.carries_structured(value).then_some(Cow::Borrowed(value))
        }
        ("content", Topic::Call) if no_links => Some(Cow::Owned(blocks(value))),
        ("messages", Topic::Other(ForwardMethod::GetPrompt)) if no_links => Some(Cow::Owned(messages(value))),
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Content blocks without links to resources.
fn blocks(content: &str) -> String {
    let Some(elements) = raw::elements(content) else { return content.to_owned() };
    let elements: Vec<Cow<'_, str>> = elements.into_iter().map(block).collect();
    format!("[{}]", elements.join(","))
}

fn messages(messages: &str) -> String {
    let Some(elements) = raw::elements(messages) else { return messages.to_owned() };
    let message = |text| match raw::member(text, "content") {
        Some(content) => raw::with(text, "content", &block(content)),
        None => text.to_owned(),
    };
    let elements: Vec<String> = elements.into_iter().map(message).collect();
    format!("[{}]", elements.join(","))
}

/// A block; a link to a resource becomes a text that says the same.
fn block(text: &str) -> Cow<'_, str> {
    if raw::string_member(text, "type").is_none_or(|kind| kind != "resource_link") {
        return Cow::Borrowed(text);
    }
    let said = |key| raw::string_member(text, key).filter(|said| !said.is_empty());
    let uri = said("uri").unwrap_or_default();
    let mut words = match said("title").or_else(|| said("name")) {
        Some(name) => format!("{name}: {uri}"),
        None => uri.into_owned(),
    };
    if let Some(description) = said("description") {
        words.push_str(" (");
        words.push_str(&description);
        words.push(')');
    }
    Cow::Owned(format!("{{\"type\":\"text\",\"text\":{}}}", raw::quoted(&words)))
}

/// An error as a client of this version takes it; some are results there.
///
/// # Errors
/// The error, where it stays one.
pub(super) fn error(
    mut error: ErrorObject,
    topic: Topic,
    version: Version,
) -> Result<ToolAnswer, ErrorObject> {
    let modern = version.is_modern();
    error.code = match error.code {
        RESOURCE_NOT_FOUND | URL_ELICITATION_REQUIRED if modern => code::INVALID_PARAMS,
        code::INVALID_PARAMS if !modern && topic == Topic::Other(ForwardMethod::ReadResource) => {
            RESOURCE_NOT_FOUND
        }
        other => other,
    };
    if modern || error.code != code::MISSING_CAPABILITY {
        return Err(error);
    }
    let required = error.data.as_deref().and_then(|data| raw::member(data, "requiredCapabilities"));
    let names: Vec<Cow<'_, str>> =
        required.and_then(raw::members).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
    let mut message = format!("{}; the client must declare the capability", error.message);
    if !names.is_empty() {
        message.push(' ');
        message.push_str(&names.join(", "));
    }
    if topic != Topic::Call {
        return Err(ErrorObject { code: code::INVALID_REQUEST, message, data: error.data });
    }
    let content = format!("[{{\"type\":\"text\",\"text\":{}}}]", raw::quoted(&message));
    Ok(ToolAnswer { content, structured: None, is_error: true, meta: None })
}
