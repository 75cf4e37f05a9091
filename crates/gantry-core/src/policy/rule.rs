//! A policy: as it is written, as it is compiled, and checked against its own examples.

use super::condition::Condition;
use crate::approval::Scope;
use crate::digest::Digest;
use crate::options::{Approver, Name, NotEmpty, OneOrMore, read_as, read_some};
use crate::pattern::{self, Pattern};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

words! {
    /// What a policy does with the calls that it applies to.
    pub enum Decide {
        Deny = "deny",
        /// Ask an approver.
        Ask = "ask",
    }
}

/// The stricter decision, so that a forgotten one allows nothing.
impl Default for Decide {
    fn default() -> Self {
        Self::Deny
    }
}

/// A rule that refuses calls or asks an approver about them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSpec {
    /// The name of the rule in logs and refusals.
    #[serde(deserialize_with = "read_as::<Name, _, _>")]
    #[schemars(with = "Name")]
    pub name: String,
    /// The tools that the rule is about: names or globs, at least one.
    #[serde(deserialize_with = "read_as::<OneOrMore<Pattern>, _, _>")]
    #[schemars(with = "OneOrMore<Pattern>")]
    pub tools: Vec<String>,
    /// A condition in CEL over `args`, the arguments of the call, and `tool`, `agent`, `principal`, `project`, `role`. Without
    /// it the rule always applies.
    #[serde(default, deserialize_with = "read_some::<NotEmpty, _, _>")]
    #[schemars(with = "Option<NotEmpty>")]
    pub when: Option<String>,
    /// Refuse the call, or ask an approver.
    pub decide: Decide,
    /// The reason that the caller reads.
    pub reason: Option<String>,
    /// For a rule that asks: who may decide. Names of keys, or `person` for the user who owns the data folder.
    /// Without it, `approvals.approvers` applies.
    #[serde(default, deserialize_with = "read_as::<OneOrMore<Approver>, _, _>")]
    #[schemars(with = "OneOrMore<Approver>")]
    pub approvers: Vec<String>,
    /// For a rule that asks: how far a yes may reach. `once` is for the call; `session` and `always` are also for all later
    /// calls of the tool by its caller, with any arguments.
    #[serde(default)]
    pub remember: Scope,
    /// Examples of arguments, with the result that the rule must have. Gantry checks them whenever it loads the
    /// configuration.
    #[serde(default)]
    pub examples: Examples,
}

/// Examples of arguments, with the result that a rule must have.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename = "RuleExamples", deny_unknown_fields)]
pub struct Examples {
    /// Arguments of calls that the rule must refuse.
    pub deny: Vec<Map<String, Value>>,
    /// Arguments of calls about which the rule must ask an approver.
    pub ask: Vec<Map<String, Value>>,
    /// Arguments of calls to which the rule must not apply.
    pub pass: Vec<Map<String, Value>>,
}

impl Examples {
    /// Every example with the word for what is expected, and its position under that word.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, usize, &Map<String, Value>)> {
        let lists = [("deny", &self.deny), ("ask", &self.ask), ("pass", &self.pass)];
        lists.into_iter().flat_map(|(word, list)| list.iter().enumerate().map(move |(n, it)| (word, n, it)))
    }
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
    Example { key: String, example: String, outcome: String },
    #[error(
        "examples.{others} is for rules that decide {others}, and this one decides {decides}; move the example to \
         examples.{decides}"
    )]
    MisplacedExample { others: &'static str, decides: &'static str },
    #[error("{key} is for rules that decide ask, and this one decides deny; remove it, or write decide: ask")]
    Misplaced { key: &'static str },
}

impl RuleError {
    /// The key of the rule that is wrong, if it is one key.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::Condition { .. } => Some("when".to_owned()),
            Self::Example { key, .. } => Some(key.clone()),
            Self::MisplacedExample { others, .. } => Some(format!("examples.{others}[0]")),
            Self::Misplaced { key } => Some((*key).to_owned()),
            Self::Pattern(_) | Self::NoTools => None,
        }
    }
}

/// One example of a policy, and whether the policy applies to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedExample {
    /// The key of the example in the rule: `examples.deny[0]`.
    pub key: String,
    /// The word for what is expected: `deny`, `ask` or `pass`.
    pub expected: &'static str,
    pub example: Value,
    /// Whether the policy applies, or why that cannot be evaluated.
    pub found: Result<bool, String>,
}

impl CheckedExample {
    fn error(&self) -> Option<RuleError> {
        let outcome = match &self.found {
            Ok(found) if *found == (self.expected != "pass") => return None,
            Ok(true) => "applies where it should pass".to_owned(),
            Ok(false) => "passes where it should apply".to_owned(),
            Err(message) => format!("cannot be judged ({message})"),
        };
        Some(RuleError::Example { key: self.key.clone(), example: self.example.to_string(), outcome })
    }
}

impl RuleSpec {
    /// Checks the policy against each of its examples.
    pub fn check(&self) -> Result<Vec<CheckedExample>, RuleError> {
        let rule = Rule::without_examples(self)?;
        Ok(rule.checked(self).collect())
    }

    /// What has no meaning beside the decision of the rule.
    fn misplaced(&self) -> Option<RuleError> {
        let (others, list) = match self.decide {
            Decide::Deny => (Decide::Ask, &self.examples.ask),
            Decide::Ask => (Decide::Deny, &self.examples.deny),
        };
        if !list.is_empty() {
            let (others, decides) = (others.as_str(), self.decide.as_str());
            return Some(RuleError::MisplacedExample { others, decides });
        }
        let keys = [("approvers", !self.approvers.is_empty()), ("remember", self.remember != Scope::Once)];
        let (key, _) = keys.into_iter().find(|(_, is_written)| *is_written && self.decide == Decide::Deny)?;
        Some(RuleError::Misplaced { key })
    }

    /// The digest of what the policy does. Examples do nothing.
    fn digest(&self) -> Digest {
        let (when, reason) =
            (self.when.as_deref().unwrap_or_default(), self.reason.as_deref().unwrap_or_default());
        let head = [self.name.as_str(), when, self.decide.as_str(), reason];
        let tools = self.tools.iter().map(String::as_str);
        let approvers = self.approvers.iter().map(String::as_str);
        Digest::of_each(head.into_iter().chain(tools).chain([""]).chain(approvers))
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) tools: Vec<Pattern>,
    pub(super) condition: Option<Condition>,
    pub(super) decide: Decide,
    pub(super) reason: Option<String>,
    pub(super) approvers: Vec<Arc<str>>,
    pub(super) remember: Scope,
    pub(super) digest: Digest,
}

impl Rule {
    pub(super) fn compile(spec: &RuleSpec) -> Result<Self, RuleError> {
        let rule = Self::without_examples(spec)?;
        if let Some(error) = spec.misplaced() {
            return Err(error);
        }
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
            decide: spec.decide,
            reason: spec.reason.clone(),
            approvers: spec.approvers.iter().map(|name| name.as_str().into()).collect(),
            remember: spec.remember,
            digest: spec.digest(),
        })
    }

    fn checked(&self, spec: &RuleSpec) -> impl Iterator<Item = CheckedExample> {
        spec.examples.all().map(|(expected, n, example)| {
            let example = Value::from(example.clone());
            let found = self.condition.as_ref().map_or(Ok(true), |condition| condition.holds(None, &example));
            CheckedExample { key: format!("examples.{expected}[{n}]"), expected, example, found }
        })
    }

    /// The name of the policy beside keys of `approvals`.
    pub(super) fn title(&self) -> String {
        format!("policy {}", self.name)
    }
}
