//! Grants: what they hold for, and when they stop.

use crate::fixture::{Fixture, held, hold, settle, standing, step};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, SessionId};
use gantry_store::{Error, GrantFilter, GrantKey, GrantRow, KeyRow, SessionKey, SessionRow, State, Store};

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
        id: GrantId::generate(),
        key: key(),
        name: "github__create_issue".into(),
        fingerprint: Digest::of(b"definition"),
        policy: Digest::of(b"rules"),
        rules: vec!["writes".into(), "costly".into()],
        session: None,
        by: "ann".into(),
        approval: Some(ApprovalId::generate()),
        created_us: 5,
        until_us: None,
        revoked: None,
    }
}

const SESSION: [u8; 16] = [7; 16];

/// The moment at which grants are looked for.
const NOW: i64 = 100;

async fn holding(store: &Store, key: GrantKey, definition: &[u8]) -> Vec<GrantId> {
    holding_under(store, key, definition, b"rules").await
}

async fn holding_under(store: &Store, key: GrantKey, definition: &[u8], rules: &[u8]) -> Vec<GrantId> {
    let (what, session) = ((Digest::of(definition), Digest::of(rules)), SessionId::from_bytes(SESSION));
    let found = store.grants_for(key, what, session, NOW).await.unwrap();
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
    assert_eq!(found, given);
    assert_eq!(store.grants(GrantFilter::default()).await.unwrap().items, [found]);
    assert_eq!(store.grant_of(GrantId::generate()).await.unwrap(), None);
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
async fn grants_end_with_the_key_of_their_owner_or_giver() {
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
}

#[tokio::test]
async fn a_grant_ends_at_the_moment_when_the_key_of_its_owner_or_giver_expires() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let keep = async |name: &str, expires_us| {
        store.add_key(KeyRow { created_us: 0, expires_us, ..crate::keys::key(name) }).await.unwrap();
    };
    keep("short", Some(NOW + 1)).await;
    keep("long", Some(NOW + 9)).await;
    keep("ever", None).await;
    keep("gone", Some(4)).await;
    let ends = async |principal: &str, by: &str, until_us| {
        let key = GrantKey { principal: principal.into(), ..key() };
        let given = GrantRow { key: key.clone(), by: by.into(), until_us, ..grant() };
        store.grant(given.clone()).await.unwrap();
        (store.grant_of(given.id).await.unwrap().unwrap().until_us, holding(&store, key, b"definition").await)
    };
    assert_eq!(ends("local", "person", None).await.0, None);
    assert_eq!(ends("ever", "person", None).await.0, None);
    assert_eq!(ends("long", "short", None).await.0, Some(NOW + 1));
    assert_eq!(ends("short", "long", Some(NOW + 5)).await.0, Some(NOW + 1));
    assert_eq!(ends("ever", "ever", Some(NOW + 5)).await.0, Some(NOW + 5));
    // One that was given when there was no key any more never held.
    assert_eq!(ends("gone", "person", None).await, (Some(5), vec![]));

    let find = async |now| {
        let key = GrantKey { principal: "long".into(), ..key() };
        let what = (Digest::of(b"definition"), Digest::of(b"rules"));
        store.grants_for(key, what, SessionId::from_bytes(SESSION), now).await.unwrap().len()
    };
    assert_eq!((find(NOW).await, find(NOW + 1).await), (1, 0), "it ends by itself");
}

#[tokio::test]
async fn grants_and_sessions_of_expired_keys_are_noted_as_ended_unless_a_newer_key_has_the_name() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let keep = async |name: &str, created_us, expires_us| {
        let key = KeyRow { created_us, expires_us, ..crate::keys::key(name) };
        store.add_key(key.clone()).await.unwrap();
        key
    };
    let old = keep("ann", 0, Some(10)).await;
    keep("bob", 0, Some(20)).await;
    keep("ann", 11, None).await;
    let given = async |by: &str| {
        let grant = GrantRow { by: by.into(), created_us: 12, ..grant() };
        store.grant(grant.clone()).await.unwrap();
        grant.id
    };
    let (anns, bobs) = (given("ann").await, given("bob").await);
    let hers = crate::fixture::session(SessionId::from_bytes([1; 16]), 12);
    let hers = SessionRow { key: SessionKey { principal: "bob".into(), ..hers.key.clone() }, ..hers };
    store.open_session(hers.clone()).await.unwrap();
    store.flush().await.unwrap();
    let ended = async |id| store.grant_of(id).await.unwrap().unwrap().revoked;

    assert_eq!(store.expire_keys(19, 10).await.unwrap(), 1, "the first key of ann");
    assert_eq!((ended(anns).await, ended(bobs).await), (None, None));
    assert_eq!(store.expire_keys(20, 10).await.unwrap(), 1);
    assert_eq!((ended(anns).await, ended(bobs).await), (None, Some((20, "the end of a key".into()))));
    assert_eq!(store.resumable_session(&hers.key, 0).await.unwrap(), None);
    let version = store.version().await.unwrap();
    assert_eq!(store.expire_keys(30, 10).await.unwrap(), 0, "once is enough");
    assert_eq!(store.version().await.unwrap(), version);
    // Nor does revoking the old key touch what the new one has.
    assert!(!store.revoke_key(old.id, "person".into(), 31).await.unwrap());
    assert_eq!(ended(anns).await, None);
}

#[tokio::test]
async fn an_expired_key_that_is_revoked_takes_along_what_its_name_stood_for() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let ann = KeyRow { created_us: 0, expires_us: Some(10), ..crate::keys::key("ann") };
    store.add_key(ann.clone()).await.unwrap();
    let given = grant();
    store.grant(given.clone()).await.unwrap();
    assert!(!store.revoke_key(ann.id, "person".into(), 11).await.unwrap(), "it held no more");
    assert_eq!(store.grant_of(given.id).await.unwrap().unwrap().revoked, Some((11, "person".into())));
}

#[tokio::test]
async fn a_grant_is_written_with_its_decision_or_neither_is() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&fixture, 10_000);
    let new = held("a");
    hold(&store, new.clone()).await;
    let given = grant();
    let yes = |to| {
        let mut step = step(to);
        step.decision.as_mut().unwrap().grant = Some(given.id);
        step
    };
    let (id, to) = (new.row.id, State::ScheduledForExecution);
    let full = store.transition(id, yes(to), Some(given.clone())).await;
    assert!(matches!(full, Err(Error::TooManyGrants { limit: 10_000 })), "{full:?}");
    assert_eq!(standing(&store, id).await.state, State::PendingApproval);
    assert_eq!(store.grant_of(given.id).await.unwrap(), None);

    fixture.tables().execute("DELETE FROM grants", []).unwrap();
    store.transition(id, yes(to), Some(given.clone())).await.unwrap();
    assert_eq!(store.grant_of(given.id).await.unwrap().unwrap().revoked, None);
    // Who comes too late gives nothing.
    let late = GrantRow { id: GrantId::generate(), ..given.clone() };
    let refused = store.transition(id, yes(to), Some(late.clone())).await;
    assert!(matches!(refused, Err(Error::NotPossible { .. })), "{refused:?}");
    assert_eq!(store.grant_of(late.id).await.unwrap(), None);
    // Who stops the call takes back what was given with the yes to it.
    settle(&store, id, State::RejectedByUser).await.unwrap();
    let ended = store.grant_of(given.id).await.unwrap().unwrap().revoked;
    assert_eq!(ended.map(|(_, by)| by).as_deref(), Some("ann"));
}

/// Puts so many grants into the store.
fn fill(fixture: &Fixture, n_grants: u32) {
    let conn = fixture.tables();
    conn.execute(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
         INSERT INTO grants (id, project, principal, agent_path, provider, tool, name, fingerprint, policy, rules,
             given_by, created_us)
         SELECT randomblob(16), 'p', 'a', '', 's', 't', 's__t', zeroblob(32), zeroblob(32), '[]', 'ann', 0 FROM n",
        [n_grants],
    )
    .unwrap();
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
    assert!(!store.revoke_grant(GrantId::generate(), "eve".into(), 10).await.unwrap());
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
    fill(&fixture, 9999);
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
