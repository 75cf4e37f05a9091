//! The agents of a configuration.

use super::view::{View, entries, owned};
use crate::config::model::{Agent, Entries, Located};
use crate::config::table::{AGENT_JSON, FRONT_MATTER};
use crate::config::text::is_name;
use crate::config::tree::{Node, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// An agent in the configuration.
pub(super) fn agent(view: &View<'_>) -> Agent {
    Agent { prompt: view.text("prompt"), ..without_prompt(view) }
}

/// An agent in a file of its own.
pub(in crate::config) fn of_json(root: &Node, file: &Arc<Path>) -> Agent {
    let view = View { node: Some(root), keys: AGENT_JSON, file };
    Agent { display_name: view.text("name"), ..agent(&view) }
}

/// An agent in a Markdown file, whose text is the prompt.
pub(in crate::config) fn of_front_matter(root: &Node, file: &Arc<Path>, prompt: Option<String>) -> Agent {
    let view = View { node: Some(root), keys: FRONT_MATTER, file };
    let display_name = view.text("name").filter(|name| !is_name(name));
    Agent { display_name, prompt, ..without_prompt(&view) }
}

fn without_prompt(view: &View<'_>) -> Agent {
    let group = view.section("tools");
    let is_group = view.get("tools").is_some_and(|node| matches!(node.value, Value::Map(_)));
    let all = || vec![Located { value: "*".to_owned(), at: view.here() }];
    let uses = if is_group { group.texts("use") } else { view.texts("tools") };
    Agent {
        display_name: None,
        description: view.text("description"),
        uses: uses.unwrap_or_else(all),
        entries: if is_group { Entries::ProvidersAndTools } else { Entries::Tools },
        // An empty list is what a program writes that knows no restriction.
        allowed: group
            .texts("allowed")
            .filter(|list| !list.is_empty() && list.iter().all(|e| e.value != "*")),
        aliases: aliases(&group),
        auto_approve: group.texts("autoApprove").unwrap_or_default(),
        model: view.text("model"),
        prompt: None,
        at: view.here(),
    }
}

fn aliases(group: &View<'_>) -> BTreeMap<String, Located<String>> {
    let aliases = entries(group.get("aliases")).iter().filter_map(|entry| {
        let value = owned(&entry.node.value)?;
        Some((entry.key.clone(), Located { value, at: group.at(entry.line) }))
    });
    aliases.collect()
}
