//! A rule: as it is written, as it is compiled, and held against its own examples.

use super::condition::Condition;
use crate::digest::Digest;
use crate::pattern::{self, Pattern};
use serde_json::Value;
use std::sync::Arc;

/// What a rule does with the calls that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decide {
    /// Refuse them.
    Deny,
    /// Ask a person.
    Ask,
}

impl Decide {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
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
    /// Who may answer its question, by name; nobody named means whoever may decide at all.
    pub approvers: Vec<String>,
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

/// One example of a rule, and what the rule says to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<'a> {
    /// The arguments.
    pub example: &'a Value,
    /// Whether the rule has to apply to them.
    pub expected: bool,
    /// Whether it does, or why that cannot be judged.
    pub found: Result<bool, String>,
}

impl Checked<'_> {
    /// Whether the rule does what its author meant.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.found.as_ref() == Ok(&self.expected)
    }

    fn into_error(self) -> RuleError {
        let outcome = match self.found {
            Ok(true) => "applies where it should pass".to_owned(),
            Ok(false) => "passes where it should apply".to_owned(),
            Err(message) => format!("cannot be judged ({message})"),
        };
        RuleError::Example { example: self.example.to_string(), outcome }
    }
}

impl RuleSpec {
    /// What the rule decides, also where nothing is written.
    #[must_use]
    pub fn decides(&self) -> Decide {
        self.decide.unwrap_or(Decide::Deny)
    }

    /// Holds the rule against each of its examples.
    ///
    /// # Errors
    /// The rule is none: a pattern or the condition is unusable.
    pub fn check(&self) -> Result<Vec<Checked<'_>>, RuleError> {
        let rule = Rule::without_examples(self)?;
        Ok(rule.checked(self).collect())
    }

    /// The digest of what the rule does, as it is written. Examples do nothing.
    fn digest(&self) -> Digest {
        let decide = self.decides().as_str();
        let mut texts = vec![self.name.as_str(), self.when.as_deref().unwrap_or_default(), decide];
        texts.push(self.reason.as_deref().unwrap_or_default());
        texts.extend(self.tools.iter().map(String::as_str));
        texts.push("");
        texts.extend(self.approvers.iter().map(String::as_str));
        Digest::of_parts(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>())
    }
}

/// A rule, compiled.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) tools: Vec<Pattern>,
    pub(super) condition: Option<Condition>,
    pub(super) decide: Decide,
    pub(super) reason: Option<String>,
    pub(super) approvers: Vec<Arc<str>>,
    /// The digest of the rule as it is written.
    pub(super) digest: Digest,
}

impl Rule {
    pub(super) fn compile(spec: &RuleSpec) -> Result<Self, RuleError> {
        let rule = Self::without_examples(spec)?;
        let broken = rule.checked(spec).find(|checked| !checked.is_kept());
        broken.map_or(Ok(()), |broken| Err(broken.into_error()))?;
        Ok(rule)
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

    /// What the rule says to each of its examples.
    fn checked<'a>(&self, spec: &'a RuleSpec) -> impl Iterator<Item = Checked<'a>> {
        let applies = spec.applies_to.iter().map(|example| (example, true));
        let passes = spec.passes.iter().map(|example| (example, false));
        applies.chain(passes).map(|(example, expected)| {
            let found = self.condition.as_ref().map_or(Ok(true), |condition| condition.holds(None, example));
            Checked { example, expected, found }
        })
    }

    /// Its name where several sorts of rules are named.
    pub(super) fn title(&self) -> String {
        format!("policy {}", self.name)
    }
}
