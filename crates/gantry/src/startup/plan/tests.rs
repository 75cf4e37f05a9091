//! From files to policies: which entry counts, what is refused and where.

use super::validate;
use crate::config::{Config, Env, MAIN_PROJECT, Source};
use gantry_core::policy::{Policies, RecordedCall};
use gantry_core::tool::{ApprovalRule, Effect, Origin, Tool, ToolKind};
use std::time::Duration;
use tempfile::TempDir;

fn compiled(text: &str, project: &str) -> Result<Policies, String> {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("gantry.yaml"), text).unwrap();
    let loaded = Config::load(&Source::new(folder.path()), &Env::from([]));
    let loaded = loaded.map_err(|error| error.to_string())?;
    validate(&loaded).map_err(|error| error.to_string())?;
    let project = loaded.config.project(project).unwrap();
    Ok(Policies::compile(&project.policies, project.approvals.rules.clone()).unwrap())
}

fn tool(name: &str) -> Tool {
    let origin = Origin { provider: "db".into(), namespace: "db".into(), kind: ToolKind::Mcp };
    RecordedCall::tool(&origin, name, &format!("db__{name}"), Effect::Destructive, ApprovalRule::Never)
}

#[test]
fn a_name_counts_before_a_glob_wherever_it_stands() {
    let policies = compiled(
        "approvals:\n  toolSpecificDelays: { 'db__*': 1, 'db__d*': 2, db__drop: 3 }\n  \
         estimatedCosts: { '*': 5, '@db/drop': 7 }\n",
        MAIN_PROJECT,
    )
    .unwrap();
    let gates = policies.approval_rules();
    assert_eq!(gates.delay(&tool("drop")), Duration::from_millis(3));
    assert_eq!(gates.delay(&tool("delete")), Duration::from_millis(1), "of globs the first");
    assert_eq!((gates.cost(&tool("drop")), gates.cost(&tool("delete"))), (7, 5));
}

#[test]
fn each_project_has_its_own_gates() {
    let text = "approvals: { requiresApprovalEffects: [], toolRules: { 'db__*': always } }\n\
                projects: { p: { workspace: ., approvals: { toolRules: { 'db__*': never } } }, q: { workspace: . } }\n";
    let said = |project| -> Vec<String> {
        compiled(text, project).unwrap().about(&tool("drop")).iter().map(ToString::to_string).collect()
    };
    assert_eq!(said(MAIN_PROJECT), ["toolRules asks a person about it"]);
    assert_eq!(said("p"), ["toolRules keeps its own rule from asking"]);
    assert_eq!(said("q"), ["requiresApprovalEffects asks a person about it"]);
}

#[test]
fn what_cannot_be_used_is_refused_at_its_line() {
    let refused = |text: &str, project| compiled(text, project).unwrap_err();
    let rules = "approvals:\n  toolRules:\n    a: Always\n    b: 'args.n >'\n    c: always\n";
    let error = refused(rules, MAIN_PROJECT);
    let lines: Vec<&str> = error.lines().collect();
    assert!(
        lines[0].starts_with("gantry.yaml:3: approvals.toolRules.a: the condition is not valid: \"Always\""),
        "{error}"
    );
    assert!(
        lines[1].starts_with("gantry.yaml:4: approvals.toolRules.b: the condition is not valid: "),
        "{error}"
    );
    assert_eq!(lines.len(), 2);
    let wild = format!(
        "projects:\n  p:\n    workspace: .\n    approvals: {{ approvers: {{ '{}': [ann] }} }}\n",
        "*a".repeat(17)
    );
    let said = refused(&wild, "p");
    assert!(said.starts_with("gantry.yaml:4: ") && said.contains("the tool pattern"), "{said}");
    assert_eq!(
        refused(
            "policies:\n  - { name: p, tools: [a], decide: deny,\n      approvers: [ann] }\n",
            MAIN_PROJECT
        ),
        "gantry.yaml:3: policy p: approvers is for rules that decide ask, and this one decides deny; remove it, or write \
         decide: ask"
    );
}

#[test]
fn problems_of_all_kinds_are_found_at_once() {
    let folder = TempDir::new().unwrap();
    let text = "workspace: ./gone\ndefaults: { toolTimout: 5 }\npolicies:\n  - { name: a, tools: [x], decide: deny, when: 'arg.x == 1' }\n\
                mcpServers: { a: { queue: none } }\n";
    std::fs::write(folder.path().join("gantry.yaml"), text).unwrap();
    let error = crate::startup::check(&Source::new(folder.path()), &Env::from([])).unwrap_err();
    let lines: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    let begins = |at: usize, text: &str| {
        lines.iter().any(|line| line.starts_with(&format!("gantry.yaml:{at}: {text}")))
    };
    assert!(begins(1, "workspace: "), "{lines:?}");
    assert!(begins(2, "unknown key \"toolTimout\""), "{lines:?}");
    assert!(begins(4, "policy a: the condition is not valid"), "{lines:?}");
    assert!(begins(5, "mcpServers.a.queue: unknown queue"), "{lines:?}");
    assert!(begins(5, "mcpServers.a needs \"command\""), "{lines:?}");
    assert_eq!(lines.len(), 5, "{lines:?}");
    // A rule that cannot be read has another one take its number.
    let text =
        "policies:\n  - { name: a, tools: [x] }\n  - { name: b, tools: [x], decide: deny, when: 'arg.x' }\n";
    std::fs::write(folder.path().join("gantry.yaml"), text).unwrap();
    let error = crate::startup::check(&Source::new(folder.path()), &Env::from([])).unwrap_err();
    assert_eq!(error.to_string(), "gantry.yaml:2: policies[0] needs the key \"decide\"");
}
