//! A value in a bundle, and following references from there.

use super::Bundle;
use crate::openapi::limits::HOPS;
use serde_json::Value;

/// Bytes of text that take as long as an element of a list.
const ITEM_BYTES: usize = 8;

/// A value in a document. Cheap to copy.
///
/// Each value that is read through it takes steps of the bundle, more for a long text. Without steps left, everything looks absent, so a caller
/// must not use what it read after [`Bundle::is_exhausted`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) document: usize,
    pub(crate) value: &'a Value,
}

impl<'a> NodeRef<'a> {
    fn with(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    /// Takes the steps for a value and its key. Readers look through a whole list, such as `type` or `enum`.
    fn take_steps(self, key: &str, value: Option<&Value>) -> bool {
        let bytes = match value {
            Some(Value::String(text)) => text.len(),
            Some(Value::Array(items)) => items.len().saturating_mul(ITEM_BYTES),
            None | Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => 0,
        };
        self.bundle.take_steps(key.len().saturating_add(bytes))
    }

    /// The member of this name, with its references not followed.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        let value = self.value.get(key);
        if self.take_steps(key, value) { value.map(|value| self.with(value)) } else { None }
    }

    pub(crate) fn text(self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(|member| member.value.as_str())
    }

    /// Whether the member of this name is true, or a word that is true in YAML 1.1.
    pub(crate) fn flag(self, key: &str) -> bool {
        match self.get(key).map(|member| member.value) {
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
        let members = members.take_while(move |(key, value)| self.take_steps(key, Some(value)));
        members.map(move |(key, value)| (key.as_str(), self.with(value)))
    }

    /// The elements of a list; nothing for anything else.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        let elements = self.value.as_array().into_iter().flatten();
        let elements = elements.take_while(move |value| self.take_steps("", Some(value)));
        elements.map(move |value| self.with(value))
    }

    /// The `$ref`, as it is written.
    pub(crate) fn reference(self) -> Option<&'a str> {
        self.text("$ref")
    }

    /// The value after all references.
    pub(crate) fn resolved(self) -> Result<Self, String> {
        let mut node = self;
        for _ in 0..HOPS {
            let Some(reference) = node.reference() else { return Ok(node) };
            node = node.bundle.find(node.document, reference)?;
        }
        let reference = self.bundle.describe_ref(self.document, self.reference().unwrap_or_default());
        Err(format!("{reference} leads from reference to reference without end"))
    }

    /// Where a schema that is nothing but a reference leads to.
    pub(crate) fn skip_aliases(self) -> Self {
        let mut node = self;
        for _ in 0..HOPS {
            let alone = node.value.as_object().is_some_and(|members| members.len() == 1);
            let Some(reference) = node.reference().filter(|_| alone) else { break };
            let Ok(next) = node.bundle.find(node.document, reference) else { break };
            node = next;
        }
        node
    }

    /// Equal for one and the same place of a document, and only for that.
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.value).addr()
    }
}
