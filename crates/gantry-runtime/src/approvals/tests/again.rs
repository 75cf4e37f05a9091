//! Held calls that go on later: after a restart, or after what they rest on has changed.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_and_had_not_begun_runs_after_a_restart_once() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    // Decided by a process that ends before the call begins: the worker of the holder is stopped first.
    home.projects.drain(Duration::ZERO).await;
    let by = ann();
    home.projects.services().decide(id(&held), &by, yes(), None).await.unwrap();
    assert_eq!(home.ran(), 0);
    let home = home.restart().await;
    assert_eq!(home.over(&held).await.model_text(), "{\"n\":1} 1");
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_and_waits_for_its_turn_when_gantry_stops_runs_after_the_restart_once() {
    let queued = |plan: &mut Plan| {
        let options = ProviderOptions { queue: Some("one".into()), ..ProviderOptions::default() };
        plan.options.providers.insert("counter".into(), options);
    };
    let home = Home::with(queued, ApprovalRules::default()).await;
    let cx = home.cx().await;
    let stuck = CallRequest { tool: "stuck".into(), ..CallRequest::default() };
    home.runtime().defer(home.runtime().enter(&cx).unwrap(), cx, stuck);
    let queue = |home: &Home| home.projects.services().queues.load().snapshot().remove(0);
    until(|| queue(&home).in_use == 1).await;
    let held = home.call("act", "{\"n\":1}").await;
    home.decide(id(&held), yes()).await.unwrap();
    until(|| queue(&home).depth == 1).await;
    home.projects.shutdown(Duration::ZERO).await;
    let Home { projects, ran, folder } = home;
    drop(projects);
    let home = Home::again(folder, ran, queued, ApprovalRules::default()).await;
    home.projects.services().approvals().take_over_orphans();
    let done = home.over(&held).await;
    assert_eq!((done.state, done.model_text()), (State::CompletedSuccess, "{\"n\":1} 1".into()));
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_rule_asks_again_and_a_denial_refuses() {
    let home = Home::new().await;
    let (held, denied) = (home.call("act", "{\"n\":1}").await, home.call("act", "{\"n\":2}").await);
    home.projects.drain(Duration::ZERO).await;
    for reply in [&held, &denied] {
        home.projects.services().decide(id(reply), &ann(), yes(), None).await.unwrap();
    }
    home.projects.shutdown(Duration::ZERO).await;
    let Home { projects, ran, folder } = home;
    drop(projects);
    let rules = [
        RuleSpec { name: "two".into(), when: Some("args.n == 2".into()), ..rule(Decide::Deny) },
        rule(Decide::Ask),
    ];
    let change = |plan: &mut Plan| {
        plan.options.policies = Arc::new(Policies::compile(&rules, ApprovalRules::default()).unwrap());
    };
    let home = Home::again(folder, ran, change, ApprovalRules::default()).await;
    home.projects.services().approvals().take_over_orphans();
    let refused = home.over(&denied).await;
    assert_eq!(refused.state, State::CancelledBySystem);
    assert!(refused.model_text().contains("denied by policy two"), "{}", refused.model_text());
    let pending = loop {
        let filter = ApprovalFilter { call: Some(held.id), ..ApprovalFilter::default() };
        let rows = home.projects.store().approvals(filter).await.unwrap().items;
        if let Some(row) = rows.iter().find(|row| row.state == State::PendingApproval) {
            break row.clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(pending.supersedes, Some(id(&held)));
    assert!(pending.details.reason.contains("asked again"), "{}", pending.details.reason);
    assert_eq!(home.ran(), 0);
    home.decide(pending.id, yes()).await.unwrap();
    home.over(&held).await;
    assert_eq!(home.ran(), 1);
}

/// What takes the place of an approval, once it does.
async fn next(home: &Home, held: &Reply) -> ApprovalRow {
    loop {
        let newest = home.projects.store().approval_of(held.id).await.unwrap().unwrap();
        if newest.id != id(held) {
            return newest;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_what_was_sent_also_if_it_ran_with_other_arguments_and_was_asked_about_again() {
    let home = Home::new().await;
    let keyed = |home: &Home, cx: PipelineContext| {
        let request = CallRequest { idempotency_key: Some("k".into()), ..request("act", "{\"n\":1}") };
        let (runtime, entered) = (home.runtime(), home.runtime().enter(&cx).unwrap());
        async move { runtime.run(entered, cx, request).await }
    };
    let held = keyed(&home, home.cx().await).await;
    home.projects.drain(Duration::ZERO).await;
    let edit = DecisionInput { modified_args: Some("{\"n\":7}".into()), ..yes() };
    // What the person saw is not what there is when it runs.
    let seen = gantry_core::digest::Digest::of(b"something else");
    home.projects.services().decide(id(&held), &ann(), edit, Some(seen)).await.unwrap();
    let home = home.restart().await;
    let asked = next(&home, &held).await;
    assert_eq!((&*asked.details.arguments, asked.details.sent.is_some()), ("{\"n\":7}", true));
    home.decide(asked.id, yes()).await.unwrap();
    let done = home.over(&held).await;
    assert_eq!(
        (done.model_text(), done.executed_arguments.as_deref()),
        ("{\"n\":7} 1".into(), Some("{\"n\":7}"))
    );
    home.runtime().collect(&done).await;
    let again = keyed(&home, home.cx().await).await;
    assert_eq!((again.model_text(), again.repeats), ("{\"n\":7} 1".into(), Some(held.id)));
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_goes_on_in_a_session_that_was_brought_back_is_canceled_with_its_run() {
    let home = Home::new().await;
    let held = home.call("slow", "{}").await;
    let home = home.restart().await;
    home.begin(id(&held)).await;
    let opened = || {
        let is_opened =
            |kind: &crate::event::EventKind| matches!(kind, crate::event::EventKind::SessionOpened { .. });
        home.projects.services().events.subscribe().0.iter().filter(|event| is_opened(&event.kind)).count()
    };
    assert_eq!(opened(), 0, "it was opened once, by the process before");
    let session = home.row(id(&held)).await.session;
    assert!(home.projects.cancel_session(session).await.unwrap());
    let over = home.over(&held).await;
    assert_eq!(over.outcome.err().map(|error| error.code), Some(ErrorCode::Canceled));
    assert!(!home.projects.cancel_session(gantry_core::id::SessionId::generate()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_goes_on_in_a_session_that_was_brought_back_is_stopped_when_gantry_stops() {
    let home = Home::new().await;
    let held = home.call("slow", "{}").await;
    let home = home.restart().await;
    home.begin(id(&held)).await;
    let home = home.restart().await;
    assert_eq!(home.row(id(&held)).await.state, State::CompletedFailure, "and not that it is unknown");
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_recorded_right_before_the_end_of_a_process_is_reported() {
    let home = Home::new().await;
    let held = home.call("slow", "{}").await;
    home.begin(id(&held)).await;
    let row = poll::unless_recorded(home.projects.store(), held.id).await.unwrap().unwrap();
    assert_eq!(row.state, State::OutcomeUnknown, "if the process that runs it were gone");
    home.let_go();
    home.over(&held).await;
    let row = poll::unless_recorded(home.projects.store(), held.id).await.unwrap().unwrap();
    assert_eq!(row.state, State::CompletedSuccess);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_ends_by_the_clock_by_which_it_is_waited_for() {
    let home = Home::new().await;
    let held = home.call("act", "{}").await;
    let before = crate::clock::steady_us();
    home.decide(id(&held), yes()).await.unwrap();
    home.over(&held).await;
    let ended = home.row(id(&held)).await.ended_us.unwrap();
    assert!((before..=crate::clock::steady_us()).contains(&ended), "{before} {ended}");
}

/// Makes that many calls that were approved, held by this store.
async fn crowd(store: &Store, like: &ApprovalRow, n: usize) -> Vec<ApprovalId> {
    let head = store.call(like.call).await.unwrap().unwrap().head;
    let hold = |_| async {
        let (id, call) = (ApprovalId::generate(), CallId::generate());
        let request_key = gantry_core::digest::Digest::of(id.to_string().as_bytes());
        let row = ApprovalRow { id, call, request_key, ..like.clone() };
        let head = gantry_store::CallHead { id: call, ..head.clone() };
        let new = gantry_store::NewApproval { head, idempotency: None, row };
        let limits = gantry_store::HoldLimits { per_caller: 10_000, total: 10_000 };
        store.hold(new, limits).await.unwrap();
        id
    };
    futures_util::future::join_all((0..n).map(hold)).await
}

/// Says yes to them, as another process would.
async fn approve(store: &Store, crowd: &[ApprovalId]) {
    let yes = |id: &ApprovalId| {
        let step = gantry_store::Transition {
            to: State::ApprovedReady,
            decision: None,
            deadline_us: None,
            message: None,
            at_us: crate::clock::steady_us(),
        };
        store.transition(*id, step, None)
    };
    for settled in futures_util::future::join_all(crowd.iter().map(yes)).await {
        settled.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_are_to_run_or_what_is_put_off_does_not_hide_what_can_run_here() {
    let home =
        Home::with(|plan| plan.options.approvals.max_pending = 10_000.into(), ApprovalRules::default()).await;
    let like = home.row(id(&home.call("act", "{\"n\":0}").await)).await;
    let database = gantry_store::Options::new(home.folder.path().join("gantry.db"));
    let (other, _) = Store::open(database).unwrap();
    approve(&other, &crowd(&other, &like, 300).await).await;
    let first = home.call("act", "{\"n\":1}").await;
    home.decide(id(&first), yes()).await.unwrap();
    assert_eq!(home.over(&first).await.model_text(), "{\"n\":1} 1", "the other process lives");
    // What a process left that is gone is not taken care of here.
    other.shutdown().await.unwrap();
    let second = home.call("act", "{\"n\":2}").await;
    home.decide(id(&second), yes()).await.unwrap();
    assert_eq!(home.over(&second).await.model_text(), "{\"n\":2} 2");

    let put_off = crowd(home.projects.store(), &like, 1100).await;
    home.projects.services().approvals().waiters().running.extend(&put_off);
    approve(home.projects.store(), &put_off).await;
    let third = home.call("act", "{\"n\":3}").await;
    home.decide(id(&third), yes()).await.unwrap();
    assert_eq!(home.over(&third).await.model_text(), "{\"n\":3} 3");
    assert_eq!(home.ran(), 3);
}
