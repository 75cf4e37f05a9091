//! The policies of a project, and what else makes its calls wait.

use super::patterns;
use crate::config::{
    Approvals, Arguments, Decide, Error, Gated, Located, Location, PerPattern, Policy, Problem, Project,
};
use gantry_core::pattern::Pattern;
use gantry_core::policy::{self, ApprovalRules, Policies, RuleError, RuleSpec, ToolRule};

/// The policies of a project.
///
/// # Errors
/// A pattern or a condition is unusable, or a rule fails its own examples.
pub(crate) fn policies(project: &Project) -> Result<Policies, Error> {
    let mut problems = Vec::new();
    let policies = compiled(project, &mut problems);
    Error::all(problems).map_or(Ok(policies), Err)
}

/// The same; problems are added to the others of the project.
pub(super) fn compiled(project: &Project, problems: &mut Vec<Problem>) -> Policies {
    let gates = gates(&project.approvals, problems);
    problems.extend(project.policies.iter().filter_map(misplaced));
    problems.extend(project.policies.iter().filter_map(unanswerable));
    let specs: Vec<RuleSpec> = project.policies.iter().map(rule).collect();
    Policies::compile(&specs, gates).unwrap_or_else(|errors| {
        for (n, error) in errors {
            if let Some(policy) = project.policies.get(n) {
                problems.push(Problem::at(place(policy, &error), format!("policy {}: {error}", policy.name)));
            }
        }
        Policies::default()
    })
}

fn gates(approvals: &Approvals, problems: &mut Vec<Problem>) -> ApprovalRules {
    let requires_approval = match &approvals.requires {
        Gated::All => vec![Pattern::everything()],
        Gated::None => Vec::new(),
        Gated::Tools(tools) => patterns(tools, problems),
    };
    ApprovalRules {
        requires_approval,
        effects: approvals.effects.clone(),
        tools: by_pattern(&approvals.tool_rules, problems, |(name, rule), problems| {
            ToolRule::parse(&rule.value)
                .map_err(|error| {
                    problems.push(Problem::at(&rule.at, format!("toolRules of {name}: {error}")))
                })
                .ok()
        }),
        approvers: by_pattern(&approvals.approvers, problems, |(_, names), _| {
            Some(names.iter().map(|name| name.as_str().into()).collect())
        }),
        default_delay: approvals.default_delay,
        tool_delays: by_pattern(&approvals.tool_delays, problems, |(_, delay), _| Some(*delay)),
        effect_delays: approvals.effect_delays.clone(),
        costs: by_pattern(&approvals.costs, problems, |(_, cost), _| Some(*cost)),
        cost_delays: approvals.cost_delays.clone(),
        approval_cost: approvals.from_cost,
    }
}

/// A list whose first entry that names a tool counts: names before globs, and otherwise in file order.
fn by_pattern<T, U>(
    entries: &PerPattern<T>,
    problems: &mut Vec<Problem>,
    mut read: impl FnMut((&str, &T), &mut Vec<Problem>) -> Option<U>,
) -> Vec<(Pattern, U)> {
    let mut list = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let patterns = patterns(std::slice::from_ref(name), problems);
        let value = read((&name.value, value), problems);
        list.extend(patterns.into_iter().zip(value));
    }
    list.sort_by_key(|(pattern, _)| pattern.exact().is_none());
    list
}

/// A policy as the core reads it.
pub(crate) fn rule(policy: &Policy) -> RuleSpec {
    let decide = match policy.decide {
        Decide::Deny => policy::Decide::Deny,
        Decide::Ask => policy::Decide::Ask,
    };
    let values = |examples: &[Located<Arguments>]| examples.iter().map(|e| e.value.clone().into()).collect();
    RuleSpec {
        name: policy.name.clone(),
        tools: policy.tools.iter().map(|tool| tool.value.clone()).collect(),
        when: policy.when.as_ref().map(|when| when.value.clone()),
        decide: Some(decide),
        reason: policy.reason.clone(),
        approvers: policy.approvers.iter().map(|name| name.value.clone()).collect(),
        applies_to: match policy.decide {
            Decide::Deny => values(&policy.examples.deny),
            Decide::Ask => values(&policy.examples.ask),
        },
        passes: values(&policy.examples.pass),
    }
}

/// Names of those who may decide about what nobody is asked.
fn unanswerable(policy: &Policy) -> Option<Problem> {
    let name = policy.approvers.first().filter(|_| policy.decide == Decide::Deny)?;
    let advice = "is for rules that decide ask, and this one decides deny; remove it, or write decide: ask";
    Some(Problem::at(&name.at, format!("policy {}: approvers {advice}", policy.name)))
}

/// An example of a decision that the rule does not make; nothing would ever check it.
fn misplaced(policy: &Policy) -> Option<Problem> {
    let (decides, others, example) = match policy.decide {
        Decide::Deny => ("deny", "ask", policy.examples.ask.first()?),
        Decide::Ask => ("ask", "deny", policy.examples.deny.first()?),
    };
    let message = format!(
        "policy {}: examples.{others} is for rules that decide {others}, and this one decides {decides}; \
         move the example to examples.{decides}",
        policy.name
    );
    Some(Problem::at(&example.at, message))
}

/// The line that a rule's error is about.
fn place<'a>(policy: &'a Policy, error: &RuleError) -> &'a Location {
    let examples =
        || [&policy.examples.deny, &policy.examples.ask, &policy.examples.pass].into_iter().flatten();
    let line = match error {
        RuleError::Condition { .. } => policy.when.as_ref().map(|when| &when.at),
        RuleError::Example { example, .. } => {
            let written = |located: &&Located<Arguments>| {
                serde_json::to_string(&located.value).is_ok_and(|text| text == *example)
            };
            examples().find(written).map(|located| &located.at)
        }
        RuleError::Pattern(_) | RuleError::NoTools => None,
    };
    line.unwrap_or(&policy.at)
}

#[cfg(test)]
mod tests;
