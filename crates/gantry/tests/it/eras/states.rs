//! `requestState` is in the hands of its client: a state that leads nowhere, elsewhere or to another identity is refused with a
//! word on what to do, and never runs a call a second time.

use super::parking::{Round, outcome};
use super::{Answer, Rig, accept, call, post};
use serde_json::{Value, json};

const SERVER: &str = "faulty_legacy_stdio";
const ASK: &str = "faulty_legacy_stdio__ask";

/// A state that was never given out, and one that is not waited for.
const BROKEN: &str = "requestState is not one that this server gave out";
const GONE: &str = "nothing waits for this requestState any more";
const OTHER: &str = "requestState belongs to another request";

/// The advice that goes with each.
const ADVICE: [(&str, &str); 3] = [
    (BROKEN, "send the exact text of the last answer, or begin anew without requestState"),
    (GONE, "The request was not run again; see what it did before you begin anew"),
    (OTHER, "repeat the same method and params with it"),
];

#[track_caller]
fn refused(answer: &Answer, why: &str, what: &str) {
    let json = answer.json();
    let message = json["error"]["message"].as_str().unwrap_or_else(|| panic!("{what}: {answer:?}"));
    let (_, advice) = ADVICE.iter().find(|(known, _)| *known == why).expect("advice");
    assert_eq!((answer.status, &json["error"]["code"]), (200, &json!(-32602)), "{what}: {answer:?}");
    assert!(message.starts_with(why) && message.contains(advice), "{what}: {message}");
}

fn arguments() -> Value {
    json!({ "text": "Really?" })
}

/// The call goes on as if nothing had happened, and has run once.
#[track_caller]
fn goes_on(rig: &Rig, round: &Round) {
    assert_eq!(rig.journal(SERVER), ["ask begun"]);
    let answer = rig.call(ASK, &arguments(), &round.with(&accept("yes")));
    assert_eq!(outcome(&answer), accept("yes").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
}

#[test]
fn ups_11_a_state_that_was_tampered_with_is_refused() {
    let rig = Rig::of(&[SERVER]);
    let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
    let flipped = |at: usize| {
        let mut bytes = round.state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).expect("ASCII")
    };
    let end = round.state.len();
    let mut wrong: Vec<String> = (0..end - 1).step_by(7).map(flipped).collect();
    wrong.extend([
        String::new(),
        "nonsense".into(),
        "grüße".into(),
        round.state.chars().take(end / 2).collect(),
        format!("{0}{0}", round.state),
        format!("{}=", round.state),
        "A".repeat(100_000),
    ]);
    for state in wrong {
        let more = json!({ "requestState": state, "inputResponses": { &*round.key: accept("stolen") } });
        refused(&rig.call(ASK, &arguments(), &more), BROKEN, &state);
    }
    for state in [json!(7), json!({}), json!(true)] {
        let more = json!({ "requestState": state, "inputResponses": { &*round.key: accept("stolen") } });
        let answer = rig.call(ASK, &arguments(), &more).json();
        assert_eq!(answer["error"]["code"], -32602, "{state}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("requestState"), "{state}: {answer}");
    }
    goes_on(&rig, &round);
}

#[test]
fn ups_11_a_state_of_another_identity_is_refused() {
    let config = json!({ "agents": { "a": { "tools": ["*"] }, "b": { "tools": ["*"] } } });
    let rig = Rig::with(&config, &[(SERVER, &[])]);
    let (anonymous, keyholder) = (rig.server.client(), rig.server.admin());
    let doors = [
        (&anonymous, "/mcp"),
        (&keyholder, "/mcp"),
        (&anonymous, "/mcp/default/agents/a"),
        (&anonymous, "/mcp/default/agents/b"),
    ];
    for (n, (owner, path)) in doors.iter().enumerate() {
        let params = call(ASK, &arguments(), &json!({}));
        let round = Round::of(&post(owner, path, "tools/call", &params));
        let answered = call(ASK, &arguments(), &round.with(&accept("mine")));
        for (m, (other, path)) in doors.iter().enumerate().filter(|(m, _)| *m != n) {
            refused(&post(other, path, "tools/call", &answered), GONE, &format!("{m} with the state of {n}"));
        }
        assert_eq!(outcome(&post(owner, path, "tools/call", &answered)), accept("mine").to_string());
        assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"].repeat(n + 1));
    }
}

#[test]
fn ups_11_a_state_is_good_once() {
    let rig = Rig::of(&[SERVER]);
    let arguments = json!({ "text": "Really?", "rounds": 2 });
    let first = Round::of(&rig.call(ASK, &arguments, &json!({})));
    let second = Round::of(&rig.call(ASK, &arguments, &first.with(&accept("one"))));
    refused(&rig.call(ASK, &arguments, &first.with(&accept("other"))), GONE, "an earlier round");
    let end = rig.call(ASK, &arguments, &second.with(&accept("two")));
    assert_eq!(outcome(&end), accept("two").to_string());
    for round in [&first, &second] {
        refused(&rig.call(ASK, &arguments, &round.with(&accept("again"))), GONE, "after the end");
    }
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
    assert_eq!(rig.calls(ASK).len(), 1);
}

#[test]
fn ups_11_of_two_answers_at_once_one_counts() {
    let rig = Rig::of(&[SERVER]);
    for n in 1..=10 {
        let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let answering = ["left", "right"]
                .map(|side| scope.spawn(|| rig.call(ASK, &arguments(), &round.with(&accept(side)))));
            answering.into_iter().map(|answer| answer.join().expect("an answer")).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.json().get("result").is_some());
        assert_eq!((won.len(), lost.len()), (1, 1), "{answers:?}");
        assert!(outcome(won[0]).contains("accept"));
        refused(lost[0], GONE, "the second answer");
        assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"].repeat(n));
    }
}

#[test]
fn ups_11_a_state_is_good_for_the_request_that_it_was_given_for() {
    let rig = Rig::of(&[SERVER]);
    let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
    let more = round.with(&accept("stolen"));
    for (tool, other) in [
        (ASK, json!({ "text": "Something else?" })),
        (ASK, json!({ "text": "Really?", "rounds": 1 })),
        (ASK, json!({})),
        ("faulty_legacy_stdio__journal", json!({ "text": "written" })),
        ("faulty_legacy_stdio__sample", arguments()),
    ] {
        refused(&rig.call(tool, &other, &more), OTHER, &format!("{tool} {other}"));
    }
    let other = rig.post("prompts/get", &call(ASK, &arguments(), &more));
    refused(&other, OTHER, "another method");
    goes_on(&rig, &round);
}

#[test]
fn ups_11_a_request_that_is_only_written_in_another_way_is_the_same_request() {
    let rig = Rig::of(&[SERVER]);
    let round = Round::of(&rig.call(ASK, &json!({ "text": "Really?", "rounds": 1 }), &json!({})));
    let more = round.with(&accept("yes"));
    // Keys in another order, and what the protocol itself changes from round to round.
    let params = json!({
        "requestState": more["requestState"], "inputResponses": more["inputResponses"],
        "arguments": { "rounds": 1, "text": "Really?" }, "name": ASK,
    });
    assert_eq!(outcome(&rig.post("tools/call", &params)), accept("yes").to_string());
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
}

#[test]
fn ups_11_a_state_from_before_gantry_was_killed_is_refused_and_runs_nothing() {
    let rig = Rig::of(&[SERVER]);
    let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
    let Rig { server, home, _remote } = rig;
    server.kill();
    let rig = Rig { server: home.serve(), home, _remote };
    rig.ready(SERVER);
    refused(&rig.call(ASK, &arguments(), &round.with(&accept("yes"))), BROKEN, "after a crash");
    let begun = || rig.journal(SERVER).iter().filter(|line| *line == "ask begun").count();
    assert_eq!((begun(), rig.journal(SERVER).contains(&"ask ended".into())), (1, false));
    assert!(rig.calls(ASK).iter().all(|row| row["state"] != "COMPLETED_SUCCESS"));
    // A client that wants it begins anew, knowingly.
    let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
    assert_eq!(outcome(&rig.call(ASK, &arguments(), &round.with(&accept("yes")))), accept("yes").to_string());
    assert_eq!(begun(), 2);
}

#[test]
fn ups_11_gantry_stops_while_a_call_is_parked() {
    let rig = Rig::of(&[SERVER]);
    let round = Round::of(&rig.call(ASK, &arguments(), &json!({})));
    let Rig { server, home, _remote } = rig;
    let (code, said) = server.stop();
    assert_eq!(code, 0, "{said}");
    let rig = Rig { server: home.serve(), home, _remote };
    rig.ready(SERVER);
    refused(&rig.call(ASK, &arguments(), &round.with(&accept("yes"))), BROKEN, "after a restart");
    assert_eq!(rig.journal(SERVER).iter().filter(|line| *line == "ask begun").count(), 1);
}
