//! Kill -9 in the middle of the work: what was acknowledged is there, and nothing is there twice.

use crate::fixture::{CHILD, Fixture, child, database, good, head, intent, tables, whole};
use gantry_core::id::CallId;
use gantry_store::{CallFilter, CallRow, Options, State, Store};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

const TEST: &str = "crash::heavy_what_was_acknowledged_survives_kill_nine";

/// What the killed process had said of its calls.
#[derive(Default)]
struct Said {
    intended: HashSet<CallId>,
    /// IntentOutcome, and never to be closed.
    left: HashSet<CallId>,
    closed: HashSet<CallId>,
    flushed: HashSet<CallId>,
}

impl Said {
    fn take(&mut self, line: &str) {
        let Some((word, id)) = line.split_once(' ') else { return };
        let Ok(id) = id.parse() else { return };
        match word {
            "intended" => self.intended.insert(id),
            "left" => self.left.insert(id),
            "closed" => self.closed.insert(id),
            "flushed" => self.flushed.insert(id),
            _ => false,
        };
    }
}

/// Says a line in one write, so that a kill cannot leave half of it.
fn say(word: &str, id: CallId) {
    std::io::stdout().lock().write_all(format!("{word} {id}\n").as_bytes()).unwrap();
}

/// The process that will be killed: four workers that intend, close and record as fast as they can.
async fn work(folder: &Path) {
    let (store, _) = Store::open(Options::new(database(folder))).unwrap();
    println!();
    let workers: Vec<_> = (0..4).map(|n| tokio::spawn(work_forever(store.clone(), n))).collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

async fn work_forever(store: Store, worker: u64) {
    for n in worker.. {
        let call = head();
        store.intend(intent(&call)).await.unwrap();
        if n % 5 == 0 {
            say("left", call.id);
        } else {
            say("intended", call.id);
            store.close(call.id, good()).await.unwrap();
            say("closed", call.id);
        }
        let read = head();
        store.record(whole(&read, good())).await.unwrap();
        if n % 7 == 0 {
            store.flush().await.unwrap();
            say("flushed", read.id);
        }
    }
}

/// Starts a worker process and kills it after it has said so many lines; returns all it said.
fn run_and_kill(folder: &Path, lines: usize) -> Said {
    let mut process = child(TEST, folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = Said::default();
    let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
    for line in output.by_ref().take(lines) {
        said.take(&line.unwrap());
    }
    process.kill().unwrap();
    // What was in the pipe before the kill was said too.
    for line in output {
        said.take(&line.unwrap());
    }
    process.wait().unwrap();
    said
}

async fn all_calls(store: &Store) -> HashMap<CallId, CallRow> {
    let (mut calls, mut cursor) = (HashMap::new(), None);
    loop {
        let page = store.calls(CallFilter { limit: 1000, cursor, ..CallFilter::default() }).await.unwrap();
        for row in page.items {
            assert!(calls.insert(row.head.id, row).is_none(), "a call is listed twice");
        }
        cursor = page.next;
        if cursor.is_none() {
            return calls;
        }
    }
}

fn check(said: &Said, calls: &HashMap<CallId, CallRow>) {
    for id in &said.closed {
        assert_eq!(calls[id].state, State::CompletedSuccess, "{id} was closed");
    }
    for id in &said.flushed {
        assert_eq!(calls[id].state, State::CompletedSuccess, "{id} was flushed");
    }
    for id in &said.left {
        assert_eq!(calls[id].state, State::OutcomeUnknown, "{id} was left open");
    }
    for id in said.intended.difference(&said.closed) {
        // A close may have become durable without its acknowledgement having been said.
        let state = calls[id].state;
        assert!(matches!(state, State::OutcomeUnknown | State::CompletedSuccess), "{id} is {state:?}");
    }
}

/// No call has two intents or two ends; the bare table is read, because rows fold entries together.
fn check_nothing_doubled(path: &Path) {
    let conn = tables(path);
    let doubled: i64 = conn
        .query_row(
            "SELECT count(*) FROM (SELECT 1 FROM ledger GROUP BY call
             HAVING sum(kind IN ('intent', 'whole')) <> 1 OR sum(kind IN ('outcome', 'recovered')) > 1)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(doubled, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_what_was_acknowledged_survives_kill_nine() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return work(Path::new(&folder)).await;
    }
    let rounds = if std::env::var_os("GANTRY_TEST_LONG").is_some() { 200 } else { 20 };
    let fixture = Fixture::new();
    let mut unknown = HashSet::new();
    let mut all = Said::default();
    for round in 0..rounds {
        let said = run_and_kill(fixture.folder.path(), 3 + round * 37 % 101);
        let (store, recovery) = fixture.open_with_recovery();
        assert_eq!(recovery.dead_processes, 1, "round {round}");
        for row in &recovery.unknown {
            assert!(unknown.insert(row.head.id), "{} was recovered twice", row.head.id);
        }
        all.intended.extend(said.intended);
        all.left.extend(said.left);
        all.closed.extend(said.closed);
        all.flushed.extend(said.flushed);
        store.shutdown().await.unwrap();
    }
    let store = fixture.open();
    let calls = all_calls(&store).await;
    check(&all, &calls);
    check_nothing_doubled(&fixture.path());
    let found: HashSet<_> =
        calls.values().filter(|row| row.state == State::OutcomeUnknown).map(|row| row.head.id).collect();
    assert_eq!(found, unknown);
    assert!(calls.values().all(|row| row.state != State::Executing));
    assert!(!all.closed.is_empty() && !all.left.is_empty());
    assert_eq!(store.verify().await.unwrap().bad, None);
}
