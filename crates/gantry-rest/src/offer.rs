//! What of an API is offered, and how. Used by the provider and by `gantry openapi inspect`.

use super::options::{ApiOptions, SpecPlace};
use super::{NAMESPACE, show};
use gantry_core::Effect;
use gantry_core::limits::TOOL_NAME_CHARS;
use gantry_core::names::SEPARATOR;
use gantry_core::tool::ToolSpec;
use gantry_openapi::{Choice, Operation};

impl ApiOptions {
    /// What is wanted of the document, beside tools of these names that the configuration spells out.
    pub fn choice<'a>(&self, inline: impl IntoIterator<Item = &'a str>) -> Choice {
        let prefix = self.prefix();
        // A tool that is spelled out may be called what an operation would be called.
        let taken = inline.into_iter().filter_map(|name| name.strip_prefix(&prefix));
        Choice {
            methods: self.methods.clone(),
            tags: self.tags.clone(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            base_url: self.base_url.clone(),
            variables: self.variables.clone(),
            // A file is the user's own; a document from the web is not.
            other_origins: matches!(self.spec, SpecPlace::File(_)),
            name_chars: self.name_chars(),
            taken: taken.map(str::to_owned).collect(),
        }
    }

    /// Characters that the name of an operation may have, so that the whole name fits.
    pub(super) fn name_chars(&self) -> usize {
        TOOL_NAME_CHARS.saturating_sub(NAMESPACE.len() + SEPARATOR.len() + self.prefix().len())
    }

    /// How the names of its tools begin, as the provider has them.
    fn prefix(&self) -> String {
        format!("{}_", self.id)
    }

    /// An operation as a tool.
    #[must_use]
    pub fn tool(&self, operation: &Operation) -> ToolSpec {
        let name = format!("{}{}", self.prefix(), operation.name);
        let effect = self.effect(operation, &name);
        show::spec(operation, name, effect)
    }

    /// What an operation may change: what the configuration says of it, or the document.
    fn effect(&self, operation: &Operation, name: &str) -> Effect {
        let place = format!("{} {}", operation.method, operation.path);
        let shown = format!("{NAMESPACE}{SEPARATOR}{name}");
        let id = operation.id.as_deref().unwrap_or(&operation.name);
        let names = [&*operation.name, name, &*shown, id, &*place];
        let said = self.effects.iter().find(|(pattern, _)| names.iter().any(|name| pattern.matches(name)));
        said.map_or(operation.effect, |(_, effect)| *effect)
    }
}
