//! Evaluates the rules that concern a tool on what is known of a call.
//!
//! Judging a call, replaying a recorded one and summarising the rules of a tool are three readings of the result.

use super::condition::Condition;
use super::rule::{Decide, Rule};
use super::{Policies, ToolRule};
use crate::principal::Caller;
use crate::tool::Tool;
use serde_json::Value;
use std::fmt;

/// A call, as far as it is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) tool: &'a Tool,
    /// Who makes the call, and whether their role is known.
    pub(super) caller: Option<(&'a Caller, bool)>,
    pub(super) arguments: Arguments<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Arguments<'a> {
    Known(&'a Value),
    /// Some of them were cut or masked.
    Redacted,
    /// No call in particular.
    Any,
}

/// Whether a rule applies to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Applies {
    Yes,
    No,
    Unknown(Unknown),
    /// The condition cannot be evaluated, which refuses the call.
    Failed(String),
}

/// What the ledger does not have of a call and a rule depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// Arguments that were cut or masked.
    Arguments,
    /// The caller's role.
    Role,
    /// The files that the tool's own rule looks at.
    Files,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arguments => "arguments were cut or masked in the ledger",
            Self::Role => "the role of the caller is not in the ledger",
            Self::Files => "the tool's own rule looks at the files",
        })
    }
}

/// A rule that concerns a tool, and whether it applies to a call.
#[derive(Debug)]
pub(super) struct Finding<'a> {
    pub(super) by: By<'a>,
    pub(super) applies: Applies,
}

#[derive(Debug)]
pub(super) enum By<'a> {
    Policy(&'a Rule),
    /// A key of `approvals`, or the tool's own rule; it asks a person for this reason.
    Approvals(&'static str, String),
}

impl By<'_> {
    pub(super) fn title(&self) -> String {
        match self {
            Self::Policy(rule) => rule.title(),
            Self::Approvals(key, _) => (*key).to_owned(),
        }
    }

    /// Whether the rule refuses calls instead of asking a person about them.
    pub(super) fn denies(&self) -> bool {
        match self {
            Self::Policy(rule) => rule.decide == Decide::Deny,
            Self::Approvals(..) => false,
        }
    }
}

impl Facts<'_> {
    fn applies(&self, condition: Option<&Condition>) -> Applies {
        let Some(condition) = condition else { return Applies::Yes };
        if self.caller.is_some_and(|(_, knows_role)| !knows_role) && condition.uses("role") {
            return Applies::Unknown(Unknown::Role);
        }
        let arguments = match self.arguments {
            Arguments::Known(arguments) => arguments,
            Arguments::Redacted if !condition.uses("args") => &Value::Null,
            Arguments::Redacted | Arguments::Any => return Applies::Unknown(Unknown::Arguments),
        };
        match condition.holds(self.caller.map(|(caller, _)| (caller, self.tool)), arguments) {
            Ok(true) => Applies::Yes,
            Ok(false) => Applies::No,
            Err(message) => Applies::Failed(message),
        }
    }
}

impl Policies {
    /// Evaluates the policies that name the tool, in their order.
    pub(super) fn evaluate<'a>(&'a self, facts: &Facts<'_>) -> Vec<Finding<'a>> {
        let rules = self.rules.iter().filter(|rule| facts.tool.matches_any(&rule.tools));
        let finding = |rule: &'a Rule| Finding {
            by: By::Policy(rule),
            applies: facts.applies(rule.condition.as_ref()),
        };
        rules.map(finding).collect()
    }

    /// Evaluates the keys of `approvals` that ask a person about the tool.
    pub(super) fn evaluate_approvals(&self, facts: &Facts<'_>) -> Vec<Finding<'static>> {
        let (rules, tool) = (&self.approval_rules, facts.tool);
        let mut findings = Vec::new();
        let mut add =
            |key, reason, applies| findings.push(Finding { by: By::Approvals(key, reason), applies });
        if rules.requires_approval(tool) {
            let reason = format!("{} is listed in requiresApprovalTools", tool.name);
            add("requiresApprovalTools", reason, Applies::Yes);
        }
        if rules.exceeds_cost_limit(tool) {
            let reason = format!("{} is estimated to cost {}", tool.name, rules.cost(tool));
            add("requiresApprovalCost", reason, Applies::Yes);
        }
        match rules.rule(tool) {
            Some(ToolRule::Always) => {
                add("toolRules", format!("{} always asks here", tool.name), Applies::Yes)
            }
            Some(ToolRule::When(condition)) => {
                let reason = format!("{} asks when {}", tool.name, condition.text());
                add("toolRules", reason, facts.applies(Some(condition)));
            }
            Some(ToolRule::Never) | None => {}
        }
        findings
    }
}
