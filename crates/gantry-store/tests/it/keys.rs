//! Credentials: kept, listed, revoked; a name belongs to one key at a time.

use crate::fixture::{Fixture, held, hold, settle};
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::{KeyId, SessionId};
use gantry_store::{Error, KeyRow, KeyStatus, NewApproval, SessionKey, SessionRow, State, Store};

fn now_us() -> i64 {
    i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}

pub(crate) fn key(name: &str) -> KeyRow {
    KeyRow {
        id: KeyId::generate(),
        name: name.into(),
        secret: Digest::of(name.as_bytes()),
        role: Role::Approver,
        projects: Some(vec!["default".into(), "other".into()]),
        agent: None,
        tools: Some(vec!["github__*".into()]),
        created_us: now_us(),
        expires_us: None,
        revoked_us: None,
    }
}

#[tokio::test]
async fn keys_are_read_as_they_were_kept_the_newest_first() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let approver = key("ann");
    let agent = KeyRow {
        role: Role::Agent,
        projects: None,
        tools: None,
        agent: Some("researcher".into()),
        expires_us: Some(i64::MAX),
        ..key("bot")
    };
    let admin = KeyRow { role: Role::Admin, ..key("root") };
    for key in [&approver, &agent, &admin] {
        store.add_key(key.clone()).await.unwrap();
    }
    store.shutdown().await.unwrap();
    assert_eq!(fixture.open().keys().await.unwrap(), [admin, agent, approver]);
}

#[tokio::test]
async fn a_revoked_key_stays_in_the_list_and_frees_its_name() {
    let fixture = Fixture::new();
    let (store, other) = (fixture.open(), fixture.open());
    let first = key("ann");
    store.add_key(first.clone()).await.unwrap();
    let taken = store.add_key(key("ann")).await;
    assert!(matches!(&taken, Err(Error::NameTaken { name }) if &**name == "ann"), "{taken:?}");
    assert!(matches!(
        store.add_key(KeyRow { name: "bob".into(), ..first.clone() }).await,
        Err(Error::NameTaken { .. })
    ));

    let before = other.version().await.unwrap();
    let at = now_us();
    assert!(store.revoke_key(first.id, "ann".into(), at).await.unwrap());
    assert_ne!(other.version().await.unwrap(), before);
    assert!(!store.revoke_key(first.id, "ann".into(), at + 1).await.unwrap());
    assert!(!store.revoke_key(KeyId::generate(), "ann".into(), at).await.unwrap());
    let second = key("ann");
    store.add_key(second.clone()).await.unwrap();
    assert_eq!(other.keys().await.unwrap(), [second, KeyRow { revoked_us: Some(at), ..first }]);
}

#[tokio::test]
async fn a_session_of_a_revoked_key_is_not_continued() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (ann, bob) = (key("ann"), key("bob"));
    let session = |name: &str| {
        let row = crate::fixture::session(SessionId::generate(), now_us());
        SessionRow { key: SessionKey { principal: name.into(), ..row.key.clone() }, ..row }
    };
    let (hers, his) = (session("ann"), session("bob"));
    for key in [&ann, &bob] {
        store.add_key(key.clone()).await.unwrap();
    }
    for session in [&hers, &his] {
        store.open_session(session.clone()).await.unwrap();
    }
    store.flush().await.unwrap();
    store.revoke_key(ann.id, "person".into(), now_us()).await.unwrap();
    assert_eq!(store.resumable_session(&hers.key, 0).await.unwrap(), None);
    assert_eq!(store.resumable_session(&his.key, 0).await.unwrap().map(|row| row.id), Some(his.id));
}

#[tokio::test]
async fn an_expired_key_holds_no_name() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let now = now_us();
    let short = KeyRow { expires_us: Some(now + 10), created_us: now, ..key("ann") };
    store.add_key(short.clone()).await.unwrap();
    let early = KeyRow { created_us: now + 9, ..key("ann") };
    assert!(matches!(store.add_key(early).await, Err(Error::NameTaken { .. })));
    store.add_key(KeyRow { created_us: now + 10, ..key("ann") }).await.unwrap();
    assert!(
        !store.revoke_key(short.id, "ann".into(), now + 10).await.unwrap(),
        "it had stopped to hold by itself"
    );
}

#[tokio::test]
async fn a_thousand_keys_hold_and_no_more() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let conn = fixture.tables();
    conn.execute(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 999)
         INSERT INTO keys (id, name, secret, role, created_us)
         SELECT randomblob(16), 'k' || n, zeroblob(32), 'agent', 0 FROM n",
        [],
    )
    .unwrap();
    let last = key("last");
    store.add_key(last.clone()).await.unwrap();
    assert!(matches!(store.add_key(key("more")).await, Err(Error::TooManyKeys { limit: 1000 })));
    store.revoke_key(last.id, "ann".into(), now_us()).await.unwrap();
    store.add_key(key("more")).await.unwrap();
}

#[tokio::test]
async fn keys_that_ended_long_ago_are_forgotten() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (revoked, stands, awaited) = (key("revoked"), key("stands"), key("awaited"));
    let expired = KeyRow { expires_us: Some(5), ..key("expired") };
    for key in [&revoked, &stands, &expired, &awaited] {
        store.add_key(key.clone()).await.unwrap();
    }
    let call = call_of(&store, "awaited").await;
    for key in [&revoked, &awaited] {
        store.revoke_key(key.id, "ann".into(), 9).await.unwrap();
    }
    // What an expired key had is ended before it is forgotten, and one of which calls wait says that they may not run.
    let names = async || {
        let keys = fixture.open().keys().await.unwrap();
        keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["expired", "awaited", "stands"]);
    store.expire_keys(now_us(), 10).await.unwrap();
    settle(&store, call.row.id, State::CancelledBySystem).await.unwrap();
    assert_eq!(names().await, ["stands"]);
}

/// A call of that name which waits.
async fn call_of(store: &Store, name: &str) -> NewApproval {
    let mut new = held(&KeyId::generate().to_string());
    new.head.caller.principal = name.into();
    hold(store, new.clone()).await;
    new
}

#[tokio::test]
async fn a_name_under_which_calls_are_on_record_is_given_to_no_other_key() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (first, other) = (key("bot"), key("ann"));
    for key in [&first, &other] {
        store.add_key(key.clone()).await.unwrap();
    }
    let row = crate::fixture::session(SessionId::generate(), now_us());
    let row = SessionRow { key: SessionKey { principal: "bot".into(), ..row.key.clone() }, ..row };
    store.open_session(row).await.unwrap();
    for key in [&first, &other] {
        store.revoke_key(key.id, "person".into(), now_us()).await.unwrap();
    }
    let used = store.add_key(key("bot")).await.unwrap_err();
    assert!(matches!(&used, Error::NameUsed { name } if &**name == "bot"), "{used:?}");
    assert!(used.to_string().contains("choose another name"), "{used}");
    // One who has only decided is followed by another of the name, as the rules name approvers.
    store.add_key(key("ann")).await.unwrap();
}

#[tokio::test]
async fn callers_whose_keys_have_ended_are_found_by_what_they_wait_for() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let now = now_us();
    let expires =
        |name: &str, expires_us| KeyRow { created_us: now, expires_us: Some(expires_us), ..key(name) };
    let (revoked, idle) = (key("revoked"), key("idle"));
    for key in [&revoked, &idle, &key("holds"), &expires("expired", now + 10), &expires("later", now + 20)] {
        store.add_key(key.clone()).await.unwrap();
    }
    for name in ["revoked", "expired", "expired", "later", "holds", "local"] {
        call_of(&store, name).await;
    }
    for key in [&revoked, &idle] {
        store.revoke_key(key.id, "person".into(), now).await.unwrap();
    }
    let found = async |at, limit| {
        let found = store.callers_without_key(at, limit).await.unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found(now + 9, 9).await, ["revoked"]);
    assert_eq!(found(now + 10, 9).await, ["expired", "revoked"]);
    assert_eq!(found(now + 20, 9).await, ["expired", "later", "revoked"]);
    assert_eq!(found(now + 20, 1).await, ["expired"]);
    let stands = async |name: &str, at| store.key_status(name.into(), at).await.unwrap();
    assert_eq!(stands("local", now).await, KeyStatus::NoKey);
    assert_eq!(stands("holds", now).await, KeyStatus::Valid { until_us: None });
    assert_eq!(stands("later", now + 19).await, KeyStatus::Valid { until_us: Some(now + 20) });
    assert_eq!(stands("later", now + 20).await, KeyStatus::Expired);
    assert_eq!(stands("revoked", now).await, KeyStatus::Revoked);
}

#[tokio::test]
async fn a_row_that_makes_no_sense_is_damage() {
    let fixture = Fixture::new();
    let store = fixture.open();
    store.add_key(key("ann")).await.unwrap();
    let conn = fixture.tables();
    conn.execute("UPDATE keys SET role = 'emperor'", []).unwrap();
    let error = store.keys().await.unwrap_err();
    assert!(matches!(&error, Error::Corrupt { detail } if detail.contains("emperor")), "{error:?}");
}
