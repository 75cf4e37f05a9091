//! What the policies say about a tool, regardless of arguments, and which of their entries match no tool.

use super::Policies;
use super::evaluate::{Applies, Arguments, Facts};
use crate::pattern::Pattern;
use crate::tool::Tool;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one policy, or one key of `approvals`, does with calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    rule: String,
    effect: RuleEffect,
    /// Whether it depends on the call.
    conditional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleEffect {
    Denies,
    Asks,
    /// The tool's own rule does not ask.
    WaivesToolRule,
    /// Only these approvers may answer.
    Approvers(Vec<Arc<str>>),
    Delays(Duration),
}

impl RuleSummary {
    /// Whether it refuses every call of the tool.
    pub fn always_denies(&self) -> bool {
        self.effect == RuleEffect::Denies && !self.conditional
    }
}

impl fmt::Display for RuleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        match &self.effect {
            RuleEffect::Denies => write!(f, "{rule} denies it")?,
            RuleEffect::Asks => write!(f, "{rule} asks a person about it")?,
            RuleEffect::WaivesToolRule => write!(f, "{rule} keeps its own rule from asking")?,
            RuleEffect::Approvers(names) => write!(f, "{rule} lets only {} answer for it", names.join(", "))?,
            RuleEffect::Delays(delay) => write!(f, "{rule} delays it by {} ms", delay.as_millis())?,
        }
        f.write_str(if self.conditional { ", depending on the call" } else { "" })
    }
}

impl Policies {
    /// What the policies say about a tool, for people who may know all of them.
    pub fn about(&self, tool: &Tool) -> Vec<RuleSummary> {
        let facts = Facts { tool, caller: None, arguments: Arguments::Any };
        let findings = self.evaluate(&facts).into_iter().chain(self.evaluate_approvals(&facts));
        let mut summaries: Vec<RuleSummary> = findings
            .map(|finding| RuleSummary {
                rule: finding.by.title(),
                effect: if finding.by.denies() { RuleEffect::Denies } else { RuleEffect::Asks },
                conditional: finding.applies != Applies::Yes,
            })
            .collect();
        let mut add = |rule: &str, effect| {
            summaries.push(RuleSummary { rule: rule.to_owned(), effect, conditional: false });
        };
        let rules = &self.approval_rules;
        if rules.waives_tool_rule(tool) {
            add("toolRules", RuleEffect::WaivesToolRule);
        } else if rules.effect_ask(tool).is_some() {
            add("requiresApprovalEffects", RuleEffect::Asks);
        }
        if !rules.approvers(tool).is_empty() {
            add("approvers", RuleEffect::Approvers(rules.approvers(tool).to_vec()));
        }
        if !rules.delay(tool).is_zero() {
            add("approvals", RuleEffect::Delays(rules.delay(tool)));
        }
        summaries
    }

    /// The entries of rules that match none of these tools, each with the key or policy that has it.
    pub fn unmatched(&self, tools: &[Arc<Tool>]) -> Vec<(String, String)> {
        let of_policies =
            self.rules.iter().flat_map(|rule| rule.tools.iter().map(|pattern| (rule.title(), pattern)));
        let of_approvals = self.approval_rules.patterns().map(|(key, pattern)| (key.to_owned(), pattern));
        let matches =
            |pattern: &Pattern| pattern.is_everything() || tools.iter().any(|tool| tool.matches(pattern));
        let unmatched = of_policies.chain(of_approvals).filter(|(_, pattern)| !matches(pattern));
        unmatched.map(|(key, pattern)| (key, pattern.as_str().to_owned())).collect()
    }
}
