//! Many at once: of a hundred who decide one decision stands, and a hundred equal calls are one.

mod coalesce;
mod sides;

use super::held::{Held, call, item, key, lines, over, record, text};
use crate::passthrough::{Door, Talk};
use gantry_testkit::{Connection, Server, TestDir};
use serde_json::{Value, json};
use sides::{Side, Word};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// How often a hundred decide.
const ROUNDS: usize = 20;

/// Those who decide over HTTP, by the command line, and the callers who withdraw; together with the person behind the client
/// that calls they are a hundred.
const OVER_HTTP: usize = 92;
const BY_COMMAND: usize = 4;
const CALLERS: usize = 3;

/// Keys of approvers.
const KEYS: usize = 9;

/// How long a request waits for a decision.
const TIMEOUT: Duration = Duration::from_millis(600);

fn home() -> TestDir {
    let approvals = json!({
        "requiresApprovalTools": ["test__count"],
        "approvalTimeoutMs": TIMEOUT.as_millis(),
        "delivery": "form",
    });
    TestDir::with_test_tools().config(&json!({ "approvals": approvals }).to_string())
}

/// The number of the call of a client that has said hello.
const CALL: u64 = 2;

/// A call that waits, and the client that makes it where the person behind it is asked too.
struct Asked {
    held: Held,
    asking: Option<(Talk, Value)>,
}

/// Makes a call: every other one by a client whose person is asked by a form.
fn ask(home: &TestDir, server: &Server, round: usize) -> Asked {
    let arguments = super::held::line(&format!("round-{round}"));
    if round.is_multiple_of(2) {
        let held = Held::of(&call(server, None, &json!({ "tool": "test__count", "arguments": arguments })));
        return Asked { held, asking: None };
    }
    let mut client = Talk::legacy_with(Door::Stdio(home, &[]), &json!({ "elicitation": { "form": {} } }));
    assert_eq!(client.begin_call("test__count", &arguments), CALL);
    let question = client.hear("elicitation/create");
    let pending = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL").json();
    let held = Held { id: text(&pending["items"][0]["id"]), call: text(&pending["items"][0]["callId"]) };
    Asked { held, asking: Some((client, question)) }
}

/// Who has a small start in a round, so that each of them is the first in some.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// No caller.
    None,
    /// Commands, which take a while to start.
    Commands,
    /// The person behind the client.
    Form,
    /// Time: they all come when it is just about to be up.
    Time,
}

const STARTS: [Start; 4] = [Start::None, Start::Commands, Start::Form, Start::Time];

/// How long a command takes to start, roughly.
const COMMAND: Duration = Duration::from_millis(40);

/// What a hundred were answered, and how the approval stands then.
fn decide(home: &TestDir, server: &Server, keys: &[String], round: usize, sides: &mut [Connection]) -> Value {
    let Asked { held, asking } = ask(home, server, round);
    let first = STARTS[round / 2 % STARTS.len()];
    if first == Start::Time {
        let end: jiff::Timestamp = text(&item(server, &held.id)["expiresAt"]).parse().expect("a moment");
        while jiff::Timestamp::now() + COMMAND < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let commands_first = matches!(first, Start::Commands | Start::Time);
    let at_the_start = sides.len() + 2 + if commands_first { 0 } else { BY_COMMAND };
    let (all, start) = (&held, &Barrier::new(at_the_start));
    let outcome: Vec<Word> = thread::scope(|scope| {
        let mut outcome = Vec::new();
        for n in 0..BY_COMMAND {
            outcome.push(scope.spawn(move || {
                if !commands_first {
                    start.wait();
                }
                sides::command(home, &all.id, n.is_multiple_of(2))
            }));
        }
        for (n, connection) in sides.iter_mut().enumerate() {
            let side = Side::of(n, keys);
            outcome.push(scope.spawn(move || {
                start.wait();
                side.say(connection, all)
            }));
        }
        scope.spawn(move || {
            let Some((mut client, question)) = asking else {
                start.wait();
                return;
            };
            if first != Start::Form {
                start.wait();
            }
            let content = json!({ "decision": "approve" });
            client.answer(&question, &json!({ "action": "accept", "content": content }));
            if first == Start::Form {
                start.wait();
            }
            // It stays until it is answered: who leaves withdraws the call.
            client.end(CALL);
        });
        if commands_first {
            thread::sleep(COMMAND);
        }
        start.wait();
        outcome.into_iter().map(|outcome| outcome.join().expect("an answer")).collect()
    });
    let stands = over(server, &held);
    judge(&stands, &outcome);
    stands
}

/// One decision stands, and all others were answered which.
fn judge(stands: &Value, outcome: &[Word]) {
    let mut winners = Vec::new();
    for word in outcome {
        match word {
            Word::Mine(name) => winners.push(name.clone()),
            Word::Late(shown) => {
                assert_eq!(shown["id"], stands["id"]);
                assert_eq!(shown["decidedBy"], stands["decidedBy"], "{shown}\n{stands}");
                assert_eq!(
                    shown["decision"]["approved"], stands["decision"]["approved"],
                    "{shown}\n{stands}"
                );
            }
            Word::Nothing => {}
            Word::LateInWords(words) => {
                assert!(words.contains("already") || words.contains("expired"), "{words}")
            }
        }
    }
    let mut expected: Vec<String> = match (text(&stands["state"]).as_str(), stands["decidedVia"].as_str()) {
        ("REJECTED_BY_TIMEOUT", None) | (_, Some("elicitation")) => Vec::new(),
        ("CANCELLED_BY_SYSTEM", None) => vec!["local".to_owned()],
        // What was approved can be withdrawn until it begins.
        ("CANCELLED_BY_SYSTEM", Some(_)) => vec![text(&stands["decidedBy"]), "local".to_owned()],
        _ => vec![text(&stands["decidedBy"])],
    };
    winners.sort();
    expected.sort();
    assert_eq!(winners, expected, "{stands}");
}

#[test]
fn apr_6_heavy_of_a_hundred_who_decide_at_once_by_every_door_one_decides() {
    let home = home();
    let server = home.serve();
    let mut keys: Vec<String> =
        (0..KEYS).map(|n| key(&server, "approver", &format!("approver-{n}"), &json!({}))).collect();
    keys.push(server.key.clone());
    let mut sides: Vec<Connection> = (0..OVER_HTTP + CALLERS).map(|_| server.connect()).collect();
    let mut ran = Vec::new();
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..ROUNDS {
        let stands = decide(&home, &server, &keys, round, &mut sides);
        let state = text(&stands["state"]);
        if state == "COMPLETED_SUCCESS" {
            ran.push(format!("round-{round}"));
        }
        // The ledger says so too, and who came too late.
        let record = record(&server, stands["callId"].as_str().expect("an id"));
        assert_eq!(record["state"], stands["state"]);
        let refused = record["refusedDecisions"].as_array().expect("those who came too late");
        assert!(refused.len() > OVER_HTTP / 2, "{record}");
        let by = stands["decidedVia"].as_str().unwrap_or("nobody");
        *ends.entry(format!("{state} by {by}")).or_default() += 1;
    }
    assert_eq!(lines(&home), ran, "each that was approved ran once, and nothing else did");
    super::held::verified(&server);
    eprintln!("{ROUNDS} requests, 100 who decide each: {ends:?}");
}

#[test]
fn apr_6_a_decision_that_comes_twice_runs_the_call_once() {
    let home = home();
    let server = home.serve();
    let held = Held::of(&call(
        &server,
        None,
        &json!({ "tool": "test__count", "arguments": super::held::line("once") }),
    ));
    let same = json!({ "approved": true, "reason": "fine" });
    let first = super::held::decide(&server, &server.key, &held, &same);
    assert_eq!(first.status, 200, "{first:?}");
    let again = super::held::decide(&server, &server.key, &held, &same);
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &json!("ALREADY_DECIDED")), "{again:?}");
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
    let late = super::held::decide(&server, &server.key, &held, &same);
    assert_eq!(
        (late.status, &late.json()["error"]["details"]["approval"]["state"]),
        (409, &json!("COMPLETED_SUCCESS"))
    );
    assert_eq!(lines(&home), ["once"]);
    let refused = record(&server, &held.call)["refusedDecisions"].clone();
    assert_eq!(refused.as_array().map(Vec::len), Some(2), "{refused}");
    assert_eq!((&refused[0]["by"], &refused[0]["approved"]), (&json!("person"), &json!(true)));
    assert_eq!(item(&server, &held.id)["decision"]["reason"], "fine");
}
