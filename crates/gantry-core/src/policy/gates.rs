//! What besides the rules makes a call wait: the `approvals` part of the configuration.
//!
//! A gate can ask for a person, name who may answer, lift a tool's own rule, and delay a call. It never lets anything
//! pass that a rule denies or asks about.

use super::condition::Condition;
use super::names;
use super::rule::RuleError;
use crate::digest::Digest;
use crate::pattern::Pattern;
use crate::tool::{ApprovalRule, Effect, Tool, ToolKind};
use std::sync::Arc;
use std::time::Duration;

/// Which calls need a person's yes whatever their tool says (`requiresApprovalTools`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RequiresApproval {
    /// None besides those that rules or tools name.
    #[default]
    Nothing,
    /// All.
    Everything,
    /// Those that match.
    Listed(Vec<Pattern>),
}

/// When calls of some tools ask, whatever the tools say themselves.
#[derive(Debug)]
pub enum ToolRule {
    /// Always.
    Always,
    /// Never: the tool's own rule is lifted. Policies and `requiresApprovalTools` still ask.
    Never,
    /// When this CEL expression holds.
    When(Box<ToolCondition>),
}

/// A condition of a tool rule.
#[derive(Debug)]
pub struct ToolCondition {
    pub(super) condition: Condition,
    text: Box<str>,
}

impl ToolCondition {
    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
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
            other => {
                let condition = Condition::compile(other)?;
                Ok(Self::When(Box::new(ToolCondition { condition, text: other.into() })))
            }
        }
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
            Self::When(when) => &when.text,
        }
    }
}

/// What makes calls wait besides the rules. The first entry of a list that names a tool is the one that counts.
#[derive(Debug, Default)]
pub struct Gates {
    /// Tools that always ask (`requiresApprovalTools`).
    pub requires_approval: RequiresApproval,
    /// Tools of servers ask if they say that they have such an effect, and have no rule of their own
    /// (`requiresApprovalEffects`).
    pub effects: Vec<Effect>,
    /// Rules of single tools (`toolRules`).
    pub tools: Vec<(Pattern, ToolRule)>,
    /// Who may answer for which tools (`approvers`).
    pub approvers: Vec<(Pattern, Vec<Arc<str>>)>,
    /// How long every call waits (`defaultDelayMs`).
    pub default_delay: Duration,
    /// How long calls of these tools wait (`toolSpecificDelays`).
    pub tool_delays: Vec<(Pattern, Duration)>,
    /// How long calls with such an effect wait (`effectDelays`).
    pub effect_delays: Vec<(Effect, Duration)>,
    /// What a call of these tools is estimated to cost (`estimatedCosts`).
    pub costs: Vec<(Pattern, u64)>,
    /// From which estimated cost on calls wait how long (`costDelays`).
    pub cost_delays: Vec<(u64, Duration)>,
    /// From which estimated cost on a person is asked (`requiresApprovalCost`).
    pub approval_cost: Option<u64>,
}

impl From<RequiresApproval> for Gates {
    fn from(requires_approval: RequiresApproval) -> Self {
        Self { requires_approval, ..Self::default() }
    }
}

impl Gates {
    /// Whether the tool is listed in `requiresApprovalTools`.
    pub(super) fn requires_approval(&self, tool: &Tool) -> bool {
        match &self.requires_approval {
            RequiresApproval::Nothing => false,
            RequiresApproval::Everything => true,
            RequiresApproval::Listed(patterns) => names(patterns, tool),
        }
    }

    /// The rule of a single tool.
    pub(super) fn rule(&self, tool: &Tool) -> Option<&ToolRule> {
        first(&self.tools, tool)
    }

    /// Who may answer for a tool; nobody named means whoever may decide at all.
    pub(super) fn approvers(&self, tool: &Tool) -> &[Arc<str>] {
        first(&self.approvers, tool).map_or(&[], Vec::as_slice)
    }

    /// What a call of the tool is estimated to cost.
    #[must_use]
    pub fn cost(&self, tool: &Tool) -> u64 {
        first(&self.costs, tool).copied().unwrap_or(0)
    }

    /// Whether a call of the tool costs so much that a person is asked.
    pub(super) fn is_dear(&self, tool: &Tool) -> bool {
        self.approval_cost.is_some_and(|limit| limit > 0 && self.cost(tool) >= limit)
    }

    /// How long a call of the tool waits before it runs. What is said of the tool itself wins; otherwise the longest.
    #[must_use]
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

    /// Why a tool of a server asks because of the effect that it says it has, if it does. A tool that has a rule of its
    /// own goes by that.
    #[must_use]
    pub fn effect_ask(&self, tool: &Tool) -> Option<String> {
        let gated = tool.kind != ToolKind::Builtin && tool.spec.approval_rule == ApprovalRule::Never;
        (gated && self.effects.contains(&tool.effect))
            .then(|| format!("{} is marked as {}", tool.name, tool.effect.as_str()))
    }

    /// Whether the tool's own rule is lifted.
    #[must_use]
    pub fn lifts_approval_rule(&self, tool: &Tool) -> bool {
        matches!(self.rule(tool), Some(ToolRule::Never))
    }

    /// Adds to a digest what these gates say about a tool, if they say anything.
    pub(super) fn revise(&self, tool: &Tool, parts: &mut Vec<Digest>) {
        let listed = if self.requires_approval(tool) { "listed" } else { "" };
        let effect = self.effect_ask(tool).unwrap_or_default();
        let cost = if self.is_dear(tool) { self.cost(tool).to_string() } else { String::new() };
        let rule = self.rule(tool).map(ToolRule::as_str).unwrap_or_default();
        let mut texts = vec![listed, &effect, &cost, rule];
        texts.extend(self.approvers(tool).iter().map(|name| &**name));
        // Most tools are under no gate, and their decisions outlive the gates of others.
        if texts.iter().any(|text| !text.is_empty()) {
            parts.push(Digest::of_parts(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>()));
        }
    }

    /// Every pattern that is written, with where it stands.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (&'static str, &Pattern)> {
        let listed = match &self.requires_approval {
            RequiresApproval::Listed(patterns) => patterns.as_slice(),
            RequiresApproval::Nothing | RequiresApproval::Everything => &[],
        };
        let listed = listed.iter().map(|pattern| ("requiresApprovalTools", pattern));
        let rules = self.tools.iter().map(|(pattern, _)| ("toolRules", pattern));
        let approvers = self.approvers.iter().map(|(pattern, _)| ("approvers", pattern));
        let delays = self.tool_delays.iter().map(|(pattern, _)| ("toolSpecificDelays", pattern));
        let costs = self.costs.iter().map(|(pattern, _)| ("estimatedCosts", pattern));
        listed.chain(rules).chain(approvers).chain(delays).chain(costs)
    }
}

/// The first entry that names the tool.
fn first<'a, T>(entries: &'a [(Pattern, T)], tool: &Tool) -> Option<&'a T> {
    let found = entries.iter().find(|(pattern, _)| names(std::slice::from_ref(pattern), tool));
    found.map(|(_, value)| value)
}
