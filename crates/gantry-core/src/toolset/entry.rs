//! An entry of a list of tools: a tool under its own name, or under an alias.

use crate::raw;
use crate::tool::Tool;
use std::borrow::Cow;
use std::sync::Arc;

/// A name that can be called, and the tool that it means.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub name: &'a str,
    pub tool: &'a Arc<Tool>,
    pub alias: bool,
}

impl<'a> Entry<'a> {
    pub fn is_ready(&self) -> bool {
        self.tool.quarantined().is_none()
    }

    /// What the tool does, and for an alias, what it stands for.
    pub fn description(&self) -> Cow<'a, str> {
        let own = &self.tool.spec.description;
        if self.alias { format!("{}{own}", self.introduction()).into() } else { own.into() }
    }

    /// The definition as MCP clients read it, as JSON text.
    pub fn definition(&self) -> Cow<'a, str> {
        self.under_this_name(self.tool.definition())
    }

    /// The same for clients that take only objects as structured results.
    pub fn legacy_definition(&self) -> Cow<'a, str> {
        self.under_this_name(self.tool.legacy_definition())
    }

    fn introduction(&self) -> String {
        format!("The same tool as {}. ", self.tool.name)
    }

    fn under_this_name(&self, definition: &'a str) -> Cow<'a, str> {
        if !self.alias {
            return definition.into();
        }
        let named = raw::with(definition, "name", &raw::quoted(self.name));
        let introduction = raw::quoted(&self.introduction());
        let own = raw::member(definition, "description").and_then(|text| text.strip_prefix('"'));
        let description = match (own, introduction.strip_suffix('"')) {
            // The provider's text stays word for word.
            (Some(own), Some(introduction)) => format!("{introduction}{own}"),
            _ => introduction,
        };
        raw::with(&named, "description", &description).into()
    }
}
