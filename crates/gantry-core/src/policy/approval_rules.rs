//! The `approvals` part of the configuration.
//!
//! It asks a person, names the approvers, waives the own rules of tools, and delays calls. It never lets a call pass that
//! a policy denies or asks about.

use super::condition::Condition;
use super::rule::RuleError;
use crate::digest::Digest;
use crate::pattern::Pattern;
use crate::tool::{ApprovalRule, Effect, Tool, ToolKind};
use std::sync::Arc;
use std::time::Duration;

/// When calls of some tools ask, regardless of the tools' own rules.
#[derive(Debug)]
pub enum ToolRule {
    Always,
    /// The tool's own rule is waived. Policies and `requiresApprovalTools` still ask.
    Never,
    When(Box<Condition>),
}

impl ToolRule {
    /// Reads `always`, `never`, or a CEL expression over the call.
    ///
    /// # Errors
    /// It is neither word and no expression.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        match text {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            other => Condition::compile(other).map(|condition| Self::When(Box::new(condition))),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
            Self::When(condition) => condition.text(),
        }
    }
}

/// The `approvals` part of the configuration. The first entry of a list that matches a tool counts.
#[derive(Debug, Default)]
pub struct ApprovalRules {
    /// `requiresApprovalTools`
    pub requires_approval: Vec<Pattern>,
    /// `requiresApprovalEffects`: tools of servers ask if their hints say one of these effects, and they have no rule of
    /// their own.
    pub effects: Vec<Effect>,
    /// `toolRules`
    pub tools: Vec<(Pattern, ToolRule)>,
    /// `approvers`
    pub approvers: Vec<(Pattern, Vec<Arc<str>>)>,
    /// `defaultDelayMs`
    pub default_delay: Duration,
    /// `toolSpecificDelays`
    pub tool_delays: Vec<(Pattern, Duration)>,
    /// `effectDelays`
    pub effect_delays: Vec<(Effect, Duration)>,
    /// `estimatedCosts`
    pub costs: Vec<(Pattern, u64)>,
    /// `costDelays`: from which estimated cost on calls wait how long.
    pub cost_delays: Vec<(u64, Duration)>,
    /// `requiresApprovalCost`: from which estimated cost on a person is asked.
    pub approval_cost: Option<u64>,
}

impl ApprovalRules {
    /// Whether the tool is listed in `requiresApprovalTools`.
    pub(super) fn requires_approval(&self, tool: &Tool) -> bool {
        tool.matches_any(&self.requires_approval)
    }

    pub(super) fn rule(&self, tool: &Tool) -> Option<&ToolRule> {
        first(&self.tools, tool)
    }

    /// Who may answer for a tool; an empty list means every approver.
    pub(super) fn approvers(&self, tool: &Tool) -> &[Arc<str>] {
        first(&self.approvers, tool).map_or(&[], Vec::as_slice)
    }

    /// The estimated cost of a call of the tool.
    pub fn cost(&self, tool: &Tool) -> u64 {
        first(&self.costs, tool).copied().unwrap_or(0)
    }

    /// Whether a call of the tool costs so much that a person is asked.
    pub(super) fn exceeds_cost_limit(&self, tool: &Tool) -> bool {
        self.approval_cost.is_some_and(|limit| limit > 0 && self.cost(tool) >= limit)
    }

    /// How long a call of the tool waits before it runs: the delay of the tool itself, otherwise the longest of the others.
    pub fn delay(&self, tool: &Tool) -> Duration {
        if let Some(delay) = first(&self.tool_delays, tool) {
            return *delay;
        }
        let by_effect = self.effect_delays.iter().filter(|(effect, _)| *effect == tool.effect);
        let cost = if self.cost_delays.is_empty() { 0 } else { self.cost(tool) };
        let by_cost = self.cost_delays.iter().filter(|(from, _)| cost >= *from);
        let others = by_effect.map(|(_, delay)| *delay).chain(by_cost.map(|(_, delay)| *delay));
        others.fold(self.default_delay, Duration::max)
    }

    /// Why a tool of a server asks because of its effect, if it does. A tool that has a rule of its own goes by that.
    pub fn effect_ask(&self, tool: &Tool) -> Option<String> {
        let has_no_rule = tool.kind != ToolKind::Builtin && tool.spec.approval_rule == ApprovalRule::Never;
        (has_no_rule && self.effects.contains(&tool.effect))
            .then(|| format!("{} is marked as {}", tool.name, tool.effect.as_str()))
    }

    /// Whether the tool's own rule is waived.
    pub fn waives_tool_rule(&self, tool: &Tool) -> bool {
        matches!(self.rule(tool), Some(ToolRule::Never))
    }

    /// The digest of all that these rules say about a tool, if they say anything: decisions about other tools stay valid.
    pub(super) fn digest(&self, tool: &Tool) -> Option<Digest> {
        let listed = if self.requires_approval(tool) { "listed" } else { "" };
        let effect = self.effect_ask(tool).unwrap_or_default();
        let cost = if self.exceeds_cost_limit(tool) { self.cost(tool).to_string() } else { String::new() };
        let rule = self.rule(tool).map(ToolRule::as_str).unwrap_or_default();
        let mut texts = vec![listed, &effect, &cost, rule];
        texts.extend(self.approvers(tool).iter().map(|name| &**name));
        texts.iter().any(|text| !text.is_empty()).then(|| Digest::of_each(texts))
    }

    /// Every pattern, with the key that has it.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (&'static str, &Pattern)> {
        let listed = self.requires_approval.iter().map(|pattern| ("requiresApprovalTools", pattern));
        let rules = self.tools.iter().map(|(pattern, _)| ("toolRules", pattern));
        let approvers = self.approvers.iter().map(|(pattern, _)| ("approvers", pattern));
        let delays = self.tool_delays.iter().map(|(pattern, _)| ("toolSpecificDelays", pattern));
        let costs = self.costs.iter().map(|(pattern, _)| ("estimatedCosts", pattern));
        listed.chain(rules).chain(approvers).chain(delays).chain(costs)
    }
}

fn first<'a, T>(entries: &'a [(Pattern, T)], tool: &Tool) -> Option<&'a T> {
    entries.iter().find(|(pattern, _)| tool.matches(pattern)).map(|(_, value)| value)
}
