//! What the policies say about a tool, whatever the arguments, and which of their entries speak of no tool at all.

use super::gates::ToolRule;
use super::rule::Decide;
use super::{Policies, names};
use crate::pattern::Pattern;
use crate::tool::Tool;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one rule, or one part of `approvals`, says about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which.
    pub rule: String,
    /// What it says.
    pub says: Says,
    /// Whether it depends on the call.
    pub conditional: bool,
}

/// What is said about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// Its calls are refused.
    Denied,
    /// A person is asked about its calls.
    Asked,
    /// Its own rule does not ask.
    Lifted,
    /// Only these may answer.
    Answered(Vec<Arc<str>>),
    /// Its calls wait so long before they run.
    Delayed(Duration),
}

impl Note {
    /// Whether no call passes it.
    #[must_use]
    pub fn always_denies(&self) -> bool {
        self.says == Says::Denied && !self.conditional
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        match &self.says {
            Says::Denied => write!(f, "{rule} denies it")?,
            Says::Asked => write!(f, "{rule} asks a person about it")?,
            Says::Lifted => write!(f, "{rule} keeps its own rule from asking")?,
            Says::Answered(names) => write!(f, "{rule} lets only {} answer for it", names.join(", "))?,
            Says::Delayed(delay) => write!(f, "{rule} delays it by {} ms", delay.as_millis())?,
        }
        f.write_str(if self.conditional { ", depending on the call" } else { "" })
    }
}

impl Policies {
    /// What the rules and the gates say about a tool, whatever the arguments. For people who may know.
    #[must_use]
    pub fn about(&self, tool: &Tool) -> Vec<Note> {
        let rules = self.rules.iter().filter(|rule| names(&rule.tools, tool));
        let mut notes: Vec<Note> = rules
            .map(|rule| Note {
                rule: rule.title(),
                says: if rule.decide == Decide::Deny { Says::Denied } else { Says::Asked },
                conditional: rule.condition.is_some(),
            })
            .collect();
        let gates = &self.gates;
        let mut note = |rule: &str, says, conditional| {
            notes.push(Note { rule: rule.to_owned(), says, conditional });
        };
        if gates.requires_approval(tool) {
            note("requiresApprovalTools", Says::Asked, false);
        }
        if gates.effect_ask(tool).is_some() && !gates.lifts_approval_rule(tool) {
            note("requiresApprovalEffects", Says::Asked, false);
        }
        if gates.is_dear(tool) {
            note("requiresApprovalCost", Says::Asked, false);
        }
        match gates.rule(tool) {
            Some(ToolRule::Always) => note("toolRules", Says::Asked, false),
            Some(ToolRule::When(_)) => note("toolRules", Says::Asked, true),
            Some(ToolRule::Never) => note("toolRules", Says::Lifted, false),
            None => {}
        }
        if !gates.approvers(tool).is_empty() {
            note("approvers", Says::Answered(gates.approvers(tool).to_vec()), false);
        }
        if let Some(delay) = Some(gates.delay(tool)).filter(|delay| !delay.is_zero()) {
            note("approvals", Says::Delayed(delay), false);
        }
        notes
    }

    /// The entries of rules that match none of these tools, each with where it stands.
    #[must_use]
    pub fn unmatched(&self, tools: &[Arc<Tool>]) -> Vec<(String, String)> {
        let ruled =
            self.rules.iter().flat_map(|rule| rule.tools.iter().map(|pattern| (rule.title(), pattern)));
        let listed = self.gates.patterns().map(|(place, pattern)| (place.to_owned(), pattern));
        let matches = |pattern: &Pattern| {
            pattern.is_everything() || tools.iter().any(|tool| names(std::slice::from_ref(pattern), tool))
        };
        let unmatched = ruled.chain(listed).filter(|(_, pattern)| !matches(pattern));
        unmatched.map(|(place, pattern)| (place, pattern.as_str().to_owned())).collect()
    }
}
