//! What the part of a reference after `#` leads to.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use url::Url;

/// What a fragment leads to in a document whose parts may have names.
pub(super) fn fragment<'a>(
    names: &HashMap<String, String>,
    root: &'a Value,
    fragment: &str,
) -> Option<&'a Value> {
    if fragment.is_empty() || fragment.starts_with('/') {
        return encoded(root, fragment);
    }
    if let Some(pointer) = names.get(fragment) {
        return root.pointer(pointer);
    }
    // Not what the standards say, but what people write and what can mean only one thing.
    named(root, fragment).or_else(|| encoded(root, &format!("/{fragment}")))
}

/// What a fragment leads to in a schema that has this address in a document.
pub(super) fn inside<'a>(
    names: &HashMap<String, String>,
    root: &'a Value,
    schema: &'a Value,
    address: &Url,
    fragment: &str,
) -> Option<&'a Value> {
    if fragment.is_empty() || fragment.starts_with('/') {
        return encoded(schema, fragment);
    }
    let pointer = names.get(&format!("{address}#{fragment}")).or_else(|| names.get(fragment))?;
    root.pointer(pointer)
}

/// A schema by its name alone, as early documents have it.
pub(super) fn named<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let schemas = [root.get("definitions"), root.get("components").and_then(|parts| parts.get("schemas"))];
    schemas.into_iter().flatten().find_map(|schemas| schemas.as_object()?.get(name))
}

/// Follows a JSON Pointer in which nothing is escaped. Almost all are like that, and schemas are full of them; what does
/// it for all of them takes several times as long.
fn plain<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    let Some(path) = fragment.strip_prefix('/') else { return fragment.is_empty().then_some(root) };
    path.split('/').try_fold(root, |value, key| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => index(key).and_then(|index| items.get(index)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// The place in a list that a pointer names: a number as one writes it.
fn index(key: &str) -> Option<usize> {
    let usual = key == "0" || !key.starts_with(['0', '+']);
    key.parse().ok().filter(|_| usual)
}

/// Follows a JSON Pointer that is part of an address.
fn encoded<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    if !fragment.contains(['%', '~']) {
        return plain(root, fragment);
    }
    if !fragment.contains('%') {
        return root.pointer(fragment);
    }
    // A percent sign that was never encoded is what it is.
    let plain = percent_decode_str(fragment).decode_utf8().unwrap_or(Cow::Borrowed(fragment));
    root.pointer(&plain).or_else(|| root.pointer(fragment))
}
