//! What makes calls wait besides the rules: who asks, who may answer, how long, and what of it is in the revision.

use super::*;
use crate::tool::Effect;
use std::time::Duration;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn names(list: &[&str]) -> Vec<Arc<str>> {
    list.iter().map(|name| Arc::from(*name)).collect()
}

/// A tool of a server, or of Gantry's own.
fn tool(kind: ToolKind, effect: Effect, approval_rule: ApprovalRule) -> Arc<Tool> {
    let origin = Origin { provider: "db".into(), namespace: "db".into(), kind };
    Arc::new(RecordedCall::tool(&origin, "drop-table", "db__drop_table", effect, approval_rule))
}

fn destructive() -> Arc<Tool> {
    tool(ToolKind::Mcp, Effect::Destructive, ApprovalRule::Never)
}

fn tool_rules(rules: &[(&str, &str)]) -> ApprovalRules {
    let rule = |(name, rule): &(&str, &str)| (pattern(name), ToolRule::parse(rule).unwrap());
    ApprovalRules { tools: rules.iter().map(rule).collect(), ..ApprovalRules::default() }
}

/// The questions about a call of a destructive tool of a server, each with who may answer.
fn asks(gates: ApprovalRules, arguments: &str) -> Result<Vec<(String, Vec<String>)>, ErrorCode> {
    let policies = Policies::compile(&[], gates).unwrap();
    let request = CallRequest { arguments: Some(arguments.into()), ..CallRequest::default() };
    let call = ResolvedCall::of(destructive(), &request).unwrap();
    let judged = judge(&policies, &caller("p"), call).map_err(|refusal| refusal.error().code)?;
    Ok(judged
        .asks
        .iter()
        .map(|ask| (ask.rule.to_string(), ask.approvers.iter().map(ToString::to_string).collect()))
        .collect())
}

fn asking(gates: ApprovalRules, arguments: &str) -> Vec<String> {
    asks(gates, arguments).unwrap().into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn apr_1_a_listed_tool_asks_by_any_of_its_names() {
    for text in ["db__drop_table", "db__drop-table", "@db/drop-table", "db__*", "*"] {
        let gates = requiring(&[text]);
        assert_eq!(asking(gates, "{}"), ["requiresApprovalTools"], "{text}");
    }
    assert!(asking(requiring(&["drop_*"]), "{}").is_empty());
    assert_eq!(asking(requiring(&["*"]), "{}"), ["requiresApprovalTools"]);
    assert!(asking(ApprovalRules::default(), "{}").is_empty());
}

#[test]
fn apr_2_an_effect_asks_for_tools_of_servers_that_have_no_rule_of_their_own() {
    let gates = ApprovalRules { effects: vec![Effect::Destructive].into(), ..ApprovalRules::default() };
    let says = |kind, effect, approval_rule| gates.effect_ask(&tool(kind, effect, approval_rule));
    assert_eq!(
        says(ToolKind::Mcp, Effect::Destructive, ApprovalRule::Never).unwrap(),
        "db__drop_table is marked as destructive"
    );
    assert!(says(ToolKind::Rest, Effect::Destructive, ApprovalRule::Never).is_some());
    assert_eq!(says(ToolKind::Mcp, Effect::Write, ApprovalRule::Never), None);
    assert_eq!(
        says(ToolKind::Mcp, Effect::Destructive, ApprovalRule::Depends),
        None,
        "it goes by its own rule"
    );
    assert_eq!(says(ToolKind::Builtin, Effect::Destructive, ApprovalRule::Never), None);
    assert_eq!(ApprovalRules::default().effect_ask(&destructive()), None);
}

#[test]
fn apr_1_a_dear_tool_asks_from_its_cost_on() {
    let gates = |cost, limit| ApprovalRules {
        costs: vec![(pattern("db__*"), cost)],
        approval_cost: limit,
        ..ApprovalRules::default()
    };
    assert_eq!(asking(gates(500, 500), "{}"), ["requiresApprovalCost"]);
    assert!(asking(gates(499, 500), "{}").is_empty());
    assert!(asking(gates(0, 0), "{}").is_empty(), "a limit of nothing is none");
}

#[test]
fn apr_2_a_tool_rule_asks_always_never_or_by_the_arguments() {
    assert_eq!(asking(tool_rules(&[("db__*", "always")]), "{}"), ["toolRules"]);
    assert!(asking(tool_rules(&[("db__*", "never")]), "{}").is_empty());
    let large =
        || tool_rules(&[("db__*", "args.rows > 10 && agent == 'helper' && tool.effect == 'destructive'")]);
    assert_eq!(asking(large(), r#"{"rows":11}"#), ["toolRules"]);
    assert!(asking(large(), r#"{"rows":10}"#).is_empty());
    assert_eq!(asks(large(), "{}"), Err(ErrorCode::PermissionDenied), "what cannot be judged is refused");
    assert_eq!(asks(tool_rules(&[("*", "1 + 1")]), "{}"), Err(ErrorCode::PermissionDenied));
    assert!(matches!(ToolRule::parse("arg.rows > 1"), Err(RuleError::Condition { .. })));
    assert!(matches!(ToolRule::parse("Always"), Err(RuleError::Condition { .. })));
}

#[test]
fn the_first_entry_that_names_a_tool_counts() {
    assert!(asking(tool_rules(&[("db__drop_table", "never"), ("db__*", "always")]), "{}").is_empty());
    assert_eq!(
        asking(tool_rules(&[("x", "never"), ("db__*", "always"), ("*", "never")]), "{}"),
        ["toolRules"]
    );
}

#[test]
fn never_lifts_what_the_tool_says_and_nothing_else() {
    let gates = ApprovalRules {
        requires_approval: vec![Pattern::everything()],
        effects: vec![Effect::Destructive].into(),
        ..tool_rules(&[("db__*", "never")])
    };
    assert!(gates.waives_tool_rule(&destructive()));
    assert!(!tool_rules(&[("db__*", "always")]).waives_tool_rule(&destructive()));
    assert!(!tool_rules(&[("db__*", "true")]).waives_tool_rule(&destructive()));
    assert_eq!(asking(gates, "{}"), ["requiresApprovalTools"]);
}

#[test]
fn apr_1_every_question_says_who_may_answer_it() {
    let gates = ApprovalRules {
        requires_approval: vec![Pattern::everything()],
        approvers: vec![
            (pattern("db__drop_table"), names(&["ann"])),
            (pattern("*"), names(&["ben", "person"])),
        ],
        ..tool_rules(&[("*", "always")])
    };
    let expected =
        ["requiresApprovalTools", "toolRules"].map(|rule| (rule.to_owned(), vec!["ann".to_owned()]));
    assert_eq!(asks(gates, "{}").unwrap(), expected);
}

#[test]
fn apr_10_a_rule_of_the_operator_allows_a_yes_to_one_call_and_a_tools_own_rule_any() {
    let policies = |remember| {
        [
            RuleSpec { name: "one".into(), remember, ..rule("true", Decide::Ask) },
            RuleSpec { name: "two".into(), ..rule("true", Decide::Ask) },
            // Nothing keeps two policies from having one name.
            RuleSpec { name: "two".into(), remember, ..rule("true", Decide::Ask) },
        ]
    };
    let gates = |remember| ApprovalRules {
        requires_approval: vec![Pattern::everything()],
        costs: vec![(pattern("*"), 5)],
        approval_cost: 5,
        remember,
        ..tool_rules(&[("*", "always")])
    };
    let remember = |gates, remember, tool| {
        let policies = Policies::compile(&policies(remember), gates).unwrap();
        let request = CallRequest { arguments: Some("{}".into()), ..CallRequest::default() };
        let judged = judge(&policies, &caller("p"), ResolvedCall::of(tool, &request).unwrap()).unwrap();
        let own = Preflight { ask: Some("it may".into()), precondition: None };
        let Verdict::Ask(question) = judged.into_verdict(&caller("p"), own) else { panic!("not asked") };
        let text =
            question.remember().iter().map(|(rule, scope)| format!("{rule} {scope}")).collect::<Vec<_>>();
        text.join(", ")
    };
    let builtin = || tool(ToolKind::Builtin, Effect::Destructive, ApprovalRule::Always);
    assert_eq!(
        remember(gates(Scope::Once), Scope::Once, builtin()),
        "policy one once, policy two once, requiresApprovalCost once, requiresApprovalTools once, \
         the tool's own rule always, toolRules once"
    );
    assert_eq!(
        remember(gates(Scope::Session), Scope::Always, builtin()),
        "policy one always, policy two once, requiresApprovalCost session, requiresApprovalTools session, \
         the tool's own rule always, toolRules session"
    );
    // What an effect asks for is the tool's own word, unless the operator has written which effects ask.
    let usual = ApprovalRules { remember: Scope::Session, ..ApprovalRules::unconfigured() };
    let written = ApprovalRules { effects: vec![Effect::Destructive].into(), ..usual.clone() };
    let policies = "policy one once, policy two once, ";
    assert_eq!(remember(usual, Scope::Once, destructive()), format!("{policies}the tool's own rule always"));
    let session = format!("{policies}requiresApprovalEffects session");
    assert_eq!(remember(written, Scope::Once, destructive()), session);
}

#[test]
fn a_rule_names_its_approvers_and_else_those_of_the_tool_answer() {
    let rules = [
        RuleSpec { name: "own".into(), approvers: vec!["ben".into()], ..rule("true", Decide::Ask) },
        RuleSpec { name: "none".into(), ..rule("true", Decide::Ask) },
    ];
    let gates =
        ApprovalRules { approvers: vec![(pattern("*"), names(&["ann"]))], ..ApprovalRules::default() };
    let policies = Policies::compile(&rules, gates).unwrap();
    let judged = judge(&policies, &caller("p"), call("{}")).unwrap();
    let own = Preflight { ask: Some("it overwrites".into()), precondition: None };
    let Verdict::Ask(question) = judged.into_verdict(&caller("p"), own) else { panic!("not asked") };
    let lists: Vec<Vec<&str>> =
        question.approvers().map(|list| list.iter().map(|name| &**name).collect()).collect();
    assert_eq!(lists, [["ben"], ["ann"], ["ann"]]);
}

#[test]
fn apr_8_the_delay_of_the_tool_itself_wins_and_otherwise_the_longest() {
    let ms = Duration::from_millis;
    let gates = |tool: Option<u64>, effect: u64, cost: u64| ApprovalRules {
        default_delay: ms(10),
        tool_delays: tool.map(|delay| (pattern("db__drop_table"), ms(delay))).into_iter().collect(),
        effect_delays: vec![(Effect::Read, ms(999)), (Effect::Destructive, ms(effect))],
        costs: vec![(pattern("*"), 50)],
        cost_delays: vec![(50, ms(cost)), (51, ms(999))],
        ..ApprovalRules::default()
    };
    for (tool, effect, cost, expected) in [
        (None, 0, 0, 10),
        (None, 20, 0, 20),
        (None, 20, 30, 30),
        (None, 40, 30, 40),
        (Some(5), 40, 30, 5),
        (Some(0), 40, 30, 0),
    ] {
        let found = gates(tool, effect, cost).delay(&destructive());
        assert_eq!(found, ms(expected), "{tool:?} {effect} {cost}");
    }
    assert_eq!(ApprovalRules::default().delay(&destructive()), Duration::ZERO);
}

#[test]
fn apr_5_the_revision_is_of_everything_that_is_said_about_the_tool() {
    let base = || RuleSpec { when: None, ..rule("", Decide::Ask) };
    let revision = |rules: &[RuleSpec], gates: ApprovalRules| {
        Policies::compile(rules, gates).unwrap().revision(&destructive())
    };
    let listed = || requiring(&["db__*"]);
    let dear = |cost| ApprovalRules {
        costs: vec![(pattern("*"), cost)],
        approval_cost: 5,
        ..ApprovalRules::default()
    };
    let effects = || ApprovalRules { effects: vec![Effect::Destructive].into(), ..ApprovalRules::default() };
    let approvers = |list: &[&str]| ApprovalRules {
        approvers: vec![(pattern("*"), names(list))],
        ..ApprovalRules::default()
    };
    let all = [
        revision(&[], ApprovalRules::default()),
        revision(&[base()], ApprovalRules::default()),
        revision(&[RuleSpec { decide: Decide::Deny, ..base() }], ApprovalRules::default()),
        revision(&[RuleSpec { when: Some("true".into()), ..base() }], ApprovalRules::default()),
        revision(&[RuleSpec { name: "other".into(), ..base() }], ApprovalRules::default()),
        revision(&[RuleSpec { reason: Some("why".into()), ..base() }], ApprovalRules::default()),
        revision(&[RuleSpec { approvers: vec!["ann".into()], ..base() }], ApprovalRules::default()),
        revision(&[RuleSpec { tools: vec!["*".into()], ..base() }], ApprovalRules::default()),
        revision(&[base()], listed()),
        revision(&[], listed()),
        revision(&[], effects()),
        revision(&[], dear(5)),
        revision(&[], dear(6)),
        revision(&[], tool_rules(&[("*", "always")])),
        revision(&[], tool_rules(&[("*", "never")])),
        revision(&[], tool_rules(&[("*", "args.a == 1")])),
        revision(&[], tool_rules(&[("*", "args.a == 2")])),
        revision(&[], approvers(&["ann"])),
        revision(&[], approvers(&["ben"])),
        revision(&[], approvers(&["ann", "ben"])),
    ];
    for (n, one) in all.iter().enumerate() {
        assert!(!all[..n].contains(one), "{n}");
    }
}

#[test]
fn the_revision_is_of_nothing_that_is_said_about_other_tools() {
    let revision = |rules: &[RuleSpec], gates: ApprovalRules| {
        Policies::compile(rules, gates).unwrap().revision(&destructive())
    };
    let other = RuleSpec { tools: vec!["mail__*".into()], ..rule("true", Decide::Deny) };
    let mail = || pattern("mail__send");
    let gates = ApprovalRules {
        requires_approval: vec![mail()],
        effects: vec![Effect::Read].into(),
        approvers: vec![(mail(), names(&["ann"]))],
        tool_delays: vec![(pattern("*"), Duration::from_secs(1))],
        costs: vec![(mail(), 7), (pattern("*"), 1)],
        approval_cost: 5,
        ..tool_rules(&[("mail__send", "always")])
    };
    assert_eq!(revision(std::slice::from_ref(&other), gates), revision(&[], ApprovalRules::default()));
    let ours = rule("true", Decide::Ask);
    assert_eq!(
        revision(&[other, ours.clone()], ApprovalRules::default()),
        revision(&[ours], ApprovalRules::default()),
        "with any other rules in the file"
    );
    let example = RuleSpec { examples: examples(None, Some(json!({}))), ..rule("false", Decide::Ask) };
    assert_eq!(
        revision(std::slice::from_ref(&example), ApprovalRules::default()),
        revision(&[RuleSpec { examples: Examples::default(), ..example }], ApprovalRules::default()),
        "examples do nothing"
    );
}

#[test]
fn notes_say_what_the_gates_do_with_a_tool() {
    let about = |gates: ApprovalRules| -> Vec<String> {
        let notes = Policies::compile(&[], gates).unwrap().about(&destructive());
        assert!(!notes.iter().any(|rule| rule.always_denies()));
        notes.iter().map(ToString::to_string).collect()
    };
    let gates = ApprovalRules {
        requires_approval: vec![Pattern::everything()],
        effects: vec![Effect::Destructive].into(),
        approvers: vec![(pattern("*"), names(&["ann", "ben"]))],
        default_delay: Duration::from_secs(2),
        costs: vec![(pattern("*"), 5)],
        approval_cost: 5,
        ..tool_rules(&[("*", "args.a")])
    };
    assert_eq!(
        about(gates),
        [
            "requiresApprovalTools asks a person about it",
            "requiresApprovalCost asks a person about it",
            "toolRules asks a person about it, depending on the call",
            "requiresApprovalEffects asks a person about it",
            "approvers lets only ann, ben answer for it",
            "approvals delays it by 2000 ms",
        ]
    );
    let lifted = ApprovalRules { effects: vec![Effect::Destructive].into(), ..tool_rules(&[("*", "never")]) };
    assert_eq!(about(lifted), ["toolRules keeps its own rule from asking"]);
    assert!(about(ApprovalRules::default()).is_empty());
}

#[test]
fn entries_of_gates_that_match_no_tool_are_named() {
    let typo = || pattern("bd__*");
    let gates = ApprovalRules {
        requires_approval: vec![typo(), pattern("db__*")],
        approvers: vec![(typo(), names(&["ann"]))],
        tool_delays: vec![(typo(), Duration::ZERO)],
        costs: vec![(typo(), 1), (pattern("*"), 0)],
        ..tool_rules(&[("bd__*", "never")])
    };
    let policies = Policies::compile(&[], gates).unwrap();
    let places: Vec<String> =
        policies.unmatched(&[destructive()]).into_iter().map(|(place, _)| place).collect();
    assert_eq!(
        places,
        ["requiresApprovalTools", "toolRules", "approvers", "toolSpecificDelays", "estimatedCosts"]
    );
}
