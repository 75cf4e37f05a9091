//! Which properties of a body are files.

use crate::openapi::document::NodeRef;
use crate::openapi::media;
use serde_json::Value;

/// Bytes of the media types of one part.
const MEDIA_BYTES: usize = 200;
/// Schemas around the one that says what a property is.
const WRAPS: usize = 6;
/// Schemas in one of those.
const MEMBERS: usize = 8;

/// What a file is: one, or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    One,
    Many,
}

/// Whether a schema stands for a file.
pub(super) fn file(node: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> Option<Files> {
    let node = core(node)?;
    if is_file(node, encoding) {
        return Some(Files::One);
    }
    let items = core(node.get("items")?)?;
    is_file(items, encoding).then_some(Files::Many)
}

/// Whether JSON carries bytes here, as text.
pub(super) fn is_encoded(property: NodeRef<'_>) -> bool {
    core(property).is_some_and(|property| {
        matches!(property.text("format"), Some("byte" | "base64"))
            || property.get("contentEncoding").is_some()
    })
}

/// What is said of a property, by the schema or by what is around it.
pub(super) fn description<'a>(property: NodeRef<'a>) -> Option<&'a str> {
    let outer = property.text("description").or_else(|| property.resolved().ok()?.text("description"));
    outer.or_else(|| core(property)?.text("description"))
}

/// The media types that a part may have.
pub(super) fn content_type(property: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> Option<String> {
    if let Some(demanded) = encoding.and_then(|encoding| encoding.text("contentType")) {
        return short(demanded);
    }
    let property = core(property)?;
    let own = property.text("contentMediaType");
    short(own.or_else(|| core(property.get("items")?)?.text("contentMediaType"))?)
}

/// A list of media types, or as much of it as is kept: the first is the one that is sent.
fn short(media: &str) -> Option<String> {
    let media = media.trim();
    let kept = if media.len() <= MEDIA_BYTES {
        media
    } else {
        media.get(..media.floor_char_boundary(MEDIA_BYTES))?.rsplit_once(',')?.0.trim()
    };
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// The schema that says what a property is: behind references, behind an `allOf` of one, and behind a choice between one
/// and null, which is how code that has optional values is put into words.
fn core<'a>(node: NodeRef<'a>) -> Option<NodeRef<'a>> {
    let mut node = node.resolved().ok()?;
    for _ in 0..WRAPS {
        let inner = ["allOf", "anyOf", "oneOf"].into_iter().find_map(|keyword| only(node, keyword));
        match inner {
            Some(inner) => node = inner,
            None => return Some(node),
        }
    }
    None
}

/// The one schema of a list that says something besides null.
fn only<'a>(node: NodeRef<'a>, keyword: &str) -> Option<NodeRef<'a>> {
    let list = node.get(keyword)?;
    if list.value.as_array()?.len() > MEMBERS {
        return None;
    }
    let mut found = None;
    for member in list.elements() {
        let member = member.resolved().ok()?;
        if is_null(member) {
            continue;
        }
        if found.replace(member).is_some() {
            return None;
        }
    }
    found
}

/// Whether nothing but null is allowed.
fn is_null(node: NodeRef<'_>) -> bool {
    let nothing = |value: &Value| value.as_array().is_some_and(|all| matches!(all.as_slice(), [Value::Null]));
    let kind = node.get("type").map(|kind| kind.value);
    node.value.is_null()
        || kind.is_some_and(|kind| kind == "null" || kind.is_null())
        || node.get("const").is_some_and(|only| only.value.is_null())
        || node.get("enum").is_some_and(|values| nothing(values.value))
}

fn is_file(node: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> bool {
    let kind = node.get("type").map(|kind| kind.value);
    let of = |word: &str| kind.is_some_and(|kind| is_or_has(kind, word));
    if kind.is_some() && !of("string") {
        return of("file");
    }
    if node.text("format") == Some("binary") || node.text("contentEncoding") == Some("binary") {
        return true;
    }
    if node.get("contentEncoding").is_some() {
        return false;
    }
    if let Some(media) = node.text("contentMediaType") {
        return media::is_bytes(media);
    }
    // 3.1 leaves the schema of bytes empty and says in the encoding what they are.
    let bare = node
        .value
        .as_object()
        .is_some_and(|all| all.keys().all(|key| key == "description" || key == "title"));
    bare && encoding
        .and_then(|encoding| encoding.text("contentType"))
        .is_some_and(|media| media.split(',').all(media::is_bytes))
}

/// Whether a `type` is this one, or this one or null.
fn is_or_has(kind: &Value, word: &str) -> bool {
    kind == word || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == word))
}
