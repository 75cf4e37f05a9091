//! Grants: what they hold for, and when they stop.

use crate::fixture::Fixture;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, SessionId};
use gantry_store::{Error, GrantFilter, GrantKey, GrantRow, Store};

fn key() -> GrantKey {
    GrantKey {
        project: "default".into(),
        principal: "local".into(),
        agent_path: "lead > researcher".into(),
        provider: "github".into(),
        tool: "create-issue".into(),
    }
}

fn grant() -> GrantRow {
    GrantRow {
        seq: 0,
        id: GrantId::mint(),
        key: key(),
        name: "github__create_issue".into(),
        fingerprint: Digest::of(b"definition"),
        policy: Digest::of(b"rules"),
        rules: vec!["writes".into(), "costly".into()],
        session: None,
        by: "ann".into(),
        approval: Some(ApprovalId::mint()),
        created_us: 5,
        revoked: None,
    }
}

const SESSION: [u8; 16] = [7; 16];

async fn holding(store: &Store, key: GrantKey, definition: &[u8]) -> Vec<GrantId> {
    holding_under(store, key, definition, b"rules").await
}

async fn holding_under(store: &Store, key: GrantKey, definition: &[u8], rules: &[u8]) -> Vec<GrantId> {
    let (definition, rules) = (Digest::of(definition), Digest::of(rules));
    let found = store.grants_for(key, definition, rules, SessionId::from_bytes(SESSION)).await.unwrap();
    found.into_iter().map(|grant| grant.id).collect()
}

#[tokio::test]
async fn a_grant_is_read_as_it_was_given() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let given = grant();
    store.grant(given.clone()).await.unwrap();
    // The same grant again is the same grant.
    store.grant(given.clone()).await.unwrap();
    let found = store.grant_of(given.id).await.unwrap().unwrap();
    assert_eq!(found, GrantRow { seq: found.seq, ..given });
    assert_eq!(store.grants(GrantFilter::default()).await.unwrap().items, [found]);
    assert_eq!(store.grant_of(GrantId::mint()).await.unwrap(), None);
}

#[tokio::test]
async fn a_grant_holds_for_its_key_and_its_definition_alone() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let given = grant();
    store.grant(given.clone()).await.unwrap();
    assert_eq!(holding(&store, key(), b"definition").await, [given.id]);
    assert_eq!(holding(&store, key(), b"changed definition").await, []);
    assert_eq!(holding_under(&store, key(), b"definition", b"other rules").await, []);
    let others = [
        GrantKey { project: "other".into(), ..key() },
        GrantKey { principal: "other".into(), ..key() },
        GrantKey { agent_path: "".into(), ..key() },
        GrantKey { provider: "gitlab".into(), ..key() },
        GrantKey { tool: "delete-issue".into(), ..key() },
    ];
    for other in others {
        assert_eq!(holding(&store, other.clone(), b"definition").await, [], "{other:?}");
    }
}

#[tokio::test]
async fn grants_end_with_the_key_of_whoever_has_or_gave_them() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let of = |principal: &str, by: &str| GrantRow {
        key: GrantKey { principal: principal.into(), ..key() },
        by: by.into(),
        ..grant()
    };
    let (to, by, neither) = (of("bot", "ann"), of("local", "bot"), of("local", "ann"));
    let bot = crate::keys::key("bot");
    store.add_key(bot.clone()).await.unwrap();
    for grant in [&to, &by, &neither] {
        store.grant(grant.clone()).await.unwrap();
    }
    assert!(store.revoke_key(bot.id, "person".into(), 9).await.unwrap());
    let ended = |grant: &GrantRow| store.grant_of(grant.id);
    for grant in [&to, &by] {
        assert_eq!(ended(grant).await.unwrap().unwrap().revoked, Some((9, "person".into())), "{grant:?}");
    }
    assert_eq!(ended(&neither).await.unwrap().unwrap().revoked, None);

    // A key that has merely expired leaves its grants to nobody either.
    let expired = gantry_store::KeyRow { expires_us: Some(1), ..crate::keys::key("bot") };
    store.add_key(expired).await.unwrap();
    let stale = of("bot", "ann");
    store.grant(stale.clone()).await.unwrap();
    store.add_key(crate::keys::key("bot")).await.unwrap();
    assert!(ended(&stale).await.unwrap().unwrap().revoked.is_some());
}

#[tokio::test]
async fn a_grant_for_a_session_holds_in_no_other() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mine = GrantRow { session: Some(SessionId::from_bytes(SESSION)), ..grant() };
    let foreign = GrantRow { session: Some(SessionId::from_bytes([8; 16])), ..grant() };
    let always = grant();
    for given in [&mine, &foreign, &always] {
        store.grant(given.clone()).await.unwrap();
    }
    assert_eq!(holding(&store, key(), b"definition").await, [mine.id, always.id]);
}

#[tokio::test]
async fn a_revoked_grant_holds_no_more_in_any_process() {
    let fixture = Fixture::new();
    let (store, other) = (fixture.open(), fixture.open());
    let given = grant();
    store.grant(given.clone()).await.unwrap();
    assert_eq!(holding(&other, key(), b"definition").await, [given.id]);
    let before = other.version().await.unwrap();
    assert!(store.revoke_grant(given.id, "bob".into(), 9).await.unwrap());
    assert_eq!(holding(&other, key(), b"definition").await, []);
    assert_ne!(other.version().await.unwrap(), before);
    assert!(!store.revoke_grant(given.id, "eve".into(), 10).await.unwrap());
    assert!(!store.revoke_grant(GrantId::mint(), "eve".into(), 10).await.unwrap());
    assert_eq!(store.grant_of(given.id).await.unwrap().unwrap().revoked, Some((9, "bob".into())));
    // Giving it again does not bring it back.
    store.grant(given).await.unwrap();
    assert_eq!(holding(&store, key(), b"definition").await, []);
}

#[tokio::test]
async fn lists_leave_revoked_ones_out_unless_they_are_asked_for() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut ids = Vec::new();
    for n in 0..6 {
        let mut given = grant();
        given.key.project = ["x", "y", "z"][n % 3].into();
        ids.push(given.id);
        store.grant(given).await.unwrap();
    }
    store.revoke_grant(ids[3], "ann".into(), 9).await.unwrap();
    let list = async |filter: GrantFilter| {
        let page = store.grants(filter).await.unwrap();
        let places: Vec<_> =
            page.items.iter().map(|grant| ids.iter().position(|id| *id == grant.id).unwrap()).collect();
        (places, page.next)
    };
    assert_eq!(list(GrantFilter::default()).await, (vec![5, 4, 2, 1, 0], None));
    assert_eq!(list(GrantFilter { revoked: true, ..GrantFilter::default() }).await.0, [5, 4, 3, 2, 1, 0]);
    let of = |names: &[&str]| Some(names.iter().map(|name| (*name).into()).collect());
    let (first, next) =
        list(GrantFilter { projects: of(&["x", "z"]), limit: 2, ..GrantFilter::default() }).await;
    assert_eq!(first, [5, 2]);
    let rest = GrantFilter { projects: of(&["x", "z"]), cursor: next, ..GrantFilter::default() };
    assert_eq!(list(rest).await, (vec![0], None));
    assert_eq!(list(GrantFilter { projects: of(&[]), ..GrantFilter::default() }).await.0, [0; 0]);
}

#[tokio::test]
async fn ten_thousand_grants_hold_and_no_more() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let conn = rusqlite::Connection::open(fixture.path()).unwrap();
    conn.execute(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9999)
         INSERT INTO grants (id, project, principal, agent_path, provider, tool, name, fingerprint, policy, rules,
             given_by, created_us)
         SELECT randomblob(16), 'p', 'a', '', 's', 't', 's__t', zeroblob(32), zeroblob(32), '[]', 'ann', 0 FROM n",
        [],
    )
    .unwrap();
    let last = grant();
    store.grant(last.clone()).await.unwrap();
    assert!(matches!(store.grant(grant()).await, Err(Error::TooManyGrants { limit: 10_000 })));
    store.revoke_grant(last.id, "ann".into(), 9).await.unwrap();
    store.grant(grant()).await.unwrap();
}

#[tokio::test]
async fn grants_that_ended_long_ago_are_forgotten() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
    let (used, unused) = (SessionId::from_bytes([1; 16]), SessionId::from_bytes([2; 16]));
    store.open_session(crate::fixture::session(used, now)).await.unwrap();
    let (always, revoked, recently) = (grant(), grant(), grant());
    let standing = GrantRow { session: Some(used), ..grant() };
    let stale = GrantRow { session: Some(unused), ..grant() };
    for given in [&always, &revoked, &recently, &standing, &stale] {
        store.grant(given.clone()).await.unwrap();
    }
    store.revoke_grant(revoked.id, "ann".into(), 9).await.unwrap();
    store.revoke_grant(recently.id, "ann".into(), now).await.unwrap();
    let store = fixture.open();
    let left = store.grants(GrantFilter { revoked: true, ..GrantFilter::default() }).await.unwrap().items;
    let left: Vec<_> = left.into_iter().map(|grant| grant.id).collect();
    assert_eq!(left, [standing.id, recently.id, always.id]);
}
