//! Explains to an administrator why an agent can call a tool, or not.

use super::providers::ProviderEntry;
use super::{Runtime, Snapshot};
use gantry_core::Tool;
use gantry_core::names::sanitised;
use gantry_core::tool::ApprovalRule;
use gantry_core::toolset::{self, SpawnContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a tool is visible to an agent, or not.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
    /// Why an agent, at this depth below the first one, may call a tool, or not.
    #[must_use]
    pub fn explain(&self, spelling: &str, agent: Option<&str>, depth: u32) -> Explanation {
        // Nothing runs deeper than that.
        let snapshot = self.snapshot();
        let top = snapshot.top();
        let place = SpawnContext { depth: depth.min(top.max_depth), ..top };
        let (tool, (visible, reasons)) = match snapshot.find_tool(spelling, agent, &place) {
            Ok(tool) => (tool.name.to_string(), snapshot.explain(&tool, agent, &place)),
            Err(reason) => (spelling.to_owned(), (false, vec![reason])),
        };
        Explanation { tool, agent: agent.map(str::to_owned), visible, reasons }
    }
}

impl Snapshot {
    /// The tool that a spelling means, to this agent or else to a caller without one.
    fn find_tool(
        &self,
        spelling: &str,
        agent: Option<&str>,
        place: &SpawnContext,
    ) -> Result<Arc<Tool>, String> {
        let said = |refusal: gantry_core::Refusal| refusal.error().message.clone();
        let own = self.resolve_toolset(agent, place).map_err(said)?.toolset;
        if let Ok(tool) = own.find(spelling) {
            return Ok(Arc::clone(tool));
        }
        let everything = self.resolve_toolset(None, &self.top()).map_err(said)?.toolset;
        let found = everything.find(spelling).map(Arc::clone);
        found.map_err(|refusal| self.exclusion(spelling).unwrap_or_else(|| said(refusal)))
    }

    fn explain(&self, tool: &Arc<Tool>, agent: Option<&str>, place: &SpawnContext) -> (bool, Vec<String>) {
        let (id, kind) = (&tool.key.provider, tool.kind.as_str());
        let asks = match tool.spec.approval_rule {
            ApprovalRule::Never => "asks no person",
            ApprovalRule::Always => "always asks a person",
            ApprovalRule::Depends => "asks a person depending on the arguments",
        };
        let mut reasons = vec![
            format!("it is {} of provider {id} ({kind})", tool.key.tool),
            format!("its effect is {}, and by its own rule it {asks}", tool.effect.as_str()),
        ];
        let who =
            agent.map_or_else(|| "a caller without an agent".to_owned(), |agent| format!("agent {agent}"));
        let Ok(selection) = self.selection(agent) else { return (false, reasons) };
        let access = toolset::explain_access(self.pool(), &selection, place, tool);
        reasons.extend(access.sentences.iter().map(|sentence| format!("{who} {sentence}")));
        let fault = tool.fault();
        reasons.extend(fault.iter().map(|reason| format!("it is quarantined: {reason}")));
        let server = self.providers.server(id);
        reasons.extend(server.map_or_else(Vec::new, |server| server.remarks(&tool.key.tool)));
        let rules = self.options.policies.about(tool);
        reasons.extend(rules.iter().map(ToString::to_string));
        let denied = rules.iter().any(|rule| rule.always_denies());
        (access.is_visible && fault.is_none() && !denied, reasons)
    }

    /// Why a tool that a provider has, or may have, is not in the pool.
    fn exclusion(&self, spelling: &str) -> Option<String> {
        for entry in self.providers.all() {
            let (id, namespace) = (entry.id(), &entry.provider.origin().namespace);
            let prefixes =
                [format!("{namespace}__"), format!("{}__", sanitised(namespace)), format!("@{namespace}/")];
            let own = prefixes.iter().find_map(|prefix| spelling.strip_prefix(prefix.as_str()));
            let name = own.unwrap_or(spelling);
            let mut names = entry.provider.tools().into_iter().map(|tool| tool.name);
            let exact = entry.provider.has_tool(name).then(|| name.to_owned());
            if let Some(name) = exact.or_else(|| names.find(|known| sanitised(known) == name)) {
                let dropped = self.build.excluded.iter().find(|(of, tool, _)| of == id && *tool == name);
                let why = dropped.map_or_else(
                    || filter_reason(entry, &name),
                    |(_, _, why)| format!("it is left out: {why}"),
                );
                return Some(format!("provider {id} has it, but {why}"));
            }
            let server = entry.server.as_ref().filter(|_| own.is_some());
            if let Some((server, reason)) = server.and_then(|it| Some((it, it.unavailable_reason()?))) {
                let known = match server.tools_digest() {
                    Some(_) => "it did not have this tool when it was there last",
                    None => "whether it has this tool is not known: it never started",
                };
                return Some(format!("{reason}; {known}"));
            }
        }
        None
    }
}

/// Which filter of a provider's keeps a tool of it out.
fn filter_reason(entry: &ProviderEntry, tool: &str) -> String {
    let id = entry.id();
    match entry.options.denial(entry.provider.origin(), tool) {
        Some(pattern) => format!("{:?} in the toolsDenied of {id} leaves it out", pattern.as_str()),
        None => format!("nothing in the toolsAllowed of {id} matches it"),
    }
}
