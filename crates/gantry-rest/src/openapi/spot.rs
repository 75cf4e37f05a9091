//! A value in a bundle, and following references from there.

use crate::openapi::bundle::Bundle;
use crate::openapi::limits::HOPS;
use serde_json::Value;

/// What reading so many bytes costs, next to one look at a value.
pub(crate) fn reading(bytes: usize) -> usize {
    bytes / 64
}

/// A value in a document. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) bundle: &'a Bundle,
    /// The document that the value is in.
    pub(crate) document: usize,
    pub(crate) value: &'a Value,
}

impl<'a> Spot<'a> {
    /// Another value of the same document.
    pub(crate) fn with(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    /// The member of this name, as it stands there.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        self.value.get(key).map(|value| self.with(value))
    }

    /// The text under this name.
    pub(crate) fn text(self, key: &str) -> Option<&'a str> {
        self.value.get(key).and_then(Value::as_str)
    }

    /// Whether the member of this name is true, or a word that is one in older YAML.
    pub(crate) fn flag(self, key: &str) -> bool {
        match self.value.get(key) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(word)) => {
                ["true", "yes", "on"].iter().any(|yes| word.trim().eq_ignore_ascii_case(yes))
            }
            None | Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) => false,
        }
    }

    /// The members of an object; nothing for anything else.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(move |(key, value)| (key.as_str(), self.with(value)))
    }

    /// The elements of a list; nothing for anything else.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        self.value.as_array().into_iter().flatten().map(move |value| self.with(value))
    }

    /// Where it refers to, as it is written.
    pub(crate) fn reference(self) -> Option<&'a str> {
        self.text("$ref")
    }

    /// The value itself, after all references.
    ///
    /// # Errors
    /// A reference leads nowhere, to where it must not, or in circles.
    pub(crate) fn resolved(self) -> Result<Self, String> {
        self.followed(&mut 0)
    }

    /// The same, and counts what is looked at for it.
    ///
    /// # Errors
    /// A reference leads nowhere, to where it must not, or in circles.
    pub(crate) fn followed(self, looks: &mut usize) -> Result<Self, String> {
        let mut spot = self;
        for _ in 0..HOPS {
            let Some(reference) = spot.reference() else { return Ok(spot) };
            *looks += 1 + reading(reference.len());
            spot = spot.bundle.find(spot.document, reference)?;
        }
        let reference = self.reference().unwrap_or_default();
        let told = self.bundle.told(self.document, reference);
        Err(format!("{told} leads from reference to reference without end"))
    }

    /// Where a schema that is nothing but a reference leads to: what many operations refer to is known by its place.
    pub(crate) fn aliased(self, looks: &mut usize) -> Self {
        let mut spot = self;
        for _ in 0..HOPS {
            let alone = spot.members().take(2).count() == 1;
            let Some(reference) = spot.reference().filter(|_| alone) else { break };
            *looks += 1 + reading(reference.len());
            let Ok(next) = spot.bundle.find(spot.document, reference) else { break };
            spot = next;
        }
        spot
    }

    /// Equal for one and the same place of a document, and only for that.
    pub(crate) fn identity(self) -> usize {
        std::ptr::from_ref(self.value).addr()
    }
}
