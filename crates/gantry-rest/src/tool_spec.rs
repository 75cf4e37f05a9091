//! Which operations of an API become tools, and their definitions.

use super::NAMESPACE;
use super::options::{ApiOptions, SpecPlace};
use crate::openapi::{ImportOptions, Method, Operation};
use gantry_core::Effect;
use gantry_core::limits::TOOL_NAME_CHARS;
use gantry_core::names::SEPARATOR;
use gantry_core::tool::{Annotations, ApprovalRule, ToolSpec};

impl ApiOptions {
    /// The operations to import, beside inline tools of these names.
    pub fn import_options<'a>(&self, inline: impl IntoIterator<Item = &'a str>) -> ImportOptions {
        let prefix = self.prefix();
        // An inline tool may have the name that an operation would have.
        let taken = inline.into_iter().filter_map(|name| name.strip_prefix(&prefix));
        ImportOptions {
            methods: self.include_methods.clone(),
            tags: self.tag_filter.clone(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            base_url: self.base_url.clone(),
            variables: self.server_variables.clone(),
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

    /// The prefix of its tools' names, without the namespace.
    fn prefix(&self) -> String {
        format!("{}_", self.id)
    }

    pub(super) fn tool(&self, operation: &Operation) -> ToolSpec {
        let name = format!("{}{}", self.prefix(), operation.name);
        ToolSpec {
            annotations: annotations(operation.method, self.effect(operation, &name)),
            name,
            title: operation.title.clone(),
            description: operation.description.clone(),
            input_schema: operation.input_schema.clone(),
            output_schema: operation.output_schema.clone(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: Some(operation.target()),
        }
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

/// The hints of a tool that sends this method.
pub(super) fn annotations(method: Method, effect: Effect) -> Annotations {
    Annotations {
        read_only_hint: Some(effect == Effect::Read),
        destructive_hint: Some(effect == Effect::Destructive),
        idempotent_hint: Some(method.is_idempotent()),
        open_world_hint: Some(true),
    }
}
