//! Clients that do not want their call any more, and clients that are just gone.

use super::{COUNT, Gate, LEGACY, api, clients, count, failed, only, ran, watched};
use crate::mcp_sdks::Door;
use crate::passthrough::{Door as Path, Talk, parsed, text};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Clients of the older era withdraw a call by a notification, those of the newer one over HTTP by hanging up.
#[test]
fn apr_7_a_call_that_its_client_withdraws_while_it_waits_never_runs() {
    for (sdk, era) in clients() {
        let gate = Gate::new("");
        for door in [gate.door(), Door::Stdio] {
            let mut step = count("a");
            step["call"]["cancel"] = json!(true);
            // One that listens and does not withdraw comes after it, on the same connection.
            let options = ["--era", era];
            let script = json!([step, { "call": { "name": "test__echo", "arguments": { "text": "on" } } }]);
            let seen = sdk.play_with(&gate.home, door, &options, &script);
            assert_eq!(seen["steps"][0]["cancelled"], true, "{era}: {seen}");
            assert_eq!(seen["steps"][1]["content"][0]["text"], "on", "{era}: {seen}");
            let mut items = Vec::new();
            gate.server.eventually("it is withdrawn", || {
                items = gate.requests("CANCELLED_BY_SYSTEM");
                !items.is_empty() && gate.requests("PENDING_APPROVAL").is_empty()
            });
            let approval = items[0]["id"].as_str().expect("an id");
            assert_eq!(items[0]["message"], "its caller withdrew it", "{era}: {items:?}");
            let late = api::decide(&gate.server.admin(), approval, &json!({ "approved": true }));
            assert_eq!(late.status, 409, "{era}: {late:?}");
        }
        assert_eq!(gate.requests("CANCELLED_BY_SYSTEM").len(), 2, "{era}");
        assert!(gate.counted().is_empty(), "{era}");
        // Who withdrew it knows; the same call again is a new one.
        let playing = sdk.begin(&gate.home, gate.door(), &["--era", era], &json!([count("a")]));
        gate.approve();
        ran(only(&playing.end()), "a");
    }
}

/// For the older era a connection that breaks is no withdrawal. Whether the client was already sent something or not: the
/// call waits, runs when it is approved, and a caller that makes the same call again gets the outcome, once.
#[test]
fn apr_6_the_call_of_a_client_of_the_older_era_that_is_gone_waits_on_and_its_outcome_is_kept_for_it() {
    for (sdk, era) in LEGACY {
        for step in [count("a"), watched("a")] {
            let gate = Gate::new("");
            let options = ["--era", era];
            let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([step]));
            let approval = gate.pending();
            playing.kill();
            gate.decide(&approval, &json!({ "approved": true }));
            gate.becomes(&approval, "COMPLETED_SUCCESS");
            let seen = sdk.play_with(&gate.home, gate.door(), &options, &json!([step]));
            ran(only(&seen), "a");
            assert_eq!(gate.counted(), ["a"], "{era} {step}");
            let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([step]));
            let next = gate.pending();
            assert_ne!(next, approval, "{era} {step}");
            gate.decide(&next, &json!({ "approved": false }));
            failed(only(&playing.end()), "REJECTED_BY_USER");
            assert_eq!(gate.counted(), ["a"], "{era} {step}");
        }
    }
}

/// A client that is asked in the newer era is away until it comes back. If it never does, the outcome was not given out.
#[test]
fn apr_6_the_outcome_of_a_call_whose_client_never_came_back_from_a_round_is_kept_for_it() {
    let gate = Gate::new("");
    let door = Path::Http(&gate.server, "/mcp");
    let params = json!({ "name": COUNT, "arguments": api::count("a") });
    let round =
        Talk::modern_with(door, &json!({ "elicitation": { "url": {} } })).result("tools/call", &params);
    assert_eq!(round["resultType"], "input_required", "{round}");
    let approval = gate.approve();
    gate.becomes(&approval, "COMPLETED_SUCCESS");
    let outcome = Talk::modern_with(door, &json!({})).result("tools/call", &params);
    assert_eq!(text(&outcome), r#"{"counted":"a"}"#);
    assert_eq!(gate.counted(), ["a"]);
}

/// A connection of a legacy client, whose answer is a stream.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(gate: &Gate, session: &str, request: &str, body: &str) -> Self {
        let address = gate.server.address;
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let head = format!(
            "{request}\r\nhost: {address}\r\nmcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        Self(BufReader::new(stream))
    }

    /// The id and the message of the next event that has one.
    #[track_caller]
    fn event(&mut self) -> (String, Value) {
        let (mut id, mut line) = (String::new(), String::new());
        while self.0.read_line(&mut line).expect("an event in time") > 0 {
            if let Some(found) = line.trim_end().strip_prefix("id: ") {
                found.clone_into(&mut id);
            }
            if let Some(data) = line.trim_end().strip_prefix("data: {") {
                return (id, parsed(&format!("{{{data}")));
            }
            line.clear();
        }
        panic!("the stream has ended")
    }
}

/// A stream that broke can be taken up again, and who does so is there for the answer.
#[test]
fn apr_6_a_client_that_takes_its_stream_up_again_gets_the_outcome_there_and_not_twice() {
    let gate = Gate::new("");
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    let welcome = gate.server.post("/mcp", &hello.to_string());
    let session = welcome.headers["mcp-session-id"].to_str().expect("text");
    let params = json!({ "name": COUNT, "arguments": api::count("a"), "_meta": { "progressToken": "p" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut stream = Stream::open(&gate, session, "POST /mcp HTTP/1.1", &call);
    let (id, progress) = stream.event();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    drop(stream);
    let approval = gate.approve();
    gate.becomes(&approval, "COMPLETED_SUCCESS");
    let resume = format!("GET /mcp HTTP/1.1\r\nlast-event-id: {id}");
    let (_, answer) = Stream::open(&gate, session, &resume, "").event();
    assert_eq!(text(&answer["result"]), r#"{"counted":"a"}"#, "{answer}");
    // It was given, so the same call again is a new one.
    let mut stream = Stream::open(&gate, session, "POST /mcp HTTP/1.1", &call);
    stream.event();
    assert_ne!(gate.pending(), approval);
}
