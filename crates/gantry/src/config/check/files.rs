//! Judges the files beside a configuration that each define one agent or one entry of the catalogue.

use super::claims::Claim;
use super::servers::is_own_name;
use super::{Judge, Walk};
use crate::config::editors;
use crate::config::projects::Place;
use crate::config::suggest;
use crate::config::table::{AGENT_JSON, FRONT_MATTER, TOOLS};
use crate::config::text::{self, Rule};
use crate::config::trail::Trail;
use crate::config::tree::{Entry, Node, Value, find, quoted};
use std::path::Path;
use std::sync::Arc;

/// What makes front matter an agent's.
const AGENTS_OWN: [&str; 3] = ["name", "description", "tools"];
const AGENT: Trail<'static> = Trail::Root("this agent");
const TOOL: Trail<'static> = Trail::Root("this tool");

impl Judge<'_> {
    /// Judges an `agent.json`.
    pub(in crate::config) fn agent(&mut self, root: &mut Node, file: &Arc<Path>, place: &Place, name: &str) {
        let mut walk = self.walk(file, &place.name);
        walk.whole(root, &AGENT);
        respell(root);
        walk.section(root, &AGENT, AGENT_JSON);
        walk.claim(Claim::Agent, name, 1, "agents");
    }

    /// Judges the front matter of a Markdown file and returns the agent's name, if it is one.
    pub(in crate::config) fn front_matter(
        &mut self,
        root: &mut Node,
        file: &Arc<Path>,
        place: &Place,
        stem: &str,
    ) -> Option<String> {
        let is_agent = |entry: &Entry| AGENTS_OWN.contains(&entry.key.as_str());
        if matches!(root.value, Value::Null | Value::Map(_)) && !root.value.entries().iter().any(is_agent) {
            let [name, description, tools] = AGENTS_OWN;
            self.warn(
                file,
                &format!("not read, because its front matter has none of {name}, {description} and {tools}"),
            );
            return None;
        }
        let mut walk = self.walk(file, &place.name);
        // What people write about in a text for a model may look like a variable and is none.
        walk.variables = None;
        walk.whole(root, &AGENT);
        walk.editors_keys(root);
        walk.section(root, &AGENT, FRONT_MATTER);
        let named = find(root, "name").and_then(|entry| Some((entry.node.value.as_text()?, entry.line)));
        // What cannot be a name is what people are shown.
        let (name, line) = match named {
            Some((name, line)) if text::is_name(&name.text) => (name.text.as_str(), line),
            Some((_, line)) => (stem, line),
            None => (stem, 1),
        };
        if !text::is_name(name) {
            let (stem, noun) = (quoted(stem), Rule::Name.noun());
            let advice = "rename the file, or write such a \"name\" into its front matter";
            walk.report(line, format!("the agent would be called {stem}, which is not {noun}; {advice}"));
            return None;
        }
        walk.claim(Claim::Agent, name, line, "agents");
        Some(name.to_owned())
    }

    /// Judges a `tool.json`.
    pub(in crate::config) fn tool(&mut self, root: &mut Node, file: &Arc<Path>, place: &Place, id: &str) {
        let mut walk = self.walk(file, &place.name);
        walk.whole(root, &TOOL);
        if is_own_name(id) {
            let advice =
                "rename its folder; Gantry's own tools are set up under \"tools\" in the configuration";
            return walk.report(1, format!("{} is a name of Gantry's own; {advice}", quoted(id)));
        }
        walk.provider(id, root, &TOOL, &TOOLS);
        walk.claim(Claim::Provider, id, 1, "tools");
        walk.confine(&place.workspace);
    }
}

impl Walk<'_, '_> {
    /// What holds of every file of its own.
    fn whole(&mut self, root: &mut Node, path: &Trail<'_>) {
        self.duplicates(root, path);
        if let Value::Map(entries) = &mut root.value {
            entries.retain(|entry| entry.key != "$schema");
        }
    }

    /// Names the keys that editors keep in front matter, and takes them out. One that looks as if it said which tools
    /// the agent has is refused: to pass it over would give what it was meant to take.
    fn editors_keys(&mut self, root: &mut Node) {
        let Value::Map(entries) = &mut root.value else { return };
        entries.retain(|entry| {
            let key = entry.key.to_lowercase();
            if FRONT_MATTER.iter().any(|known| known.name == entry.key) {
                return true;
            }
            if suggest::nearest(&key, ["tools"]).is_some() {
                let advice = "did you mean \"tools\"?";
                self.report(entry.line, format!("unknown key {}; {advice}", quoted(&entry.key)));
            } else if key.contains("tool") || matches!(key.as_str(), "permission" | "permissions") {
                let advice = "write the tools that it may use into \"tools\"";
                self.report(entry.line, format!("{} is not read by Gantry; {advice}", quoted(&entry.key)));
            } else {
                let why = if key.contains("permission") {
                    "nothing is restricted by it"
                } else {
                    "it is for editors"
                };
                let key = AGENT.key(&entry.key).to_string();
                self.warn(entry.line, format!("{key} has no effect; {why}"));
            }
            false
        });
    }
}

/// Gives the keys of an agent's tools their names here, as some programs have others.
fn respell(root: &mut Node) {
    let Value::Map(entries) = &mut root.value else { return };
    for entry in entries.iter_mut().filter(|entry| entry.key == "tools") {
        if let Value::Map(group) = &mut entry.node.value {
            editors::rename(group, "mcpServers", "use");
            editors::rename(group, "available", "allowed");
        }
    }
}
