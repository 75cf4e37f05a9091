//! `gantry policy test`: every rule of every project against its own examples.

use crate::cli::TestPolicy;
use crate::config::{Arguments, Examples, Loaded, Located, Location, MAIN_PROJECT, Policy, Project};
use crate::exit::{Outcome, UsageError};
use crate::term::{self, RowWithNote};
use crate::term::{plural, thousands};
use crate::wiring;
use gantry_core::policy::RuleSpec;
use serde_json::Value;

/// An example, and what came of it.
struct Tested<'a> {
    project: &'a str,
    policy: &'a Policy,
    example: String,
    at: &'a Location,
    expected: &'static str,
    got: &'static str,
    /// Why the condition cannot be judged.
    trouble: Option<String>,
}

impl Tested<'_> {
    fn is_kept(&self) -> bool {
        self.expected == self.got
    }
}

pub(super) fn run(loaded: &Loaded, test: &TestPolicy, json: bool) -> anyhow::Result<Outcome> {
    let only = test.project.as_deref();
    if let Some(name) = only.filter(|name| loaded.config.project(name).is_none()) {
        return Err(UsageError(format!("there is no project {name:?} in the configuration")).into());
    }
    let projects = || loaded.config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let mut tested = Vec::new();
    for (name, project) in projects() {
        usable(project)?;
        for policy in &project.policies {
            tested.extend(checked(name, policy)?);
        }
    }
    let rules: Vec<&Policy> = projects().flat_map(|(_, project)| &project.policies).collect();
    if json {
        term::print_json(&tested.iter().map(shown).collect::<Value>());
    } else {
        table(&tested, &rules);
    }
    Ok(if tested.iter().all(Tested::is_kept) { Outcome::Success } else { Outcome::Failure })
}

/// Refuses what is wrong with the policies of a project besides the examples.
fn usable(project: &Project) -> Result<(), crate::config::Error> {
    let mut bare = project.clone();
    bare.policies.iter_mut().for_each(|policy| policy.examples = Examples::default());
    wiring::policies(&bare).map(drop)
}

fn checked<'a>(project: &'a str, policy: &'a Policy) -> anyhow::Result<Vec<Tested<'a>>> {
    let Examples { deny, ask, pass } = &policy.examples;
    let value = |example: &Located<Arguments>| Value::from(example.value.clone());
    // Also an example of what the rule does not decide is one that it must apply to, and fails.
    let applies_to = deny.iter().chain(ask).map(value).collect();
    let passes = pass.iter().map(value).collect();
    let spec = RuleSpec { applies_to, passes, ..wiring::rule(policy) };
    let expected = [("deny", deny), ("ask", ask), ("pass", pass)];
    let places = expected.iter().flat_map(|(word, list)| list.iter().map(|example| (*word, &example.at)));
    let tested = spec.check()?.into_iter().zip(places).map(|(checked, (expected, at))| Tested {
        project,
        policy,
        example: checked.example.to_string(),
        at,
        expected,
        got: match checked.found {
            Ok(true) => spec.decides().as_str(),
            Ok(false) => "pass",
            Err(_) => "cannot be judged",
        },
        trouble: checked.found.err(),
    });
    Ok(tested.collect())
}

fn shown(tested: &Tested<'_>) -> Value {
    let example: Value = serde_json::from_str(&tested.example).unwrap_or_default();
    serde_json::json!({
        "project": tested.project, "rule": tested.policy.name, "example": example, "expected": tested.expected,
        "got": tested.got, "ok": tested.is_kept(), "at": tested.at.to_string(), "reason": tested.trouble,
    })
}

fn table(tested: &[Tested<'_>], rules: &[&Policy]) {
    let row = |tested: &Tested<'_>| -> RowWithNote {
        let cells = [
            if tested.is_kept() { "ok" } else { "FAILS" },
            tested.project,
            &tested.policy.name,
            tested.expected,
            tested.got,
            &tested.example,
        ];
        let note = match &tested.trouble {
            _ if tested.is_kept() => None,
            Some(trouble) => Some(format!("{}: {trouble}", tested.at)),
            None => Some(tested.at.to_string()),
        };
        (cells.map(str::to_owned).into(), note)
    };
    let failed = tested.iter().filter(|tested| !tested.is_kept()).count();
    if !tested.is_empty() {
        let head = ["", "PROJECT", "RULE", "EXPECTED", "GOT", "EXAMPLE"];
        term::table_hiding_constant_columns(
            &head,
            tested.iter().map(row).collect(),
            &[("PROJECT", MAIN_PROJECT)],
        );
    }
    let without = rules.iter().filter(|rule| rule.examples == Examples::default()).count();
    let all = plural(tested.len(), "example");
    let summary = match (rules.len(), failed) {
        (0, _) => "There are no policies, so nothing was tested.".to_owned(),
        (_, 0) if tested.is_empty() => "No rule has an example.".to_owned(),
        (_, 0) => format!("All hold: {all} of {}.", plural(rules.len() - without, "rule")),
        (_, failed) => format!("{} of {all} fail.", thousands(failed)),
    };
    term::eprint(&summary);
    if without > 0 && !tested.is_empty() {
        term::eprint(&format!("Without an example: {}.", plural(without, "rule")));
    }
}
