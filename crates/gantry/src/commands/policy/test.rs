//! `gantry policy test`: tests every rule against its own examples, or predicts the decision about one call.

use crate::cli::TestPolicy;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::approvals::format;
use crate::commands::arguments;
use crate::commands::unavailable_servers::warn_unavailable;
use crate::config::{Error, Loaded, MAIN_PROJECT};
use crate::exit::{Outcome, UsageError};
use crate::startup::policy_problems;
use crate::term::{self, Column, plural, thousands};
use gantry_core::ErrorCode;
use gantry_core::approval::Approvers;
use gantry_core::policy::{Examples, RuleSpec};
use gantry_server::model::{PolicyOutcome, PolicyTest, PolicyTestRequest};
use serde::Serialize;
use serde_json::Value;

/// An example, and what the rule makes of it.
#[derive(Serialize)]
struct ExampleResult {
    project: String,
    rule: String,
    example: Value,
    expected: &'static str,
    got: &'static str,
    ok: bool,
    /// The place of the example in the configuration.
    at: String,
    /// Why the condition fails.
    reason: Option<String>,
}

const COLUMNS: [Column<ExampleResult>; 6] = [
    Column::new("", |it| if it.ok { "ok" } else { "FAILS" }.to_owned()),
    Column::unless("PROJECT", &[MAIN_PROJECT], |it| it.project.clone()),
    Column::new("RULE", |it| it.rule.clone()),
    Column::new("EXPECTED", |it| it.expected.to_owned()),
    Column::new("GOT", |it| it.got.to_owned()),
    Column::new("EXAMPLE", |it| it.example.to_string()),
];

pub(super) fn run_examples(loaded: &Loaded, args: &TestPolicy, json: bool) -> anyhow::Result<Outcome> {
    let only = args.project.as_deref();
    if let Some(name) = only.filter(|name| loaded.config.project(name).is_none()) {
        return Err(UsageError(format!("there is no project {name:?} in the configuration")).into());
    }
    let projects = || loaded.config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let mut results = Vec::new();
    for (name, project) in projects() {
        // Rules that are wrong in themselves are refused before their examples are looked at.
        let without = |policy: &RuleSpec| RuleSpec { examples: Examples::default(), ..policy.clone() };
        let specs: Vec<RuleSpec> = project.policies.iter().map(without).collect();
        Error::all(policy_problems(loaded, name, project, &specs))?;
        for (n, policy) in project.policies.iter().enumerate() {
            results.extend(test_rule(loaded, name, n, policy)?);
        }
    }
    if json {
        term::print_json(&results);
    } else {
        let rules: Vec<&RuleSpec> = projects().flat_map(|(_, project)| &project.policies).collect();
        print_results(&results, &rules);
    }
    Ok(Outcome::of(results.iter().all(|result| result.ok)))
}

fn test_rule(
    loaded: &Loaded,
    project: &str,
    n: usize,
    policy: &RuleSpec,
) -> anyhow::Result<Vec<ExampleResult>> {
    let n = n.to_string();
    let results = policy.check()?.into_iter().zip(policy.examples.all()).map(|(checked, (word, m, _))| {
        let got = match checked.found {
            Ok(true) => policy.decide.as_str(),
            Ok(false) => "pass",
            Err(_) => "cannot be judged",
        };
        ExampleResult {
            project: project.to_owned(),
            rule: policy.name.clone(),
            example: checked.example.clone(),
            expected: checked.expected,
            got,
            ok: checked.expected == got,
            at: loaded.locate(project, &["policies", &n, "examples", word, &m.to_string()]).to_string(),
            reason: checked.found.err(),
        }
    });
    Ok(results.collect())
}

fn print_results(results: &[ExampleResult], rules: &[&RuleSpec]) {
    term::print_table(results, &COLUMNS, |result| match &result.reason {
        _ if result.ok => None,
        Some(reason) => Some(format!("{}: {reason}", result.at)),
        None => Some(result.at.clone()),
    });
    let failed = results.iter().filter(|result| !result.ok).count();
    let without = rules.iter().filter(|rule| rule.examples == Examples::default()).count();
    let all = plural(results.len(), "example");
    let summary = match (rules.len(), failed) {
        (0, _) => "There are no policies, so nothing was tested.".to_owned(),
        (_, 0) if results.is_empty() => "No rule has an example.".to_owned(),
        (_, 0) => format!("All hold: {all} of {}.", plural(rules.len() - without, "rule")),
        (_, failed) => format!("{} of {all} fail.", thousands(failed)),
    };
    term::eprint(&summary);
    if without > 0 && !results.is_empty() {
        term::eprint(&format!("Without an example: {}.", plural(without, "rule")));
    }
}

pub(super) async fn predict(
    context: CommandContext,
    tool: &str,
    args: &TestPolicy,
) -> anyhow::Result<Outcome> {
    let project = args.project.as_deref().unwrap_or(MAIN_PROJECT);
    let request = PolicyTestRequest {
        tool: tool.to_owned(),
        arguments: Some(arguments::read(&args.arguments)?),
        agent: args.agent.clone(),
        project: Some(project.to_owned()),
        principal: Some(args.principal.clone()),
        role: Some(args.role),
    };
    let work = async |client: &ApiClient| {
        let result: PolicyTest = client.post("/api/v1/policy/test", &request).await?;
        term::print_value(&result, client.json, |result| describe(tool, result));
        if result.error.as_ref().is_some_and(|error| error.code == ErrorCode::ToolNotFound) {
            warn_unavailable(client, project).await?;
        }
        Ok(Outcome::of(result.outcome == PolicyOutcome::Allowed))
    };
    context.with_client(Scope::Project(project), work).await
}

fn describe(typed: &str, result: &PolicyTest) -> Vec<String> {
    let tool = result.tool.as_deref().unwrap_or(typed);
    let error = || {
        let error = result.error.as_ref();
        error.map(|error| format!("  - {} [{}]", error.message, error.code)).unwrap_or_default()
    };
    let mut lines = match result.outcome {
        PolicyOutcome::Allowed => vec![format!("{tool} would run")],
        PolicyOutcome::Held => vec![
            format!("{tool} would need an approval"),
            format!("  - by {}", result.rules.join(", ")),
            format!("  - because {}", result.reason.as_deref().unwrap_or_default()),
            format!("  - {}", approvers(result)),
        ],
        PolicyOutcome::Denied => vec![format!("{tool} would be denied"), error()],
        PolicyOutcome::Refused => vec![format!("{tool} would be refused"), error()],
    };
    if result.delay_ms > 0 {
        lines.push(format!("  - it would wait {} ms before it runs", result.delay_ms));
    }
    if result.estimated_cost > 0 {
        lines.push(format!("  - its estimated cost is {}", result.estimated_cost));
    }
    lines
}

fn approvers(result: &PolicyTest) -> String {
    match format::approvers(&result.approvers) {
        approvers @ (Approvers::Any | Approvers::OneOf(_)) => format!("{approvers} may decide"),
        none @ Approvers::None(_) => format!("{none}; change the rules"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_call_names_rules_reason_and_approvers() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        let held = |approvers| PolicyTest {
            outcome: PolicyOutcome::Held,
            tool: Some("db__drop".into()),
            rules: list(&["policy a", "toolRules"]),
            reason: Some("it is Friday; it always asks".into()),
            approvers,
            delay_ms: 500,
            ..PolicyTest::default()
        };
        assert_eq!(
            describe("drop", &held(vec![list(&["ann", "ben"]), list(&["ann", "ben"])])),
            [
                "db__drop would need an approval",
                "  - by policy a, toolRules",
                "  - because it is Friday; it always asks",
                "  - ann or ben may decide",
                "  - it would wait 500 ms before it runs",
            ]
        );
        for (lists, words) in [
            (vec![], "any approver may decide"),
            (vec![list(&["ann"]), list(&["ben", "ann"])], "ann may decide"),
            (
                vec![list(&["ann"]), list(&["ben"])],
                "no approver is in every list (ann; ben), so it cannot be approved; change the rules",
            ),
        ] {
            assert_eq!(approvers(&held(lists)), words);
        }
    }
}
