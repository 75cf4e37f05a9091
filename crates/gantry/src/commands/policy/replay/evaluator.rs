//! Applies the policies of a configuration to recorded calls.

use gantry_core::names::Style;
use gantry_core::policy::{RecordedCall, ReplayOutcome, replay};
use gantry_core::tool::{ApprovalRule, Effect, Origin, Settings, Tool, ToolKind};
use gantry_core::toolset::{Candidate, Pool, SpawnContext, Toolset};
use gantry_core::{Caller, Role};
use gantry_runtime::Plan;
use gantry_server::model::CallRecord;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(super) struct PolicyEvaluator {
    plans: BTreeMap<Arc<str>, Plan>,
    /// The approval rules of Gantry's own tools, by project, provider and tool.
    own_rules: HashMap<[Arc<str>; 3], ApprovalRule>,
}

impl PolicyEvaluator {
    pub(super) fn new(plans: BTreeMap<Arc<str>, Plan>) -> Self {
        let mut own_rules = HashMap::new();
        for (project, plan) in &plans {
            for provider in &plan.providers {
                let id = &provider.origin().provider;
                let key = |tool: String| [Arc::clone(project), Arc::clone(id), tool.into()];
                own_rules
                    .extend(provider.tools().into_iter().map(|tool| (key(tool.name), tool.approval_rule)));
            }
        }
        Self { plans, own_rules }
    }

    /// The tool of a call; `None` for a call of a tool that was not found.
    pub(super) fn tool(&self, call: &CallRecord) -> Option<Tool> {
        let effect = Effect::parse(&call.effect)?;
        let id = [&call.project, &call.provider, &call.original].map(Arc::clone);
        // A tool of an MCP server has no rule of its own.
        let rule = self.own_rules.get(&id).copied().unwrap_or(ApprovalRule::Never);
        Some(RecordedCall::tool(&origin(call)?, &call.original, &call.tool, effect, rule))
    }

    /// What the policies would decide now; an error says why that cannot be decided.
    pub(super) fn replay(&self, call: &CallRecord, tool: Tool) -> Result<ReplayOutcome, String> {
        let unknown = || format!("the configuration has no project {}", call.project);
        let plan = self.plans.get(&call.project).ok_or_else(unknown)?;
        let role = match &*call.principal {
            "person" => Some(Role::Admin),
            "local" | "mcp" => Some(Role::Agent),
            _ => None,
        };
        let recorded = RecordedCall {
            auto_approved: is_auto_approved(plan, call, &tool),
            tool: Arc::new(tool),
            caller: Caller {
                principal: Arc::clone(&call.principal),
                role: role.unwrap_or(Role::Agent),
                agent: call.agent.clone(),
                parent_agents: Arc::default(),
                project: Arc::clone(&call.project),
            },
            knows_role: role.is_some(),
            arguments: call
                .arguments_digest
                .and_then(|digest| RecordedCall::arguments(&call.arguments, digest)),
        };
        Ok(replay(&plan.options.policies, &recorded))
    }
}

fn origin(call: &CallRecord) -> Option<Origin> {
    let kind = ToolKind::parse(&call.kind)?;
    Some(Origin { provider: Arc::clone(&call.provider), namespace: Arc::clone(&call.namespace), kind })
}

/// Whether the configuration of the caller's agent approves the tool's own rule.
fn is_auto_approved(plan: &Plan, call: &CallRecord, tool: &Tool) -> bool {
    let agent = call.agent.as_deref().and_then(|agent| plan.options.agents.get(agent));
    let Some((agent, origin)) = agent.zip(origin(call)) else { return false };
    if agent.selection.auto_approve.is_empty() {
        return false;
    }
    let style = if call.tool == call.original { Style::Bare } else { Style::Prefixed };
    let candidate = Candidate { origin, style, spec: tool.spec.clone(), settings: Settings::default() };
    let (pool, place) =
        (Arc::new(Pool::build(vec![candidate])), SpawnContext::top(plan.options.limits.max_depth.into()));
    Toolset::resolve(&pool, &agent.selection, &place).0.auto_approves(tool)
}
