//! What a start finds of the processes before it.

use crate::fixture::{CHILD, Fixture, begin, child, database, good, intent};
use gantry_core::id::CallId;
use gantry_store::{Error, Options, State, Store};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// Another process with one open call, which lives until it is killed.
struct Neighbour {
    process: Child,
    call: CallId,
}

impl Neighbour {
    fn start(folder: &Path, test: &str) -> Self {
        let mut process = child(test, folder).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let call = lines.map(Result::unwrap).find_map(|line| line.trim().parse().ok()).unwrap();
        Self { process, call }
    }

    fn kill(self) -> CallId {
        self.call
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The life of a neighbour: one intent, then waiting for the end.
async fn live_as_neighbour(folder: &Path) {
    let (store, _) = Store::open(Options::new(database(folder))).unwrap();
    let head = begin(&store).await;
    println!("\n{}", head.id);
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_open_calls_of_a_dead_process_become_unknown() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return live_as_neighbour(Path::new(&folder)).await;
    }
    let fixture = Fixture::new();
    let test = "recovery::the_open_calls_of_a_dead_process_become_unknown";
    let killed = Neighbour::start(fixture.folder.path(), test).kill();

    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.dead_processes, 1);
    assert_eq!(recovery.unknown.iter().map(|row| row.head.id).collect::<Vec<_>>(), [killed]);
    assert_eq!(recovery.unknown[0].state, State::OutcomeUnknown);
    let row = store.call(killed).await.unwrap().unwrap();
    let outcome = row.outcome.unwrap();
    assert_eq!((row.state, row.process), (State::OutcomeUnknown, store.process()));
    assert_eq!((outcome.code.as_deref(), &*outcome.effect_state), (Some("OUTCOME_UNKNOWN"), "possible"));
    assert!(matches!(store.intend(intent(&row.head)).await, Err(Error::Taken { .. })), "it was run again");
    assert_eq!(store.verify().await.unwrap().bad, None);

    let (_, again) = fixture.open_with_recovery();
    assert_eq!((again.unknown.len(), again.dead_processes), (0, 0));
}

#[tokio::test]
async fn a_living_neighbour_keeps_its_open_calls() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return live_as_neighbour(Path::new(&folder)).await;
    }
    let fixture = Fixture::new();
    let test = "recovery::a_living_neighbour_keeps_its_open_calls";
    let killed = Neighbour::start(fixture.folder.path(), test).kill();
    let living = Neighbour::start(fixture.folder.path(), test);

    // The living one has settled what the killed one left.
    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!((recovery.unknown.len(), recovery.dead_processes), (0, 0));
    assert_eq!(store.call(killed).await.unwrap().unwrap().state, State::OutcomeUnknown);
    assert_eq!(store.call(living.call).await.unwrap().unwrap().state, State::Executing);

    let call = living.kill();
    let (_, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.unknown.iter().map(|row| row.head.id).collect::<Vec<_>>(), [call]);
}

#[tokio::test]
async fn of_many_recoveries_at_once_one_reports_each_call() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return live_as_neighbour(Path::new(&folder)).await;
    }
    let fixture = Fixture::new();
    let test = "recovery::of_many_recoveries_at_once_one_reports_each_call";
    let mut killed = Vec::new();
    let neighbours: Vec<_> = (0..3).map(|_| Neighbour::start(fixture.folder.path(), test)).collect();
    for neighbour in neighbours {
        killed.push(neighbour.kill());
    }
    let opened: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| fixture.open_with_recovery())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut reported: Vec<_> =
        opened.iter().flat_map(|(_, recovery)| &recovery.unknown).map(|row| row.head.id).collect();
    reported.sort();
    killed.sort();
    assert_eq!(reported, killed);
    let verification = opened[0].0.verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (6, None));
}

#[tokio::test]
async fn calls_that_ran_at_a_clean_shutdown_are_unknown_at_the_next_start() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (open, closed) = (begin(&store).await, begin(&store).await);
    store.close(closed.id, good()).await.unwrap();
    store.shutdown().await.unwrap();

    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!(recovery.unknown.iter().map(|row| row.head.id).collect::<Vec<_>>(), [open.id]);
    assert_eq!(store.call(closed.id).await.unwrap().unwrap().state, State::CompletedSuccess);
}

#[tokio::test]
async fn two_stores_append_to_one_chain() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.open(), fixture.open());
    for _ in 0..10 {
        let head = begin(&one).await;
        other.intend(intent(&crate::fixture::head())).await.unwrap();
        one.close(head.id, good()).await.unwrap();
        assert_eq!(other.call(head.id).await.unwrap().unwrap().state, State::CompletedSuccess);
    }
    assert_ne!(one.process(), other.process());
    let verification = other.verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (30, None));
}
