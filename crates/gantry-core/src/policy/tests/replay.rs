//! Replaying recorded calls: the same outcome as judging them, where the record has everything that decides.

use super::*;
use crate::tool::Effect;
use proptest::prelude::*;

fn recorded(arguments: Option<Value>, effect: Effect, approval_rule: ApprovalRule) -> RecordedCall {
    let origin = Origin { provider: "db".into(), namespace: "db".into(), kind: ToolKind::Mcp };
    RecordedCall {
        tool: Arc::new(RecordedCall::tool(&origin, "drop-table", "db__drop_table", effect, approval_rule)),
        caller: caller("p"),
        knows_role: true,
        arguments,
        auto_approved: false,
    }
}

fn write(arguments: Option<Value>) -> RecordedCall {
    recorded(arguments, Effect::Write, ApprovalRule::Never)
}

fn outcome(rules: &[RuleSpec], gates: ApprovalRules, call: &RecordedCall) -> ReplayOutcome {
    replay(&Policies::compile(rules, gates).unwrap(), call)
}

fn held(rules: &[&str]) -> ReplayOutcome {
    ReplayOutcome::Held(rules.iter().map(|rule| Arc::from(*rule)).collect())
}

fn tool_rule(text: &str) -> ApprovalRules {
    ApprovalRules {
        tools: vec![(Pattern::parse("*").unwrap(), ToolRule::parse(text).unwrap())],
        ..ApprovalRules::default()
    }
}

#[test]
fn apr_11_a_recorded_call_is_judged_like_a_new_one() {
    let env = |env: &str| write(Some(json!({ "env": env })));
    let rules = [
        rule("args.env == 'prod'", Decide::Deny),
        RuleSpec { name: "a".into(), ..rule("args.env == 'test'", Decide::Ask) },
    ];
    let says = |call: &RecordedCall| outcome(&rules, ApprovalRules::default(), call);
    assert_eq!(says(&env("prod")), ReplayOutcome::Denied("policy r".into()));
    assert_eq!(says(&env("test")), held(&["policy a"]));
    assert_eq!(says(&env("dev")), ReplayOutcome::Runs);
    assert_eq!(
        says(&write(Some(json!({})))),
        ReplayOutcome::Denied("policy r".into()),
        "it cannot be judged"
    );
    assert_eq!(outcome(&[], tool_rule("args.n > 1"), &env("x")), ReplayOutcome::Denied("toolRules".into()));
}

#[test]
fn apr_11_a_rule_on_arguments_that_were_not_kept_whole_cannot_be_replayed() {
    let gone = write(None);
    let deny = rule("args.env == 'prod'", Decide::Deny);
    let ask = RuleSpec { name: "a".into(), ..rule("args.env == 'test'", Decide::Ask) };
    let always = |decide| RuleSpec { name: "z".into(), when: None, ..rule("", decide) };
    let unknown = ReplayOutcome::Unknown(Unknown::Arguments);
    let says = |rules: &[RuleSpec]| outcome(rules, ApprovalRules::default(), &gone);
    assert_eq!(says(std::slice::from_ref(&deny)), unknown);
    assert_eq!(says(std::slice::from_ref(&ask)), unknown);
    assert_eq!(says(&[deny.clone(), always(Decide::Deny)]), ReplayOutcome::Denied("policy z".into()));
    assert_eq!(says(&[ask, always(Decide::Ask)]), held(&["policy z"]), "by this one for certain");
    assert_eq!(says(&[deny, always(Decide::Ask)]), unknown, "it may be denied");
    assert_eq!(says(&[rule("agent == 'helper'", Decide::Ask)]), held(&["policy r"]), "no argument decides");
    assert_eq!(outcome(&[], tool_rule("args.n > 1"), &gone), unknown);
    assert_eq!(outcome(&[], tool_rule("always"), &gone), held(&["toolRules"]));
    assert_eq!(says(&[]), ReplayOutcome::Runs);
}

#[test]
fn apr_11_a_role_that_is_not_on_record_is_not_guessed() {
    let mut call = write(Some(json!({})));
    let rules = [rule("role == 'agent'", Decide::Deny)];
    assert_eq!(outcome(&rules, ApprovalRules::default(), &call), ReplayOutcome::Denied("policy r".into()));
    call.knows_role = false;
    assert_eq!(outcome(&rules, ApprovalRules::default(), &call), ReplayOutcome::Unknown(Unknown::Role));
}

#[test]
fn apr_11_own_rules_count_as_far_as_they_are_known() {
    let own = |rule| recorded(Some(json!({})), Effect::Destructive, rule);
    let says = |gates, call: &RecordedCall| outcome(&[], gates, call);
    assert_eq!(says(ApprovalRules::default(), &own(ApprovalRule::Always)), held(&["the tool's own rule"]));
    assert_eq!(
        says(ApprovalRules::default(), &own(ApprovalRule::Depends)),
        ReplayOutcome::Unknown(Unknown::Files)
    );
    assert_eq!(says(ApprovalRules::default(), &own(ApprovalRule::Never)), ReplayOutcome::Runs);
    let effects = || ApprovalRules { effects: vec![Effect::Destructive].into(), ..ApprovalRules::default() };
    assert_eq!(says(effects(), &own(ApprovalRule::Never)), held(&["requiresApprovalEffects"]));
    let unwritten = ApprovalRules::unconfigured();
    assert_eq!(says(unwritten, &own(ApprovalRule::Never)), held(&["the tool's own rule"]));
    for rule in [ApprovalRule::Always, ApprovalRule::Depends, ApprovalRule::Never] {
        let lifted = ApprovalRules { effects: vec![Effect::Destructive].into(), ..tool_rule("never") };
        assert_eq!(says(lifted, &own(rule)), ReplayOutcome::Runs);
        let approved = RecordedCall { auto_approved: true, ..own(rule) };
        assert_eq!(says(effects(), &approved), ReplayOutcome::Runs);
    }
}

#[test]
fn apr_11_a_record_says_by_its_digest_whether_it_is_whole() {
    let whole = |arguments: &str| {
        let request = CallRequest { arguments: Some(arguments.into()), ..CallRequest::default() };
        let call = ResolvedCall::of(write(None).tool, &request).unwrap();
        RecordedCall::arguments(call.recorded(), call.arguments_digest())
    };
    assert_eq!(whole(r#"{ "b": 1, "a": "é" }"#), Some(json!({ "a": "é", "b": 1 })));
    assert_eq!(whole(r#"{ "password": "hunter2" }"#), None, "it is masked");
    assert_eq!(whole(&json!({ "a": "x".repeat(5000) }).to_string()), None, "it is cut");
    assert_eq!(whole(r#"{ "password": "[redacted]" }"#), Some(json!({ "password": "[redacted]" })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apr_11_replaying_agrees_with_judging(
        rules in prop::collection::vec((prop::sample::select(CONDITIONS.to_vec()), any::<bool>()), 0..4),
        gate in prop::sample::select(vec!["", "always", "never", "args.env == 'b'", "args.n"]),
        listed in any::<bool>(),
        effects in any::<bool>(),
        destructive in any::<bool>(),
        env in prop::sample::select(vec!["a", "b", ""]),
    ) {
        let rules: Vec<RuleSpec> = rules.into_iter().enumerate().map(|(n, (when, deny))| RuleSpec {
            name: n.to_string(),
            ..rule(when, if deny { Decide::Deny } else { Decide::Ask })
        }).collect();
        let gates = ApprovalRules {
            requires_approval: if listed { vec![Pattern::everything()] } else { vec![] },
            effects: if effects { vec![Effect::Destructive] } else { vec![] }.into(),
            ..if gate.is_empty() { ApprovalRules::default() } else { tool_rule(gate) }
        };
        let policies = Policies::compile(&rules, gates).unwrap();
        let arguments = if env.is_empty() { json!({}) } else { json!({ "env": env }) };
        let effect = if destructive { Effect::Destructive } else { Effect::Write };
        let call = recorded(Some(arguments.clone()), effect, ApprovalRule::Never);
        let found = replay(&policies, &call);
        let judged = judged(&policies, call, &arguments);
        prop_assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&judged));
        if let ReplayOutcome::Held(_) = judged {
            prop_assert_eq!(found, judged);
        }
    }
}

const CONDITIONS: [&str; 4] =
    ["true", "args.env == 'a'", "has(args.env) && args.env == 'b'", "agent == 'helper'"];

/// The same by the way that new calls go.
fn judged(policies: &Policies, call: RecordedCall, arguments: &Value) -> ReplayOutcome {
    let RecordedCall { tool, caller, .. } = call;
    let (lifted, effect) =
        (policies.approval_rules().waives_tool_rule(&tool), policies.approval_rules().effect_ask(&tool));
    let request = CallRequest { arguments: Some(arguments.to_string().into()), ..CallRequest::default() };
    let resolved = ResolvedCall::of(tool, &request).unwrap();
    let Ok(judged) = judge(policies, &caller, resolved) else { return ReplayOutcome::Denied(String::new()) };
    let own = Preflight { ask: effect.filter(|_| !lifted), precondition: None };
    match judged.into_verdict(&caller, own) {
        Verdict::Allow(_) => ReplayOutcome::Runs,
        Verdict::Ask(question) => ReplayOutcome::Held(question.rules().cloned().collect()),
        Verdict::Deny(_) => ReplayOutcome::Denied(String::new()),
    }
}
