//! The outcome that the policies would have for a recorded call.
//!
//! The ledger does not have everything that a call was judged by: long arguments are cut, secrets are masked, and the files
//! have changed since. Where one of these decides, the outcome is unknown.

use super::Policies;
use super::evaluate::{Applies, Arguments, By, Facts, Finding, Unknown};
use crate::digest::Digest;
use crate::principal::Caller;
use crate::tool::{Annotations, ApprovalRule, Effect, Origin, Settings, Tool, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// A call as the ledger has it.
#[derive(Debug)]
pub struct RecordedCall {
    pub tool: Arc<Tool>,
    pub caller: Caller,
    /// Whether the caller's role is recorded, or follows from the principal.
    pub knows_role: bool,
    /// None if some were cut or masked.
    pub arguments: Option<Value>,
    /// Whether the selection of the caller's agent approves the tool's own rule automatically.
    pub auto_approved: bool,
}

impl RecordedCall {
    /// The tool of a recorded call, with what the ledger has of it. It takes any arguments.
    pub fn tool(
        origin: &Origin,
        original: &str,
        name: &str,
        effect: Effect,
        approval_rule: ApprovalRule,
    ) -> Tool {
        let annotations = Annotations {
            read_only_hint: (effect == Effect::Read).then_some(true),
            destructive_hint: (effect == Effect::Destructive).then_some(true),
            ..Annotations::default()
        };
        let spec = ToolSpec {
            name: original.to_owned(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({ "type": "object" }).into(),
            output_schema: None,
            annotations,
            approval_rule,
            raw: None,
            target: None,
        };
        Tool::new(origin, name.to_owned(), spec, Settings::default())
    }

    /// The arguments by their text in the ledger, unless some were cut or masked.
    pub fn arguments(text: &str, digest: Digest) -> Option<Value> {
        // The ledger records complete arguments as canonical text, and the digest is of the canonical text.
        if Digest::of(text.as_bytes()) == digest { serde_json::from_str(text).ok() } else { None }
    }

    /// Whether the tool's own rule asks, where it is neither waived nor approved automatically.
    fn own_rule(&self, policies: &Policies) -> Option<Finding<'static>> {
        let rules = &policies.approval_rules;
        if rules.waives_tool_rule(&self.tool) || self.auto_approved {
            return None;
        }
        let applies = match self.tool.spec.approval_rule {
            ApprovalRule::Always => Applies::Yes,
            ApprovalRule::Never => rules.effect_ask(&self.tool).map(|_| Applies::Yes)?,
            ApprovalRule::Depends => Applies::Unknown(Unknown::Files),
        };
        let (name, _) = rules.own_rule(&self.tool);
        Some(Finding { by: By::Approvals(name, String::new()), applies })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOutcome {
    Runs,
    /// A person is asked by these rules, and perhaps by others.
    Held(Vec<Arc<str>>),
    /// This rule refuses it.
    Denied(String),
    Unknown(Unknown),
}

pub fn replay(policies: &Policies, call: &RecordedCall) -> ReplayOutcome {
    let arguments = call.arguments.as_ref().map_or(Arguments::Redacted, Arguments::Known);
    let facts = Facts { tool: &call.tool, caller: Some((&call.caller, call.knows_role)), arguments };
    let mut asks: Vec<Arc<str>> = Vec::new();
    let (mut perhaps_denied, mut perhaps_asked) = (None, None);
    let findings = policies.evaluate(&facts).into_iter().chain(policies.evaluate_approvals(&facts));
    for finding in findings.chain(call.own_rule(policies)) {
        match (finding.applies, finding.by.denies()) {
            (Applies::Failed(_), _) | (Applies::Yes, true) => {
                return ReplayOutcome::Denied(finding.by.title());
            }
            (Applies::Yes, false) => asks.push(finding.by.title().into()),
            (Applies::Unknown(unknown), true) => perhaps_denied = Some(unknown),
            (Applies::Unknown(unknown), false) => perhaps_asked = perhaps_asked.or(Some(unknown)),
            (Applies::No, _) => {}
        }
    }
    match (perhaps_denied, perhaps_asked) {
        (Some(unknown), _) => ReplayOutcome::Unknown(unknown),
        _ if !asks.is_empty() => ReplayOutcome::Held(asks),
        (None, Some(unknown)) => ReplayOutcome::Unknown(unknown),
        (None, None) => ReplayOutcome::Runs,
    }
}
