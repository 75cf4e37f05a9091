//! What can be seen of a runtime: tools, instructions, queues, metrics, and why a tool is there or not.

use super::Runtime;
use crate::event::Events;
use crate::provider::Provider;
use crate::queue;
use crate::session::Session;
use gantry_core::Tool;
use gantry_core::names::sanitised;
use gantry_core::tool::OwnRule;
use gantry_core::toolset::{Pool, Toolset, array};
use gantry_store::Store;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a tool is visible to an agent, or not.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The tool that was asked about.
    pub tool: String,
    /// The agent, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether it can be called.
    pub visible: bool,
    /// Why, one sentence per fact.
    pub reasons: Vec<String>,
}

impl Runtime {
    /// The project's name.
    #[must_use]
    pub fn project(&self) -> &Arc<str> {
        &self.project
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

    /// How the queues are doing.
    #[must_use]
    pub fn queues(&self) -> Vec<queue::Snapshot> {
        self.queues.snapshot()
    }

    /// The page that `/metrics` serves.
    #[must_use]
    pub fn metrics_page(&self) -> String {
        self.events.metrics().page(&self.queues.snapshot(), self.store.stats(), &self.servers())
    }

    /// Every tool of the project.
    #[must_use]
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.load_full()
    }

    /// The names of the configured agents.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> = self.agents.keys().cloned().collect();
        names.sort();
        names
    }

    /// What an agent should know about its tools, provider by provider; nothing about providers it has no tool of.
    #[must_use]
    pub fn instructions(&self, agent: Option<&str>) -> Option<String> {
        let toolset = self.toolset(agent).ok()?;
        let used: BTreeSet<&str> = toolset.tools().map(|tool| &*tool.key.provider).collect();
        let sources = self.upstreams.sources.load();
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
        let ready = toolset.tools().filter(|tool| tool.quarantined().is_none());
        let all = ready.chain([&self.output_tool]);
        array(all.map(|tool| if plain { tool.plain_definition() } else { tool.definition() })).into()
    }

    /// The tools of a session as `gantry tools --format json` lists them, quarantined ones with their reason.
    #[must_use]
    pub fn listing(&self, session: &Session) -> Vec<Value> {
        let mut rows: Vec<Value> = session.toolset().tools().map(|tool| listed(tool)).collect();
        if session.has_outputs() {
            rows.push(listed(&self.output_tool));
        }
        rows
    }

    /// What looks wrong in the set-up although it stops nothing: patterns that match nothing, names that clash, tools
    /// that cannot be used.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let pool = self.pool.load_full();
        let mut warnings: Vec<String> = self.upstreams.hub.lock.trouble().into_iter().collect();
        let (sources, outside) = (self.upstreams.sources.load(), self.upstreams.outside.load());
        warnings.extend(sources.servers().flat_map(|server| server.warnings()));
        warnings
            .extend(outside.left_out.iter().map(|(provider, why)| format!("{provider} is left out: {why}")));
        let dropped = outside.dropped.iter();
        warnings.extend(
            dropped.map(|(provider, tool, why)| format!("tool {tool} of {provider} is left out: {why}")),
        );
        for agent in self.agents() {
            let unmatched = self.agents.get(&agent).map(|selection| Toolset::resolve(&pool, selection).1);
            let unmatched = unmatched.unwrap_or_default();
            warnings.extend(
                unmatched.iter().map(|pattern| format!("agent {agent}: {pattern:?} matches no tool")),
            );
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

    /// Why a tool is visible to an agent, or not. For people who may know.
    #[must_use]
    pub fn explain(&self, spelling: &str, agent: Option<&str>) -> Explanation {
        let mut reasons = Vec::new();
        let everything = self.toolset(None).ok();
        let tool = everything.as_ref().and_then(|set| set.find(spelling).ok()).cloned();
        let mut visible = false;
        match (&tool, self.toolset(agent)) {
            (_, Err(refusal)) => reasons.push(refusal.error().message.clone()),
            (None, _) => reasons.push(match everything.map(|set| set.find(spelling).map(drop)) {
                _ if let Some(reason) = self.left_out(spelling) => reason,
                Some(Err(refusal)) => refusal.error().message.clone(),
                Some(Ok(())) | None => format!("tool not found: {spelling}"),
            }),
            (Some(tool), Ok(set)) => {
                let by = format!(
                    "it is {} of provider {} ({})",
                    tool.key.tool,
                    tool.key.provider,
                    tool.kind.as_str()
                );
                reasons.push(by);
                let asks = match tool.spec.own_rule {
                    OwnRule::Never => "asks nobody",
                    OwnRule::Always => "always asks a person",
                    OwnRule::Depends => "asks a person depending on the arguments",
                };
                reasons
                    .push(format!("its effect is {}, and by its own rule it {asks}", tool.effect.as_str()));
                let selected = set.find(spelling).is_ok();
                let who = agent
                    .map_or_else(|| "a caller without an agent".to_owned(), |agent| format!("agent {agent}"));
                reasons.push(format!(
                    "{who} {}",
                    if selected { "has it in its tools" } else { "does not have it in its tools" }
                ));
                if let Some(reason) = tool.quarantined() {
                    reasons.push(format!("it is quarantined: {reason}"));
                }
                reasons.extend(self.state_of_server(tool));
                visible = selected && tool.quarantined().is_none();
            }
        }
        let tool = tool.map_or_else(|| spelling.to_owned(), |tool| tool.name.to_string());
        Explanation { tool, agent: agent.map(str::to_owned), visible, reasons }
    }

    /// What is to be known about the MCP server of a tool: that it is down, that the tool looks suspicious.
    fn state_of_server(&self, tool: &Tool) -> Vec<String> {
        let sources = self.upstreams.sources.load();
        let Some(server) = sources.get(&tool.key.provider).and_then(|source| source.server.as_ref()) else {
            return Vec::new();
        };
        let known = server.listing();
        let flags =
            known.as_ref().and_then(|known| known.tool(&tool.key.tool)).map(|tool| tool.flags.clone());
        let flags = flags.unwrap_or_default().into_iter().map(|flag| format!("it looks suspicious: {flag}"));
        let absence = server.pick().err();
        absence.into_iter().chain(flags).chain(server.broken_promises(&tool.key.tool)).collect()
    }

    /// Why a tool that a provider has, or may have, is not in the pool.
    fn left_out(&self, spelling: &str) -> Option<String> {
        let (sources, outside) = (self.upstreams.sources.load(), self.upstreams.outside.load());
        for source in sources.all() {
            let (id, namespace) = (source.id(), &source.provider.origin().namespace);
            let prefixes =
                [format!("{namespace}__"), format!("{}__", sanitised(namespace)), format!("@{namespace}/")];
            let own = prefixes.iter().find_map(|prefix| spelling.strip_prefix(prefix.as_str()));
            let name = own.unwrap_or(spelling);
            if let Some(name) = provided(&*source.provider, name) {
                let dropped = outside.dropped.iter().find(|(of, tool, _)| of == id && *tool == name);
                return Some(match (outside.left_out.get(id), dropped) {
                    (Some(why), _) => format!("provider {id} has it, but is left out: {why}"),
                    (None, Some((_, _, why))) => format!("provider {id} has it, but it is left out: {why}"),
                    (None, None) => {
                        format!(
                            "provider {id} has it, but the toolsAllowed or toolsDenied of {id} leave it out"
                        )
                    }
                });
            }
            let absent = source.server.as_ref().filter(|server| own.is_some() && server.pick().is_err());
            if let Some(server) = absent {
                return Some(format!(
                    "{}; whether it has this tool is not known: it never started",
                    server.absence()
                ));
            }
        }
        None
    }
}

/// The original name of a provider's tool that this spelling means.
fn provided(provider: &dyn Provider, spelling: &str) -> Option<String> {
    if provider.has_tool(spelling) {
        return Some(spelling.to_owned());
    }
    provider.tools().into_iter().map(|tool| tool.name).find(|name| sanitised(name) == spelling)
}

fn listed(tool: &Tool) -> Value {
    let reason = tool.quarantined();
    json!({
        "name": &*tool.name,
        "title": tool.spec.title,
        "description": tool.spec.description,
        "inputSchema": tool.spec.input_schema,
        "outputSchema": tool.spec.output_schema,
        "annotations": tool.spec.annotations,
        "provider": { "id": &*tool.key.provider, "kind": tool.kind, "namespace": &*tool.namespace },
        "status": if reason.is_some() { "quarantined" } else { "ready" },
        "reason": reason,
    })
}
