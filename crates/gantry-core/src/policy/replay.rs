//! What the policies would say to a call that is on record.
//!
//! The ledger does not have everything that a call was judged by: long arguments are cut, secrets are masked, and what
//! the files looked like is gone. Where one of these would decide, the answer is that it cannot be told.

use super::condition::Condition;
use super::gates::ToolRule;
use super::rule::Decide;
use super::{OWN_RULE, Policies, names};
use crate::digest::Digest;
use crate::principal::Caller;
use crate::tool::{Annotations, ApprovalRule, Effect, Origin, Settings, Tool, ToolSpec};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A call that is on record.
#[derive(Debug)]
pub struct Recorded {
    /// Its tool, as far as the record says what that was.
    pub tool: Arc<Tool>,
    /// Who made it.
    pub caller: Caller,
    /// Whether the caller's role is on record, or follows from who they are.
    pub knows_role: bool,
    /// Its arguments; none if not all of them are on record.
    pub arguments: Option<Value>,
    /// Whether the caller's agent is set up so that the tool's own rule need not ask.
    pub auto_approved: bool,
}

impl Recorded {
    /// A tool that was called, as far as the record says what it was. It takes any arguments.
    #[must_use]
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

    /// The arguments of a call by their text in the ledger, if that is all of them: nothing was cut or masked.
    #[must_use]
    pub fn arguments(text: &str, digest: Digest) -> Option<Value> {
        // What is recorded of arguments in whole is their canonical text, and the digest is of that.
        if Digest::of(text.as_bytes()) == digest { serde_json::from_str(text).ok() } else { None }
    }
}

/// What the policies would say to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreseen {
    /// Nothing is against it.
    Runs,
    /// A person is asked by these rules, and perhaps by others.
    Held(Vec<Arc<str>>),
    /// This rule refuses it.
    Denied(String),
    /// It depends on what is not known any more.
    Untold(Untold),
}

/// Why it cannot be told what the policies would say to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Untold {
    /// A condition looks at arguments that were cut or masked.
    Arguments,
    /// A condition looks at the caller's role.
    Role,
    /// The tool's own rule looks at the world.
    World,
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arguments => "arguments were cut or masked in the ledger",
            Self::Role => "the role of the caller is not in the ledger",
            Self::World => "the tool's own rule looks at the files",
        })
    }
}

/// Whether something applies to a call.
#[derive(Clone, Copy)]
enum Applies {
    Yes,
    No,
    /// The condition cannot be judged, which refuses a call.
    Never,
    Unknown(Untold),
}

/// What the policies would say to a call that is on record.
#[must_use]
pub fn foresee(policies: &Policies, call: &Recorded) -> Foreseen {
    let mut found = Found::default();
    for rule in policies.rules.iter().filter(|rule| names(&rule.tools, &call.tool)) {
        let applies = rule.condition.as_ref().map_or(Applies::Yes, |condition| call.meets(condition));
        match (applies, rule.decide) {
            (Applies::Never, _) | (Applies::Yes, Decide::Deny) => return Foreseen::Denied(rule.title()),
            (Applies::Unknown(why), Decide::Deny) => found.perhaps_denied = Some(why),
            (applies, Decide::Ask) => found.add(applies, &rule.title()),
            (Applies::No, Decide::Deny) => {}
        }
    }
    let (gates, tool) = (&policies.gates, &call.tool);
    found.asks.extend(gates.requires_approval(tool).then(|| "requiresApprovalTools".into()));
    found.asks.extend(gates.is_dear(tool).then(|| "requiresApprovalCost".into()));
    match gates.rule(tool) {
        Some(ToolRule::Always) => found.add(Applies::Yes, "toolRules"),
        Some(ToolRule::When(when)) => match call.meets(&when.condition) {
            Applies::Never => return Foreseen::Denied("toolRules".to_owned()),
            applies @ (Applies::Yes | Applies::No | Applies::Unknown(_)) => found.add(applies, "toolRules"),
        },
        Some(ToolRule::Never) | None => {}
    }
    if !gates.lifts_approval_rule(tool) && !call.auto_approved {
        match tool.spec.approval_rule {
            ApprovalRule::Always => found.add(Applies::Yes, OWN_RULE),
            ApprovalRule::Never => found.asks.extend(gates.effect_ask(tool).map(|_| OWN_RULE.into())),
            ApprovalRule::Depends => found.add(Applies::Unknown(Untold::World), OWN_RULE),
        }
    }
    found.conclude()
}

/// What was found out about a call that nothing denies for certain.
#[derive(Default)]
struct Found {
    asks: Vec<Arc<str>>,
    perhaps_asked: Option<Untold>,
    perhaps_denied: Option<Untold>,
}

impl Found {
    /// Adds a rule that asks if it applies.
    fn add(&mut self, applies: Applies, rule: &str) {
        match applies {
            Applies::Yes => self.asks.push(rule.into()),
            Applies::Unknown(why) => self.perhaps_asked = self.perhaps_asked.or(Some(why)),
            Applies::No | Applies::Never => {}
        }
    }

    fn conclude(self) -> Foreseen {
        match (self.perhaps_denied, self.perhaps_asked) {
            (Some(why), _) => Foreseen::Untold(why),
            _ if !self.asks.is_empty() => Foreseen::Held(self.asks),
            (None, Some(why)) => Foreseen::Untold(why),
            (None, None) => Foreseen::Runs,
        }
    }
}

impl Recorded {
    fn meets(&self, condition: &Condition) -> Applies {
        if condition.looks_at("role") && !self.knows_role {
            return Applies::Unknown(Untold::Role);
        }
        let arguments = match &self.arguments {
            Some(arguments) => arguments,
            None if condition.looks_at("args") => return Applies::Unknown(Untold::Arguments),
            None => &Value::Null,
        };
        match condition.holds(Some((&self.caller, &self.tool)), arguments) {
            Ok(true) => Applies::Yes,
            Ok(false) => Applies::No,
            Err(_) => Applies::Never,
        }
    }
}
