//! Who may call what: rules with CEL conditions, and the verdict that they and a tool's own rule come to.
//!
//! Judging has two halves, because a tool's own rule may have to look at the world (does the file exist?) and this
//! crate does no I/O: [`judge`] applies the policies and the schema and returns [`Judged`]; the runtime asks the
//! provider; [`Judged::conclude`] makes the verdict. Deny is decided before anything is looked at, and a question is
//! only asked about arguments that are valid. Whatever goes wrong on the way is a refusal.

mod condition;

use crate::approval::Question;
use crate::call::ResolvedCall;
use crate::error::{ErrorCode, Held, Refusal, ToolError};
use crate::pattern::{self, Pattern};
use crate::permit::{Basis, Draft, Permit};
use crate::principal::Caller;
use crate::tool::{Status, Tool};
use condition::Condition;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

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

/// What a rule does with the calls that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decide {
    /// Refuse them.
    Deny,
    /// Ask a person.
    Ask,
}

/// A rule as it is written.
#[derive(Debug, Clone, Default)]
pub struct RuleSpec {
    /// Its name, for messages and the audit trail.
    pub name: String,
    /// The tools that it applies to.
    pub tools: Vec<String>,
    /// The condition under which it applies; none means always.
    pub when: Option<String>,
    /// What it does. Nothing written means nothing is allowed by mistake: it denies.
    pub decide: Option<Decide>,
    /// Why, in words for the caller.
    pub reason: Option<String>,
    /// Arguments that it must decide about.
    pub applies_to: Vec<Value>,
    /// Arguments that it must leave alone.
    pub passes: Vec<Value>,
}

/// Why a rule cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// One of its patterns is unusable.
    #[error(transparent)]
    Pattern(#[from] pattern::Error),
    /// It names no tools.
    #[error("the rule names no tools; write tools: [\"*\"] for all of them")]
    NoTools,
    /// Its condition is not CEL.
    #[error("the condition is not valid: {message}")]
    Condition { message: String },
    /// One of its own examples shows that it does not do what its author meant.
    #[error("the rule fails its own example {example}: it {outcome}")]
    Example { example: String, outcome: String },
}

#[derive(Debug)]
struct Rule {
    name: String,
    tools: Vec<Pattern>,
    condition: Option<Condition>,
    decide: Decide,
    reason: Option<String>,
}

/// What one rule says about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which rule.
    pub rule: String,
    /// What it does with calls that it applies to.
    pub decide: Decide,
    /// Whether it depends on the call.
    pub conditional: bool,
}

impl Note {
    /// Whether no call passes it.
    #[must_use]
    pub fn always_denies(&self) -> bool {
        self.decide == Decide::Deny && !self.conditional
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.decide {
            Decide::Deny => "denies it",
            Decide::Ask => "asks a person about it",
        };
        write!(f, "{} {what}{}", self.rule, if self.conditional { ", depending on the call" } else { "" })
    }
}

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

/// The policies of a project, checked and compiled.
#[derive(Debug, Default)]
pub struct Policies {
    rules: Vec<Rule>,
    requires_approval: RequiresApproval,
}

impl Policies {
    /// Compiles the rules and holds each against its own examples.
    ///
    /// # Errors
    /// Every rule that cannot be used, by its position.
    pub fn compile(
        specs: &[RuleSpec],
        requires_approval: RequiresApproval,
    ) -> Result<Self, Vec<(usize, RuleError)>> {
        let mut rules = Vec::with_capacity(specs.len());
        let mut errors = Vec::new();
        for (n, spec) in specs.iter().enumerate() {
            match Rule::compile(spec) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push((n, error)),
            }
        }
        if errors.is_empty() { Ok(Self { rules, requires_approval }) } else { Err(errors) }
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

    /// What the rules say about a tool, whatever the arguments. For people who may know.
    #[must_use]
    pub fn about(&self, tool: &Tool) -> Vec<Note> {
        let rules = self.rules.iter().filter(|rule| names(&rule.tools, tool));
        let note = |rule: &Rule| Note {
            rule: format!("policy {}", rule.name),
            decide: rule.decide,
            conditional: rule.condition.is_some(),
        };
        let listed = self.requires_approval(tool).then(|| Note {
            rule: "requiresApprovalTools".to_owned(),
            decide: Decide::Ask,
            conditional: false,
        });
        rules.map(note).chain(listed).collect()
    }

    /// The entries of rules that match none of these tools, each with where it stands.
    #[must_use]
    pub fn unmatched(&self, tools: &[Arc<Tool>]) -> Vec<(String, String)> {
        let ruled = self.rules.iter().flat_map(|rule| {
            rule.tools.iter().map(move |pattern| (format!("policy {}", rule.name), pattern))
        });
        let listed = match &self.requires_approval {
            RequiresApproval::Listed(patterns) => patterns.as_slice(),
            RequiresApproval::Nothing | RequiresApproval::Everything => &[],
        };
        let listed = listed.iter().map(|pattern| ("requiresApprovalTools".to_owned(), pattern));
        let matches = |pattern: &Pattern| {
            pattern.is_everything() || tools.iter().any(|tool| names(std::slice::from_ref(pattern), tool))
        };
        let unmatched = ruled.chain(listed).filter(|(_, pattern)| !matches(pattern));
        unmatched.map(|(place, pattern)| (place, pattern.as_str().to_owned())).collect()
    }

    fn requires_approval(&self, tool: &Tool) -> bool {
        match &self.requires_approval {
            RequiresApproval::Nothing => false,
            RequiresApproval::Everything => true,
            RequiresApproval::Listed(patterns) => names(patterns, tool),
        }
    }
}

fn names(patterns: &[Pattern], tool: &Tool) -> bool {
    patterns.iter().any(|pattern| tool.spellings().any(|spelling| pattern.matches(spelling)))
}

impl Rule {
    fn compile(spec: &RuleSpec) -> Result<Self, RuleError> {
        if spec.tools.is_empty() {
            return Err(RuleError::NoTools);
        }
        let tools = spec.tools.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?;
        let condition = spec.when.as_deref().map(Condition::compile).transpose()?;
        let rule = Self {
            name: spec.name.clone(),
            tools,
            condition,
            decide: spec.decide.unwrap_or(Decide::Deny),
            reason: spec.reason.clone(),
        };
        spec.applies_to.iter().try_for_each(|example| rule.keeps(example, true))?;
        spec.passes.iter().try_for_each(|example| rule.keeps(example, false))?;
        Ok(rule)
    }

    fn keeps(&self, example: &Value, expected: bool) -> Result<(), RuleError> {
        let outcome =
            match self.condition.as_ref().map_or(Ok(true), |condition| condition.holds(None, example)) {
                Ok(applies) if applies == expected => return Ok(()),
                Ok(true) => "applies where it should pass".to_owned(),
                Ok(false) => "passes where it should apply".to_owned(),
                Err(message) => format!("cannot be judged ({message})"),
            };
        Err(RuleError::Example { example: example.to_string(), outcome })
    }
}

/// What a tool's own rule comes to for one call, as its provider found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnVerdict {
    /// Why a person has to be asked, if one has to.
    pub ask: Option<String>,
    /// What the answer rests on and must still hold when the call runs.
    pub precondition: Option<Arc<str>>,
}

/// A call that the policies and the schema let pass, perhaps with a question.
#[derive(Debug)]
pub struct Judged {
    call: ResolvedCall,
    asks: Vec<Held>,
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
            return Err(Refusal::new(
                ErrorCode::ToolQuarantined,
                format!("{} is quarantined: {reason}", tool.name),
            ));
        }
    };
    let arguments: Value = serde_json::from_str(call.arguments()).map_err(|error| {
        Refusal::new(ErrorCode::InvalidArguments, format!("the arguments are unusable: {error}"))
    })?;
    let mut asks = Vec::new();
    for rule in policies.applying(caller, &tool, &arguments)? {
        match rule.decide {
            Decide::Deny => return Err(denied(rule)),
            Decide::Ask => asks.push(Held {
                reason: rule.reason.clone().unwrap_or_else(|| format!("policy {} asks for it", rule.name)),
                rule: format!("policy {}", rule.name),
            }),
        }
    }
    schema.check(&arguments).map_err(|violations| invalid(&tool, &violations))?;
    if policies.requires_approval(&tool) {
        let reason = format!("{} is listed in requiresApprovalTools", tool.name);
        asks.push(Held { reason, rule: "requiresApprovalTools".into() });
    }
    Ok(Judged { call, asks })
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
    /// The call that was judged.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// Adds what the tool's own rule came to, and makes the verdict.
    #[must_use]
    pub fn conclude(self, caller: &Caller, own: OwnVerdict) -> Verdict {
        let Self { call, mut asks } = self;
        if let Some(reason) = own.ask {
            asks.push(Held { reason, rule: "the tool's own rule".into() });
        }
        let draft = Draft::new(caller, call, own.precondition);
        match asks.as_slice() {
            [] => Verdict::Allow(Permit::new(draft, Basis::Policy)),
            [first, rest @ ..] => {
                let reasons =
                    rest.iter().fold(first.reason.clone(), |all, held| format!("{all}; {}", held.reason));
                let held = Held { reason: reasons, rule: first.rule.clone() };
                Verdict::Ask(Question::new(draft, held))
            }
        }
    }
}

#[cfg(test)]
mod tests;
