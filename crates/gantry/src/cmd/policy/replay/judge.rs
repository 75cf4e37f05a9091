//! Judges recorded calls by the policies of a configuration.

use super::history::Entry;
use gantry_core::names::Style;
use gantry_core::policy::{RecordedCall, ReplayOutcome, replay};
use gantry_core::tool::{ApprovalRule, Effect, Origin, Settings, Tool};
use gantry_core::toolset::{Candidate, Pool, SpawnContext, Toolset};
use gantry_core::{Caller, Role};
use gantry_runtime::Plan;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Tools that are kept at most; calls of more are judged as well, with more work.
const TOOLS: usize = 10_000;

/// A tool of a project on record: its provider, its names, its effect.
type Named = (String, String, String, String, Effect);

pub(super) struct Judge {
    plans: BTreeMap<Arc<str>, Plan>,
    /// The rules that Gantry's own tools have, by project, provider and tool.
    own_rules: HashMap<(Arc<str>, Arc<str>, String), ApprovalRule>,
    tools: HashMap<Named, Arc<Tool>>,
}

impl Judge {
    pub(super) fn new(plans: BTreeMap<Arc<str>, Plan>) -> Self {
        let mut own_rules = HashMap::new();
        for (project, plan) in &plans {
            for provider in &plan.providers {
                let id = &provider.origin().provider;
                own_rules.extend(
                    provider
                        .tools()
                        .into_iter()
                        .map(|tool| ((Arc::clone(project), Arc::clone(id), tool.name), tool.approval_rule)),
                );
            }
        }
        Self { plans, own_rules, tools: HashMap::new() }
    }

    /// The tool of a call.
    pub(super) fn tool(&mut self, entry: &Entry) -> Arc<Tool> {
        let named = (
            entry.project.clone(),
            entry.provider.clone(),
            entry.original.clone(),
            entry.name.clone(),
            entry.effect,
        );
        if let Some(tool) = self.tools.get(&named) {
            return Arc::clone(tool);
        }
        let key = (entry.project.as_str().into(), entry.provider.as_str().into(), entry.original.clone());
        // A tool of a server has no rule of its own.
        let approval_rule = self.own_rules.get(&key).copied().unwrap_or(ApprovalRule::Never);
        let tool =
            RecordedCall::tool(&origin(entry), &entry.original, &entry.name, entry.effect, approval_rule);
        let tool = Arc::new(tool);
        if self.tools.len() < TOOLS {
            self.tools.insert(named, Arc::clone(&tool));
        }
        tool
    }

    /// What the policies would say to a call now; an error says why there is no answer.
    pub(super) fn replay(&mut self, entry: &Entry) -> Result<ReplayOutcome, String> {
        let tool = self.tool(entry);
        let unknown = || format!("the configuration has no project {}", entry.project);
        let plan = self.plans.get(entry.project.as_str()).ok_or_else(unknown)?;
        let role = match entry.principal.as_str() {
            "person" => Some(Role::Admin),
            "local" | "mcp" => Some(Role::Agent),
            _ => None,
        };
        let call = RecordedCall {
            auto_approved: is_auto_approved(plan, entry, &tool),
            tool,
            caller: Caller {
                principal: entry.principal.as_str().into(),
                role: role.unwrap_or(Role::Agent),
                agent: entry.agent.as_deref().map(Into::into),
                parent_agents: Arc::default(),
                project: entry.project.as_str().into(),
            },
            knows_role: role.is_some(),
            arguments: RecordedCall::arguments(&entry.arguments, entry.digest),
        };
        Ok(replay(&plan.options.policies, &call))
    }
}

fn origin(entry: &Entry) -> Origin {
    Origin {
        provider: entry.provider.as_str().into(),
        namespace: entry.namespace.as_str().into(),
        kind: entry.kind,
    }
}

/// Whether the caller's agent is set up so that the tool's own rule need not ask.
fn is_auto_approved(plan: &Plan, entry: &Entry, tool: &Tool) -> bool {
    let Some(agent) = entry.agent.as_deref().and_then(|agent| plan.options.agents.get(agent)) else {
        return false;
    };
    if agent.selection.auto_approve.is_empty() {
        return false;
    }
    let style = if entry.name == entry.original { Style::Bare } else { Style::Prefixed };
    let candidate =
        Candidate { origin: origin(entry), style, spec: tool.spec.clone(), settings: Settings::default() };
    let (pool, place) =
        (Arc::new(Pool::build(vec![candidate])), SpawnContext::top(plan.options.limits.max_depth.into()));
    Toolset::resolve(&pool, &agent.selection, &place).0.auto_approves(tool)
}
