//! What a person decides about a held call, and who may.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_rule_lets_nothing_through() {
    let home = Home::new().await;
    let refused = home.call("unclear", "{}").await;
    assert_eq!((refused.state, home.ran()), (State::Refused, 0));
    assert!(refused.model_text().contains("its provider has no preflight check"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_runs_the_call_once_and_a_second_one_comes_too_late() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    assert_eq!(held.state, State::PendingApproval);
    assert_eq!(home.ran(), 0);
    home.decide(id(&held), yes()).await.unwrap();
    let done = home.over(&held).await;
    assert_eq!(done.model_text(), "{\"n\":1} 1");
    assert_eq!((done.state, done.approved_by.as_deref()), (State::CompletedSuccess, Some("ann")));
    let again = home.decide(id(&held), yes()).await;
    assert!(matches!(again, Err(DecisionError::Decided(row)) if row.state == State::CompletedSuccess));
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_expired_and_withdrawn_are_different_errors() {
    let home = Home::with(
        |plan| plan.options.approvals.timeout = Duration::from_millis(50).into(),
        ApprovalRules::default(),
    );
    let home = home.await;
    let denied = home.call("act", "{\"n\":1}").await;
    let no = DecisionInput { approved: false, reason: Some("not today".into()), ..DecisionInput::default() };
    home.decide(id(&denied), no).await.unwrap();
    let denied = home.over(&denied).await;
    assert_eq!(denied.state, State::RejectedByUser);
    assert_eq!(denied.model_text(), "(tool failed: denied by ann: not today. Nothing was run.)");
    let late = home.call("act", "{\"n\":2}").await;
    let expired = home.over(&late).await;
    assert_eq!(expired.state, State::RejectedByTimeout);
    assert!(expired.model_text().contains("no approver decided within 1 s"), "{}", expired.model_text());
    assert!(matches!(home.decide(id(&late), yes()).await, Err(DecisionError::Expired(_))));
    let withdrawn = home.call("act", "{\"n\":3}").await;
    assert!(home.projects.services().withdraw(withdrawn.id, Some("bot"), "it was a mistake").await.unwrap());
    let withdrawn = home.over(&withdrawn).await;
    assert_eq!(withdrawn.state, State::CancelledBySystem);
    assert!(withdrawn.model_text().contains("it was a mistake"), "{}", withdrawn.model_text());
    assert_eq!(home.ran(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_are_checked_and_reported() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    let edit = |text: &str| DecisionInput { modified_args: Some(text.into()), ..yes() };
    assert!(matches!(home.decide(id(&held), edit("{\"n\":\"x\"}")).await, Err(DecisionError::Invalid(_))));
    home.decide(id(&held), edit("{\"n\":7}")).await.unwrap();
    let done = home.over(&held).await;
    assert_eq!(done.model_text(), "{\"n\":7} 1");
    assert_eq!(done.executed_arguments.as_deref(), Some("{\"n\":7}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_answers_the_next_question_until_it_is_revoked() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    home.decide(id(&held), DecisionInput { scope: Scope::Always, ..yes() }).await.unwrap();
    home.over(&held).await;
    let granted = home.call("act", "{\"n\":2}").await;
    assert_eq!(granted.model_text(), "{\"n\":2} 2");
    assert_eq!(granted.approved_by.as_deref(), Some("ann"));
    let grants = home.projects.store().grants(Default::default()).await.unwrap().items;
    assert!(home.projects.store().revoke_grant(grants[0].id, "ann".into(), 1).await.unwrap());
    assert_eq!(home.call("act", "{\"n\":3}").await.state, State::PendingApproval);
    assert_eq!(home.ran(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_holds_a_call_that_needs_no_approval() {
    let gates = ApprovalRules { default_delay: Duration::from_millis(30), ..ApprovalRules::default() };
    let home = Home::with(|_| {}, gates).await;
    let held = home.call("free", "{\"n\":1}").await;
    assert_eq!(held.state, State::ScheduledForExecution);
    assert_eq!(home.over(&held).await.model_text(), "{\"n\":1} 1");
    let stopped = home.call("free", "{\"n\":2}").await;
    assert!(home.projects.services().withdraw(stopped.id, None, "no").await.unwrap());
    assert_eq!(home.over(&stopped).await.state, State::CancelledBySystem);
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_decide_does_not() {
    let gates = ApprovalRules {
        requires_approval: vec![gantry_core::pattern::Pattern::everything()],
        approvers: vec![(gantry_core::pattern::Pattern::parse("*").unwrap(), vec!["eve".into()])],
        ..ApprovalRules::default()
    };
    let home = Home::with(|_| {}, gates).await;
    let held = home.call("free", "{}").await;
    let other = |change: fn(&mut Decider)| {
        let mut by = Decider { name: "eve".into(), ..ann() };
        change(&mut by);
        by
    };
    let refused: [fn(&mut Decider); 5] = [
        |by| by.role = Role::Agent,
        |by| by.name = "bot".into(),
        |by| by.name = "ann".into(),
        |by| by.projects = Some(["other".into()].into()),
        |by| by.tools = Some([gantry_core::pattern::Pattern::parse("act").unwrap()].into()),
    ];
    for change in refused {
        let by = other(change);
        let decided = home.projects.decide(id(&held), &by, yes()).await;
        assert!(
            matches!(decided, Err(DecisionError::Forbidden(_) | DecisionError::Unknown(_))),
            "{decided:?}"
        );
    }
    home.projects.decide(id(&held), &other(|_| {}), yes()).await.unwrap();
    assert!(home.over(&held).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_that_others_must_approve_are_theirs() {
    let rules = |home: &std::path::Path, ran: &Arc<AtomicUsize>| {
        let big = RuleSpec {
            name: "big".into(),
            when: Some("args.n > 100".into()),
            approvers: vec!["boss".into()],
            ..rule(Decide::Ask)
        };
        plan(home, ran, &[big], ApprovalRules::default())
    };
    let home = Home::with(
        |plan| *plan = rules(&plan.options.data.clone(), &Arc::default()),
        ApprovalRules::default(),
    );
    let home = home.await;
    let held = home.call("act", "{\"n\":1}").await;
    let edit = DecisionInput { modified_args: Some("{\"n\":500}".into()), ..yes() };
    let decided = home.decide(id(&held), edit.clone()).await;
    assert!(matches!(decided, Err(DecisionError::Forbidden(why)) if why.contains("boss")));
    let boss = Decider { name: "boss".into(), ..ann() };
    home.projects.decide(id(&held), &boss, edit).await.unwrap();
    assert_eq!(home.over(&held).await.executed_arguments.as_deref(), Some("{\"n\":500}"));
}
