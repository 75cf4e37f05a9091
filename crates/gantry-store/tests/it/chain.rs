//! Tampering with the ledger is found.

use crate::fixture::{Fixture, begin, good, head, whole};
use gantry_store::Verification;

/// A ledger of six entries, then that SQL on the bare file, then the verification.
async fn after(tamper: &str) -> Verification {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..2 {
        let head = begin(&store).await;
        store.record(whole(&crate::fixture::head(), good())).await.unwrap();
        store.close(head.id, good()).await.unwrap();
    }
    fixture.tables().execute_batch(tamper).unwrap();
    store.verify().await.unwrap()
}

#[track_caller]
fn check(found: &Verification, entries: u64, bad: Option<i64>) {
    assert_eq!((found.entries, found.bad.as_ref().map(|bad| bad.seq)), (entries, bad), "{found:?}");
}

#[tokio::test]
async fn an_untouched_ledger_is_whole() {
    check(&after("").await, 6, None);
    let fixture = Fixture::new();
    check(&fixture.open().verify().await.unwrap(), 0, None);
}

#[tokio::test]
async fn a_change_of_any_column_is_found() {
    let columns = [
        "kind = 'whole'",
        "call = zeroblob(16), step = 9",
        "process = zeroblob(16)",
        "step = step + 7",
        "at = at + 1",
        "project = 'x'",
        "session = zeroblob(16)",
        "principal = 'x'",
        "name = 'x'",
        "state = 'REFUSED'",
        "body = replace(body, '3', '4')",
        "hash = zeroblob(32)",
        // Moving a letter over the boundary of two columns.
        "project = project || substr(principal, 1, 1), principal = substr(principal, 2)",
    ];
    for column in columns {
        let found = after(&format!("UPDATE ledger SET {column} WHERE seq = 4")).await;
        check(&found, 3, Some(4));
    }
}

#[tokio::test]
async fn a_removed_entry_is_found_wherever_it_was() {
    check(&after("DELETE FROM ledger WHERE seq = 1").await, 0, Some(1));
    check(&after("DELETE FROM ledger WHERE seq = 3").await, 2, Some(3));
    check(&after("DELETE FROM ledger WHERE seq = 6").await, 5, Some(6));
    check(&after("DELETE FROM ledger").await, 0, Some(1));
    let closed_up = "DELETE FROM ledger WHERE seq = 3; UPDATE ledger SET seq = seq - 1 WHERE seq > 3;
                     UPDATE ledger_heads SET seq = 5";
    check(&after(closed_up).await, 2, Some(3));
}

#[tokio::test]
async fn swapped_and_added_entries_are_found() {
    let swap = "UPDATE ledger SET seq = -1 WHERE seq = 2; UPDATE ledger SET seq = 2 WHERE seq = 5;
                UPDATE ledger SET seq = 5 WHERE seq = -1";
    check(&after(swap).await, 1, Some(2));
    let add = "INSERT INTO ledger SELECT node, 7, kind, call, 9, process, at, project, session, principal, name, state,
               body, hash FROM ledger WHERE seq = 6";
    check(&after(add).await, 6, Some(7));
    check(&after("UPDATE ledger_heads SET hash = zeroblob(32)").await, 6, Some(6));
    check(&after(&add.replace("node, 7", "node, 0")).await, 6, Some(0));
    check(&after(&add.replace("node, 7", "randomblob(16), 1")).await, 6, Some(1));
    check(&after(&add.replace("node, 7", "zeroblob(16), 1")).await, 6, Some(1));
}

#[tokio::test]
async fn a_chain_that_is_given_to_another_node_or_begins_elsewhere_is_found() {
    let renamed =
        "UPDATE ledger SET node = randomblob(16); UPDATE ledger_heads SET node = (SELECT node FROM ledger)";
    check(&after("UPDATE ledger SET node = randomblob(16) WHERE seq = 4").await, 3, Some(4));
    check(&after(renamed).await, 0, Some(1));
    check(&after("UPDATE ledger_heads SET genesis = randomblob(32)").await, 0, Some(1));
    let emptied =
        "DELETE FROM ledger; UPDATE ledger_heads SET seq = 0, hash = randomblob(32), genesis = hash";
    let emptied = format!("{emptied}; UPDATE ledger_heads SET genesis = hash");
    check(&after(&emptied).await, 0, Some(1));
    check(&after("DELETE FROM ledger_heads").await, 0, Some(1));
}

#[tokio::test]
async fn a_long_chain_is_walked_to_its_end() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..5000 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    check(&store.verify().await.unwrap(), 5000, None);
    let conn = fixture.tables();
    conn.execute("UPDATE ledger SET at = 0 WHERE seq = 4999", []).unwrap();
    check(&store.verify().await.unwrap(), 4998, Some(4999));
}
