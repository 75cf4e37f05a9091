//! Listings of a runtime: tools, agents, instructions, warnings.

use super::providers::ProviderEntry;
use super::{Runtime, Snapshot};
use crate::session::Session;
use gantry_core::Refusal;
use gantry_core::format::Format;
use gantry_core::schema::SchemaText;
use gantry_core::tool::{Annotations, ToolKind};
use gantry_core::toolset::{Entry, Pool, Toolset, array};
use gantry_provider::Provider;
use gantry_provider::resources::{Change, ChangeNotice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
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
        let item = |entry: Entry<'_>| serde_json::to_string(&list_item(&entry, &toolset)).ok();
        array(self.entries(session, &toolset).filter_map(item))
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

/// A tool as `gantry tools --format json` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Tool")]
pub struct ListedTool {
    /// Its displayed name.
    pub name: String,
    /// Its title for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub input_schema: Value,
    /// The JSON Schema of its result.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub output_schema: Option<Value>,
    /// The provider's hints about it.
    pub annotations: Annotations,
    /// Where it comes from.
    pub provider: ToolProvider,
    /// Whether it can be called.
    #[schemars(extend("enum" = ["ready", "quarantined"]))]
    pub status: Cow<'static, str>,
    /// Why it is quarantined.
    pub reason: Option<String>,
    /// The tool that this is another name for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias_of: Option<String>,
    /// Other names for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolProvider {
    /// The id of the provider.
    pub id: Arc<str>,
    /// Its kind.
    pub kind: ToolKind,
    /// Its namespace.
    pub namespace: Arc<str>,
}

fn list_item(entry: &Entry<'_>, toolset: &Toolset) -> ListedTool {
    let (tool, spec) = (entry.tool, &entry.tool.spec);
    let reason = tool.quarantined();
    let aliases = toolset.aliases_of(tool).filter(|_| !entry.alias).map(str::to_owned);
    ListedTool {
        name: entry.name.to_owned(),
        title: spec.title.clone(),
        description: entry.description().to_string(),
        input_schema: spec.input_schema.value(),
        output_schema: spec.output_schema.as_ref().map(SchemaText::value),
        annotations: spec.annotations,
        provider: ToolProvider {
            id: Arc::clone(&tool.key.provider),
            kind: tool.kind,
            namespace: Arc::clone(&tool.namespace),
        },
        status: if reason.is_some() { "quarantined" } else { "ready" }.into(),
        reason: reason.map(|reason| reason.to_string()),
        alias_of: entry.alias.then(|| tool.name.to_string()),
        aliases: aliases.collect(),
    }
}
