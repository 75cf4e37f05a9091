//! `gantry policy test`: tests every rule against its own examples.

use crate::cli::TestPolicy;
use crate::config::{Error, Loaded, MAIN_PROJECT, Project};
use crate::exit::{Outcome, UsageError};
use crate::startup::policy_problems;
use crate::term::{self, Column, plural, thousands};
use gantry_core::policy::{Examples, RuleSpec};
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

pub(super) fn run(loaded: &Loaded, args: &TestPolicy, json: bool) -> anyhow::Result<Outcome> {
    let only = args.project.as_deref();
    if let Some(name) = only.filter(|name| loaded.config.project(name).is_none()) {
        return Err(UsageError(format!("there is no project {name:?} in the configuration")).into());
    }
    let projects = || loaded.config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let mut results = Vec::new();
    for (name, project) in projects() {
        check_rules(loaded, name, project)?;
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
    Ok(if results.iter().all(|result| result.ok) { Outcome::Success } else { Outcome::Failure })
}

/// Refuses rules that are wrong in themselves; their examples are not looked at.
fn check_rules(loaded: &Loaded, name: &str, project: &Project) -> Result<(), Error> {
    let without = |policy: &RuleSpec| RuleSpec { examples: Examples::default(), ..policy.clone() };
    let specs: Vec<RuleSpec> = project.policies.iter().map(without).collect();
    Error::all(policy_problems(loaded, name, project, &specs))
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
    if !results.is_empty() {
        term::print_table(results, &COLUMNS, |result| match &result.reason {
            _ if result.ok => None,
            Some(reason) => Some(format!("{}: {reason}", result.at)),
            None => Some(result.at.clone()),
        });
    }
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
