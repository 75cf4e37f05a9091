//! Writes results of any protocol version the way a client of another version takes them.
//!
//! Only members that the client's version cannot take are changed. All others pass as they came: the order of keys, the
//! text of numbers, unknown members.

use super::request::ResultKind;
use super::response::{PRIVATE, ResponseContext, ResponseWriter};
use crate::error::code;
use crate::{ErrorObject, ForwardMethod, Version, raw};
use gantry_core::json::{Object, write_string};
use gantry_provider::client::TASKS_EXTENSION;
use std::borrow::Cow;

/// The keys of `_meta` that belong to the protocol: a server's own are for Gantry alone.
pub(super) const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";
/// The code of older versions for a missing resource.
const RESOURCE_NOT_FOUND: i32 = -32002;
/// The code of older versions for a request that needs the user to open a URL first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// Writes a result.
///
/// # Errors
/// The text is not a result that a client of this version can take.
pub(super) fn write(
    out: &mut String,
    result: &str,
    context: &ResponseContext<'_>,
    writer: &ResponseWriter,
) -> Result<(), ErrorObject> {
    let result = result.trim_ascii();
    let Some(members) = Object::split(result) else {
        return Err(ErrorObject::new(
            code::INTERNAL_ERROR,
            "the server's result is not an object, or it is nested too deep to be read",
        ));
    };
    check_result_type(&members, context)?;
    if context.version.is_modern() {
        write_modern(out, result, &members, context.kind, writer);
    } else {
        write_legacy(out, result, &members, context);
    }
    Ok(())
}

fn check_result_type(members: &Object<'_>, context: &ResponseContext<'_>) -> Result<(), ErrorObject> {
    let result_type = members.string("resultType");
    match result_type.as_deref() {
        None | Some("complete") => Ok(()),
        Some("task")
            if context.kind == ResultKind::Call && context.capabilities.has_extension(TASKS_EXTENSION) =>
        {
            Ok(())
        }
        Some(other) => {
            let message = format!(
                "the server answered with a result of the kind {other:?}, which this client did not ask for"
            );
            Err(ErrorObject::new(code::INTERNAL_ERROR, message))
        }
    }
}

fn write_modern(
    out: &mut String,
    result: &str,
    members: &Object<'_>,
    kind: ResultKind,
    writer: &ResponseWriter,
) {
    let has = |key: &str| members.get(key).is_some();
    out.push('{');
    if !has("resultType") {
        out.push_str("\"resultType\":\"complete\"");
        out.push_str(if members.iter().next().is_none() { "" } else { "," });
    }
    let mut hints = String::new();
    if kind == ResultKind::Forward(ForwardMethod::ReadResource) {
        if !has("ttlMs") {
            hints.push_str(",\"ttlMs\":0");
        }
        if !has("cacheScope") {
            hints.push_str(",\"cacheScope\":\"private\"");
        }
    }
    let meta = members.get("_meta").map(|meta| {
        raw::with(&foreign_meta(meta), "io.modelcontextprotocol/serverInfo", &writer.server_info)
    });
    // Gantry decides which clients see a result, also where its server lets every client see it.
    let is_public = members.get("cacheScope").is_some_and(|scope| scope != PRIVATE);
    if meta.is_some() || is_public {
        let changed = |key: &str, value| match key {
            "_meta" => meta.as_deref().unwrap_or(value),
            "cacheScope" => PRIVATE,
            _ => value,
        };
        write_members(out, members.iter().map(|(key, value)| (key, changed(key, value))));
    } else {
        out.push_str(result.get(1..result.len().saturating_sub(1)).unwrap_or_default());
    }
    out.push_str(&hints);
    if meta.is_none() {
        out.push_str(",\"_meta\":");
        out.push_str(&writer.meta());
    }
    out.push('}');
}

fn write_members<'a>(out: &mut String, members: impl Iterator<Item = (&'a str, &'a str)>) {
    for (at, (key, value)) in members.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        out.push_str(value);
    }
}

fn foreign_meta(meta: &str) -> String {
    raw::without(meta, |key| key.starts_with(PROTOCOL_PREFIX))
}

fn write_legacy(out: &mut String, result: &str, members: &Object<'_>, context: &ResponseContext<'_>) {
    let kept: Vec<Option<Cow<'_, str>>> =
        members.iter().map(|(key, value)| legacy_member(key, value, context)).collect();
    if kept.iter().all(|value| matches!(value, Some(Cow::Borrowed(_)))) {
        out.push_str(result);
        return;
    }
    out.push('{');
    let kept = members.iter().zip(&kept);
    write_members(out, kept.filter_map(|((key, _), value)| Some((key, value.as_deref()?))));
    out.push('}');
}

/// A member as a legacy client takes it, borrowed where it is as it was; `None` where it knows no such member.
fn legacy_member<'a>(key: &str, value: &'a str, context: &ResponseContext<'_>) -> Option<Cow<'a, str>> {
    let version = context.version;
    let no_links = version < Version::V2025_06_18 && value.contains("resource_link");
    match (key, context.kind) {
        ("resultType" | "ttlMs" | "cacheScope", _) => None,
        ("_meta", _) if value.contains("io.modelcontextprotocol") || value.contains("\\u00") => {
            let meta = foreign_meta(value);
            (meta != "{}").then_some(Cow::Owned(meta))
        }
        ("structuredContent", ResultKind::Call) => {
            version.carries_structured(value).then_some(Cow::Borrowed(value))
        }
        ("content", ResultKind::Call) if no_links => Some(each(value, block)),
        ("messages", ResultKind::Forward(ForwardMethod::GetPrompt)) if no_links => Some(each(value, message)),
        _ => Some(Cow::Borrowed(value)),
    }
}

/// The array with each element converted.
fn each<'a>(array: &'a str, convert: fn(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    let Some(elements) = raw::elements(array) else { return Cow::Borrowed(array) };
    let elements: Vec<Cow<'a, str>> = elements.into_iter().map(convert).collect();
    Cow::Owned(format!("[{}]", elements.join(",")))
}

fn message(text: &str) -> Cow<'_, str> {
    let content = raw::member(text, "content");
    content.map_or(Cow::Borrowed(text), |content| raw::with(text, "content", &block(content)).into())
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

/// The text of the result that stands for an error which a client of this version does not know.
///
/// # Errors
/// The error as the client takes it, where it stays one.
pub(super) fn error(mut error: ErrorObject, context: &ResponseContext<'_>) -> Result<String, ErrorObject> {
    let (kind, modern) = (context.kind, context.version.is_modern());
    error.code = match error.code {
        RESOURCE_NOT_FOUND | URL_ELICITATION_REQUIRED if modern => code::INVALID_PARAMS,
        code::INVALID_PARAMS if !modern && kind == ResultKind::Forward(ForwardMethod::ReadResource) => {
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
    if kind != ResultKind::Call {
        return Err(ErrorObject { code: code::INVALID_REQUEST, message, data: error.data });
    }
    let text = raw::quoted(&message);
    Ok(format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true}}"))
}
