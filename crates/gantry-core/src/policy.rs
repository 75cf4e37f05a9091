//! Who may call what: policies with CEL conditions, the `approvals` of the configuration, and the verdict that these and a
//! tool's own rule come to.
//!
//! Judging has two halves, because a tool's own rule may have to look at files and this crate does no I/O: [`judge`]
//! applies the policies and the schema and returns [`Evaluated`]; the runtime asks the provider;
//! [`Evaluated::into_verdict`] makes the verdict. A denial is decided before the schema is checked, and a person is asked
//! about valid arguments only. A rule that cannot be evaluated refuses the call.

mod approval_rules;
mod condition;
mod evaluate;
mod replay;
mod rule;
mod summary;

pub use approval_rules::{ApprovalRules, MAX_WAIT, ToolRule};
pub use evaluate::Unknown;
pub use replay::{RecordedCall, ReplayOutcome, replay};
pub use rule::{CheckedExample, Decide, Examples, RuleError, RuleSpec};

use crate::approval::{AskReason, Question, Scope};
use crate::call::ResolvedCall;
use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal, ToolError};
use crate::permit::{Basis, BoundCall, Permit};
use crate::principal::Caller;
use crate::tool::{Status, Tool, unusable};
use evaluate::{Applies, Arguments, By, Facts, Finding};
use rule::Rule;
use serde_json::Value;
use std::sync::Arc;

/// The name of a tool's own rule in questions and grants.
const OWN_RULE: &str = "the tool's own rule";

/// The result of judging a call. There is no default: every call is judged.
#[derive(Debug)]
pub enum Verdict {
    Allow(Permit),
    /// It may run once a person approves it.
    Ask(Question),
    Deny(Refusal),
}

/// The policies of a project, checked and compiled.
#[derive(Debug, Default)]
pub struct Policies {
    rules: Vec<Rule>,
    approval_rules: ApprovalRules,
}

impl Policies {
    /// Compiles the policies and checks each against its own examples.
    ///
    /// # Errors
    /// Every policy that cannot be used, by its position.
    pub fn compile(
        specs: &[RuleSpec],
        approval_rules: ApprovalRules,
    ) -> Result<Self, Vec<(usize, RuleError)>> {
        let mut rules = Vec::with_capacity(specs.len());
        let mut errors = Vec::new();
        for (n, spec) in specs.iter().enumerate() {
            match Rule::compile(spec) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push((n, error)),
            }
        }
        if errors.is_empty() { Ok(Self { rules, approval_rules }) } else { Err(errors) }
    }

    pub fn approval_rules(&self) -> &ApprovalRules {
        &self.approval_rules
    }

    /// A digest of all that these policies say about a tool. A decision that was made under another one is invalid.
    fn revision(&self, tool: &Tool) -> Digest {
        let rules = self.rules.iter().filter(|rule| tool.matches_any(&rule.tools));
        let mut parts: Vec<Digest> = rules.map(|rule| rule.digest).collect();
        parts.extend(self.approval_rules.digest(tool));
        if parts.is_empty() {
            return Digest::from_bytes([0; 32]);
        }
        let parts: Vec<&[u8]> = parts.iter().map(|digest| digest.as_bytes().as_slice()).collect();
        Digest::of_parts(&parts)
    }
}

/// What a tool's own rule comes to for one call, as its provider found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// Why a person has to be asked, if one has to.
    pub ask: Option<String>,
    /// The state that the answer rests on and that must still hold when the call runs.
    pub precondition: Option<Arc<str>>,
}

/// A call that the policies and the schema let pass, perhaps with questions.
#[derive(Debug)]
pub struct Evaluated {
    call: ResolvedCall,
    asks: Vec<AskReason>,
    revision: Digest,
    /// The rule by which the tool itself asks, and how far a yes to it may reach.
    own: (&'static str, Scope),
    /// Who may answer that rule.
    approvers: Vec<Arc<str>>,
}

/// Applies the policies, then the schema.
///
/// # Errors
/// A policy denies the call, a rule cannot be evaluated, the tool is quarantined, or the arguments do not fit.
pub fn judge(policies: &Policies, caller: &Caller, call: ResolvedCall) -> Result<Evaluated, Refusal> {
    let tool = Arc::clone(call.tool());
    let schema = match &tool.status {
        Status::Ready(schema) => schema,
        Status::Quarantined(reason) => return Err(quarantined(&tool, reason)),
    };
    let arguments: Value = serde_json::from_str(call.arguments()).map_err(|error| {
        Refusal::new(ErrorCode::InvalidArguments, format!("the arguments are unusable: {error}"))
    })?;
    let facts = Facts { tool: &tool, caller: Some((caller, true)), arguments: Arguments::Known(&arguments) };
    let mut findings = applying(policies.evaluate(&facts), &tool)?;
    if let Some(By::Policy(rule)) = findings.iter().find(|by| by.denies()) {
        return Err(denied(rule));
    }
    // With a schema that cannot be used no arguments fit, so the caller must not be told to try others.
    schema.ensure_compiled().map_err(|error| quarantined(&tool, &unusable(error)))?;
    schema.check(&arguments).map_err(|violations| invalid(&tool, &violations))?;
    findings.extend(applying(policies.evaluate_approvals(&facts), &tool)?);
    let rules = &policies.approval_rules;
    let (own, approvers) = (rules.own_rule(&tool), rules.approvers(&tool).to_vec());
    let asks = findings.into_iter().map(|by| ask_reason(by, &approvers, rules.remember)).collect();
    let revision = policies.revision(&tool);
    Ok(Evaluated { call, asks, revision, own, approvers })
}

/// The rules that apply; one that cannot be evaluated refuses the call.
fn applying<'a>(findings: Vec<Finding<'a>>, tool: &Tool) -> Result<Vec<By<'a>>, Refusal> {
    let mut applying = Vec::new();
    for Finding { by, applies } in findings {
        match applies {
            Applies::Yes => applying.push(by),
            Applies::No => {}
            // Of a call that is judged everything is known.
            Applies::Unknown(unknown) => return Err(not_evaluated(&by, tool, &unknown.to_string())),
            Applies::Failed(message) => return Err(not_evaluated(&by, tool, &message)),
        }
    }
    Ok(applying)
}

fn not_evaluated(by: &By<'_>, tool: &Tool, message: &str) -> Refusal {
    let refused = "could not be judged, so the call is refused";
    match by {
        By::Policy(rule) => policy_refusal(rule, format!("policy {} {refused}: {message}", rule.name)),
        By::Approvals(..) => {
            let text = format!("the tool rule of {} {refused}: {message}", tool.name);
            Refusal::new(ErrorCode::PermissionDenied, text)
        }
    }
}

fn ask_reason(by: By<'_>, approvers: &[Arc<str>], remember: Scope) -> AskReason {
    let rule = by.title().into();
    let (reason, approvers, remember) = match by {
        By::Policy(rule) => {
            let default = || format!("policy {} asks for it", rule.name);
            // A policy that names no approvers takes those of the tool.
            let approvers = if rule.approvers.is_empty() { approvers } else { &rule.approvers };
            (rule.reason.clone().unwrap_or_else(default), approvers, rule.remember)
        }
        By::Approvals(_, reason) => (reason, approvers, remember),
    };
    AskReason { rule, reason, approvers: approvers.to_vec(), remember }
}

fn quarantined(tool: &Tool, reason: &str) -> Refusal {
    Refusal::new(ErrorCode::ToolQuarantined, format!("{} is quarantined: {reason}", tool.name))
}

fn denied(rule: &Rule) -> Refusal {
    let why = rule.reason.as_deref().unwrap_or("the policy does not allow this call");
    policy_refusal(rule, format!("denied by policy {}: {why}", rule.name))
}

fn policy_refusal(rule: &Rule, message: String) -> Refusal {
    let error = ToolError::new(ErrorCode::PermissionDenied, message);
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

impl Evaluated {
    /// Whether a policy or the `approvals` ask about it already.
    pub fn asks(&self) -> bool {
        !self.asks.is_empty()
    }

    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// Adds what the tool's own rule came to, and makes the verdict.
    #[must_use]
    pub fn into_verdict(self, caller: &Caller, own: Preflight) -> Verdict {
        let Self { call, mut asks, revision, own: (rule, remember), approvers } = self;
        if let Some(reason) = own.ask {
            asks.push(AskReason { reason, rule: rule.into(), approvers, remember });
        }
        let bound = BoundCall::new(caller, call, own.precondition, revision);
        if asks.is_empty() {
            return Verdict::Allow(Permit::new(bound, Basis::Policy));
        }
        Verdict::Ask(Question::new(bound, asks))
    }
}

#[cfg(test)]
mod tests;
