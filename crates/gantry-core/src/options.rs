//! What option structs of the configuration are made of: bounded numbers, times in milliseconds, texts that keep a rule.
//!
//! Each type says in its schema and in its errors what it takes, so a key is described in one place: its struct.

mod numbers;
mod texts;

pub use numbers::{Limit, Millis, Positive};
pub(crate) use texts::is_tool;
pub use texts::{Approver, Name, NotEmpty, PathText, ServerId, Title, ToolKey, ToolName, is_word, read_text};

use crate::pattern::Pattern;
use schemars::{JsonSchema, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The day, the hour and the second in milliseconds.
pub const DAY: u64 = 24 * HOUR;
pub const HOUR: u64 = 3600 * SECOND;
pub const SECOND: u64 = 1000;

/// The name under which an enumeration is read by the shape of the value (`list`, `group`, `text`) instead of by a tag.
/// Enumerations carry it as `#[serde(rename = "$shape")]`.
pub const BY_SHAPE: &str = "$shape";

/// Reads a value as `T` and keeps it as what `T` becomes, for `#[serde(deserialize_with)]`.
pub fn read_as<'de, T, U, D>(input: D) -> Result<U, D::Error>
where
    T: Deserialize<'de> + Into<U>,
    D: Deserializer<'de>,
{
    T::deserialize(input).map(Into::into)
}

/// The same for a value that may be absent: the field needs `#[serde(default)]` too.
pub fn read_some<'de, T, U, D>(input: D) -> Result<Option<U>, D::Error>
where
    T: Deserialize<'de> + Into<U>,
    D: Deserializer<'de>,
{
    T::deserialize(input).map(|value| Some(value.into()))
}

/// The same for a list of values.
pub fn read_list<'de, T, U, D>(input: D) -> Result<Vec<U>, D::Error>
where
    T: Deserialize<'de> + Into<U>,
    D: Deserializer<'de>,
{
    Ok(Vec::<T>::deserialize(input)?.into_iter().map(Into::into).collect())
}

/// The same for a group, whose keys become `A` and whose values become `B`.
pub fn read_map<'de, K, V, A, B, C, D>(input: D) -> Result<C, D::Error>
where
    K: Deserialize<'de> + Into<A>,
    V: Deserialize<'de> + Into<B>,
    C: FromIterator<(A, B)>,
    D: Deserializer<'de>,
{
    let pairs = Pairs::<K, V>::deserialize(input)?.0;
    Ok(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

/// The entries of a group in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs<K, V>(pub Vec<(K, V)>);

impl<K: Into<A>, V: Into<B>, A, B> From<Pairs<K, V>> for Vec<(A, B)> {
    fn from(pairs: Pairs<K, V>) -> Self {
        pairs.0.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Pairs<K, V> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = Vec<(K, V)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a group of keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        input.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

inline_schema!([K: JsonSchema, V: JsonSchema] Pairs<K, V>, |generator| {
    json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<V>() })
});

/// A list with at least one item.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("minItems" = 1))]
pub struct OneOrMore<T>(pub Vec<T>);

impl<T: Into<U>, U> From<OneOrMore<T>> for Vec<U> {
    fn from(list: OneOrMore<T>) -> Self {
        list.0.into_iter().map(Into::into).collect()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let items = Vec::deserialize(input)?;
        if items.is_empty() {
            return Err(serde::de::Error::custom(
                "needs at least one item; an empty list has no meaning here",
            ));
        }
        Ok(Self(items))
    }
}

/// Values by tool name or glob: names count before globs, and otherwise the first one of the file.
pub type ByPattern<T> = Vec<(Pattern, T)>;

/// Reads a group of names and globs; see [`ByPattern`].
pub fn by_pattern<'de, V, U, D>(input: D) -> Result<ByPattern<U>, D::Error>
where
    V: Deserialize<'de> + Into<U>,
    D: Deserializer<'de>,
{
    let mut pairs: ByPattern<U> = Pairs::<Pattern, V>::deserialize(input)?.into();
    pairs.sort_by_key(|(pattern, _)| pattern.exact().is_none());
    Ok(pairs)
}
