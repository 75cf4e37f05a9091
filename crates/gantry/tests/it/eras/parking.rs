//! A client without a connection of its own is asked by a result, and comes back: meanwhile its call is parked, and runs
//! once however often the client comes.

use super::{Answer, Client, Era, Rig, accept, call};
use crate::passthrough::{Door, Talk, text};
use gantry_testkit::server::send;
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

const SERVER: &str = "faulty_legacy_stdio";
const ASK: &str = "faulty_legacy_stdio__ask";

/// A result that asks.
#[derive(Debug, Clone)]
pub(super) struct Round {
    /// Under which the answer is to be sent.
    pub(super) key: String,
    pub(super) question: Value,
    pub(super) state: String,
}

impl Round {
    /// What an answer asks, which has to be one question.
    #[track_caller]
    pub(super) fn of(answer: &Answer) -> Self {
        let result = answer.json()["result"].clone();
        assert_eq!((answer.status, &result["resultType"]), (200, &json!("input_required")), "{answer:?}");
        let questions = result["inputRequests"].as_object().expect("questions");
        assert_eq!(questions.len(), 1, "{answer:?}");
        let (key, question) = questions.iter().next().expect("a question");
        let state = result["requestState"].as_str().expect("a state").to_owned();
        Self { key: key.clone(), question: question.clone(), state }
    }

    /// The params that bring this answer.
    pub(super) fn with(&self, answer: &Value) -> Value {
        json!({ "requestState": self.state, "inputResponses": { &*self.key: answer } })
    }
}

/// The one text of a complete result.
#[track_caller]
pub(super) fn outcome(answer: &Answer) -> String {
    let answer = answer.json();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    text(&answer["result"])
}

fn states(rows: &[Value]) -> Vec<&Value> {
    rows.iter().map(|row| &row["state"]).collect()
}

/// Waits until it is on record that a tool was called once, and that the call was withdrawn.
#[track_caller]
fn is_withdrawn(rig: &Rig, tool: &str) {
    rig.server.eventually("its end is on record", || !rig.ended(tool).is_empty());
    let rows = rig.calls(tool);
    assert_eq!((rows.len(), &rows[0]["error"]["code"]), (1, &json!("CANCELED")), "{rows:?}");
}

#[test]
fn ups_11_a_parked_call_is_continued_by_its_answer_and_is_one_call() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?" });
    let round = Round::of(&rig.call(ASK, &arguments, &json!({})));
    assert_eq!(round.question["method"], "elicitation/create");
    assert_eq!(round.question["params"]["message"], "Really?");
    assert_eq!(round.question["params"]["requestedSchema"]["required"], json!(["answer"]));
    assert!(round.state.len() >= 64, "sealed: {}", round.state);
    assert_eq!(rig.journal(SERVER), ["ask begun"]);

    assert_eq!(outcome(&rig.call(ASK, &arguments, &round.with(&accept("yes")))), accept("yes").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
    let rows = rig.calls(ASK);
    assert_eq!(states(&rows), ["COMPLETED_SUCCESS"], "{rows:?}");
    let runs = rig.server.get_as_admin("/api/v1/runs").json();
    let run = runs["items"].as_array().expect("runs").iter().find(|run| run["id"] == rows[0]["session"]);
    assert_eq!(run.expect("its run")["totals"]["toolsRun"], 1, "{runs}");
}

#[test]
fn ups_11_every_round_of_a_parked_call_has_a_state_of_its_own() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "And then?", "rounds": 4 });
    let mut round = Round::of(&rig.call(ASK, &arguments, &json!({})));
    let mut seen = vec![round.clone()];
    for n in 1..4 {
        round = Round::of(&rig.call(ASK, &arguments, &round.with(&accept(&n.to_string()))));
        assert!(
            seen.iter().all(|old| old.state != round.state && old.key != round.key),
            "{seen:?} {round:?}"
        );
        seen.push(round.clone());
    }
    assert_eq!(outcome(&rig.call(ASK, &arguments, &round.with(&accept("4")))), accept("4").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
    assert_eq!(states(&rig.calls(ASK)), ["COMPLETED_SUCCESS"]);
}

#[test]
fn ups_11_who_comes_back_without_an_answer_is_asked_again_and_more_than_was_asked_is_ignored() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?" });
    let round = Round::of(&rig.call(ASK, &arguments, &json!({})));
    let state = &round.state;
    for (what, more) in [
        ("no answers", json!({ "requestState": state })),
        ("empty answers", json!({ "requestState": state, "inputResponses": {} })),
        (
            "an answer to something else",
            json!({ "requestState": state, "inputResponses": { "x": accept("x") } }),
        ),
        (
            "an answer that is none",
            json!({ "requestState": state, "inputResponses": { &*round.key: "yes" } }),
        ),
        ("an answer of nothing", json!({ "requestState": state, "inputResponses": { &*round.key: null } })),
    ] {
        let again = Round::of(&rig.call(ASK, &arguments, &more));
        assert_eq!((&again.key, &again.question), (&round.key, &round.question), "{what}");
        assert_eq!(rig.journal(SERVER), ["ask begun"], "{what}");
    }
    let mut more = round.with(&accept("yes"));
    more["inputResponses"]["more"] = accept("no");
    assert_eq!(outcome(&rig.call(ASK, &arguments, &more)), accept("yes").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
}

/// The one place where a test has to let time pass: that it passes is what is tested.
const LONGER_THAN_A_TOOL_MAY_TAKE: Duration = Duration::from_millis(2000);

#[test]
fn ups_11_the_time_in_which_a_person_answers_is_not_the_tools() {
    let rig = Rig::with(
        &json!({ "defaults": { "toolTimeout": 1500 } }),
        &[
            (SERVER, &[]),
            ("faulty_modern_http", &[]),
            ("fixture_legacy_stdio", &[]),
            ("fixture_modern_stdio", &[]),
        ],
    );
    let requests: Vec<(&str, Value, Value)> = vec![
        ("tools/call", call(ASK, &json!({ "text": "?" }), &json!({})), accept("late")),
        ("tools/call", call("faulty_modern_http__ask", &json!({ "text": "?" }), &json!({})), accept("late")),
        (
            "prompts/get",
            json!({ "name": "fixture_legacy_stdio__test_input_required_result_prompt" }),
            late_context(),
        ),
        (
            "prompts/get",
            json!({ "name": "fixture_modern_stdio__test_input_required_result_prompt" }),
            late_context(),
        ),
    ];
    let rounds: Vec<Round> =
        requests.iter().map(|(method, params, _)| Round::of(&rig.post(method, params))).collect();
    let mut legacy = Client::connect(rig.door(), Era::Legacy);
    let id = legacy.talk.begin_call("faulty_modern_http__ask", &json!({ "text": "?" }));
    let question = legacy.talk.hear("elicitation/create");
    std::thread::sleep(LONGER_THAN_A_TOOL_MAY_TAKE);
    legacy.talk.answer(&question, &accept("late"));
    assert_eq!(legacy.talk.end_call(id), accept("late").to_string());
    for ((method, params, answer), round) in requests.iter().zip(rounds) {
        let mut params = params.clone();
        for (key, value) in round.with(answer).as_object().expect("params") {
            params[key] = value.clone();
        }
        let answer = rig.post(method, &params);
        assert!(answer.text.contains("late"), "{method} {params}: {answer:?}");
    }
    // The tool's own time still counts. (Elsewhere: a client that calls right after a call that was given up is not asked.)
    let slow = rig.call("faulty_modern_http__sleep", &json!({ "ms": 60_000 }), &json!({})).json();
    assert_eq!(slow["result"]["_meta"]["gantry/error"]["code"], "TIMEOUT", "{slow}");
    // And it goes on counting after a question.
    let arguments = json!({ "text": "?", "ms": 60_000 });
    let round = Round::of(&rig.call(ASK, &arguments, &json!({})));
    let slow = rig.call(ASK, &arguments, &round.with(&accept("x"))).json();
    assert_eq!(slow["result"]["_meta"]["gantry/error"]["code"], "TIMEOUT", "{slow}");
}

fn late_context() -> Value {
    json!({ "action": "accept", "content": { "context": "late" } })
}

/// Has a client ask something and hang up once it was asked back; returns what it was asked.
#[track_caller]
fn asked_and_left(door: Door<'_>, arguments: &Value) -> Value {
    let Client { mut talk, .. } = Client::connect(door, Era::Modern);
    let asked = talk.result("tools/call", &call(ASK, arguments, &json!({})));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().expect("questions").keys().next().expect("one");
    json!({ "requestState": asked["requestState"], "inputResponses": { key: accept("later") } })
}

#[test]
fn ups_11_a_client_that_hangs_up_while_its_call_is_parked_does_not_cancel_it() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?" });
    let answered = asked_and_left(rig.door(), &arguments);
    // It is still there after others were served.
    let echoed = rig.call("faulty_legacy_stdio__echo", &json!({ "text": "meanwhile" }), &json!({}));
    assert_eq!(outcome(&echoed), "meanwhile");
    assert_eq!(outcome(&rig.call(ASK, &arguments, &answered)), accept("later").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
    assert_eq!(states(&rig.calls(ASK)), ["COMPLETED_SUCCESS"]);
}

#[test]
fn ups_11_a_client_that_comes_back_to_a_server_that_died_gets_an_error_that_says_so() {
    let servers = [SERVER, "faulty_legacy_http"];
    let rig = Rig::of(&servers);
    let arguments = json!({ "text": "Really?" });
    for (server, with_answers) in servers.into_iter().flat_map(|server| [(server, true), (server, false)]) {
        let ask = format!("{server}__ask");
        let (n_lines, n_calls) = (rig.journal(server).len(), rig.ended(&ask).len());
        let round = Round::of(&rig.call(&ask, &arguments, &json!({})));
        let restart = format!("/api/v1/servers/{server}/restart");
        let restarted = send(&rig.server.admin(), Method::POST, &restart, &[], "");
        assert_eq!(restarted.status, 200, "{restarted:?}");
        rig.server.eventually("its end is on record", || rig.ended(&ask).len() > n_calls);
        let answered = round.with(&accept("yes"));
        let bare = json!({ "requestState": round.state });
        let mut answer = Value::Null;
        // Until the question is known to be void, who brings no answer is asked again.
        rig.server.eventually("it ends", || {
            answer = rig.call(&ask, &arguments, if with_answers { &answered } else { &bare }).json();
            answer["result"]["resultType"] != "input_required"
        });
        assert_eq!(answer["result"]["isError"], true, "{server}: {answer}");
        assert!(
            text(&answer["result"]).contains("was lost while the call was under way"),
            "{server}: {answer}"
        );
        rig.ready(server);
        let begun = |lines: &[String]| lines.iter().filter(|line| *line == "ask begun").count();
        assert_eq!(begun(&rig.journal(server)[n_lines..]), 1, "{server}: {:?}", rig.journal(server));
    }
}

/// A session on a connection of its own ends with the connection, and what was parked in it with the session.
#[test]
fn ups_11_a_call_that_is_parked_on_a_pipe_ends_with_the_pipe() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?" });
    let answered = asked_and_left(rig.pipe(), &arguments);
    rig.journalled(SERVER, "cancelled");
    is_withdrawn(&rig, ASK);
    let Client { mut talk, .. } = Client::connect(rig.pipe(), Era::Modern);
    let late = talk.result("tools/call", &call(ASK, &arguments, &answered));
    assert_eq!(late["_meta"]["gantry/error"]["code"], "CANCELED", "{late}");
    assert_eq!(rig.journal(SERVER), ["ask begun", "cancelled"]);
}

/// Begins a request of 2026-07-28 on a connection of its own, and hangs up when `when` says so.
fn hang_up(rig: &Rig, tool: &str, arguments: &Value, more: &Value, when: impl FnOnce(&mut Talk)) {
    let Client { mut talk, .. } = Client::connect(rig.door(), Era::Modern);
    talk.meta.push_str(r#","progressToken":1"#);
    talk.begin("tools/call", &call(tool, arguments, more).to_string());
    when(&mut talk);
}

#[test]
fn ups_11_a_modern_client_that_closes_the_stream_of_a_running_call_cancels_it() {
    let servers = [SERVER, "faulty_modern_stdio"];
    let rig = Rig::of(&servers);
    for server in servers {
        // While nothing was said yet; its start is on record.
        let sleep = format!("{server}__sleep");
        hang_up(&rig, &sleep, &json!({ "ms": 60_000 }), &json!({}), |_| {
            let started = || {
                let events = rig.server.get_as_admin("/api/v1/events?follow=false").text;
                events.lines().any(|line| line.contains("tool_started") && line.contains(&sleep))
            };
            rig.server.eventually("it has started", started);
        });
        is_withdrawn(&rig, &sleep);
        // After it has begun to speak.
        hang_up(
            &rig,
            &format!("{server}__progress"),
            &json!({ "steps": 1, "ms": 60_000 }),
            &json!({}),
            |talk| {
                talk.hear("notifications/progress");
            },
        );
        rig.journalled(server, "cancelled");
    }
}

#[test]
fn ups_11_a_call_that_was_parked_and_runs_again_is_cancelled_by_hanging_up() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?", "ms": 60_000 });
    let round = Round::of(&rig.call(ASK, &arguments, &json!({})));
    hang_up(&rig, ASK, &arguments, &round.with(&accept("yes")), |_| {
        // Who answers twice is refused only once the answer was taken.
        rig.server.eventually("the answer was taken", || {
            rig.call(ASK, &arguments, &json!({ "requestState": round.state })).json().get("error").is_some()
        });
    });
    rig.journalled(SERVER, "cancelled");
    is_withdrawn(&rig, ASK);
    assert_eq!(rig.journal(SERVER), ["ask begun", "cancelled"]);
}
