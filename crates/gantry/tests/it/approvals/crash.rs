//! Killed at any moment between request, decision, execution and reply: no approved call is lost, none runs twice, and
//! what cannot be known is called unknown.
//!
//! Callers and approvers work against one home while its server is killed and started again. What they were answered is
//! written down in a book outside of Gantry, and in the end held against the approvals, the ledger and the effects.

mod book;
mod cast;
mod queued;
mod scheduled;
mod trial;

use super::held::{Held, all, approve, decide, hold, is_over, key, line, over, text, verified};
use book::Book;
use cast::{Life, approver, caller};
use gantry_testkit::{Random, Server, TestDir, long};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// How often the server is ended.
const CYCLES: usize = 30;
const CYCLES_LONG: usize = 500;

/// Those who call, and those who decide.
const CALLERS: usize = 3;
const APPROVERS: usize = 2;

/// The moment comes at the latest so long after the first request, and up to so many microseconds after what it is about.
const LATEST: Duration = Duration::from_millis(400);
const MICROSECONDS_AFTER: u64 = 3000;

/// Calls that wait for a yes, for a yes and their time, for a yes that comes too late, and for their time alone.
const CONFIG: &str = "
approvals: { requiresApprovalTools: [test__count, test__slow_write] }
projects:
  later: { workspace: ., approvals: { requiresApprovalTools: [test__count], toolSpecificDelays: { test__count: 80 } } }
  brief: { workspace: ., approvals: { requiresApprovalTools: [test__count], approvalTimeoutMs: 60 } }
  timed: { workspace: ., approvals: { toolSpecificDelays: { test__count: 100 } } }
";

/// When the server ends.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// While it begins to run what an earlier one has left.
    Started,
    /// At any time after the first request.
    Anywhere,
    /// Right after a request was acknowledged.
    Asked,
    /// Right after a decision was acknowledged.
    Decided,
    /// While an approved call runs.
    Executing,
    /// When a request was sent and its reply is not read.
    AskedUnread,
    /// When a decision was sent and its reply is not read.
    DecidedUnread,
    /// In order: it is asked to stop.
    ChangeNotice,
}

const MOMENTS: [Moment; 9] = [
    Moment::Anywhere,
    Moment::Started,
    Moment::Executing,
    Moment::Asked,
    Moment::Decided,
    Moment::AskedUnread,
    Moment::Anywhere,
    Moment::DecidedUnread,
    Moment::ChangeNotice,
];

impl Moment {
    /// Waits for it.
    fn wait(self, cycle: usize, life: &Life<'_>, home: &TestDir, server: &Server, dice: &mut Random) {
        let begun = Instant::now();
        let until = |reached: &dyn Fn() -> bool| {
            while !reached() && begun.elapsed() < LATEST {
                thread::sleep(Duration::from_micros(200));
            }
        };
        let some = 1 + usize::try_from(dice.below(8)).expect("a small number");
        match self {
            Self::Started => thread::sleep(Duration::from_micros(dice.below(15_000))),
            Self::Anywhere | Self::ChangeNotice => {
                until(&|| life.asked() > 0);
                thread::sleep(Duration::from_micros(dice.below(300_000)));
            }
            Self::Asked => until(&|| life.asked() >= some),
            Self::Decided => until(&|| life.decided() >= some),
            Self::Executing => execute(cycle, life, home, server, dice),
            Self::AskedUnread => {
                let text = format!("c{cycle}-unread");
                life.book.begin(&text);
                let body = json!({ "tool": "test__count", "arguments": line(&text) });
                send_unread(server, "/api/v1/calls", &body.to_string());
            }
            Self::DecidedUnread => {
                let text = format!("c{cycle}-decided-unread");
                let held = ask(life, server, &text);
                send_unread(server, &held.path("decision"), r#"{"approved":true}"#);
            }
        }
        // The moment itself: anywhere in what happens next.
        thread::sleep(Duration::from_micros(dice.below(MICROSECONDS_AFTER)));
    }
}

/// A call that waits for a yes.
fn ask(life: &Life<'_>, server: &Server, text: &str) -> Held {
    life.book.begin(text);
    let held = hold(server, None, "test__count", &line(text));
    life.book.held(text, &held);
    held
}

/// Gets a slow call approved, and waits until it runs.
fn execute(cycle: usize, life: &Life<'_>, home: &TestDir, server: &Server, dice: &mut Random) {
    let file = format!("slow-c{cycle}");
    life.book.begin(&file);
    let arguments = json!({ "file": file, "ms": 20 + dice.below(200) });
    let held = hold(server, None, "test__slow_write", &arguments);
    life.book.held(&file, &held);
    // One of the approvers may be the first.
    let decided = decide(server, &server.key, &held, &json!({ "approved": true }));
    if decided.status == 200 {
        life.book.decided(&file, true);
    }
    let began = Instant::now();
    while !home.path().join(&file).exists() && began.elapsed() < LATEST {
        thread::sleep(Duration::from_micros(200));
    }
}

/// Sends a request as the person of the data folder, and does not wait for the answer.
fn send_unread(server: &Server, path: &str, body: &str) {
    let mut connection = server.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        server.address,
        server.key,
        body.len()
    );
    connection.send(head.as_bytes()).and_then(|()| connection.send(body.as_bytes())).expect("it reads");
}

/// One life of the server, from its start to its sudden end.
fn cycle(home: &TestDir, cycle: usize, book: &Book, keys: &[String], dice: &mut Random) {
    let server = home.serve();
    let life = Life::new(server.address, book);
    let moment = MOMENTS[cycle % MOMENTS.len()];
    thread::scope(|scope| {
        let life = &life;
        for n in 0..CALLERS {
            let dice = dice.another();
            scope.spawn(move || caller(life, &format!("c{cycle}-{n}"), dice));
        }
        for key in keys {
            let dice = dice.another();
            scope.spawn(move || approver(life, key, dice));
        }
        moment.wait(cycle, life, home, &server, dice);
        if let Moment::ChangeNotice = moment {
            let (code, said) = server.stop();
            assert_eq!(code, 0, "{said}");
        } else {
            server.kill();
        }
    });
}

/// Decides what is left, and waits until nothing is to be done any more.
fn settle(server: &Server, book: &Book) {
    for (n, item) in all(server, "/api/v1/approvals?state=PENDING_APPROVAL").iter().enumerate() {
        let held = Held { id: text(&item["id"]), call: text(&item["callId"]) };
        let approved = n % 3 != 0;
        book.deciding(&book::name(item), approved);
        let decided = decide(server, &server.key, &held, &json!({ "approved": approved }));
        match decided.status {
            200 => book.decided(&book::name(item), approved),
            status => assert!(matches!(status, 409 | 410), "{decided:?}"),
        }
    }
    server.eventually("everything is over", || all(server, "/api/v1/approvals").iter().all(is_over));
}

#[test]
fn apr_4_heavy_killed_at_any_moment_no_approved_call_is_lost_and_none_runs_twice() {
    let seed = std::env::var("GANTRY_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(0x5DEE_CE66_D1CE_4E5B);
    let cycles = if long() { CYCLES_LONG } else { CYCLES };
    eprintln!("seed {seed} (GANTRY_TEST_SEED), {cycles} cycles");
    let home = TestDir::with_test_tools().config(CONFIG);
    let keys: Vec<String> = {
        let server = home.serve();
        (0..APPROVERS).map(|n| key(&server, "approver", &format!("approver-{n}"), &json!({}))).collect()
    };
    let (mut dice, book) = (Random(seed | 1), Book::default());
    for n in 0..cycles {
        cycle(&home, n, &book, &keys, &mut dice);
    }
    let server = home.serve();
    settle(&server, &book);
    verified(&server);
    let figures = trial::examine(&home, &server, &book);
    eprintln!("{cycles} cycles: {figures:?}");
    figures.hold_up(cycles);
    // It works on.
    let held = hold(&server, None, "test__count", &line("afterwards"));
    approve(&server, &held);
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
}
