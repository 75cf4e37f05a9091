//! What a decision is bound to, and what a grant is worth.

use super::*;
use crate::approval::{Grant, redeem_grant};
use crate::id::GrantId;
use proptest::prelude::*;

/// All that a binding is of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    project: &'static str,
    principal: &'static str,
    path: Vec<&'static str>,
    provider: &'static str,
    description: &'static str,
    arguments: Value,
    precondition: Option<&'static str>,
    /// The reason of the rule that asks.
    rule: &'static str,
}

/// How far a yes may reach is no part of a binding.
const REMEMBER: Scope = Scope::Session;

impl Facts {
    fn question(&self) -> Question {
        self.question_that_remembers(REMEMBER)
    }

    fn question_that_remembers(&self, remember: Scope) -> Question {
        let rule = RuleSpec {
            reason: Some(self.rule.into()),
            tools: vec!["*".into()],
            remember,
            ..rule("true", Decide::Ask)
        };
        let policies = Policies::compile(&[rule], ApprovalRules::default()).unwrap();
        let (agent, above) =
            self.path.split_last().map_or((None, &[][..]), |(last, above)| (Some(*last), above));
        let caller = Caller {
            principal: self.principal.into(),
            role: Role::Agent,
            agent: agent.map(Into::into),
            parent_agents: above.iter().map(|name| Arc::from(*name)).collect(),
            project: self.project.into(),
        };
        let request =
            CallRequest { arguments: Some(self.arguments.to_string().into()), ..CallRequest::default() };
        let call = ResolvedCall::of(self.tool(), &request).unwrap();
        let own = Preflight { ask: None, precondition: self.precondition.map(Into::into) };
        match judge(&policies, &caller, call).unwrap().into_verdict(&caller, own) {
            Verdict::Ask(question) => question,
            other @ (Verdict::Allow(_) | Verdict::Deny(_)) => panic!("expected a question, got {other:?}"),
        }
    }

    fn tool(&self) -> Arc<Tool> {
        let origin =
            Origin { provider: self.provider.into(), namespace: self.provider.into(), kind: ToolKind::Mcp };
        let spec = ToolSpec {
            name: "send".into(),
            title: None,
            description: self.description.into(),
            input_schema: json!({ "type": "object" }).into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        };
        Arc::new(Tool::new(&origin, "send".into(), spec, Settings::default()))
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let word = || prop::sample::select(vec!["a", "b", "ab"]);
    let arguments = prop_oneof![
        Just(json!({})),
        Just(json!({ "a": 1 })),
        Just(json!({ "a": 1.5 })),
        Just(json!({ "a": "1" })),
        Just(json!({ "a": [1, 2] })),
        Just(json!({ "a": [2, 1] })),
        Just(json!({ "b": null, "a": 1 })),
    ];
    let who = (word(), word(), prop::collection::vec(word(), 0..3));
    let what = (word(), word(), arguments, prop::option::of(word()), word());
    (who, what).prop_map(
        |((project, principal, path), (provider, description, arguments, precondition, rule))| Facts {
            project,
            principal,
            path,
            provider,
            description,
            arguments,
            precondition,
            rule,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apr_5_bindings_are_equal_for_equal_calls_only(one in facts(), two in facts()) {
        prop_assert_eq!(one.question().binding(), one.question().binding());
        prop_assert_eq!(one == two, one.question().binding() == two.question().binding());
    }
}

fn base() -> Facts {
    Facts {
        project: "default",
        principal: "local",
        path: vec!["root", "child"],
        provider: "mail",
        description: "Sends.",
        arguments: json!({ "to": "ann", "n": 1 }),
        precondition: None,
        rule: "costs",
    }
}

#[test]
fn apr_5_each_fact_alone_makes_another_binding() {
    let binding = base().question().binding();
    for other in [
        Facts { project: "other", ..base() },
        Facts { principal: "key", ..base() },
        Facts { path: vec!["child"], ..base() },
        Facts { path: vec!["root"], ..base() },
        Facts { path: vec![], ..base() },
        Facts { provider: "post", ..base() },
        Facts { description: "Sends all.", ..base() },
        Facts { arguments: json!({ "to": "ann", "n": 2 }), ..base() },
        Facts { precondition: Some("absent"), ..base() },
        Facts { rule: "costs more", ..base() },
    ] {
        assert_ne!(other.question().binding(), binding, "{other:?}");
    }
}

#[test]
fn apr_5_the_same_arguments_in_other_words_are_the_same_call() {
    let bound = |arguments: &str| {
        let policies = Policies::compile(&[], requiring(&["*"])).unwrap();
        let request = CallRequest { arguments: Some(arguments.into()), ..CallRequest::default() };
        let call = ResolvedCall::of(base().tool(), &request).unwrap();
        let judged = judge(&policies, &caller("p"), call).unwrap();
        match judged.into_verdict(&caller("p"), Preflight::default()) {
            Verdict::Ask(question) => question.binding(),
            other @ (Verdict::Allow(_) | Verdict::Deny(_)) => panic!("expected a question, got {other:?}"),
        }
    };
    let seen = bound(r#"{"to":"ann","n":1}"#);
    assert_eq!(bound(r#" { "n" : 1, "to" : "\u0061nn" } "#), seen);
    assert_ne!(bound(r#"{"to":"Ann","n":1}"#), seen);
}

#[test]
fn apr_10_a_grant_answers_for_the_tool_as_it_was_and_the_rules_that_it_names() {
    let grant = |rules: &[&str]| Grant {
        id: GrantId::generate(),
        fingerprint: base().tool().fingerprint,
        rules: rules.iter().map(|rule| Arc::from(*rule)).collect(),
        scope: Scope::Session,
        by: "ann".into(),
    };
    let given = grant(&["policy r", "toolRules"]);
    let permit = redeem_grant(base().question(), &given).unwrap();
    assert_eq!(permit.basis(), &Basis::Grant { id: given.id, by: "ann".into() });
    assert_eq!(permit.arguments(), base().arguments.to_string());
    // Another call of the same tool is what a grant is for.
    assert!(redeem_grant(Facts { arguments: json!({}), ..base() }.question(), &given).is_ok());
    let changed = Facts { description: "Sends all.", ..base() };
    let back = redeem_grant(changed.question(), &given).unwrap_err();
    assert_eq!(back.binding(), changed.question().binding(), "the question comes back as it was");
    assert!(redeem_grant(base().question(), &grant(&["requiresApprovalTools"])).is_err());
    assert!(redeem_grant(base().question(), &grant(&[])).is_err());
    // As far as the rule allows it now, whatever it allowed when the grant was given.
    let remembers = |remember| base().question_that_remembers(remember);
    assert!(redeem_grant(remembers(Scope::Always), &given).is_ok());
    assert!(redeem_grant(remembers(Scope::Once), &given).is_err());
    assert!(redeem_grant(base().question(), &Grant { scope: Scope::Always, ..given }).is_err());
    assert_eq!(remembers(Scope::Once).binding(), remembers(Scope::Always).binding());
}
