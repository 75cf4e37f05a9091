//! Opening: what is made, what is refused, and with which words.

use crate::fixture::Fixture;
use gantry_store::{Error, Options, Store};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

fn refusal(fixture: &Fixture) -> Error {
    match Store::open(Options::new(fixture.path())) {
        Ok(_) => panic!("the database was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn the_files_are_for_their_owner_alone() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path().join("data");
    let (store, recovery) = Store::open(Options::new(folder.join("gantry.db"))).unwrap();
    assert_eq!((recovery.unknown.len(), recovery.dead_processes), (0, 0));
    crate::fixture::begin(&store).await;
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for name in ["gantry.db", "gantry.db-wal", "gantry.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let conn = fixture.tables();
    conn.execute("INSERT INTO migrations VALUES (99, zeroblob(32))", []).unwrap();
    drop(conn);
    let error = refusal(&fixture);
    assert!(matches!(error, Error::NewerSchema { found: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("use the newer program"), "{error}");
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let conn = fixture.tables();
    conn.execute("UPDATE migrations SET checksum = zeroblob(32)", []).unwrap();
    drop(conn);
    assert!(matches!(refusal(&fixture), Error::ChangedMigration { version: 1, .. }));
}

#[tokio::test]
async fn files_of_others_are_refused_and_left_as_they_are() {
    let fixture = Fixture::new();
    let conn = fixture.tables();
    conn.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    drop(conn);
    assert!(matches!(refusal(&fixture), Error::Foreign { .. }));
    let conn = fixture.tables();
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);

    let fixture = Fixture::new();
    fs::write(fixture.path(), "this is not a database, but long enough to have a header".repeat(20)).unwrap();
    let error = refusal(&fixture);
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert_eq!(fs::read_dir(fixture.folder.path().join("nodes")).unwrap().count(), 0, "a lock was left");
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let fixture = Fixture::new();
    fs::write(fixture.folder.path().join("file"), "").unwrap();
    let error = Store::open(Options::new(fixture.folder.path().join("file/gantry.db"))).unwrap_err();
    assert!(matches!(error, Error::Folder { .. }), "{error:?}");
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn stores_that_are_opened_at_once_all_open() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| fixture.open())).collect();
        let stores: Vec<_> = opened.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(stores.len(), 8);
    });
}

#[tokio::test]
async fn a_damaged_database_is_refused_after_an_unclean_stop() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..200 {
        store.record(crate::fixture::whole(&crate::fixture::head(), crate::fixture::good())).await.unwrap();
    }
    store.shutdown().await.unwrap();
    let dead = gantry_core::id::ProcessId::generate();
    fs::write(fixture.folder.path().join(format!("nodes/node_{}.lock", dead.uuid().as_simple())), "")
        .unwrap();
    let mut bytes = fs::read(fixture.path()).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 8192].fill(0xA5);
    fs::write(fixture.path(), bytes).unwrap();
    let error = refusal(&fixture);
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    let fixture = Fixture::new();
    let conn = fixture.tables();
    let first = include_str!("../../migrations/sqlite/0001_ledger.sql");
    conn.execute_batch(
        "CREATE TABLE migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
    )
    .unwrap();
    conn.execute_batch(first).unwrap();
    let checksum = gantry_core::digest::Digest::of(first.as_bytes());
    conn.execute("INSERT INTO migrations VALUES (1, ?1)", [checksum.as_bytes()]).unwrap();
    conn.pragma_update(None, "application_id", 0x474E_5452).unwrap();
    conn.execute("INSERT INTO open_calls VALUES (zeroblob(16), zeroblob(16))", []).unwrap();
    conn.execute("DELETE FROM open_calls", []).unwrap();
    drop(conn);

    let store = fixture.open();
    let new = crate::fixture::bring(&store, gantry_store::State::Executing).await;
    store.close(new.head.id, crate::fixture::good()).await.unwrap();
    store.shutdown().await.unwrap();
    let verification = fixture.open().verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (4, None));
}
