//! Who may call what: rules with CEL conditions, and the verdict that they and a tool's own rule come to.
//!
//! Judging has two halves, because a tool's own rule may have to look at the world (does the file exist?) and this
//! crate does no I/O: [`judge`] applies the policies and the schema and returns [`Judged`]; the runtime asks the
//! provider; [`Judged::into_verdict`] makes the verdict. Deny is decided before anything is looked at, and a question is
//! only asked about arguments that are valid. Whatever goes wrong on the way is a refusal.

mod about;
mod condition;
mod gates;
mod replay;
mod rule;

pub use about::{Note, Says};
pub use gates::{Gates, RequiresApproval, ToolCondition, ToolRule};
pub use replay::{Foreseen, Recorded, Untold, foresee};
pub use rule::{Checked, Decide, RuleError, RuleSpec};

use crate::approval::{Ask, Question};
use crate::call::ResolvedCall;
use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal, ToolError};
use crate::pattern::Pattern;
use crate::permit::{Basis, Draft, Permit};
use crate::principal::Caller;
use crate::tool::{Status, Tool, unusable};
use rule::Rule;
use serde_json::Value;
use std::sync::Arc;

/// What a question calls the rule that a tool brings itself.
const OWN_RULE: &str = "the tool's own rule";

/// What judging a call comes to. There is no default: every judgement is made.
#[derive(Debug)]
pub enum Verdict {
    /// It may run.
    Allow(Permit),
    /// It may run once a person says yes.
    Ask(Question),
    /// It may not run.
    Deny(Refusal),
}

/// The policies of a project, checked and compiled.
#[derive(Debug, Default)]
pub struct Policies {
    rules: Vec<Rule>,
    gates: Gates,
}

impl Policies {
    /// Compiles the rules and holds each against its own examples.
    ///
    /// # Errors
    /// Every rule that cannot be used, by its position.
    pub fn compile(specs: &[RuleSpec], gates: impl Into<Gates>) -> Result<Self, Vec<(usize, RuleError)>> {
        let mut rules = Vec::with_capacity(specs.len());
        let mut errors = Vec::new();
        for (n, spec) in specs.iter().enumerate() {
            match Rule::compile(spec) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push((n, error)),
            }
        }
        if errors.is_empty() { Ok(Self { rules, gates: gates.into() }) } else { Err(errors) }
    }

    /// The rules that decide about a call, the denying ones first.
    fn applying<'a>(
        &'a self,
        caller: &Caller,
        tool: &Tool,
        arguments: &Value,
    ) -> Result<Vec<&'a Rule>, Refusal> {
        let mut applying = Vec::new();
        for rule in self.rules.iter().filter(|rule| names(&rule.tools, tool)) {
            let applies = match &rule.condition {
                None => true,
                Some(condition) => condition.holds(Some((caller, tool)), arguments).map_err(|message| {
                    let text = format!(
                        "policy {} could not be judged, so the call is refused: {message}",
                        rule.name
                    );
                    Refusal::from(
                        ToolError::new(ErrorCode::PermissionDenied, text)
                            .with_details(serde_json::json!({ "policy": rule.name })),
                    )
                })?,
            };
            if applies {
                applying.push(rule);
            }
        }
        applying.sort_by_key(|rule| rule.decide != Decide::Deny);
        Ok(applying)
    }

    /// Adds what the gates ask about a call.
    fn gate(
        &self,
        caller: &Caller,
        tool: &Tool,
        arguments: &Value,
        asks: &mut Vec<Ask>,
    ) -> Result<(), Refusal> {
        let gates = &self.gates;
        let mut ask = |rule: &str, reason: String| {
            asks.push(Ask { rule: rule.into(), reason, approvers: gates.approvers(tool).to_vec() });
        };
        if gates.requires_approval(tool) {
            ask("requiresApprovalTools", format!("{} is listed in requiresApprovalTools", tool.name));
        }
        if gates.is_dear(tool) {
            let cost = gates.cost(tool);
            ask("requiresApprovalCost", format!("{} is estimated to cost {cost}", tool.name));
        }
        match gates.rule(tool) {
            Some(ToolRule::Always) => ask("toolRules", format!("{} always asks here", tool.name)),
            Some(ToolRule::When(when)) => {
                let holds = when.condition.holds(Some((caller, tool)), arguments).map_err(|message| {
                    let text = format!(
                        "the tool rule of {} could not be judged, so the call is refused: {message}",
                        tool.name
                    );
                    Refusal::new(ErrorCode::PermissionDenied, text)
                })?;
                if holds {
                    ask("toolRules", format!("{} asks when {}", tool.name, when.text()));
                }
            }
            Some(ToolRule::Never) | None => {}
        }
        Ok(())
    }

    /// What makes calls wait besides the rules.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// A digest of all that these policies say about a tool. A decision that was made under another one is worth nothing.
    #[must_use]
    pub fn revision(&self, tool: &Tool) -> Digest {
        let rules = self.rules.iter().filter(|rule| names(&rule.tools, tool));
        let mut parts: Vec<Digest> = rules.map(|rule| rule.digest).collect();
        self.gates.revise(tool, &mut parts);
        if parts.is_empty() {
            return Digest::from_bytes([0; 32]);
        }
        let parts: Vec<&[u8]> = parts.iter().map(|digest| digest.as_bytes().as_slice()).collect();
        Digest::of_parts(&parts)
    }
}

fn names(patterns: &[Pattern], tool: &Tool) -> bool {
    patterns.iter().any(|pattern| tool.spellings().any(|spelling| pattern.matches(spelling)))
}

/// What a tool's own rule comes to for one call, as its provider found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// Why a person has to be asked, if one has to.
    pub ask: Option<String>,
    /// What the answer rests on and must still hold when the call runs.
    pub precondition: Option<Arc<str>>,
}

/// A call that the policies and the schema let pass, perhaps with a question.
#[derive(Debug)]
pub struct Judged {
    call: ResolvedCall,
    asks: Vec<Ask>,
    revision: Digest,
    /// Who may answer a question of the tool's own rule.
    approvers: Vec<Arc<str>>,
}

/// Applies the policies, then the schema.
///
/// # Errors
/// A rule denies the call, a rule cannot be judged, the tool is quarantined, or the arguments do not fit.
pub fn judge(policies: &Policies, caller: &Caller, call: ResolvedCall) -> Result<Judged, Refusal> {
    let tool = Arc::clone(call.tool());
    let schema = match &tool.status {
        Status::Ready(schema) => schema,
        Status::Quarantined(reason) => {
            return Err(quarantined(&tool, reason));
        }
    };
    let arguments: Value = serde_json::from_str(call.arguments()).map_err(|error| {
        Refusal::new(ErrorCode::InvalidArguments, format!("the arguments are unusable: {error}"))
    })?;
    let answering = policies.gates.approvers(&tool).to_vec();
    let mut asks = Vec::new();
    for rule in policies.applying(caller, &tool, &arguments)? {
        match rule.decide {
            Decide::Deny => return Err(denied(rule)),
            Decide::Ask => asks.push(Ask {
                reason: rule.reason.clone().unwrap_or_else(|| format!("policy {} asks for it", rule.name)),
                rule: rule.title().into(),
                // Who answers for the tool also answers for it where a rule names nobody.
                approvers: if rule.approvers.is_empty() { answering.clone() } else { rule.approvers.clone() },
            }),
        }
    }
    // No arguments would do, so that nobody is to try others.
    schema.ensure_compiled().map_err(|error| quarantined(&tool, &unusable(error)))?;
    schema.check(&arguments).map_err(|violations| invalid(&tool, &violations))?;
    policies.gate(caller, &tool, &arguments, &mut asks)?;
    let revision = policies.revision(&tool);
    Ok(Judged { call, asks, revision, approvers: answering })
}

fn quarantined(tool: &Tool, reason: &str) -> Refusal {
    Refusal::new(ErrorCode::ToolQuarantined, format!("{} is quarantined: {reason}", tool.name))
}

fn denied(rule: &Rule) -> Refusal {
    let why = rule.reason.clone().unwrap_or_else(|| "the policy does not allow this call".to_owned());
    let error = ToolError::new(ErrorCode::PermissionDenied, format!("denied by policy {}: {why}", rule.name));
    Refusal::from(error.with_details(serde_json::json!({ "policy": rule.name })))
}

fn invalid(tool: &Tool, violations: &[crate::schema::Violation]) -> Refusal {
    let named = violations.iter().map(|v| match v.field.as_str() {
        "" => v.message.clone(),
        field => format!("{} {}", field.trim_start_matches('/'), v.message),
    });
    let message =
        format!("the arguments of {} do not fit: {}", tool.name, named.collect::<Vec<_>>().join("; "));
    let error = ToolError::new(ErrorCode::InvalidArguments, message);
    Refusal::from(error.with_details(serde_json::json!({ "errors": violations })))
}

impl Judged {
    /// Whether a rule asks about it already.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The call that was judged.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// Adds what the tool's own rule came to, and makes the verdict.
    #[must_use]
    pub fn into_verdict(self, caller: &Caller, own: Preflight) -> Verdict {
        let Self { call, mut asks, revision, approvers } = self;
        if let Some(reason) = own.ask {
            asks.push(Ask { reason, rule: OWN_RULE.into(), approvers });
        }
        let draft = Draft::new(caller, call, own.precondition, revision);
        if asks.is_empty() {
            return Verdict::Allow(Permit::new(draft, Basis::Policy));
        }
        Verdict::Ask(Question::new(draft, asks))
    }
}

#[cfg(test)]
mod tests;
