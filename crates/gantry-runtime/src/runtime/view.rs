//! Listings of a runtime: tools, agents, instructions, warnings.

use super::providers::ProviderEntry;
use super::{Runtime, Snapshot};
use crate::session::Session;
use gantry_core::Refusal;
use gantry_core::format::Format;
use gantry_core::toolset::{Entry, Pool, Toolset, array};
use gantry_provider::Provider;
use gantry_provider::resources::{Change, ChangeNotice};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Runtime {
    /// What holds now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The provider of this id in a snapshot; that of `tool_output` is in none.
    pub(crate) fn provider(&self, snapshot: &Snapshot, id: &str) -> Result<Arc<dyn Provider>, Refusal> {
        if *id == *self.output_tool.key.provider {
            return Ok(Arc::clone(&self.output_provider) as _);
        }
        snapshot.provider(id)
    }

    /// Whether there is a server of this id that has not listed its tools yet.
    pub(crate) fn is_down(&self, id: &str) -> bool {
        self.snapshot().providers.server(id).is_some_and(|server| server.tools_digest().is_none())
    }

    /// What an agent sees now at the top.
    ///
    /// # Errors
    /// The agent is not configured.
    pub fn toolset(&self, agent: Option<&str>) -> Result<Arc<Toolset>, Refusal> {
        let snapshot = self.snapshot();
        snapshot.resolve_toolset(agent, &snapshot.top()).map(|resolved| resolved.toolset)
    }

    /// Notifies connected clients of a change.
    pub(crate) fn notify_clients(&self, change: Change) {
        // There may be no client connected.
        self.services.changes.send(ChangeNotice { runtime: self.instance_id, change }).ok();
    }

    /// Every tool of the project.
    #[must_use]
    pub fn pool(&self) -> Arc<Pool> {
        Arc::clone(self.snapshot().pool())
    }

    /// The names of the configured agents.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<str>> {
        self.snapshot().options.agents.keys().cloned().collect()
    }

    /// What an agent should know about its tools, provider by provider; nothing about providers it has no tool of.
    #[must_use]
    pub fn instructions(&self, agent: Option<&str>) -> Option<String> {
        let toolset = self.toolset(agent).ok()?;
        let used: BTreeSet<&str> = toolset.tools().map(|tool| &*tool.key.provider).collect();
        let snapshot = self.snapshot();
        let texts = used.iter().filter_map(|id| {
            let provider = &snapshot.providers.get(id)?.provider;
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
            return Arc::clone(if plain { toolset.legacy_definitions() } else { toolset.definitions() });
        }
        let ready = self.entries(session, &toolset).filter(Entry::is_ready);
        array(ready.map(|entry| if plain { entry.legacy_definition() } else { entry.definition() })).into()
    }

    /// The tools of a session as `gantry tools --format json` lists them, quarantined ones with their reason: one JSON
    /// array. There may be very many, so that only one of them at a time is a value.
    #[must_use]
    pub fn listing(&self, session: &Session) -> String {
        let toolset = session.toolset();
        array(self.entries(session, &toolset).map(|entry| list_item(&entry, &toolset).to_string()))
    }

    /// The tools that a session can call, as a model's interface takes them: one JSON array.
    #[must_use]
    pub fn formatted(&self, session: &Session, format: Format) -> String {
        let toolset = session.toolset();
        array(self.entries(session, &toolset).filter_map(|entry| format.definition(&entry)))
    }

    /// The tools of a session, with `tool_output` once there is something to read.
    fn entries<'a>(&'a self, session: &Session, toolset: &'a Toolset) -> impl Iterator<Item = Entry<'a>> {
        let output = Entry { name: &self.output_tool.name, tool: &self.output_tool, alias: false };
        toolset.entries().chain(session.has_outputs().then_some(output))
    }

    /// What looks wrong in the set-up although it stops nothing: patterns that match nothing, names that clash, tools
    /// that cannot be used.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        let (pool, providers, excluded) = (snapshot.pool(), &snapshot.providers, &snapshot.build.excluded);
        let mut warnings = self.servers.warnings();
        warnings.extend(providers.all().iter().flat_map(server_warnings));
        warnings.extend(
            excluded
                .iter()
                .map(|(provider, tool, why)| format!("tool {tool} of {provider} is left out: {why}")),
        );
        // What another agent lacks in a runtime that is not for it says nothing.
        let concerned = |agent: &Arc<str>| self.active.as_ref().is_none_or(|active| active == agent);
        for agent in self.agents().into_iter().filter(concerned) {
            if let Ok(resolved) = snapshot.resolve_toolset(Some(&agent), &snapshot.top()) {
                let unusual = resolved.warnings.iter();
                warnings.extend(unusual.map(|warning| format!("agent {agent}: {warning}")));
            }
        }
        // A server that is down may have it; an agent's own runtime does not have all servers.
        if self.active.is_none() && providers.servers().all(|server| server.unavailable_reason().is_none()) {
            let unmatched = snapshot.options.policies.unmatched(pool.tools());
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
fn server_warnings(entry: &ProviderEntry) -> Vec<String> {
    let Some(server) = &entry.server else { return Vec::new() };
    let (mut warnings, tools) = (server.warnings(), server.tools());
    if server.tools_digest().is_some() {
        warnings.extend(entry.options.idle_denials(server.origin(), &tools).map(|pattern| {
            let id = entry.id();
            format!("server {id}: {:?} in toolsDenied matches no tool; globs know * and ?", pattern.as_str())
        }));
    }
    warnings
}

fn list_item(entry: &Entry<'_>, toolset: &Toolset) -> Value {
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
