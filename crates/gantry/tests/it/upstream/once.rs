//! A call never runs twice, whenever its server dies.

use super::{JOURNAL, Rig, journalling, kill, remote};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Callers at once.
const CALLERS: usize = 4;

/// The longest time that a server lives in these tests.
const LIFE_MS: u64 = 40;

/// Some time before the server dies; another one whenever it is asked for.
fn life() -> Duration {
    Duration::from_millis(RandomState::new().hash_one(0) % LIFE_MS)
}

/// Makes so many calls while the server is killed again and again, and proves that Gantry's word on each of them fits
/// the journal of the server.
fn each_call_runs_at_most_once(rig: &Rig, calls: usize, kill: impl Fn() + Sync) {
    let outcomes: Mutex<HashMap<String, Value>> = Mutex::default();
    let (next, done, deaths) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let killing = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                rig.ready("bad");
                thread::sleep(life());
                kill();
                deaths.fetch_add(1, Ordering::Relaxed);
                // Gantry would wait ever longer for a server that dies so often.
                rig.server.eventually("the death is noticed", || {
                    rig.restart("bad");
                    rig.status("bad")["status"] != "ready" || done.load(Ordering::Acquire)
                });
            }
        });
        let caller = || loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= calls {
                return;
            }
            let text = format!("call-{n}");
            let reply = rig.call("bad__journal", &json!({ "text": text }));
            let was_down = reply["error"]["code"] == "UPSTREAM_UNAVAILABLE";
            outcomes.lock().expect("no panic").insert(text, reply);
            if was_down {
                // Calls to a server that is down say nothing new.
                rig.server.eventually("it is back", || rig.status("bad")["status"] == "ready");
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        let failed = callers.into_iter().filter_map(|caller| caller.join().err()).count();
        done.store(true, Ordering::Release);
        killing.join().expect("the killer ends");
        assert_eq!(failed, 0, "callers failed");
    });
    let journal = rig.journal();
    let (mut well, mut outcomes) = (0, outcomes.into_inner().expect("no panic"));
    for n in 0..calls {
        let text = format!("call-{n}");
        let reply = outcomes.remove(&text).expect("an outcome");
        let times = journal.iter().filter(|line| **line == text).count();
        let code = reply["error"]["code"].as_str().unwrap_or_default();
        let fits = match code {
            "" => reply["ok"] == true && times == 1,
            "UPSTREAM_UNAVAILABLE" => reply["extras"]["effect"] == "none" && times == 0,
            "OUTCOME_UNKNOWN" => reply["extras"]["effect"] == "possible" && times <= 1,
            _ => false,
        };
        assert!(fits, "{text} ran {times} times, and Gantry says: {reply}");
        well += usize::from(code.is_empty());
    }
    let deaths = deaths.into_inner();
    assert!(well > 0 && deaths > 2, "{well} calls went well, the server died {deaths} times");
}

#[test]
fn ups_5_no_call_runs_twice_however_often_its_process_is_killed() {
    let rig = Rig::of(&json!({ "bad": journalling(&[]) }));
    each_call_runs_at_most_once(&rig, 200, || {
        // It may have died before it could answer.
        if let Some(pid) = rig.call("bad__pid", &json!({}))["result"].as_str() {
            kill(pid);
        }
    });
}

#[track_caller]
fn over_a_socket(word: &str, kind: Kind) {
    let home = gantry_testkit::TestDir::new();
    let journal = home.path().join(JOURNAL);
    let args = ["--journal", journal.to_str().expect("UTF-8")];
    let first = Faulty::start(kind, &args);
    let port = first.address.port();
    let rig = Rig::at(home.config(&json!({ "mcpServers": { "bad": remote(word, &first.url) } }).to_string()));
    let running = Mutex::new(Some(first));
    each_call_runs_at_most_once(&rig, 60, || {
        let mut running = running.lock().expect("no panic");
        drop(running.take());
        *running = Some(Faulty::start_at(kind, port, &args));
    });
}

#[test]
fn ups_5_no_call_runs_twice_over_tcp() {
    over_a_socket("tcp", Kind::Tcp);
}

#[test]
fn ups_5_no_call_runs_twice_over_http() {
    over_a_socket("http", Kind::Http);
}

#[test]
fn ups_5_no_call_runs_twice_over_sse() {
    over_a_socket("sse", Kind::Sse);
}

#[test]
fn ups_5_no_call_runs_twice_over_websocket() {
    over_a_socket("websocket", Kind::Ws);
}
