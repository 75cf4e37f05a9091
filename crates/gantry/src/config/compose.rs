//! How the structs of the crates make up the sections of a file, beyond what serde has words for.
//!
//! A field whose name begins with [`PART`] is read from the group itself that its struct is read from: the keys of both
//! are known there. Its schema is flattened. The names below are what the reader (`de`) knows the rest by.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::Value;

/// How the name of a field begins that is read from the same group.
pub(super) const PART: &str = "..";
/// The field with what the environment lacks for the group, empty when it lacks nothing. A variable that is not set
/// switches off a group that has this field, and nothing else. The field is the last one.
pub(super) const MISSING: &str = "..missing";
/// The part that makes a group the entry of an MCP server, in which variables may be written as editors write them.
pub(super) const SERVER: &str = "..server";
pub(super) const IGNORED: &str = "$ignored";
pub(super) const REFUSED: &str = "$refused";

/// A key that others write into the same file and that has no effect here. Its doc comment is what the warning says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "$ignored")]
#[schemars(inline, description = "this version of Gantry does not read it", extend("deprecated" = true))]
pub(super) struct Ignored(#[schemars(with = "Value")] IgnoredAny);

/// A key that is refused by name. Its doc comment follows the key in the message.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "$refused")]
#[schemars(inline, description = "is not available in this version of Gantry; remove it", extend("not" = {}))]
pub(super) struct Refused(#[schemars(with = "Value")] IgnoredAny);

/// Reads a part that an entry which is switched off can be without. Why it cannot be read is recorded by the reader.
pub(super) fn unless_missing<'de, T, D>(input: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(T::deserialize(input).ok())
}
