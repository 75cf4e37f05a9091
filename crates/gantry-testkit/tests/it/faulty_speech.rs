//! Without a fault the faulty server is a good one, in both eras.

use crate::client::{Process, Wire as _, modern, text};
use gantry_testkit::faulty::lossless_samples::{
    HUGE_NUMBER_RESULT, SAMPLE_DEFINITION, SAMPLE_RESULT, SAMPLE_RESULT_MODERN,
};
use gantry_testkit::faulty::{COLLIDING, LEGACY, LONG_NAME, MODERN, RESERVED};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn legacy(args: &[&str], capabilities: &Value) -> Process {
    let mut server = Process::faulty(args);
    let answer = server.initialize(capabilities);
    assert_eq!(answer["result"]["serverInfo"]["name"], "faulty", "{answer}");
    server
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_handshake_leads_to_lists_and_calls() {
    let mut server = Process::faulty(&[]);
    let early = server.request(1, "tools/list", &json!({}));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    assert_eq!(server.initialize(&json!({}))["result"]["protocolVersion"], LEGACY);
    let names = names(&server.request(2, "tools/list", &json!({})));
    for name in [LONG_NAME].into_iter().chain(COLLIDING).chain(RESERVED) {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert_eq!(text(&server.call(3, "echo", &json!({ "text": "hi" }))), "hi");
    assert_eq!(server.call(4, "add", &json!({ "a": 2, "b": 3 }))["structuredContent"], json!({ "sum": 5 }));
    assert_eq!(server.call(5, "fail", &json!({ "text": "no" }))["isError"], true);
    assert_eq!(text(&server.call(6, "a.b", &json!({}))), "a.b");
    let unknown = server.request(7, "tools/call", &json!({ "name": "nobody" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(server.close(), (String::new(), Some(0)));
}

#[test]
fn a_modern_server_needs_no_handshake_and_takes_none() {
    let mut server = Process::faulty(&["--era", "modern"]);
    let refused = server.initialize(&json!({}));
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["supported"]),
        (&json!(-32022), &json!([MODERN]))
    );
    let bare = server.request(1, "tools/list", &json!({}));
    assert_eq!(bare["error"]["code"], -32602, "{bare}");
    let found = server.request(2, "server/discover", &modern(json!({}), &json!({})));
    assert_eq!(found["result"]["supportedVersions"], json!([MODERN]), "{found}");
    let list = server.request(3, "tools/list", &modern(json!({}), &json!({})));
    assert_eq!((&list["result"]["resultType"], &list["result"]["ttlMs"]), (&json!("complete"), &json!(0)));
    let call = modern(json!({ "name": "echo", "arguments": { "text": "hi" } }), &json!({}));
    let answer = server.request(4, "tools/call", &call);
    assert_eq!((text(&answer["result"]), &answer["result"]["resultType"]), ("hi", &json!("complete")));
}

#[test]
fn a_legacy_server_does_not_know_discovery() {
    let mut server = Process::faulty(&[]);
    let answer = server.request(1, "server/discover", &modern(json!({}), &json!({})));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert!(server.initialize(&json!({}))["result"].is_object());
}

#[test]
fn a_dual_server_speaks_either_and_an_old_one_its_own_version() {
    let mut server = Process::faulty(&["--era", "dual"]);
    assert!(server.request(1, "server/discover", &modern(json!({}), &json!({})))["result"].is_object());
    assert_eq!(server.initialize(&json!({}))["result"]["protocolVersion"], LEGACY);
    let mut old = Process::faulty(&["--revision", "2024-11-05"]);
    assert_eq!(old.initialize(&json!({}))["result"]["protocolVersion"], "2024-11-05");
}

#[test]
fn pages_cover_a_list_once() {
    let mut all = legacy(&[], &json!({}));
    let wanted = names(&all.request(1, "tools/list", &json!({})));
    for args in [["--page", "3"].as_slice(), &["--empty-cursor"]] {
        let mut server = legacy(args, &json!({}));
        let (mut found, mut cursors, mut params) = (Vec::new(), Vec::new(), json!({}));
        loop {
            let page = server.request(1, "tools/list", &params);
            assert!(names(&page).len() <= 3, "{page}");
            found.extend(names(&page));
            let Some(cursor) = page["result"]["nextCursor"].as_str() else { break };
            cursors.push(cursor.to_owned());
            params = json!({ "cursor": cursor });
        }
        assert_eq!(found, wanted, "{args:?}");
        assert_eq!(cursors[0].is_empty(), args == ["--empty-cursor"]);
        let bad = server.request(2, "tools/list", &json!({ "cursor": "nonsense" }));
        assert_eq!(bad["error"]["code"], -32602, "{bad}");
    }
    let unique: BTreeSet<&String> = wanted.iter().collect();
    assert_eq!(unique.len(), wanted.len());
}

#[test]
fn unusual_json_is_on_the_wire_byte_for_byte() {
    let mut server = legacy(&["--era", "dual"], &json!({}));
    let mut ask = |method: &str, params: &Value| {
        server.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string());
        server.next_text().expect("an answer")
    };
    let wrapped = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
    assert!(ask("tools/list", &json!({})).contains(SAMPLE_DEFINITION));
    assert_eq!(ask("tools/call", &json!({ "name": "odd" })), wrapped(SAMPLE_RESULT));
    assert_eq!(ask("tools/call", &json!({ "name": "odd-huge" })), wrapped(HUGE_NUMBER_RESULT));
    assert_eq!(
        ask("tools/call", &modern(json!({ "name": "odd" }), &json!({}))),
        wrapped(SAMPLE_RESULT_MODERN)
    );
}

#[test]
fn the_parameters_come_back_as_they_were_sent() {
    let mut server = legacy(&[], &json!({}));
    let params = r#"{"arguments":{"any":1e400,"b":1.10},  "name":"params","_meta":{"x":"\u0041"}}"#;
    server.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#));
    assert_eq!(text(&server.next()["result"]), params);
}

#[test]
fn progress_and_logs_come_before_the_answer() {
    let mut server = legacy(&["--era", "dual"], &json!({}));
    let params =
        json!({ "name": "progress", "arguments": { "steps": 3 }, "_meta": { "progressToken": "t" } });
    let (notes, answer) = server.request_noting(1, "tools/call", &params);
    let steps: Vec<&Value> = notes.iter().map(|note| &note["params"]["progress"]).collect();
    assert_eq!(
        (steps, &notes[0]["params"]["progressToken"]),
        (vec![&json!(1), &json!(2), &json!(3)], &json!("t"))
    );
    assert_eq!(text(&answer["result"]), "3 steps");

    let log = json!({ "name": "log", "arguments": { "text": "heard", "level": "info" } });
    let (notes, _) = server.request_noting(2, "tools/call", &log);
    assert_eq!(notes[0]["params"]["data"], "heard");
    server.request(3, "logging/setLevel", &json!({ "level": "error" }));
    assert!(server.request_noting(4, "tools/call", &log).0.is_empty());
    // Only who asks for it in the request itself hears the newer era's logs.
    let mut asking = modern(log, &json!({}));
    assert!(server.request_noting(5, "tools/call", &asking).0.is_empty());
    asking["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    assert_eq!(server.request_noting(6, "tools/call", &asking).0.len(), 1);
}

#[test]
fn a_legacy_server_asks_the_client_during_a_call() {
    let mut server = legacy(&[], &json!({ "elicitation": {}, "sampling": {}, "roots": {} }));
    let methods =
        [("ask", "elicitation/create"), ("sample", "sampling/createMessage"), ("roots", "roots/list")];
    for (tool, method) in methods {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } });
        server.send(&call.to_string());
        let asked = server.next();
        assert_eq!(asked["method"], method);
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "answer": tool } });
        server.send(&answer.to_string());
        assert_eq!(text(&server.next()["result"]), json!({ "answer": tool }).to_string());
    }
    let mut plain = legacy(&[], &json!({}));
    assert_eq!(plain.call(1, "ask", &json!({}))["isError"], true);
}

#[test]
fn a_modern_server_asks_with_its_answer() {
    let mut server = Process::faulty(&["--era", "modern"]);
    let able = json!({ "elicitation": {} });
    let call = json!({ "name": "ask", "arguments": { "rounds": 2 } });
    let refused = server.request(1, "tools/call", &modern(call.clone(), &json!({})));
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], able, "{refused}");

    let mut params = modern(call, &able);
    for round in 1..=2 {
        let asked = server.request(round, "tools/call", &params);
        let key = format!("answer-{round}");
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(asked["result"]["inputRequests"][&key]["method"], "elicitation/create");
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: { "action": "accept", "round": round } });
    }
    let answer = server.request(9, "tools/call", &params);
    assert_eq!(text(&answer["result"]), json!({ "action": "accept", "round": 2 }).to_string());
}

#[test]
fn changes_are_sent_to_subscribers() {
    let mut server = legacy(&["--era", "dual"], &json!({}));
    let (notes, answer) = server.request_noting(1, "tools/call", &json!({ "name": "grow" }));
    assert_eq!(notes[0]["method"], "notifications/tools/list_changed");
    let grown = text(&answer["result"]).to_owned();
    assert!(names(&server.request(2, "tools/list", &json!({}))).contains(&grown));

    let touch = json!({ "name": "touch", "arguments": { "uri": "faulty://text/one" } });
    assert!(server.request_noting(3, "tools/call", &touch).0.is_empty());
    server.request(4, "resources/subscribe", &json!({ "uri": "faulty://text/one" }));
    let (notes, _) = server.request_noting(5, "tools/call", &touch);
    assert_eq!(notes[0]["params"]["uri"], "faulty://text/one");

    let mut server = Process::faulty(&["--era", "modern"]);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listen = json!({ "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
                         "params": modern(filter.clone(), &json!({})) });
    server.send(&listen.to_string());
    let granted = server.next();
    assert_eq!(granted["params"]["notifications"], filter["notifications"], "{granted}");
    let (notes, _) =
        server.request_noting(1, "tools/call", &modern(json!({ "name": "rug-pull" }), &json!({})));
    assert_eq!(notes[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}

#[test]
fn prompts_and_resources_grow_and_are_announced_apart() {
    let mut server = legacy(&["--era", "dual"], &json!({}));
    for (tool, list, member, entry) in [
        ("grow-prompt", "prompts", "name", "grown-1"),
        ("grow-resource", "resources", "uri", "faulty://grown/1"),
    ] {
        let (notes, answer) = server.request_noting(1, "tools/call", &json!({ "name": tool }));
        assert_eq!(text(&answer["result"]), "grown-1");
        let outcome: Vec<&Value> = notes.iter().map(|note| &note["method"]).collect();
        assert_eq!(outcome, [&json!(format!("notifications/{list}/list_changed"))]);
        let listed = server.request(2, &format!("{list}/list"), &json!({}));
        let entries = listed["result"][list].as_array().expect("a list");
        assert_eq!(entries.last().expect("an entry")[member], entry, "{listed}");
    }
    let got = server.request(3, "prompts/get", &json!({ "name": "grown-1" }));
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "grown-1 {}", "{got}");
    let read = server.request(4, "resources/read", &json!({ "uri": "faulty://grown/1" }));
    assert_eq!(read["result"]["contents"][0]["text"], "grown", "{read}");
    for (method, params) in [
        ("prompts/get", json!({ "name": "grown-2" })),
        ("resources/read", json!({ "uri": "faulty://grown/2" })),
    ] {
        let unknown = server.request(5, method, &params);
        assert!(unknown["error"].is_object(), "{unknown}");
    }

    let mut server = Process::faulty(&["--era", "modern"]);
    let filter = json!({ "notifications": { "promptsListChanged": true } });
    let listen = json!({ "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
                         "params": modern(filter, &json!({})) });
    server.send(&listen.to_string());
    server.next();
    let mut grow =
        |tool: &str| server.request_noting(1, "tools/call", &modern(json!({ "name": tool }), &json!({}))).0;
    assert!(grow("grow").is_empty() && grow("grow-resource").is_empty());
    assert_eq!(grow("grow-prompt").len(), 1);
}

#[test]
fn a_server_has_the_instructions_of_its_option() {
    let said = Process::faulty(&["--instructions", "Call nobody."]).initialize(&json!({}));
    assert_eq!(said["result"]["instructions"], "Call nobody.", "{said}");
    let said = Process::faulty(&[]).initialize(&json!({}));
    assert!(
        said["result"]["instructions"].as_str().is_some_and(|text| text.contains("echo first")),
        "{said}"
    );
}

#[test]
fn resources_prompts_and_completion_are_there() {
    let mut server = legacy(&["--page", "3"], &json!({}));
    let page = server.request(1, "resources/list", &json!({}));
    assert_eq!(page["result"]["resources"].as_array().map(Vec::len), Some(3), "{page}");
    assert!(page["result"]["nextCursor"].is_string());
    let page = server.request(2, "resources/templates/list", &json!({ "cursor": "page:3" }));
    assert_eq!(page["result"]["resourceTemplates"][0]["uriTemplate"], "faulty://day/{date}", "{page}");
    let read = server.request(3, "resources/read", &json!({ "uri": "faulty://data/bytes" }));
    assert_eq!(read["result"]["contents"][0]["blob"], "AAECAwQ=", "{read}");
    let read = server.request(4, "resources/read", &json!({ "uri": "faulty://item/7" }));
    assert_eq!(read["result"]["contents"][0]["text"], "7", "{read}");
    let none = server.request(5, "resources/read", &json!({ "uri": "faulty://nothing" }));
    assert_eq!(none["error"]["code"], -32002, "{none}");

    let prompt = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let got = server.request(6, "prompts/get", &prompt);
    assert_eq!(got["result"]["messages"][0]["content"]["text"], r#"greet {"name":"Ada"}"#, "{got}");
    let lacking = server.request(7, "prompts/get", &json!({ "name": "greet" }));
    assert_eq!(lacking["error"]["code"], -32602, "{lacking}");
    let reference = json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "a" } });
    let complete = server.request(8, "completion/complete", &reference);
    assert_eq!(complete["result"]["completion"]["values"], json!(["ada", "alan"]), "{complete}");
}

#[test]
fn the_process_tells_who_it_is() {
    let mut server = legacy(&[], &json!({}));
    let pid = server.pid().to_string();
    assert_eq!(text(&server.call(1, "pid", &json!({}))), pid);
    let env: Value = serde_json::from_str(text(&server.call(2, "env", &json!({})))).unwrap();
    assert_eq!(env["FAULTY_TEST"], "1", "{env}");
    let session: Value = serde_json::from_str(text(&server.call(3, "session", &json!({})))).unwrap();
    assert_eq!(session, json!({ "session": 1, "sessions": 1, "connections": 1, "calls": 3, "chattered": 0 }));
}
