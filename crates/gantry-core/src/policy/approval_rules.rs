//! The `approvals` part of the configuration.
//!
//! It asks a person, names the approvers, waives the own rules of tools, and delays calls. It never lets a call pass that
//! a policy denies or asks about.

use super::OWN_RULE;
use super::condition::Condition;
use super::rule::RuleError;
use crate::approval::Scope;
use crate::digest::Digest;
use crate::option_texts;
use crate::options::{
    Approver, ByPattern, DAY, Limit, Millis, OneOrMore, Pairs, Positive, by_pattern, read_as, read_text,
};
use crate::pattern::Pattern;
use crate::tool::{ApprovalRule, Effect, Tool, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::sync::Arc;
use std::time::Duration;

/// When calls of some tools wait for an approver, regardless of the tools' own rules.
#[derive(Debug, Clone)]
pub enum ToolRule {
    Always,
    /// The tool's own rule is waived. Policies and `requiresApprovalTools` still ask.
    Never,
    When(Arc<Condition>),
}

impl ToolRule {
    /// Reads `always`, `never`, or a CEL expression over the call.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        match text {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            other => Condition::compile(other).map(|condition| Self::When(Arc::new(condition))),
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

impl PartialEq for ToolRule {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<'de> Deserialize<'de> for ToolRule {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text =
            read_text(input, "always, never or a condition in CEL", false, |text| !text.trim().is_empty())?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The longest that a call may wait, for an approver or for its time: 30 days.
pub const MAX_WAIT: u64 = 30 * DAY;
/// Costs beyond it are typing accidents.
const MAX_COST: u64 = 1_000_000_000_000_000;

type Delay = Millis<0, MAX_WAIT>;
type Cost = Limit<0, MAX_COST>;

/// Which calls wait for an approver or for their time, and who may decide. The first entry of a list that matches a tool
/// counts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalRules {
    /// The tools whose calls wait for an approver: `all`, `none`, or a list of names and globs.
    #[serde(rename = "requiresApprovalTools", deserialize_with = "read_as::<RequiresApproval, _, _>")]
    #[schemars(with = "RequiresApproval", extend("default" = "none"))]
    pub requires_approval: Vec<Pattern>,
    /// Calls of tools with these effects wait for an approver, by what their server says of them (`destructiveHint`,
    /// `readOnlyHint`). Gantry's own tools have rules of their own. `[]` is off.
    #[serde(
        rename = "requiresApprovalEffects",
        default = "AskingEffects::usual",
        deserialize_with = "read_as::<Vec<Effect>, _, _>"
    )]
    #[schemars(with = "Vec<Effect>", extend("default" = ["destructive"]))]
    pub effects: AskingEffects,
    /// When calls of single tools wait for an approver: `always`; `never`, also where the tool or its effect asks for one;
    /// or a condition in CEL over `args`, `tool`, `agent`, `principal`, `project` and `role`. Names count before globs, and
    /// otherwise the first entry that matches the tool. `never` lifts no policy and nothing that `requiresApprovalTools` or
    /// `requiresApprovalCost` says.
    #[serde(rename = "toolRules", deserialize_with = "by_pattern::<ToolRule, _, _>")]
    #[schemars(with = "Pairs<Pattern, String>")]
    pub tools: ByPattern<ToolRule>,
    /// Who may decide about calls of these tools: names of keys, or `person` for the user who owns the data folder. Without
    /// an entry, every approver. A policy may name its own.
    #[serde(deserialize_with = "by_pattern::<OneOrMore<Approver>, _, _>")]
    #[schemars(with = "Pairs<Pattern, OneOrMore<Approver>>")]
    pub approvers: ByPattern<Vec<Arc<str>>>,
    /// How long every call waits before it runs. It can be cancelled until then.
    #[serde(rename = "defaultDelayMs", deserialize_with = "read_as::<Delay, _, _>")]
    #[schemars(with = "Delay")]
    pub default_delay: Duration,
    /// The delay of single tools, which replaces all other delays.
    #[serde(rename = "toolSpecificDelays", deserialize_with = "by_pattern::<Delay, _, _>")]
    #[schemars(with = "Pairs<Pattern, Delay>")]
    pub tool_delays: ByPattern<Duration>,
    /// Delays by the effect of the tool. If several delays apply, the longest counts.
    #[serde(deserialize_with = "read_as::<EffectDelays, _, _>")]
    #[schemars(with = "EffectDelays")]
    pub effect_delays: Vec<(Effect, Duration)>,
    /// The estimated cost of a call of these tools, in a unit of your choice. Approvers see it.
    #[serde(rename = "estimatedCosts", deserialize_with = "by_pattern::<Cost, _, _>")]
    #[schemars(with = "Pairs<Pattern, Cost>")]
    pub costs: ByPattern<u64>,
    /// Delays by estimated cost. If several apply, the longest counts.
    #[serde(deserialize_with = "read_as::<CostDelays, _, _>")]
    #[schemars(with = "CostDelays")]
    pub cost_delays: Vec<(u64, Duration)>,
    /// The least estimated cost (see `estimatedCosts`) of a call that waits for an approver. Without it, or with 0,
    /// the cost makes no call wait.
    #[serde(rename = "requiresApprovalCost", deserialize_with = "read_as::<Cost, _, _>")]
    #[schemars(with = "Cost")]
    pub approval_cost: u64,
    /// How far a yes may reach where one of the keys above asks: for the call (`once`), or also for all later calls of the
    /// tool by its caller, until the `session` ends or `always`. The tool's own rule, and the effects that ask where
    /// `requiresApprovalEffects` is not written, allow `always`. If several rules ask, the narrowest scope counts.
    pub remember: Scope,
}

/// The effects with which tools of servers ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskingEffects {
    pub list: Vec<Effect>,
    /// Whether the operator wrote them. Otherwise a tool asks by its own word, that it may destroy something.
    pub is_written: bool,
}

impl AskingEffects {
    fn usual() -> Self {
        Self { list: vec![Effect::Destructive], is_written: false }
    }
}

impl From<Vec<Effect>> for AskingEffects {
    fn from(list: Vec<Effect>) -> Self {
        Self { list, is_written: true }
    }
}

/// `all`, `none`, or a list of tools.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "$shape", rename_all = "lowercase", expecting = "\"all\", \"none\" or a list of tool names")]
#[schemars(inline, untagged)]
enum RequiresApproval {
    Text(#[schemars(extend("enum" = ["all", "none"]))] AllOrNone),
    List(Vec<Pattern>),
}

option_texts! {
    /// All tools, or none.
    plain AllOrNone = "\"all\", \"none\" or a list of tool names", |text| ["all", "none"].contains(&text);
}

impl From<RequiresApproval> for Vec<Pattern> {
    fn from(tools: RequiresApproval) -> Self {
        match tools {
            RequiresApproval::Text(word) if &*word == "all" => vec![Pattern::everything()],
            RequiresApproval::Text(_) => Vec::new(),
            RequiresApproval::List(tools) => tools,
        }
    }
}

/// Delays by the effect of a tool.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct EffectDelays {
    /// The delay of tools that only read.
    read: Delay,
    /// The delay of tools that change something.
    write: Delay,
    /// The delay of tools that may destroy something.
    destructive: Delay,
}

impl From<EffectDelays> for Vec<(Effect, Duration)> {
    fn from(EffectDelays { read, write, destructive }: EffectDelays) -> Self {
        [(Effect::Read, read.get()), (Effect::Write, write.get()), (Effect::Destructive, destructive.get())]
            .into()
    }
}

/// Delays by estimated cost.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
struct CostDelays(Vec<CostDelay>);

/// The delay of calls with at least this estimated cost.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CostDelay {
    /// The least estimated cost of such a call.
    from: Positive<MAX_COST>,
    /// How long the call waits before it runs.
    delay_ms: Delay,
}

impl From<CostDelays> for Vec<(u64, Duration)> {
    fn from(delays: CostDelays) -> Self {
        delays.0.iter().map(|delay| (delay.from.get(), delay.delay_ms.get())).collect()
    }
}

impl ApprovalRules {
    /// What a configuration means that says nothing about approvals: calls of tools that may destroy something wait.
    pub fn unconfigured() -> Self {
        Self { effects: AskingEffects::usual(), ..Self::default() }
    }

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

    pub fn cost(&self, tool: &Tool) -> u64 {
        first(&self.costs, tool).copied().unwrap_or(0)
    }

    /// Whether a call of the tool costs so much that a person is asked.
    pub(super) fn exceeds_cost_limit(&self, tool: &Tool) -> bool {
        self.approval_cost > 0 && self.cost(tool) >= self.approval_cost
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
        (goes_by_effect(tool) && self.effects.list.contains(&tool.effect))
            .then(|| format!("{} is marked as {}", tool.name, tool.effect.as_str()))
    }

    /// The name of the rule by which the tool itself asks, and how far a yes to it may reach.
    pub(super) fn own_rule(&self, tool: &Tool) -> (&'static str, Scope) {
        if goes_by_effect(tool) && self.effects.is_written {
            return ("requiresApprovalEffects", self.remember);
        }
        (OWN_RULE, Scope::Always)
    }

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

/// Whether it is a tool of a server, which has no rule of its own.
fn goes_by_effect(tool: &Tool) -> bool {
    tool.kind != ToolKind::Builtin && tool.spec.approval_rule == ApprovalRule::Never
}

fn first<'a, T>(entries: &'a [(Pattern, T)], tool: &Tool) -> Option<&'a T> {
    entries.iter().find(|(pattern, _)| tool.matches(pattern)).map(|(_, value)| value)
}
