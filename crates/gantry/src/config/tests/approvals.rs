//! The `approvals` of a file and of a project: what is accepted, what it means, what is refused.

use std::time::Duration;

use expect_test::{Expect, expect};
use gantry_core::approval::Scope;
use gantry_core::options::ByPattern;
use gantry_core::policy::ApprovalRules;
use gantry_core::tool::Effect;
use gantry_runtime::options::{ApprovalOptions, Delivery};

use super::{Folder, load, yaml};
use crate::config::document::Format;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written at the call")]
fn refused(text: &str, expected: Expect) {
    match load(Format::Yaml, text) {
        Ok(config) => panic!("{text}\nis accepted: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[track_caller]
fn approvals(text: &str) -> (ApprovalRules, ApprovalOptions) {
    let project = yaml(&format!("approvals: {{ {text} }}")).main().clone();
    (project.approvals.rules, project.approvals.options)
}

fn names<T>(entries: &ByPattern<T>) -> Vec<&str> {
    entries.iter().map(|(name, _)| name.as_str()).collect()
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn apr_1_a_file_that_says_nothing_asks_about_what_cannot_be_got_back() {
    let found = yaml("{}").main().clone();
    assert_eq!(found.approvals.rules, ApprovalRules::unconfigured());
    assert_eq!(found.approvals.rules.effects.list, [Effect::Destructive]);
    assert!(!found.approvals.rules.effects.is_written);
    assert_eq!(found.approvals.options, ApprovalOptions::default());
    assert_eq!(yaml("approvals:\n").main(), &found);
    assert_eq!(approvals(""), (found.approvals.rules, found.approvals.options));
}

#[test]
fn apr_1_every_key_is_read() {
    let found = approvals(
        "requiresApprovalEffects: [write, read], requiresApprovalCost: 7, remember: session, toolRules: { a: always, 'b*': \"args.n > 1\" }, \
         approvers: { a: [ann, person], '*': ['Ben B.'] }, approvalTimeoutMs: 5000, autoRejectOnTimeout: false, \
         defaultDelayMs: 1, toolSpecificDelays: { a: 2, b: 0 }, effectDelays: { read: 0, destructive: 3 }, \
         estimatedCosts: { a: 4, b: 0 }, costDelays: [{ from: 1, delayMs: 5 }, { from: 9, delayMs: 0 }], \
         delivery: hold, holdMs: 6, maxPending: 8, \
         webhook: { url: 'https://h.example/x?y=1', secret: '0123456789abcdef', allowPrivate: [127.0.0.1, '10.0.0.0/8', '::1'] }",
    );
    let (rules, options) = found;
    assert_eq!(rules.effects.list, [Effect::Write, Effect::Read]);
    assert_eq!((rules.effects.is_written, rules.remember), (true, Scope::Session));
    assert_eq!(rules.approval_cost, 7);
    assert_eq!(names(&rules.tools), ["a", "b*"]);
    assert_eq!(rules.approvers[0].1, ["ann".into(), "person".into()]);
    assert_eq!(rules.approvers[1].1, ["Ben B.".into()]);
    assert_eq!(rules.default_delay, MS(1));
    assert_eq!((names(&rules.tool_delays), rules.tool_delays[1].1), (vec!["a", "b"], Duration::ZERO));
    assert!(rules.effect_delays.contains(&(Effect::Destructive, MS(3))));
    assert_eq!((names(&rules.costs), rules.costs[0].1, rules.costs[1].1), (vec!["a", "b"], 4, 0));
    assert_eq!(rules.cost_delays, [(1, MS(5)), (9, MS(0))]);
    assert_eq!((options.timeout(), options.auto_reject), (MS(5000), false));
    assert_eq!((options.delivery, options.hold.get(), options.max_pending.get()), (Delivery::Hold, MS(6), 8));
    let webhook = options.webhook.as_ref().unwrap();
    assert_eq!((&*webhook.url, webhook.secret.expose()), ("https://h.example/x?y=1", "0123456789abcdef"));
    let ranges: Vec<String> = webhook.allow_private.iter().map(ToString::to_string).collect();
    assert_eq!(ranges, ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]);
    assert!(!format!("{options:?}").contains("0123456789abcdef"), "a secret is not shown");
}

#[test]
fn the_three_formats_keep_the_order_of_patterns_and_names_come_first() {
    let yaml = "approvals:\n  toolRules:\n    z*: always\n    a: never\n    '*': always\n";
    let json = r#"{ "approvals": { "toolRules": { "z*": "always", "a": "never", "*": "always" } } }"#;
    let toml = "[approvals.toolRules]\n\"z*\" = 'always'\na = 'never'\n\"*\" = 'always'\n";
    for (format, text) in [(Format::Yaml, yaml), (Format::Json, json), (Format::Toml, toml)] {
        let config = load(format, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(names(&config.main().approvals.rules.tools), ["a", "z*", "*"], "{text}");
    }
}

#[test]
fn zero_is_the_default_of_limits_and_no_delay() {
    let (rules, options) = approvals(
        "approvalTimeoutMs: 0, holdMs: 0, maxPending: 0, defaultDelayMs: 0, requiresApprovalCost: 0, \
         requiresApprovalEffects: []",
    );
    assert_eq!(options, ApprovalOptions::default());
    assert_eq!((rules.default_delay, rules.approval_cost), (Duration::ZERO, 0));
    assert!(rules.effects.list.is_empty(), "an empty list switches it off");
}

#[test]
fn apr_1_an_approver_has_at_least_a_second() {
    for (written, timeout) in
        [(1_u64, 1000), (999, 1000), (1000, 1000), (1001, 1001), (2_592_000_000, 2_592_000_000)]
    {
        assert_eq!(approvals(&format!("approvalTimeoutMs: {written}")).1.timeout(), MS(timeout), "{written}");
    }
}

#[test]
fn variables_reach_every_value() {
    let (rules, options) = approvals(
        "approvalTimeoutMs: '${T:-4000}', autoRejectOnTimeout: '${F:-false}', delivery: '${D:-form}', \
         requiresApprovalEffects: ['${E:-write}'], toolSpecificDelays: { a: '${MS}' }, toolRules: { a: '${R:-never}' }, \
         approvers: { a: ['${N:-ann}'] }, webhook: { url: 'http://h/', secret: '${S:-0123456789abcdef}' }",
    );
    assert_eq!((options.timeout(), options.auto_reject), (MS(4000), false));
    assert_eq!(
        (options.delivery, rules.effects.list.as_slice()),
        (Delivery::Form, [Effect::Write].as_slice())
    );
    assert_eq!((rules.tool_delays[0].1, &rules.approvers[0].1), (MS(250), &vec!["ann".into()]));
    assert!(matches!(rules.tools[0].1, gantry_core::policy::ToolRule::Never));
    assert_eq!(options.webhook.unwrap().secret.expose(), "0123456789abcdef");
}

#[test]
fn wrong_values_are_refused_with_key_and_line() {
    refused(
        "approvals:\n  requiresApprovalEffects: destructive\n  requiresApprovalCost: -1\n  toolRules:\n    a: true\n    \
         b: ' '\n    'c d': never\n  approvers:\n    a: ann\n    b: []\n    c: [' x', '']\n  approvalTimeoutMs: soon\n  \
         autoRejectOnTimeout: yes\n  defaultDelayMs: -1\n  toolSpecificDelays: { a: -5, b: 1.5 }\n  \
         effectDelays: { wriet: 1, read: -1 }\n  estimatedCosts: { a: many }\n  costDelays: [{ from: 0 }, 5]\n  \
         delivery: mail\n  holdMs: 86400001\n  maxPending: 100001\n  webhook: {}\n  approvalTimeout: 5\n",
        expect![[r#"
            gantry.yaml:2: approvals.requiresApprovalEffects must be a list, such as [a, b], or [] for none, found text
            gantry.yaml:3: approvals.requiresApprovalCost must be a whole number, found -1
            gantry.yaml:5: approvals.toolRules.a must be always, never or a condition in CEL, found true
            gantry.yaml:6: approvals.toolRules.b must be always, never or a condition in CEL, found " "
            gantry.yaml:7: "c d" in approvals.toolRules must be the name of a tool or a glob
            gantry.yaml:9: approvals.approvers.a must be a list, such as [a, b], or [] for none, found text
            gantry.yaml:10: approvals.approvers.b needs at least one item; an empty list has no meaning here
            gantry.yaml:11: approvals.approvers.c[0] must be the name of a key, or person, found " x"
            gantry.yaml:11: approvals.approvers.c[1] must be the name of a key, or person, found ""
            gantry.yaml:12: approvals.approvalTimeoutMs must be a whole number of milliseconds, found "soon"
            gantry.yaml:13: approvals.autoRejectOnTimeout must be true or false, found "yes"
            gantry.yaml:14: approvals.defaultDelayMs must be a whole number of milliseconds, found -1
            gantry.yaml:15: approvals.toolSpecificDelays.a must be a whole number of milliseconds, found -5
            gantry.yaml:15: approvals.toolSpecificDelays.b must be a whole number of milliseconds, found 1.5
            gantry.yaml:16: approvals.effectDelays.read must be a whole number of milliseconds, found -1
            gantry.yaml:16: unknown key "wriet" in approvals.effectDelays; did you mean "write"?
            gantry.yaml:17: approvals.estimatedCosts.a must be a whole number, found "many"
            gantry.yaml:18: approvals.costDelays[0].from must be a whole number, at least 1, found 0
            gantry.yaml:18: approvals.costDelays[0] needs the key "delayMs"
            gantry.yaml:18: approvals.costDelays[1] must be a group of keys, found a number
            gantry.yaml:19: approvals.delivery must be auto or tasks or url or form or hold or pending, found "mail"
            gantry.yaml:20: approvals.holdMs must be a whole number of milliseconds, at most 86400000, found 86400001
            gantry.yaml:21: approvals.maxPending must be a whole number, at most 100000, found 100001
            gantry.yaml:22: approvals.webhook needs the key "url"
            gantry.yaml:22: approvals.webhook needs the key "secret"
            gantry.yaml:23: unknown key "approvalTimeout" in approvals; did you mean "approvalTimeoutMs"?"#]],
    );
    refused(
        "approvals:\n  requiresApprovalEffects: [read, delete, 5]\n  approvalTimeoutMs: 2592000001\n  costDelays: 5\n  \
         toolRules: [a]\n  webhook:\n  remember: forever\n",
        expect![[r#"
            gantry.yaml:2: approvals.requiresApprovalEffects[1] must be read or write or destructive, found "delete"
            gantry.yaml:2: approvals.requiresApprovalEffects[2] must be text, found 5
            gantry.yaml:3: approvals.approvalTimeoutMs must be a whole number of milliseconds, at most 2592000000, found 2592000001
            gantry.yaml:4: approvals.costDelays must be a list, such as [a, b], or [] for none, found a number
            gantry.yaml:5: approvals.toolRules must be a group of keys, found a list
            gantry.yaml:6: approvals.webhook needs the key "url"
            gantry.yaml:6: approvals.webhook needs the key "secret"
            gantry.yaml:7: approvals.remember must be once or session or always, found "forever""#]],
    );
}

#[test]
fn secrets_and_addresses_of_webhooks_are_not_shown() {
    refused(
        "approvals:\n  webhook: { url: 'https://user:hunter2@h/', secret: hunter2, allowPrivate: ['*', '10.0.0.0/33', '1.2.3.4/', '::1/129', 'h'] }\n",
        expect![[r#"
            gantry.yaml:2: approvals.webhook.url must be an http:// or https:// address without user and password, such as https://example.com/path
            gantry.yaml:2: approvals.webhook.secret must be text of at least 16 characters
            gantry.yaml:2: approvals.webhook.allowPrivate[0] must be an IP address or a range of them, such as 127.0.0.1/32, found "*"
            gantry.yaml:2: approvals.webhook.allowPrivate[1] must be an IP address or a range of them, such as 127.0.0.1/32, found "10.0.0.0/33"
            gantry.yaml:2: approvals.webhook.allowPrivate[2] must be an IP address or a range of them, such as 127.0.0.1/32, found "1.2.3.4/"
            gantry.yaml:2: approvals.webhook.allowPrivate[3] must be an IP address or a range of them, such as 127.0.0.1/32, found "::1/129"
            gantry.yaml:2: approvals.webhook.allowPrivate[4] must be an IP address or a range of them, such as 127.0.0.1/32, found "h""#]],
    );
    refused(
        "approvals:\n  webhook:\n    url: ftp://hunter2/\n    secret: '${SECRET}'\n",
        expect![[r#"
            gantry.yaml:3: approvals.webhook.url must be an http:// or https:// address without user and password, such as https://example.com/path
            gantry.yaml:4: approvals.webhook.secret must be text of at least 16 characters"#]],
    );
}

#[test]
fn apr_1_a_project_has_approvals_of_its_own_and_inherits_none() {
    let config = yaml(
        "approvals: { requiresApprovalTools: all, approvalTimeoutMs: 5000, defaultDelayMs: 9 }\n\
         projects:\n  bare: { workspace: . }\n  full: { workspace: ., approvals: { approvalTimeoutMs: 7000, toolRules: { x: never } } }\n",
    );
    let (bare, full) = (&config.projects["bare"], &config.projects["full"]);
    assert_eq!(&bare.approvals, &yaml("{}").main().approvals);
    assert_eq!(
        (full.approvals.options.timeout(), full.approvals.rules.default_delay),
        (MS(7000), Duration::ZERO)
    );
    assert!(full.approvals.rules.requires_approval.is_empty());
    assert_eq!(names(&full.approvals.rules.tools), ["x"]);
    refused(
        "projects:\n  p:\n    workspace: .\n    approvals: { defaultDelayMs: -1, requiresAprovalTools: all }\n",
        expect![[r#"
            gantry.yaml:4: projects.p.approvals.defaultDelayMs must be a whole number of milliseconds, found -1
            gantry.yaml:4: unknown key "requiresAprovalTools" in projects.p.approvals; did you mean "requiresApprovalTools"?"#]],
    );
}

#[test]
fn projects_that_miss_the_approvals_of_the_file_are_named() {
    let warnings = |text: &str| Folder::with(&[("gantry.yaml", text)]).load().warnings;
    let projects = "projects: { a: { workspace: . }, b: { workspace: ., approvals: {} } }";
    assert_eq!(
        warnings(&format!("approvals: {{ requiresApprovalTools: all }}\n{projects}")),
        [
            "gantry.yaml:2: projects.a has no approvals, and those of the file are not inherited; write its own, or \
             approvals: {} if it needs none"
        ]
    );
    assert!(warnings(projects).is_empty());
    assert!(warnings(&format!("approvals: {{}}\n{projects}")).is_empty());
}

#[test]
fn apr_1_a_rule_names_who_may_approve() {
    let config = yaml("policies: [{ name: p, tools: [a], decide: ask, approvers: [ann, person] }]");
    assert_eq!(config.main().policies[0].approvers, ["ann", "person"]);
    refused(
        "policies:\n  - { name: p, tools: [a], decide: ask, approvers: [] }\n  - { name: q, tools: [a], decide: ask, approvers: ann }\n",
        expect![[r#"
            gantry.yaml:2: policies[0].approvers needs at least one item; an empty list has no meaning here
            gantry.yaml:3: policies[1].approvers must be a list, such as [a, b], or [] for none, found text"#]],
    );
}
