//! A client with a handshake in front of a server without one: the server's result that asks becomes a request to the
//! client, and the client's answer a second request to the server.

use super::{Client, Era, LEGACY, Rig, accept, capabilities};
use crate::passthrough::{parsed, text};
use gantry_testkit::server::send;
use http::Method;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const SERVER: &str = "faulty_modern_stdio";
const ASK: &str = "faulty_modern_stdio__ask";

/// How long the next event may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A legacy session over HTTP whose streams are kept apart.
struct Session<'a> {
    rig: &'a Rig,
    id: String,
}

/// The answer to one POST, as events.
struct Events(BufReader<TcpStream>);

impl<'a> Session<'a> {
    fn open(rig: &'a Rig) -> Self {
        let client = json!({ "name": "eras", "version": "1" });
        let params =
            json!({ "protocolVersion": LEGACY, "capabilities": capabilities(), "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let headers = [("content-type", "application/json")];
        let answer = send(&rig.server.client(), Method::POST, "/mcp", &headers, &hello.to_string());
        Self { rig, id: answer.headers["mcp-session-id"].to_str().expect("text").to_owned() }
    }

    fn call(&self, id: u64, tool: &str, arguments: &Value) -> Events {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
        let address = self.rig.server.address;
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nmcp-session-id: {}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.id,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it reads");
        Events(BufReader::new(stream))
    }

    /// Sends a notification or an answer, or ends the session.
    #[track_caller]
    fn tell(&self, method: Method, message: &Value) {
        let headers = [("content-type", "application/json"), ("mcp-session-id", &*self.id)];
        let body = if message.is_null() { String::new() } else { message.to_string() };
        let outcome = send(&self.rig.server.client(), method, "/mcp", &headers, &body);
        assert!(matches!(outcome.status, 202 | 204), "{outcome:?}");
    }
}

impl Events {
    /// The next message; none at the end.
    #[track_caller]
    fn message(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.0.read_line(&mut line).expect("an event in time") > 0 {
            if let Some(data) = line.trim_end().strip_prefix("data: {") {
                return Some(parsed(&format!("{{{data}")));
            }
            line.clear();
        }
        None
    }

    #[track_caller]
    fn next(&mut self, method: &str) -> Value {
        let message = self.message().unwrap_or_else(|| panic!("the stream ended before {method}"));
        assert_eq!(message["method"], method, "{message}");
        message
    }
}

#[test]
fn ups_11_a_question_comes_on_the_stream_of_the_call_that_asks() {
    let servers = [SERVER, "faulty_modern_http", "faulty_legacy_http"];
    let rig = Rig::of(&servers);
    for server in servers {
        let session = Session::open(&rig);
        let mut busy = session.call(1, &format!("{server}__progress"), &json!({ "steps": 1, "ms": 60_000 }));
        busy.next("notifications/progress");
        let mut asking = session.call(2, &format!("{server}__ask"), &json!({ "text": "Whose?" }));
        let question = asking.next("elicitation/create");
        assert_eq!(question["params"]["message"], "Whose?", "{server}");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept("mine") });
        session.tell(Method::POST, &answer);
        let end = asking.message().expect("the answer");
        assert_eq!((&end["id"], text(&end["result"])), (&json!(2), accept("mine").to_string()), "{server}");
        assert_eq!(asking.message(), None, "{server}");
        let params = json!({ "requestId": 1 });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        session.tell(Method::POST, &cancel);
        rig.journalled(server, "cancelled");
        session.tell(Method::DELETE, &Value::Null);
        // What the other call's stream still brings is about that call.
        while let Some(message) = busy.message() {
            assert_eq!(message["id"], 1, "{server}: {message}");
        }
    }
}

/// The requests that Gantry has sent to a server that is traced.
fn sent(rig: &Rig, method: &str) -> Vec<Value> {
    let start = format!("[INF] {SERVER} → ");
    let said = rig.server.stderr();
    let frames = said.lines().filter_map(|line| line.strip_prefix(&start)).map(parsed);
    frames.filter(|frame| frame["method"] == method).collect()
}

#[test]
fn ups_11_an_answer_goes_to_the_server_with_the_exact_state_and_the_same_request() {
    let config = json!({ "mcpServers": { SERVER: { "traceMCP": true } } });
    let rig = Rig::with(&config, &[(SERVER, &[])]);
    let mut client = Client::connect(rig.door(), Era::Legacy);
    let answers = [accept("first"), json!({ "action": "decline", "x-vendor": 1 })];
    let (_, outcome) = client.fill_in(ASK, &json!({ "text": "Which?", "rounds": 2 }), &answers);
    assert_eq!(parsed(&outcome), answers[1]);
    rig.server.eventually("all is logged", || sent(&rig, "tools/call").len() == 3);
    let frames = sent(&rig, "tools/call");
    let params = |n: usize| frames[n]["params"].clone();
    for n in 0..3 {
        assert_eq!((&params(n)["name"], &params(n)["arguments"]), (&json!("ask"), &params(0)["arguments"]));
        assert!((0..n).all(|m| frames[m]["id"] != frames[n]["id"]), "a new id for every request");
    }
    assert_eq!((params(0).get("requestState"), params(0).get("inputResponses")), (None, None));
    for n in 1..=2 {
        assert_eq!(params(n)["requestState"], format!("faulty state {n}"));
        assert_eq!(params(n)["inputResponses"], json!({ format!("answer-{n}"): answers[n - 1] }));
    }
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended"]);
}

#[test]
fn ups_11_a_server_may_ask_ten_times_and_not_more() {
    let rig = Rig::of(&[SERVER]);
    let answers: Vec<Value> = (1..=10).map(|n| accept(&n.to_string())).collect();
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(rig.door(), era);
        let (asked, outcome) = client.fill_in(ASK, &json!({ "text": "?", "rounds": 10 }), &answers);
        assert_eq!((asked.len(), parsed(&outcome)), (10, accept("10")), "{era:?}");
        let params = json!({ "name": ASK, "arguments": { "text": "?", "rounds": 11 } });
        let forms: Vec<_> = answers.iter().map(|answer| ("elicitation/create", answer.clone())).collect();
        let (_, answer) = client.converse("tools/call", &params, &forms);
        assert_eq!(answer["result"]["isError"], true, "{era:?}: {answer}");
        assert!(text(&answer["result"]).contains("asks for input more than 10 times"), "{era:?}: {answer}");
    }
    assert_eq!(rig.journal(SERVER), ["ask begun", "ask ended", "ask begun"].repeat(2));
}

#[test]
fn ups_11_an_error_in_place_of_an_answer_reaches_a_server_with_sessions_and_ends_a_call_without() {
    let rig = Rig::of(&[SERVER, "faulty_legacy_stdio"]);
    let session = Session::open(&rig);
    let error = json!({ "code": -1, "message": "the user is out" });
    for server in [SERVER, "faulty_legacy_stdio"] {
        let mut asking = session.call(1, &format!("{server}__ask"), &json!({ "text": "?" }));
        let question = asking.next("elicitation/create");
        session.tell(Method::POST, &json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
        let end = asking.message().expect("the answer");
        assert!(end.to_string().contains("the user is out"), "{server}: {end}");
    }
    assert_eq!(rig.journal("faulty_legacy_stdio"), ["ask begun", "ask ended"]);
    assert_eq!(rig.journal(SERVER), ["ask begun"]);
}

#[test]
fn ups_11_a_legacy_client_that_hangs_up_can_still_answer_and_one_that_ends_its_session_cannot() {
    let rig = Rig::of(&[SERVER, "faulty_legacy_stdio"]);
    for server in [SERVER, "faulty_legacy_stdio"] {
        let ask = format!("{server}__ask");
        let session = Session::open(&rig);
        let mut asking = session.call(1, &ask, &json!({ "text": "?" }));
        let question = asking.next("elicitation/create");
        drop(asking);
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept("from afar") });
        session.tell(Method::POST, &answer);
        rig.journalled(server, "ask ended");
        let mut asking = session.call(2, &ask, &json!({ "text": "?", "rounds": 2 }));
        asking.next("elicitation/create");
        session.tell(Method::DELETE, &Value::Null);
        rig.server.eventually("both are on record", || rig.ended(&ask).len() == 2);
        let codes: Vec<Value> = rig.calls(&ask).iter().map(|row| row["error"]["code"].clone()).collect();
        assert_eq!(codes, [json!("CANCELED"), Value::Null], "{server}");
    }
}
