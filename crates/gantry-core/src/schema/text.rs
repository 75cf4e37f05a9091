//! A schema as it is kept: as text.
//!
//! As a value it takes ten times the memory, and compiled as much again. A large API has tens of thousands of schemas,
//! many of them equal, and few are ever asked for.

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A JSON Schema as text. Copies share it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SchemaText {
    text: Arc<str>,
    trusted: bool,
}

impl SchemaText {
    /// A schema whose author (the OpenAPI importer) knows that it compiles, patterns aside. It is compiled on first
    /// use.
    pub fn trusted(text: Arc<str>) -> Self {
        Self { text, trusted: true }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The schema as a value, which is made for every question.
    pub fn value(&self) -> Value {
        // It was written by the same library; what cannot be read all the same is no schema, and refused as that.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Whether it need not be compiled to know that it can be.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted
    }
}

impl From<Value> for SchemaText {
    fn from(schema: Value) -> Self {
        Self { text: schema.to_string().into(), trusted: false }
    }
}

impl fmt::Debug for SchemaText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// As the value that it is.
impl Serialize for SchemaText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}
