//! What option structs are made of besides plain types: secrets, and times in milliseconds.

use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;

/// A text that debug output does not show.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// For `#[serde(with = "gantry_provider::options::millis")]` on a [`std::time::Duration`], together with
/// `#[schemars(with = "u64")]`: configuration files write times as whole milliseconds.
pub mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    /// Reads whole milliseconds.
    ///
    /// # Errors
    /// Where the value is not a whole number, or negative.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        u64::deserialize(input).map(Duration::from_millis)
    }

    /// Writes whole milliseconds, as schemas show defaults.
    ///
    /// # Errors
    /// Those of the output.
    pub fn serialize<S: Serializer>(time: &Duration, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Example {
        token: Secret,
        #[serde(rename = "timeoutMs", with = "millis")]
        #[schemars(with = "u64")]
        timeout: Duration,
    }

    #[test]
    fn a_secret_is_read_and_not_shown() {
        let read: Example = serde_json::from_str(r#"{"token":"hunter2","timeoutMs":1500}"#).unwrap();
        assert_eq!(read.token.expose(), "hunter2");
        assert_eq!(read.timeout, Duration::from_millis(1500));
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    #[test]
    fn the_schema_says_what_files_hold() {
        let schema = schemars::schema_for!(Example);
        assert_eq!(schema.pointer("/properties/token/type").unwrap(), "string");
        assert_eq!(schema.pointer("/properties/timeoutMs/type").unwrap(), "integer");
    }
}
