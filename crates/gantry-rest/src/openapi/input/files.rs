//! Which properties of a body are files.

use crate::openapi::input::media;
use crate::openapi::spot::Spot;
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

/// Whether a schema stands for a file. Counts what is looked at for it.
pub(super) fn file(spot: Spot<'_>, encoding: Option<Spot<'_>>, looks: &mut usize) -> Option<Files> {
    let spot = core(spot, looks)?;
    if is_file(spot, encoding) {
        return Some(Files::One);
    }
    let items = core(spot.get("items")?, looks)?;
    is_file(items, encoding).then_some(Files::Many)
}

/// Whether JSON carries bytes here, as text.
pub(super) fn is_encoded(property: Spot<'_>, looks: &mut usize) -> bool {
    core(property, looks).is_some_and(|property| {
        matches!(property.text("format"), Some("byte" | "base64"))
            || property.get("contentEncoding").is_some()
    })
}

/// What is said of a property, by the schema or by what is around it.
pub(super) fn description<'a>(property: Spot<'a>, looks: &mut usize) -> Option<&'a str> {
    let outer = property.text("description").or_else(|| property.followed(looks).ok()?.text("description"));
    outer.or_else(|| core(property, looks)?.text("description"))
}

/// The media types that a part may have.
pub(super) fn content_type(
    property: Spot<'_>,
    encoding: Option<Spot<'_>>,
    looks: &mut usize,
) -> Option<String> {
    if let Some(demanded) = encoding.and_then(|encoding| encoding.text("contentType")) {
        return short(demanded);
    }
    let property = core(property, looks)?;
    let own = property.text("contentMediaType");
    short(own.or_else(|| core(property.get("items")?, looks)?.text("contentMediaType"))?)
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
fn core<'a>(spot: Spot<'a>, looks: &mut usize) -> Option<Spot<'a>> {
    let mut spot = spot.followed(looks).ok()?;
    for _ in 0..WRAPS {
        *looks += 1;
        let inner = ["allOf", "anyOf", "oneOf"].into_iter().find_map(|keyword| only(spot, keyword, looks));
        match inner {
            Some(inner) => spot = inner,
            None => return Some(spot),
        }
    }
    None
}

/// The one schema of a list that says something besides null.
fn only<'a>(spot: Spot<'a>, keyword: &str, looks: &mut usize) -> Option<Spot<'a>> {
    let list = spot.get(keyword)?;
    if list.value.as_array()?.len() > MEMBERS {
        return None;
    }
    let mut found = None;
    for member in list.elements() {
        *looks += 1;
        let member = member.followed(looks).ok()?;
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
fn is_null(spot: Spot<'_>) -> bool {
    let nothing = |value: &Value| value.as_array().is_some_and(|all| matches!(all.as_slice(), [Value::Null]));
    let kind = spot.get("type").map(|kind| kind.value);
    spot.value.is_null()
        || kind.is_some_and(|kind| kind == "null" || kind.is_null())
        || spot.get("const").is_some_and(|only| only.value.is_null())
        || spot.get("enum").is_some_and(|values| nothing(values.value))
}

fn is_file(spot: Spot<'_>, encoding: Option<Spot<'_>>) -> bool {
    let kind = spot.get("type").map(|kind| kind.value);
    let of = |word: &str| kind.is_some_and(|kind| is_or_has(kind, word));
    if kind.is_some() && !of("string") {
        return of("file");
    }
    if spot.text("format") == Some("binary") || spot.text("contentEncoding") == Some("binary") {
        return true;
    }
    if spot.get("contentEncoding").is_some() {
        return false;
    }
    if let Some(media) = spot.text("contentMediaType") {
        return media::is_bytes(media);
    }
    // 3.1 leaves the schema of bytes empty and says in the encoding what they are.
    let bare = spot
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
