//! `gantry policy test`: every rule of every project against its own examples.

use super::several;
use crate::cli::TestPolicy;
use crate::config::{Error, Loaded, Location, MAIN_PROJECT, Problem, Project};
use crate::exit::{Done, Usage};
use crate::output::{self, Noted};
use gantry_core::policy::{Examples, Policies, RuleSpec};
use serde_json::{Value, json};

/// An example, and what came of it.
struct Tested<'a> {
    project: &'a str,
    policy: &'a RuleSpec,
    example: String,
    at: Location,
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

pub(super) fn run(loaded: &Loaded, test: &TestPolicy) -> anyhow::Result<Done> {
    let only = test.project.as_deref();
    if let Some(name) = only.filter(|name| loaded.config.project(name).is_none()) {
        return Err(Usage(format!("there is no project {name:?} in the configuration")).into());
    }
    let projects = || loaded.config.all().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let mut tested = Vec::new();
    for (name, project) in projects() {
        check_without_examples(loaded, name, project)?;
        for (n, policy) in project.policies.iter().enumerate() {
            tested.extend(checked(loaded, name, n, policy)?);
        }
    }
    let rules: Vec<&RuleSpec> = projects().flat_map(|(_, project)| &project.policies).collect();
    if test.json {
        output::json(&tested.iter().map(shown).collect());
    } else {
        table(&tested, &rules);
    }
    Ok(if tested.iter().all(Tested::is_kept) { Done::Well } else { Done::Badly })
}

/// Refuses what is wrong with the policies of a project besides the examples.
fn check_without_examples(loaded: &Loaded, name: &str, project: &Project) -> Result<(), Error> {
    let without = |policy: &RuleSpec| RuleSpec { examples: Examples::default(), ..policy.clone() };
    let specs: Vec<RuleSpec> = project.policies.iter().map(without).collect();
    let Err(errors) = Policies::compile(&specs, project.approval_rules.clone()) else { return Ok(()) };
    let problem = |(n, error): (usize, gantry_core::policy::RuleError)| {
        let key = error.key().unwrap_or_default();
        let at = loaded.locate(name, &["policies", &n.to_string(), &key]);
        let rule = specs.get(n).map(|rule| rule.name.as_str()).unwrap_or_default();
        Problem::at(&at, format!("policy {rule}: {error}"))
    };
    Error::all(errors.into_iter().map(problem)).map_or(Ok(()), Err)
}

fn checked<'a>(
    loaded: &Loaded,
    project: &'a str,
    n: usize,
    policy: &'a RuleSpec,
) -> anyhow::Result<Vec<Tested<'a>>> {
    let n = n.to_string();
    let tested =
        policy.check()?.into_iter().zip(policy.examples.all()).map(|(checked, (word, m, _))| Tested {
            project,
            policy,
            example: checked.example.to_string(),
            at: loaded.locate(project, &["policies", &n, "examples", word, &m.to_string()]),
            expected: checked.expected,
            got: match checked.found {
                Ok(true) => policy.decide.as_str(),
                Ok(false) => "pass",
                Err(_) => "cannot be judged",
            },
            trouble: checked.found.err(),
        });
    Ok(tested.collect())
}

fn shown(tested: &Tested<'_>) -> Value {
    let example: Value = serde_json::from_str(&tested.example).unwrap_or_default();
    json!({
        "project": tested.project, "rule": tested.policy.name, "example": example, "expected": tested.expected,
        "got": tested.got, "ok": tested.is_kept(), "at": tested.at.to_string(), "reason": tested.trouble,
    })
}

fn table(tested: &[Tested<'_>], rules: &[&RuleSpec]) {
    let row = |tested: &Tested<'_>| -> Noted {
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
        output::sparse_table(&head, tested.iter().map(row).collect(), &[("PROJECT", MAIN_PROJECT)]);
    }
    let without = rules.iter().filter(|rule| rule.examples == Examples::default()).count();
    let all = several(tested.len(), "example", "examples");
    let summary = match (rules.len(), failed) {
        (0, _) => "There are no policies, so nothing was tested.".to_owned(),
        (_, 0) if tested.is_empty() => "No rule has an example.".to_owned(),
        (_, 0) => format!("All hold: {all} of {}.", several(rules.len() - without, "rule", "rules")),
        (_, failed) => format!("{} of {all} fail.", super::counted(failed)),
    };
    output::talk(&summary);
    if without > 0 && !tested.is_empty() {
        output::talk(&format!("Without an example: {}.", several(without, "rule", "rules")));
    }
}
