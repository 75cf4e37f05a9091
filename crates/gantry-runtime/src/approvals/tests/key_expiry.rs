//! Calls whose caller's key has ended, and a yes for a session that has no end.

use super::*;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use gantry_store::KeyRow;

/// A key of the caller.
async fn key(home: &Home) -> KeyId {
    let key = KeyRow {
        id: KeyId::generate(),
        name: "bot".into(),
        secret: Digest::of(b"secret"),
        role: Role::Agent,
        projects: None,
        agent: None,
        tools: None,
        created_us: crate::clock::latest_us(),
        expires_us: None,
        revoked_us: None,
    };
    home.projects.store().add_key(key.clone()).await.unwrap();
    key.id
}

async fn revoke(home: &Home, key: KeyId) {
    let now = crate::clock::latest_us();
    assert!(home.projects.store().revoke_key(key, "person".into(), now).await.unwrap());
}

const WHY: &str = "the key of its caller was revoked";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_held_right_after_its_key_was_revoked_ends_by_itself() {
    let home = Home::new().await;
    revoke(&home, key(&home).await).await;
    // The pipeline was under way with it when that happened.
    let held = home.call("act", "{\"n\":1}").await;
    let ended = home.over(&held).await;
    assert_eq!(ended.state, State::CancelledBySystem);
    assert!(ended.model_text().contains(WHY), "{}", ended.model_text());
    assert_eq!(home.ran(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_key_has_ended_is_neither_decided_nor_run() {
    let home = Home::new().await;
    let key = key(&home).await;
    let (decided, approved) = (home.call("act", "{\"n\":1}").await, home.call("act", "{\"n\":2}").await);
    // From here on no worker looks after what waits, so deciding and running have to check.
    home.projects.drain(Duration::ZERO).await;
    home.projects.services().decide(id(&approved), &ann(), yes(), None).await.unwrap();
    revoke(&home, key).await;
    let refused = home.decide(id(&decided), yes()).await;
    assert!(
        matches!(&refused, Err(DecisionError::Decided(row)) if row.message.as_deref() == Some(WHY)),
        "{refused:?}"
    );
    let busy = home.projects.services().approvals().begin(id(&approved)).unwrap();
    let row = home.row(id(&approved)).await;
    assert_eq!(row.state, State::ApprovedReady);
    home.projects.resume(&row, busy).await;
    let row = home.row(id(&approved)).await;
    assert_eq!((row.state, row.message.as_deref()), (State::CancelledBySystem, Some(WHY)));
    assert_eq!(home.ran(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_a_session_that_all_requests_share_is_refused_and_decides_nothing() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    let session = DecisionInput { scope: Scope::Session, ..yes() };
    let refused = home.decide(id(&held), session.clone()).await;
    assert!(
        matches!(&refused, Err(DecisionError::Invalid(error)) if error.message.contains("once")),
        "{refused:?}"
    );
    assert_eq!(home.row(id(&held)).await.state, State::PendingApproval);
    // A client with a session of its own has it for that.
    let caller = Caller::clone(home.cx().await.session.caller());
    let own = home.runtime().open_session(caller, EntryPoint::Mcp).await.unwrap();
    let call = async |arguments: &str| {
        let cx = PipelineContext::new(&own);
        let entered = home.runtime().enter(&cx).unwrap();
        home.runtime().run(entered, cx, request("act", arguments)).await
    };
    let held = call("{\"n\":2}").await;
    home.decide(id(&held), session).await.unwrap();
    home.over(&held).await;
    assert_eq!(call("{\"n\":3}").await.model_text(), "{\"n\":3} 2");
    assert_eq!(home.call("act", "{\"n\":4}").await.state, State::PendingApproval);
}
