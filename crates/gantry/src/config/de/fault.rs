//! Why a value cannot be read into a type, before and after it is known where the value stands.

use crate::config::document::{Value, shown};
use crate::config::key_path::KeyPath;
use serde::de::{Error, Expected, Unexpected};
use std::fmt;

/// How custom messages begin that follow a key without a colon.
const VERBS: [&str; 4] = ["must ", "needs ", "has ", "is "];

#[derive(Debug)]
pub(in crate::config) enum Fault {
    /// It was recorded with its line and key.
    Placed,
    /// The value must be this. The message quotes what was found.
    Expected(String),
    /// In these words, which follow the key. The message quotes nothing.
    Custom(String),
    /// The group lacks this key.
    Missing(&'static str),
    /// The group has this key in two spellings.
    Duplicate(&'static str),
}

impl Fault {
    /// The message for the value at this path; none if it was recorded already.
    pub(super) fn message(self, path: &KeyPath<'_>, found: &Value) -> Option<String> {
        Some(match self {
            Self::Placed => return None,
            Self::Expected(expected) => format!("{path} must be {expected}, found {}", shown(found)),
            Self::Custom(message) if VERBS.iter().any(|verb| message.starts_with(verb)) => {
                format!("{path} {message}")
            }
            Self::Custom(message) => format!("{path}: {message}"),
            Self::Missing(key) => format!("{path} needs the key {key:?}"),
            Self::Duplicate(key) => format!("{path} has two spellings of {key:?}; keep one"),
        })
    }
}

/// The words that serde has for types, in the words of the configuration.
fn plain(expected: &dyn Expected) -> String {
    let words = expected.to_string();
    match words.as_str() {
        "a string" | "string" | "a formatted string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "path string" => "a path".to_owned(),
        _ => words,
    }
}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }

    fn invalid_type(_found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(plain(expected))
    }

    fn invalid_value(_found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(plain(expected))
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::Expected(expected.join(" or "))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Duplicate(field)
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
