//! The properties of an object and of the schemas that it is composed of.

use super::{Direction, keywords};
use crate::openapi::document::{NodeRef, Version};
use crate::openapi::limits::HOPS;
use std::collections::{HashSet, VecDeque};

// Limit: properties of an object that can each be an argument.
const PROPERTIES: usize = 100;
// Limit: properties of any other object that are read.
const LOOSE_PROPERTIES: usize = 500;

/// The properties of an object that is sent.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) properties: Vec<(String, NodeRef<'a>)>,
    pub(crate) required: Vec<String>,
}

/// The properties of an object, if it is nothing but a known set of them: no alternatives, no further properties, no
/// discriminator, not null.
pub(crate) fn fields(node: NodeRef<'_>) -> Result<Option<Fields<'_>>, String> {
    let Found { fields, exact, error } = found(node);
    let Fields { properties, .. } = &fields;
    let flat = exact && !properties.is_empty() && properties.len() <= PROPERTIES;
    error.map_or(Ok(flat.then_some(fields)), Err)
}

/// The properties that an object and its parts describe, and those of them that are required in any case.
pub(crate) fn loose_fields(node: NodeRef<'_>) -> Fields<'_> {
    found(node).fields
}

struct Found<'a> {
    fields: Fields<'a>,
    /// Whether the properties say everything about the object.
    exact: bool,
    /// The first reference that leads nowhere.
    error: Option<String>,
}

/// Collects the properties of a schema and its parts. Of equal names the first one counts.
fn found(node: NodeRef<'_>) -> Found<'_> {
    let mut properties: Vec<(String, NodeRef<'_>)> = Vec::new();
    let mut names = HashSet::new();
    let mut required: Vec<&str> = Vec::new();
    let (mut exact, mut error) = (true, None);
    let mut seen = HashSet::new();
    let mut waiting = VecDeque::from([(node, true)]);
    while let Some((node, always)) = waiting.pop_front() {
        if !seen.insert(node.address()) {
            continue;
        }
        if let Some(reference) = node.reference() {
            match node.bundle.find(node.document, reference) {
                Ok(target) => waiting.push_front((target, always)),
                Err(reason) => error = error.or(Some(reason)),
            }
            // Only 3.1 has keywords beside a reference.
            if node.bundle.version != Version::V31 {
                continue;
            }
        }
        exact &= is_only_properties(node);
        for (name, property) in node.get("properties").into_iter().flat_map(NodeRef::members) {
            if properties.len() == LOOSE_PROPERTIES {
                break;
            }
            if names.insert(name) && !is_hidden(property, Direction::Input) {
                properties.push((name.to_owned(), property));
            }
        }
        let demanded = node.get("required").filter(|_| always).into_iter().flat_map(NodeRef::elements);
        required.extend(demanded.take(LOOSE_PROPERTIES).filter_map(|name| name.value.as_str()));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = node.get(keyword).into_iter().flat_map(NodeRef::elements);
            waiting.extend(parts.map(|part| (part, always && keyword == "allOf")));
        }
    }
    let mut unmet: HashSet<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    let required = required.into_iter().filter(|name| unmet.remove(name)).map(str::to_owned).collect();
    Found { fields: Fields { properties, required }, exact, error }
}

/// Whether a property does not go in this direction.
pub(super) fn is_hidden(property: NodeRef<'_>, direction: Direction) -> bool {
    let keyword = match direction {
        Direction::Input => "readOnly",
        Direction::Output => "writeOnly",
    };
    let mut node = property;
    for _ in 0..HOPS {
        // It counts beside a reference in every version, although only 3.1 says so.
        if node.flag(keyword) {
            return true;
        }
        let target = node.reference().map(|reference| node.bundle.find(node.document, reference));
        let Some(Ok(next)) = target else { return false };
        node = next;
    }
    false
}

/// Whether a schema demands and allows nothing that a list of properties does not say.
fn is_only_properties(node: NodeRef<'_>) -> bool {
    let other =
        ["oneOf", "anyOf", "not", "patternProperties", "enum", "const", "if", "items", "discriminator"];
    let further = node.get("additionalProperties").map(|further| further.value);
    let open = further.is_some_and(|further| further.is_object() || *further == true);
    let types = keywords::declared_types(node);
    node.value.is_object()
        && !open
        && !keywords::is_nullable(node)
        && (types.is_empty() || types == ["object"])
        && other.iter().all(|keyword| node.get(keyword).is_none_or(|found| found.value.is_null()))
}
