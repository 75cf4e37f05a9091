//! References: the documents that they lead to, and the JSON Pointers in them.

use crate::openapi::limits::ADDRESSES;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// The part before the `#` of the references to other documents, each once and in the order of the document.
pub(super) fn addresses(root: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    collect(root, &mut HashSet::new(), &mut found);
    found
}

/// A document is no deeper than its reader allows, so this may call itself.
fn collect<'a>(value: &'a Value, seen: &mut HashSet<&'a str>, found: &mut Vec<&'a str>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter().for_each(|item| collect(item, seen, found)),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let (address, _) = split(reference);
                let wanted = !address.is_empty() && !is_name(reference);
                if wanted && seen.len() < ADDRESSES && seen.insert(address) {
                    found.push(address);
                }
            }
            members.values().for_each(|member| collect(member, seen, found));
        }
    }
}

/// The address of the document and the fragment.
pub(super) fn split(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Whether a reference is no path in a document but the name of a schema: `Pet`, or the anchor `#pet`.
pub(super) fn is_name(reference: &str) -> bool {
    match reference.split_once('#') {
        Some((_, fragment)) => !fragment.is_empty() && !fragment.starts_with('/'),
        None => !reference.contains(['.', '/', ':']),
    }
}

/// Follows a JSON Pointer that is part of an address.
pub(super) fn pointer<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    // A percent sign that was never encoded counts as itself.
    let decoded = percent_decode_str(fragment).decode_utf8().unwrap_or(Cow::Borrowed(fragment));
    root.pointer(&decoded).or_else(|| root.pointer(fragment))
}
