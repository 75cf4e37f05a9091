//! Several who wait for one call, and what becomes of it when one of them leaves.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_wait_for_one_decision_and_get_one_result() {
    let home = Home::new().await;
    let first = home.call("act", "{\"n\":1}").await;
    let cx = home.cx().await;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (runtime, cx) = (home.runtime(), PipelineContext::new(&cx.session));
            let request = CallRequest {
                tool: "act".into(),
                arguments: Some("{ \"n\": 1 }".into()),
                ..CallRequest::default()
            };
            tokio::spawn(async move { runtime.call(cx, request).await })
        })
        .collect();
    let other = home.call("act", "{\"n\":2}").await;
    assert_ne!(id(&other), id(&first));
    home.decide(id(&first), yes()).await.unwrap();
    for reply in futures_util::future::join_all(waiting).await {
        let reply = reply.unwrap();
        assert_eq!((reply.id, reply.model_text()), (first.id, "{\"n\":1} 1".to_owned()));
    }
    assert_eq!(home.ran(), 1);
    // It was given to a caller, so the same request is a new one now.
    let anew = home.call("act", "{\"n\":1}").await;
    assert_ne!(id(&anew), id(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_one_of_two_that_wait_leaves_the_call_is_still_the_others() {
    let home = Home::new().await;
    let session = home.cx().await.session;
    let (first, second) = (PipelineContext::new(&session), PipelineContext::new(&session));
    let call = |cx: PipelineContext| {
        let (runtime, request) = (home.runtime(), request("act", "{\"n\":1}"));
        tokio::spawn(async move { runtime.call(cx, request).await })
    };
    let (leaves, leaving) = (first.cancel.clone(), call(first));
    let pending = home.pending().await;
    let stays = call(second);
    // Both wait before the first one leaves.
    until(|| waiters(&home, pending.call) == 2).await;
    leaves.cancel();
    assert!(leaving.await.unwrap().is_held());
    home.decide(pending.id, yes()).await.unwrap();
    assert_eq!(stays.await.unwrap().model_text(), "{\"n\":1} 1");
}

/// How many wait for a held call.
fn waiters(home: &Home, call: CallId) -> usize {
    home.projects
        .services()
        .approvals()
        .waiters()
        .waiting
        .get(&call)
        .map_or(0, |waiting| waiting.waiters.len())
}

/// Calls what is slow, and waits for it.
fn wait(home: &Home, cx: PipelineContext) -> tokio::task::JoinHandle<Reply> {
    let runtime = home.runtime();
    tokio::spawn(async move { runtime.call(cx, request("slow", "{}")).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_who_leaves_while_the_call_runs_does_not_stop_it() {
    let home = Home::new().await;
    let session = home.cx().await.session;
    let (first, second) = (PipelineContext::new(&session), PipelineContext::new(&session));
    let (leaves, leaving) = (first.cancel.clone(), wait(&home, first));
    let pending = home.pending().await;
    let stays = wait(&home, second);
    until(|| waiters(&home, pending.call) == 2).await;
    home.begin(pending.id).await;
    leaves.cancel();
    let left = leaving.await.unwrap();
    assert_eq!((left.state, left.effect), (State::Executing, gantry_core::error::EffectState::Possible));
    assert!(left.model_text().contains("was approved and runs as"), "{}", left.model_text());
    home.let_go();
    assert_eq!(stays.await.unwrap().model_text(), "{} 1");
    assert_eq!(home.row(pending.id).await.state, State::CompletedSuccess);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_waits_alone_and_leaves_stops_the_call_that_runs() {
    let home = Home::new().await;
    let cx = home.cx().await;
    let (leaves, leaving) = (cx.cancel.clone(), wait(&home, cx));
    let pending = home.pending().await;
    until(|| waiters(&home, pending.call) == 1).await;
    home.begin(pending.id).await;
    leaves.cancel();
    let left = leaving.await.unwrap();
    assert_eq!(left.outcome.as_ref().err().map(|error| error.code), Some(ErrorCode::Canceled), "{left:?}");
    assert_eq!(home.row(pending.id).await.state, State::CompletedFailure);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_joins_a_running_call_is_not_notified_that_it_waits() {
    let home = Home::new().await;
    let first = home.call("slow", "{}").await;
    home.begin(id(&first)).await;
    let joined = home.call("slow", "{}").await;
    assert_eq!((joined.id, joined.state), (first.id, State::Executing));
    assert_eq!(joined.effect, gantry_core::error::EffectState::Possible);
    let told = joined.model_text();
    assert!(told.contains(&format!("runs as {}", id(&first))) && !told.contains("Nothing was run"), "{told}");
    home.let_go();
    assert_eq!(home.over(&first).await.model_text(), "{} 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_knew_of_a_call_may_come_back_for_what_takes_its_place() {
    let home = Home::new().await;
    let (cx, approvals) = (home.cx().await, Arc::clone(home.projects.services().approvals()));
    let mut rows = Vec::new();
    for n in 0..2 {
        rows.push(home.row(id(&home.call("act", &format!("{{\"n\":{n}}}")).await)).await);
    }
    (rows[1].call, rows[1].step) = (rows[0].call, 2);
    let rows: Vec<_> = rows.into_iter().map(Arc::new).collect();
    let first = approvals.wait(&rows[0], &cx);
    assert!(first.is_alone());
    approvals.mark_reported(rows[0].call);
    let second = approvals.wait(&rows[1], &cx);
    assert_eq!(first.row.borrow().id, rows[1].id, "it waits for what takes the place of the first");
    drop(first);
    assert!(!second.is_alone(), "another caller was told of it");
    let late = approvals.wait(&rows[0], &cx);
    assert_eq!(late.row.borrow().id, rows[1].id, "who comes with what is over waits for the same");
    drop((second, late));
    assert!(approvals.waiters().waiting.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_waits_hears_of_what_another_process_decided() {
    let home = Home::new().await;
    let waiting = wait(&home, home.cx().await);
    let pending = home.pending().await;
    until(|| waiters(&home, pending.call) == 1).await;
    let database = gantry_store::Options::new(home.folder.path().join("gantry.db"));
    let (other, _) = Store::open(database).unwrap();
    let step = gantry_store::Transition {
        to: State::RejectedByUser,
        decision: None,
        deadline_us: None,
        message: None,
        at_us: crate::clock::steady_us(),
    };
    other.transition(pending.id, step, None).await.unwrap();
    let denied = waiting.await.unwrap();
    assert_eq!((denied.state, home.ran()), (State::RejectedByUser, 0));
}
