//! How the structs of the crates make up the sections of a file: two structs from one group, an entry that a missing
//! variable switches off alone, and keys that are read in vain or refused.
//!
//! The types ask the reader (`de`) for what they need by the names below.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

pub(super) const BOTH: &str = "$both";
pub(super) const ENTRY: &str = "$entry";
pub(super) const SERVER: &str = "$server";
pub(super) const IGNORED: &str = "$ignored";
pub(super) const REFUSED: &str = "$refused";

/// Two structs that are read from one group; the keys of both are known there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Both<A, B>(pub A, pub B);

/// A value that a variable which is not set switches off, and nothing else. In a server, variables may be written as
/// editors write them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry<T, const IS_SERVER: bool = false> {
    /// None when a variable that it cannot do without is not set.
    pub value: Option<T>,
    /// What the environment lacks for it; empty when it lacks nothing.
    pub missing: String,
    /// Whether nothing in it is wrong.
    pub is_whole: bool,
}

/// A key that others write into the same file and that has no effect here. Its doc comment is what the warning says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ignored;

/// A key that is refused by name. Its doc comment follows the key in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused;

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Both<A, B> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Parts<A, B>(PhantomData<(A, B)>);
        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for Parts<A, B> {
            type Value = Both<A, B>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a group of keys")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut parts: S) -> Result<Self::Value, S::Error> {
                // The second one is read also when the first one has problems, so that all are found.
                let (first, second) = (parts.next_element(), parts.next_element());
                first?
                    .zip(second?)
                    .map(|(a, b)| Both(a, b))
                    .ok_or_else(|| S::Error::custom("is not complete"))
            }
        }
        input.deserialize_newtype_struct(BOTH, Parts(PhantomData))
    }
}

/// Reads a value until nothing in it is wrong, then what is known about it.
struct Once<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Once<T> {
    type Value = (Option<T>, String, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group of keys")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut tries: S) -> Result<Self::Value, S::Error> {
        let value = loop {
            // What was wrong is left out of the next try.
            if let Ok(value) = tries.next_element::<T>() {
                break value;
            }
        };
        let missing = tries.next_element()?.unwrap_or_default();
        Ok((value, missing, tries.next_element()?.unwrap_or_default()))
    }
}

impl<'de, T: Deserialize<'de>, const IS_SERVER: bool> Deserialize<'de> for Entry<T, IS_SERVER> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let name = if IS_SERVER { SERVER } else { ENTRY };
        let (value, missing, is_whole) = input.deserialize_newtype_struct(name, Once(PhantomData))?;
        Ok(Self { value, missing, is_whole })
    }
}

/// Deserialises a type without a value by its name.
macro_rules! by_name {
    ($kind:ident, $name:expr) => {
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct Nothing;
                impl Visitor<'_> for Nothing {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("anything")
                    }

                    fn visit_unit<E: Error>(self) -> Result<$kind, E> {
                        Ok($kind)
                    }
                }
                input.deserialize_newtype_struct($name, Nothing)
            }
        }
    };
}

by_name!(Ignored, IGNORED);
by_name!(Refused, REFUSED);

impl<A: JsonSchema, B: JsonSchema> JsonSchema for Both<A, B> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}And{}", A::schema_name(), B::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // The reader looks up what each part needs.
        generator.subschema_for::<A>();
        generator.subschema_for::<B>();
        let (mut both, other) = (A::json_schema(generator), B::json_schema(generator));
        for key in ["properties", "required"] {
            match (both.get_mut(key), other.get(key)) {
                (Some(Value::Object(mine)), Some(Value::Object(theirs))) => {
                    for (name, property) in theirs {
                        mine.entry(name).or_insert_with(|| property.clone());
                    }
                }
                (Some(Value::Array(mine)), Some(Value::Array(theirs))) => mine.extend(theirs.iter().cloned()),
                (None, Some(theirs)) => drop(both.insert(key.to_owned(), theirs.clone())),
                _ => {}
            }
        }
        both
    }
}

impl<T: JsonSchema, const IS_SERVER: bool> JsonSchema for Entry<T, IS_SERVER> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl JsonSchema for Ignored {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Ignored".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "deprecated": true })
    }
}

impl JsonSchema for Refused {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Refused".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "not": {} })
    }
}
