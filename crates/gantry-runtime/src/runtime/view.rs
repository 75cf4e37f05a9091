//! What can be seen of a runtime: tools, agents, instructions, and what looks wrong.

use super::Runtime;
use super::sources::Source;
use crate::event::Events;
use crate::services::ChangeNotice;
use crate::session::Session;
use gantry_core::format::Format;
use gantry_core::toolset::{Entry, Pool, Toolset, array};
use gantry_provider::resources::Change;
use gantry_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Runtime {
    /// The project's name.
    #[must_use]
    pub fn project(&self) -> &Arc<str> {
        &self.project
    }

    /// Tells this runtime from the others of the process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The agent that has this runtime for itself.
    #[must_use]
    pub fn active(&self) -> Option<&Arc<str>> {
        self.active.as_ref()
    }

    /// The sessions that are open.
    pub(crate) fn live_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.all()
    }

    /// How many tools an agent sees.
    pub(crate) fn count_tools(&self, agent: Option<&str>) -> usize {
        self.toolset(agent).map_or(0, |toolset| toolset.len())
    }

    /// Tells connected clients of a change.
    pub(crate) fn tell(&self, change: Change) {
        // There may be no client connected.
        self.services.changes.send(ChangeNotice { from: self.number, change }).ok();
    }

    /// The ledger.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The stream of events.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Every tool of the project.
    #[must_use]
    pub fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.state.load().pool)
    }

    /// The names of the configured agents.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> = self.setup().agents.keys().cloned().collect();
        names.sort();
        names
    }

    /// What an agent should know about its tools, provider by provider; nothing about providers it has no tool of.
    #[must_use]
    pub fn instructions(&self, agent: Option<&str>) -> Option<String> {
        let toolset = self.toolset(agent).ok()?;
        let used: BTreeSet<&str> = toolset.tools().map(|tool| &*tool.key.provider).collect();
        let sources = self.sources();
        let texts = used.iter().filter_map(|id| {
            let provider = &sources.get(id)?.provider;
            Some(format!("# {}\n{}", provider.origin().namespace, provider.instructions()?))
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        (!text.is_empty()).then_some(text)
    }

    /// The definitions of the tools that a session can call, as one JSON array; `tool_output` is among them once there
    /// is something to read. `plain` leaves out output schemas of other kinds than objects, which older clients refuse.
    #[must_use]
    pub fn definitions(&self, session: &Session, plain: bool) -> Arc<str> {
        let toolset = session.toolset();
        if !session.has_outputs() {
            return Arc::clone(if plain { toolset.plain_definitions() } else { toolset.definitions() });
        }
        let ready = toolset.entries().filter(Entry::is_ready).chain([self.output_entry()]);
        let definitions: Vec<_> =
            ready.map(|entry| if plain { entry.plain_definition() } else { entry.definition() }).collect();
        array(definitions.iter().map(|definition| &**definition)).into()
    }

    /// The tools of a session as `gantry tools --format json` lists them, quarantined ones with their reason: one JSON
    /// array. There may be very many, so that only one of them at a time is a value.
    #[must_use]
    pub fn listing(&self, session: &Session) -> String {
        let toolset = session.toolset();
        let own = session.has_outputs().then(|| self.output_entry());
        array(toolset.entries().chain(own).map(|entry| listed(&entry, &toolset).to_string()))
    }

    /// The tools that a session can call, as a model's interface takes them: one JSON array.
    #[must_use]
    pub fn formatted(&self, session: &Session, format: Format) -> String {
        let toolset = session.toolset();
        let own = session.has_outputs().then(|| self.output_entry());
        array(toolset.entries().chain(own).filter_map(|entry| format.definition(&entry)))
    }

    fn output_entry(&self) -> Entry<'_> {
        Entry { name: &self.output_tool.name, tool: &self.output_tool, alias: false }
    }

    /// What looks wrong in the set-up although it stops nothing: patterns that match nothing, names that clash, tools
    /// that cannot be used.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let pool = self.pool();
        let mut warnings = self.upstreams.group.warnings();
        let (sources, outside) = (self.sources(), self.upstreams.outside.load());
        warnings.extend(sources.all().iter().flat_map(server_warnings));
        warnings
            .extend(outside.left_out.iter().map(|(provider, why)| format!("{provider} is left out: {why}")));
        let dropped = outside.dropped.iter();
        warnings.extend(
            dropped.map(|(provider, tool, why)| format!("tool {tool} of {provider} is left out: {why}")),
        );
        // What another agent lacks in a runtime that is not for it says nothing.
        let concerned = |agent: &Arc<str>| self.active.as_ref().is_none_or(|active| active == agent);
        for agent in self.agents().into_iter().filter(concerned) {
            let unusual = self.resolved(Some(&agent), &self.top()).map(|resolved| resolved.warnings);
            let unusual = unusual.iter().flat_map(|warnings| warnings.iter());
            warnings.extend(unusual.map(|warning| format!("agent {agent}: {warning}")));
        }
        // A server that is down may have it; an agent's own runtime does not have all servers.
        if self.active.is_none() && sources.servers().all(|server| server.unavailable_reason().is_none()) {
            let unmatched = self.setup().policies.unmatched(pool.tools());
            warnings
                .extend(unmatched.iter().map(|(place, entry)| format!("{place}: {entry:?} matches no tool")));
        }
        for collision in pool.collisions() {
            let given = collision.given.join(", ");
            warnings.push(format!("several tools would be called {}; they are {given}", collision.name));
        }
        for tool in pool.tools() {
            warnings.extend(
                tool.quarantined().map(|reason| format!("tool {} is quarantined: {reason}", tool.name)),
            );
            warnings.extend(
                tool.unenforced().iter().map(|what| format!("tool {}: not enforced: {what}", tool.name)),
            );
        }
        warnings
    }
}

/// What looks wrong with a server, and entries of its `toolsDenied` that match no tool of it.
fn server_warnings(source: &Source) -> Vec<String> {
    let Some(server) = &source.server else { return Vec::new() };
    let (mut warnings, tools) = (server.warnings(), server.tools());
    if server.tools_digest().is_some() {
        let names = tools.iter().map(|tool| tool.name.as_str());
        warnings.extend(source.options.idle_denials(server.origin(), names).map(|pattern| {
            let id = source.id();
            format!("server {id}: {:?} in toolsDenied matches no tool; globs know * and ?", pattern.as_str())
        }));
    }
    warnings
}

fn listed(entry: &Entry<'_>, toolset: &Toolset) -> Value {
    let tool = entry.tool;
    let reason = tool.quarantined();
    let mut row = json!({
        "name": entry.name,
        "title": tool.spec.title,
        "description": entry.description(),
        "inputSchema": tool.spec.input_schema,
        "outputSchema": tool.spec.output_schema,
        "annotations": tool.spec.annotations,
        "provider": { "id": &*tool.key.provider, "kind": tool.kind, "namespace": &*tool.namespace },
        "status": if reason.is_some() { "quarantined" } else { "ready" },
        "reason": reason,
    });
    let aliases: Vec<&str> = toolset.aliases_of(tool).collect();
    if let Some(row) = row.as_object_mut() {
        if entry.alias {
            row.insert("aliasOf".into(), (*tool.name).into());
        } else if !aliases.is_empty() {
            row.insert("aliases".into(), aliases.into());
        }
    }
    row
}
