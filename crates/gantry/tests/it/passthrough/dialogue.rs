//! UPS-10: what is said while a call runs: progress, questions to the client, and cancellations.

use super::{Door, Rig, Talk, faulty, with};
use gantry_testkit::faulty::{Faulty, Kind};
use http::Method;
use serde_json::{Value, json};

/// The text of a question and the schema of its answer, as the server asks.
fn elicitation(message: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    json!({ "message": message, "requestedSchema": schema })
}

#[test]
fn ups_10_progress_comes_under_the_clients_own_token_and_in_order() {
    let rig = Rig::one();
    for (what, door) in rig.doors() {
        for modern in [false, true] {
            let mut client = if modern { Talk::modern(door) } else { Talk::legacy(door) };
            for token in ["7", "\"tök \\u0041\"", "9007199254740993"] {
                client.meta = format!("\"progressToken\":{token}");
                assert_eq!(client.call("one__progress", &json!({ "steps": 5 })), "5 steps", "{what}");
                let heard = client.heard("notifications/progress");
                let steps: Vec<_> = heard.iter().map(|note| note["params"]["progress"].as_u64()).collect();
                assert_eq!(steps, (1..=5).map(Some).collect::<Vec<_>>(), "{what} {token}");
                let expected: Value = serde_json::from_str(token).expect("JSON");
                for note in &heard {
                    assert_eq!(note["params"]["progressToken"], expected, "{what}: {note}");
                    let step = note["params"]["progress"].as_u64().expect("a number");
                    assert_eq!(
                        (&note["params"]["total"], &note["params"]["message"]),
                        (&json!(5), &json!(format!("step {step}")))
                    );
                }
            }
            // Who does not ask for it hears nothing.
            client.meta.clear();
            assert_eq!(client.call("one__progress", &json!({ "steps": 5 })), "5 steps");
            assert_eq!(client.heard("notifications/progress"), [] as [Value; 0], "{what}");
        }
    }
}

#[test]
fn ups_10_progress_of_two_clients_with_one_token_is_not_mixed_up() {
    let rig = Rig::one();
    let mut clients = [rig.legacy(), rig.legacy(), rig.modern()];
    let mut calls = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        client.meta = "\"progressToken\":1".to_owned();
        calls.push(client.begin_call("one__progress", &json!({ "steps": 20 + n })));
    }
    for (n, (client, call)) in clients.iter_mut().zip(calls).enumerate() {
        assert_eq!(client.end_call(call), format!("{} steps", 20 + n));
        let heard = client.heard("notifications/progress");
        assert_eq!(heard.len(), 20 + n);
        assert!(heard.iter().all(|note| note["params"]["total"] == 20 + n), "{heard:?}");
    }
}

#[test]
fn ups_10_a_question_reaches_the_client_as_it_was_asked_and_its_answer_the_server() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    for answer in [
        json!({ "action": "accept", "content": { "answer": "blue", "x-extra": 1.5 }, "_meta": { "vendor/x": 1 } }),
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
    ] {
        let call = client.begin_call("one__ask", &json!({ "text": "Which colour?" }));
        let question = client.hear("elicitation/create");
        assert_eq!(question["params"], elicitation("Which colour?"), "{question}");
        client.answer(&question, &answer);
        let outcome: Value = serde_json::from_str(&client.end_call(call)).expect("JSON");
        assert_eq!(outcome, answer);
    }
    // An error is an answer too.
    let call = client.begin_call("one__ask", &json!({ "text": "Which colour?" }));
    let question = client.hear("elicitation/create");
    let error = json!({ "code": -32000, "message": "not now" });
    client.way.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }).to_string());
    assert!(client.end_call(call).contains("not now"));
    assert_eq!(rig.journal(), ["ask begun", "ask ended"].repeat(4), "each call ran once");
}

#[test]
fn ups_10_a_call_may_ask_again_and_again() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let call = client.begin_call("one__ask", &json!({ "text": "And now?", "rounds": 5 }));
    for round in 1..=5 {
        let question = client.hear("elicitation/create");
        client.answer(&question, &json!({ "action": "accept", "content": { "answer": format!("{round}") } }));
    }
    let outcome: Value = serde_json::from_str(&client.end_call(call)).expect("JSON");
    assert_eq!(outcome["content"]["answer"], "5");
    assert_eq!(rig.journal(), ["ask begun", "ask ended"]);
}

#[test]
fn ups_10_the_clients_model_is_asked_and_its_answer_goes_to_the_server() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let call = client.begin_call("one__sample", &json!({ "text": "Say hi" }));
    let question = client.hear("sampling/createMessage");
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Say hi" } });
    assert_eq!(question["params"], json!({ "messages": [message], "maxTokens": 100 }), "{question}");
    let answer = json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "m", "stopReason": "endTurn" });
    client.answer(&question, &answer);
    assert_eq!(serde_json::from_str::<Value>(&client.end_call(call)).expect("JSON"), answer);
}

#[test]
fn ups_10_roots_are_sent_only_to_a_server_that_may_know_them() {
    let may = with(faulty(&[]), &json!({ "roots": true }));
    let rig = Rig::of(&json!({ "one": faulty(&[]), "may": may }));
    let mut client = rig.legacy();
    let refused = client.result("tools/call", &json!({ "name": "one__roots", "arguments": {} }));
    assert_eq!(super::text(&refused), "the client has no roots");
    assert_eq!(client.heard("roots/list"), [] as [Value; 0], "the client is not even asked");

    let call = client.begin_call("may__roots", &json!({}));
    let question = client.hear("roots/list");
    let roots = json!({ "roots": [{ "uri": "file:///home/ada", "name": "home" }] });
    client.answer(&question, &roots);
    assert_eq!(serde_json::from_str::<Value>(&client.end_call(call)).expect("JSON"), roots);
}

#[test]
fn ups_10_what_a_server_may_not_ask_is_not_even_offered_to_it() {
    let deaf = with(faulty(&[]), &json!({ "elicitation": false, "sampling": false }));
    let rig = Rig::of(&json!({ "deaf": deaf }));
    let mut client = rig.legacy();
    for (tool, capability) in [("ask", "elicitation"), ("sample", "sampling")] {
        let failed =
            client.result("tools/call", &json!({ "name": format!("deaf__{tool}"), "arguments": {} }));
        assert_eq!(
            (super::text(&failed), &failed["isError"]),
            (format!("the client has no {capability}"), &json!(true))
        );
    }
    assert_eq!(client.heard("elicitation/create"), [] as [Value; 0]);
    assert_eq!(rig.journal(), [] as [&str; 0]);
}

#[test]
fn ups_10_a_client_that_cannot_be_asked_is_not_asked_and_the_server_learns_it() {
    let rig = Rig::of(&json!({ "one": faulty(&[]), "may": with(faulty(&[]), &json!({ "roots": true })) }));
    let mut client = Talk::legacy_with(rig.door(), &json!({}));
    for (tool, method) in [
        ("one__ask", "elicitation/create"),
        ("one__sample", "sampling/createMessage"),
        ("may__roots", "roots/list"),
    ] {
        let outcome: Value = serde_json::from_str(&client.call(tool, &json!({}))).expect("JSON");
        assert_eq!(outcome["code"], -32601, "{tool}: {outcome}");
        assert!(
            outcome["message"].as_str().is_some_and(|text| text.contains("not supported by the client")),
            "{outcome}"
        );
        assert_eq!(client.heard(method), [] as [Value; 0], "{tool}");
    }
}

#[test]
fn ups_10_questions_of_calls_at_once_reach_the_clients_that_made_them() {
    // Over HTTP a question comes with the call that it belongs to.
    let remote = Faulty::start(Kind::Http, &[]);
    let rig = Rig::of(&json!({ "one": { "type": "http", "url": remote.url } }));
    let mut clients = [rig.legacy(), Talk::legacy(Door::Ws(&rig.server, "/ws")), rig.legacy()];
    let mut calls = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        calls.push(client.begin_call("one__ask", &json!({ "text": format!("question {n}") })));
    }
    for (n, (client, call)) in clients.iter_mut().zip(calls).enumerate() {
        let question = client.hear("elicitation/create");
        assert_eq!(question["params"]["message"], format!("question {n}"));
        client.answer(&question, &json!({ "action": "accept", "content": { "answer": n.to_string() } }));
        assert!(client.end_call(call).contains(&format!("\"answer\":\"{n}\"")));
        assert_eq!(client.heard("elicitation/create"), [] as [Value; 0]);
    }
}

#[test]
fn ups_10_a_question_that_could_be_any_clients_reaches_none() {
    // On stdio of the older era a question does not say for which call it is.
    let rig = Rig::one();
    let (mut first, mut second) = (rig.legacy(), rig.legacy());
    let open = first.begin_call("one__ask", &json!({ "text": "mine" }));
    let question = first.hear("elicitation/create");
    let refused: Value =
        serde_json::from_str(&second.call("one__ask", &json!({ "text": "whose?" }))).expect("JSON");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("several clients")), "{refused}");
    assert_eq!(second.heard("elicitation/create"), [] as [Value; 0]);
    first.answer(&question, &json!({ "action": "decline" }));
    assert_eq!(first.end_call(open), r#"{"action":"decline"}"#);
    assert_eq!(first.heard("elicitation/create"), [] as [Value; 0]);
}

#[test]
fn ups_10_an_answer_to_another_clients_question_is_not_taken() {
    let rig = Rig::one();
    let (mut first, mut thief) = (rig.legacy(), rig.legacy());
    let call = first.begin_call("one__ask", &json!({ "text": "mine" }));
    let question = first.hear("elicitation/create");
    thief.answer(&question, &json!({ "action": "accept", "content": { "answer": "stolen" } }));
    thief.tools();
    first.answer(&question, &json!({ "action": "accept", "content": { "answer": "mine" } }));
    assert!(first.end_call(call).contains("mine"));
}

#[test]
fn ups_10_a_call_that_its_client_withdraws_is_withdrawn_at_the_server() {
    for n in 0..4 {
        // A server of its own for each: a client that calls right after a withdrawn call is not asked.
        let rig = Rig::one();
        let mut doors = rig.doors().into_iter().chain([("/sse", Door::Sse(&rig.server))]);
        let (what, door) = doors.nth(n).expect("a door");
        let mut client = Talk::legacy(door);
        // The question proves that the call is under way.
        let call = client.begin_call("one__ask", &json!({ "text": "never answered" }));
        client.hear("elicitation/create");
        client.tell("notifications/cancelled", &json!({ "requestId": call, "reason": "enough" }));
        rig.server.eventually(&format!("{what}: the server is told"), || {
            rig.journal() == ["ask begun", "cancelled"]
        });
        assert_eq!(client.call("one__echo", &json!({ "text": what })), what);
    }
}

#[test]
fn ups_10_a_modern_call_that_its_client_withdraws_is_withdrawn_at_the_server() {
    let rig = Rig::one();
    for (n, (what, door)) in rig.doors().into_iter().enumerate() {
        let mut client = Talk::modern(door);
        client.meta = "\"progressToken\":1".to_owned();
        // Progress proves that the call is under way.
        let call = client.begin_call("one__progress", &json!({ "steps": 1, "ms": 600_000 }));
        client.hear("notifications/progress");
        // Over HTTP hanging up is what withdraws a call; elsewhere it takes a word.
        if what == "/mcp" {
            drop(client);
        } else {
            client.tell("notifications/cancelled", &json!({ "requestId": call }));
            client.meta.clear();
            assert_eq!(client.call("one__echo", &json!({ "text": what })), what);
        }
        let expected = vec!["cancelled"; n + 1];
        rig.server.eventually(&format!("{what}: the server is told"), || rig.journal() == expected);
    }
}

#[test]
fn ups_10_a_legacy_client_that_hangs_up_can_come_back_to_its_call() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let call = client.begin_call("one__ask", &json!({ "text": "anybody?" }));
    let question = client.hear("elicitation/create");
    let seen = client.way.seen();
    drop(client);
    let session = ("mcp-session-id", seen.session.as_deref().expect("a session"));
    let events = seen.events.iter().filter(|id| !id.contains("-0-")).collect::<Vec<_>>();
    let json = ("content-type", "application/json");
    // The question is open still: it is answered from another connection, and the call goes on.
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    let taken = rig.server.request(Method::POST, "/mcp", &[json, session], &answer.to_string());
    assert_eq!(taken.status, 202, "{taken:?}");
    let resume =
        [session, ("accept", "text/event-stream"), ("last-event-id", events.last().expect("an event"))];
    let rest = rig.server.request(Method::GET, "/mcp", &resume, "").text;
    let data = rest.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
    let result: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(
        (&result["id"], super::text(&result["result"])),
        (&json!(call), r#"{"action":"decline"}"#.into())
    );
    assert_eq!(rig.journal(), ["ask begun", "ask ended"]);
}

#[test]
fn ups_10_with_a_session_end_its_calls_at_the_servers() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    client.begin_call("one__ask", &json!({ "text": "anybody?" }));
    client.hear("elicitation/create");
    let session = client.way.seen().session.expect("a session");
    let ended = rig.server.request(Method::DELETE, "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(ended.status, 204, "{ended:?}");
    rig.server.eventually("the call is over", || rig.journal() == ["ask begun", "cancelled"]);
}
