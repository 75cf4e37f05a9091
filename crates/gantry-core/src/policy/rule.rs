//! A policy: as it is written, as it is compiled, and checked against its own examples.

use super::condition::Condition;
use crate::digest::Digest;
use crate::pattern::{self, Pattern};
use serde_json::Value;
use std::sync::Arc;

words! {
    /// What a policy does with the calls that it applies to.
    pub enum Decide {
        Deny = "deny",
        /// Ask a person.
        Ask = "ask",
    }
}

/// A policy as it is written.
#[derive(Debug, Clone, Default)]
pub struct RuleSpec {
    /// For messages and the ledger.
    pub name: String,
    /// The tools that it applies to.
    pub tools: Vec<String>,
    /// The condition under which it applies; none means always.
    pub when: Option<String>,
    /// None denies, so that a forgotten key allows nothing.
    pub decide: Option<Decide>,
    /// Why, in words for the caller.
    pub reason: Option<String>,
    /// Who may answer its question, by name; an empty list means every approver.
    pub approvers: Vec<String>,
    /// Examples of arguments that it must apply to.
    pub applies_to: Vec<Value>,
    /// Examples of arguments that it must not apply to.
    pub passes: Vec<Value>,
}

/// Why a policy cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Pattern(#[from] pattern::Error),
    #[error("the rule names no tools; write tools: [\"*\"] for all of them")]
    NoTools,
    #[error("the condition is not valid: {message}")]
    Condition { message: String },
    #[error("the rule fails its own example {example}: it {outcome}")]
    Example { example: String, outcome: String },
}

/// One example of a policy, and whether the policy applies to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedExample<'a> {
    /// The arguments.
    pub example: &'a Value,
    expected: bool,
    /// Whether the policy applies, or why that cannot be evaluated.
    pub found: Result<bool, String>,
}

impl CheckedExample<'_> {
    fn error(&self) -> Option<RuleError> {
        let outcome = match &self.found {
            Ok(found) if *found == self.expected => return None,
            Ok(true) => "applies where it should pass".to_owned(),
            Ok(false) => "passes where it should apply".to_owned(),
            Err(message) => format!("cannot be judged ({message})"),
        };
        Some(RuleError::Example { example: self.example.to_string(), outcome })
    }
}

impl RuleSpec {
    /// The decision, also where none is written.
    pub fn decides(&self) -> Decide {
        self.decide.unwrap_or(Decide::Deny)
    }

    /// Checks the policy against each of its examples.
    ///
    /// # Errors
    /// A pattern or the condition is unusable.
    pub fn check(&self) -> Result<Vec<CheckedExample<'_>>, RuleError> {
        let rule = Rule::without_examples(self)?;
        Ok(rule.checked(self).collect())
    }

    /// The digest of what the policy does. Examples do nothing.
    fn digest(&self) -> Digest {
        let (when, reason) =
            (self.when.as_deref().unwrap_or_default(), self.reason.as_deref().unwrap_or_default());
        let head = [self.name.as_str(), when, self.decides().as_str(), reason];
        let tools = self.tools.iter().map(String::as_str);
        let approvers = self.approvers.iter().map(String::as_str);
        Digest::of_each(head.into_iter().chain(tools).chain([""]).chain(approvers))
    }
}

/// A compiled policy.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) tools: Vec<Pattern>,
    pub(super) condition: Option<Condition>,
    pub(super) decide: Decide,
    pub(super) reason: Option<String>,
    pub(super) approvers: Vec<Arc<str>>,
    pub(super) digest: Digest,
}

impl Rule {
    pub(super) fn compile(spec: &RuleSpec) -> Result<Self, RuleError> {
        let rule = Self::without_examples(spec)?;
        let error = rule.checked(spec).find_map(|checked| checked.error());
        error.map_or(Ok(rule), Err)
    }

    fn without_examples(spec: &RuleSpec) -> Result<Self, RuleError> {
        if spec.tools.is_empty() {
            return Err(RuleError::NoTools);
        }
        Ok(Self {
            name: spec.name.clone(),
            tools: spec.tools.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?,
            condition: spec.when.as_deref().map(Condition::compile).transpose()?,
            decide: spec.decides(),
            reason: spec.reason.clone(),
            approvers: spec.approvers.iter().map(|name| name.as_str().into()).collect(),
            digest: spec.digest(),
        })
    }

    fn checked<'a>(&self, spec: &'a RuleSpec) -> impl Iterator<Item = CheckedExample<'a>> {
        let applies = spec.applies_to.iter().map(|example| (example, true));
        let passes = spec.passes.iter().map(|example| (example, false));
        applies.chain(passes).map(|(example, expected)| {
            let found = self.condition.as_ref().map_or(Ok(true), |condition| condition.holds(None, example));
            CheckedExample { example, expected, found }
        })
    }

    /// The name of the policy beside keys of `approvals`.
    pub(super) fn title(&self) -> String {
        format!("policy {}", self.name)
    }
}
