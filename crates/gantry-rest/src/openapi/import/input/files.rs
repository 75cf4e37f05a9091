//! Which properties of a body are files.

use crate::openapi::document::NodeRef;
use crate::openapi::media;
use serde_json::Value;

// Limit: bytes of the media type of one part.
const MEDIA_BYTES: usize = 200;
// Limit: schemas around the one that describes a property.
const WRAPS: usize = 6;
// Limit: schemas in one of those.
const MEMBERS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    One,
    Many,
}

/// Whether a schema stands for a file.
pub(super) fn file(node: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> Option<Files> {
    let node = unwrapped(node)?;
    if is_file(node, encoding) {
        return Some(Files::One);
    }
    let items = unwrapped(node.get("items")?)?;
    is_file(items, encoding).then_some(Files::Many)
}

/// The description of a property, in its schema or around it.
pub(super) fn description<'a>(property: NodeRef<'a>) -> Option<&'a str> {
    let outer = property.text("description").or_else(|| property.resolved().ok()?.text("description"));
    outer.or_else(|| unwrapped(property)?.text("description"))
}

/// The media type that the document demands of a part: of a list of them (`image/*, image/png`) the first that can be
/// sent.
pub(super) fn content_type(property: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> Option<String> {
    let of_schema = || {
        let schema = unwrapped(property)?;
        let items = || unwrapped(schema.get("items")?)?.text("contentMediaType");
        schema.text("contentMediaType").or_else(items)
    };
    let list = encoding.and_then(|encoding| encoding.text("contentType")).or_else(of_schema)?;
    let mut listed = list.split(',').map(str::trim);
    listed.find(|media| media.len() <= MEDIA_BYTES && media::is_valid(media)).map(str::to_owned)
}

/// The schema that describes a property: behind references, behind an `allOf` of one, and behind a choice between one and
/// null, which generators write for optional values.
fn unwrapped<'a>(node: NodeRef<'a>) -> Option<NodeRef<'a>> {
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

/// The only schema of a list that is not that of null.
fn only<'a>(node: NodeRef<'a>, keyword: &str) -> Option<NodeRef<'a>> {
    let list = node.get(keyword)?;
    if list.value.as_array()?.len() > MEMBERS {
        return None;
    }
    let mut found = None;
    for member in list.elements() {
        let member = member.resolved().ok()?;
        if member.text("type") == Some("null") {
            continue;
        }
        if found.replace(member).is_some() {
            return None;
        }
    }
    found
}

fn is_file(node: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> bool {
    let types = node.get("type").map(|types| types.value);
    let of = |word: &str| types.is_some_and(|types| is_or_has(types, word));
    if types.is_some() && !of("string") {
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
    // In 3.1 the schema of bytes is empty, and the encoding has their media type.
    let bare = node
        .value
        .as_object()
        .is_some_and(|all| all.keys().all(|key| key == "description" || key == "title"));
    bare && encoding
        .and_then(|encoding| encoding.text("contentType"))
        .is_some_and(|media| media.split(',').all(media::is_bytes))
}

/// Whether a `type` is this one or has it in its list.
fn is_or_has(types: &Value, word: &str) -> bool {
    types == word || types.as_array().is_some_and(|types| types.iter().any(|name| name == word))
}
