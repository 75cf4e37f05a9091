//! The order of judging, by table, and rules that are held against their own examples.

mod binding;
mod gates;
mod replay;

use super::*;
use crate::call::CallRequest;
use crate::names::Style;
use crate::pattern::Pattern;
use crate::principal::Role;
use crate::schema::SchemaText;
use crate::tool::{Annotations, ApprovalRule, Origin, Settings, ToolKind, ToolSpec};
use crate::toolset::{Candidate, Pool, Selection, SpawnContext, Toolset};
use serde_json::json;

fn toolset() -> Toolset {
    let schema = json!({ "type": "object", "properties": { "env": { "type": "string" } }, "additionalProperties": false });
    taking(schema.into())
}

fn taking(input_schema: SchemaText) -> Toolset {
    let candidate = Candidate {
        origin: Origin { provider: "db".into(), namespace: "db".into(), kind: ToolKind::Mcp },
        style: Style::Prefixed,
        spec: ToolSpec {
            name: "drop-table".into(),
            title: None,
            description: String::new(),
            input_schema,
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        },
        settings: Settings::default(),
    };
    Toolset::resolve(&Arc::new(Pool::build(vec![candidate])), &Selection::everything(), &SpawnContext::top(2))
        .0
}

fn caller(principal: &str) -> Caller {
    Caller {
        principal: principal.into(),
        role: Role::Agent,
        agent: Some("helper".into()),
        parent_agents: Arc::default(),
        project: "default".into(),
    }
}

fn call(arguments: &str) -> ResolvedCall {
    call_in(&toolset(), arguments)
}

fn call_in(toolset: &Toolset, arguments: &str) -> ResolvedCall {
    let request = CallRequest {
        tool: "db__drop_table".into(),
        arguments: Some(arguments.into()),
        ..CallRequest::default()
    };
    ResolvedCall::resolve(toolset, &request).unwrap()
}

fn rule(when: &str, decide: Decide) -> RuleSpec {
    RuleSpec {
        name: "r".into(),
        tools: vec!["db__*".into()],
        when: Some(when.into()),
        decide,
        ..RuleSpec::default()
    }
}

/// `requiresApprovalTools` with these entries.
fn requiring(tools: &[&str]) -> ApprovalRules {
    let requires_approval = tools.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    ApprovalRules { requires_approval, ..ApprovalRules::default() }
}

fn verdict(rules: &[RuleSpec], requires: ApprovalRules, arguments: &str, own: Preflight) -> String {
    let policies = Policies::compile(rules, requires).unwrap();
    match judge(&policies, &caller("p"), call(arguments)) {
        Err(refusal) => format!("deny {}", refusal.error().code),
        Ok(judged) => match judged.into_verdict(&caller("p"), own) {
            Verdict::Allow(_) => "allow".into(),
            Verdict::Ask(question) => format!("ask {}", question.rules().next().unwrap()),
            Verdict::Deny(refusal) => format!("deny {}", refusal.error().code),
        },
    }
}

#[test]
fn a_schema_that_turns_out_to_be_unusable_is_no_fault_of_the_arguments() {
    let toolset = taking(SchemaText::trusted(r#"{"type":"strin"}"#.into()));
    let tool = Arc::clone(toolset.tools().next().unwrap());
    assert_eq!(tool.quarantined(), None, "it is compiled on first use");
    let refused = |rules: &[RuleSpec]| {
        let policies = Policies::compile(rules, ApprovalRules::default()).unwrap();
        judge(&policies, &caller("p"), call_in(&toolset, r#"{"env":"prod"}"#)).unwrap_err()
    };
    let refusal = refused(&[]);
    assert_eq!(refusal.error().code, ErrorCode::ToolQuarantined);
    let message = &refusal.error().message;
    assert!(
        message.starts_with("db__drop_table is quarantined: its input schema cannot be used: "),
        "{message}"
    );
    assert!(message.ends_with(&tool.fault().unwrap()), "who asks about the tool hears the same");
    assert_eq!(refused(&[rule("true", Decide::Deny)]).error().code, ErrorCode::PermissionDenied);
    let usable = taking(SchemaText::trusted(r#"{"type":"object"}"#.into()));
    assert_eq!(usable.tools().next().unwrap().fault(), None);
}

#[test]
fn the_order_is_deny_then_schema_then_ask() {
    let deny = rule("args.env == 'prod'", Decide::Deny);
    let ask = rule("has(args.env)", Decide::Ask);
    let own = || Preflight { ask: Some("own".into()), precondition: None };
    let none = Preflight::default;
    let all = requiring(&["*"]);
    let listed = || requiring(&["@db/drop-table"]);
    let rows = [
        (vec![], ApprovalRules::default(), r#"{}"#, none(), "allow"),
        (vec![], ApprovalRules::default(), r#"{}"#, own(), "ask the tool's own rule"),
        (vec![], all, r#"{}"#, own(), "ask requiresApprovalTools"),
        (vec![], listed(), r#"{}"#, none(), "ask requiresApprovalTools"),
        (vec![ask.clone()], requiring(&["*"]), r#"{"env":"dev"}"#, none(), "ask policy r"),
        (
            vec![ask.clone(), deny.clone()],
            ApprovalRules::default(),
            r#"{"env":"prod"}"#,
            none(),
            "deny PERMISSION_DENIED",
        ),
        // Denied calls learn nothing about their arguments, and no person is asked about invalid ones.
        (
            vec![deny.clone()],
            ApprovalRules::default(),
            r#"{"env":"prod","x":1}"#,
            none(),
            "deny PERMISSION_DENIED",
        ),
        (vec![ask], ApprovalRules::default(), r#"{"env":"dev","x":1}"#, none(), "deny INVALID_ARGUMENTS"),
        // A condition that cannot be judged refuses.
        (vec![deny], ApprovalRules::default(), r#"{}"#, none(), "deny PERMISSION_DENIED"),
        (
            vec![rule("1 + 1", Decide::Ask)],
            ApprovalRules::default(),
            r#"{}"#,
            none(),
            "deny PERMISSION_DENIED",
        ),
    ];
    for (rules, requires, arguments, own, expected) in rows {
        assert_eq!(verdict(&rules, requires, arguments, own), expected, "{rules:?} {arguments}");
    }
}

#[test]
fn conditions_see_the_caller_and_the_tool() {
    let text = "agent == 'helper' && principal == 'p' && project == 'default' && role == 'agent' && tool.provider == 'db' \
                && tool.name == 'db__drop_table' && tool.original == 'drop-table' && tool.effect == 'write' && tool.kind == 'mcp'";
    assert_eq!(
        verdict(&[rule(text, Decide::Deny)], ApprovalRules::default(), "{}", Preflight::default()),
        "deny PERMISSION_DENIED"
    );
}

#[test]
fn nam_5_a_rule_means_the_tool_and_not_its_displayed_name() {
    for pattern in ["db__drop-table", "@db/drop-table", "db__drop_table", "db__*"] {
        let rule = RuleSpec {
            name: "r".into(),
            tools: vec![pattern.into()],
            decide: Decide::Deny,
            ..RuleSpec::default()
        };
        assert_eq!(
            verdict(&[rule], ApprovalRules::default(), "{}", Preflight::default()),
            "deny PERMISSION_DENIED",
            "{pattern}"
        );
    }
}

#[test]
fn rules_are_checked_at_load() {
    let check =
        |spec: RuleSpec| Policies::compile(&[spec], ApprovalRules::default()).unwrap_err().remove(0).1;
    assert!(matches!(check(rule("args.env ==", Decide::Deny)), RuleError::Condition { .. }));
    assert!(matches!(check(rule("arg.env == 1", Decide::Deny)), RuleError::Condition { .. }));
    assert!(matches!(check(RuleSpec { tools: vec![], ..rule("true", Decide::Deny) }), RuleError::NoTools));
    let good = RuleSpec {
        examples: examples(Some("prod"), Some(json!({ "env": "dev" }))),
        ..rule("args.env == 'prod'", Decide::Deny)
    };
    assert!(Policies::compile(std::slice::from_ref(&good), ApprovalRules::default()).is_ok());
    let wrong = RuleSpec { examples: examples(None, Some(json!({ "env": "prod" }))), ..good.clone() };
    assert!(check(wrong).to_string().contains("applies where it should pass"));
    let unjudgeable = RuleSpec { examples: examples(None, Some(json!({}))), ..good.clone() };
    assert!(check(unjudgeable).to_string().contains("cannot be judged"));
    let asks = RuleSpec { decide: Decide::Ask, ..good.clone() };
    assert_eq!(check(asks).key().as_deref(), Some("examples.deny[0]"));
    let approvers = RuleSpec { approvers: vec!["ann".into()], ..good.clone() };
    assert_eq!(check(approvers), RuleError::Misplaced { key: "approvers" });
    let remember = |remember| RuleSpec { remember, ..good.clone() };
    assert_eq!(check(remember(Scope::Session)), RuleError::Misplaced { key: "remember" });
    assert!(Policies::compile(&[remember(Scope::Once)], ApprovalRules::default()).is_ok());
}

fn examples(denied: Option<&str>, pass: Option<Value>) -> Examples {
    let object = |value: Value| value.as_object().unwrap().clone();
    Examples {
        deny: denied.map(|env| object(json!({ "env": env }))).into_iter().collect(),
        pass: pass.map(object).into_iter().collect(),
        ..Examples::default()
    }
}

fn question(principal: &str, arguments: &str, precondition: Option<&str>) -> Question {
    let policies = Policies::compile(&[], requiring(&["*"])).unwrap();
    let judged = judge(&policies, &caller(principal), call(arguments)).unwrap();
    let own = Preflight { ask: None, precondition: precondition.map(Into::into) };
    match judged.into_verdict(&caller(principal), own) {
        Verdict::Ask(question) => question,
        other @ (Verdict::Allow(_) | Verdict::Deny(_)) => panic!("expected a question, got {other:?}"),
    }
}

#[test]
fn a_decision_counts_for_the_exact_call_that_was_seen() {
    use crate::approval::{Decision, RedeemError, redeem};
    let seen = question("p", r#"{"env":"dev"}"#, Some("absent"));
    let decision = |approved| Decision { binding: seen.binding(), approved, by: "person".into() };
    let same = question("p", r#" { "env" : "dev" } "#, Some("absent"));
    let permit = redeem(same, &decision(true)).unwrap();
    assert_eq!(permit.basis(), &Basis::Person("person".into()));
    for other in [
        question("q", r#"{"env":"dev"}"#, Some("absent")),
        question("p", r#"{"env":"prod"}"#, Some("absent")),
        question("p", r#"{"env":"dev"}"#, Some("unchanged")),
        question("p", r#"{"env":"dev"}"#, None),
    ] {
        assert!(matches!(redeem(other, &decision(true)).unwrap_err(), RedeemError::Changed(_)));
    }
    let asked = question("p", r#"{"env":"dev"}"#, Some("absent"));
    let RedeemError::Denied(refusal) = redeem(asked, &decision(false)).unwrap_err() else {
        panic!("not denied")
    };
    assert_eq!(refusal.error().code, ErrorCode::RejectedByUser);
}

#[test]
fn pol_10_rules_are_named_that_speak_of_a_tool_and_entries_that_speak_of_none() {
    let rules = [
        RuleSpec { when: None, ..rule("true", Decide::Deny) },
        RuleSpec { name: "asks".into(), ..rule("args.env == 'prod'", Decide::Ask) },
        RuleSpec { name: "typo".into(), tools: vec!["bd__*".into()], ..rule("true", Decide::Deny) },
    ];
    let policies = Policies::compile(&rules, requiring(&["db__drop_table", "nothing"])).unwrap();
    let toolset = toolset();
    let tools: Vec<_> = toolset.tools().cloned().collect();
    let about = policies.about(&tools[0]);
    let said: Vec<String> = about.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "policy r denies it",
            "policy asks asks a person about it, depending on the call",
            "requiresApprovalTools asks a person about it"
        ]
    );
    assert!(about[0].always_denies() && !about[1].always_denies());
    let unmatched = policies.unmatched(&tools);
    let unmatched: Vec<(&str, &str)> = unmatched.iter().map(|(p, e)| (p.as_str(), e.as_str())).collect();
    assert_eq!(unmatched, [("policy typo", "bd__*"), ("requiresApprovalTools", "nothing")]);
}
