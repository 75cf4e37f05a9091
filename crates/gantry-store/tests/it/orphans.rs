//! What a start finds of the calls that a killed process held: nothing approved is lost, nothing runs twice.

use crate::fixture::{CHILD, Fixture, approved, begin, bring, child, database, held, hold, settle, standing};
use gantry_core::id::ApprovalId;
use gantry_store::{Error, Options, State, Store};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

/// The life of a process that holds calls in every way, says which, and is killed.
async fn live(folder: &Path) {
    let (store, _) = Store::open(Options::new(database(folder))).unwrap();
    let mut said = Vec::new();
    for state in
        [State::PendingApproval, State::ApprovedReady, State::ScheduledForExecution, State::Executing]
    {
        said.push((state.as_str(), bring(&store, state).await.row.id));
    }
    let running = begin(&store).await.id;
    for (word, state) in [("below", State::PendingApproval), ("below-approved", State::ApprovedReady)] {
        let mut new = held(word);
        new.head.parent = Some(running);
        said.push((word, hold(&store, new).await.id));
        if state == State::ApprovedReady {
            settle(&store, said[said.len() - 1].1, state).await.unwrap();
        }
    }
    println!();
    for (word, id) in said {
        println!("{word} {id}");
    }
    println!("end");
    std::future::pending::<()>().await;
}

/// Starts such a process, kills it and returns what it said.
fn live_and_die(folder: &Path, test: &str) -> HashMap<String, ApprovalId> {
    let mut process = child(test, folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines
        .take_while(|line| line != "end")
        .filter_map(|line| {
            let (word, id) = line.split_once(' ')?;
            Some((word.to_owned(), id.parse().ok()?))
        })
        .collect();
    process.kill().unwrap();
    process.wait().unwrap();
    said
}

#[tokio::test]
async fn what_a_killed_process_held_is_settled_or_stays() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return live(Path::new(&folder)).await;
    }
    let fixture = Fixture::new();
    let said = live_and_die(fixture.folder.path(), "orphans::what_a_killed_process_held_is_settled_or_stays");
    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!((recovery.dead_processes, recovery.unknown.len()), (1, 2));

    for state in [State::PendingApproval, State::ApprovedReady, State::ScheduledForExecution] {
        let row = standing(&store, said[state.as_str()]).await;
        assert_eq!(row.state, state);
        assert!(!store.is_alive(row.process));
    }
    let ran = standing(&store, said["EXECUTING"]).await;
    assert_eq!((ran.state, ran.attempts), (State::OutcomeUnknown, 1));
    assert!(ran.message.unwrap().contains("check before running it again"));

    let below = standing(&store, said["below"]).await;
    assert_eq!(below.state, State::CancelledBySystem);
    assert_eq!(recovery.orphaned, std::slice::from_ref(&below));
    assert!(below.message.as_deref().unwrap().contains("the call above it ended"));
    let outcome = store.call(below.call).await.unwrap().unwrap().outcome.unwrap();
    assert_eq!(outcome.code.as_deref(), Some("CANCELED"));
    // An approval that was given counts, even if its caller is gone.
    assert_eq!(standing(&store, said["below-approved"]).await.state, State::ApprovedReady);

    let [gone] = store.holders().await.unwrap()[..] else { panic!("one process held them all") };
    let ready: Vec<_> =
        store.ready(gone, 0, None, 10).await.unwrap().into_iter().map(|ready| ready.id).collect();
    assert_eq!(ready, [said["APPROVED_READY"], said["below-approved"]]);
    assert_eq!(store.verify().await.unwrap().bad, None);
    let (_, again) = fixture.open_with_recovery();
    assert_eq!((again.unknown.len(), again.orphaned.len(), again.dead_processes), (0, 0, 0));
}

#[tokio::test]
async fn a_call_below_one_that_runs_in_a_living_process_stays() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let parent = begin(&store).await;
    let mut new = held("a");
    new.head.parent = Some(parent.id);
    let other = fixture.open();
    hold(&other, new.clone()).await;
    other.shutdown().await.unwrap();

    let (_, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.orphaned.len(), 0, "the call above it runs");
    assert_eq!(standing(&store, new.row.id).await.state, State::PendingApproval);
    store.close(parent.id, crate::fixture::good()).await.unwrap();
    let (_, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.orphaned.len(), 1, "no process holds it any more");
}

#[tokio::test]
async fn a_call_below_an_unrecorded_one_stays_while_its_holder_lives() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut new = held("a");
    // Calls without an effect are recorded when they have ended.
    new.head.parent = Some(gantry_core::id::CallId::generate());
    hold(&store, new.clone()).await;
    let (_, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.orphaned.len(), 0);
    store.shutdown().await.unwrap();
    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.orphaned.len(), 1);
    assert!(matches!(store.intend(approved(&new)).await, Err(Error::Taken { .. })));
}
