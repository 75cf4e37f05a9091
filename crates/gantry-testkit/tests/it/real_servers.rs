//! Each real server starts, lists its tools, and answers its call as the table says.

use crate::client::{Process, Wire as _, handshake, modern, text};
use gantry_testkit::faulty::{Kind, MODERN};
use gantry_testkit::real_servers::{ALL, Eras, Everything, Ready, find};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn every_server_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = ALL.iter().map(|server| server.id).collect();
    assert_eq!(names.len(), ALL.len());
}

macro_rules! answers {
    ($($test:ident: $id:literal,)*) => {
        $(#[test]
        fn $test() {
            answers($id);
        })*
    };
}

answers! {
    everything_answers: "everything",
    filesystem_answers: "filesystem",
    memory_answers: "memory",
    sequential_thinking_answers: "sequential-thinking",
    time_answers: "time",
    git_answers: "git",
    fetch_answers: "fetch",
    sqlite_answers: "sqlite",
}

/// Plays the same conversation in each era that the server speaks.
#[track_caller]
fn answers(id: &str) {
    let folder = tempfile::tempdir().unwrap();
    let server = find(id);
    let ready = server.prepare(folder.path());
    assert_eq!(ready.entry()["command"], ready.command);

    let mut legacy = start(&ready);
    let answer = legacy.initialize(&json!({}));
    assert!(answer["result"]["serverInfo"]["name"].is_string(), "{answer}");
    let list = legacy.request(1, "tools/list", &json!({}));
    check(&ready, &list["result"]["tools"], server.n_tools, &legacy.call(2, ready.tool, &ready.arguments));
    assert_eq!(legacy.close().1, Some(0), "it ends with its input");

    if server.eras == Eras::Both {
        let mut process = start(&ready);
        let discovered = process.request(1, "server/discover", &modern(json!({}), &json!({})));
        assert_eq!(discovered["result"]["supportedVersions"], json!([MODERN]), "{discovered}");
        let list = process.request(2, "tools/list", &modern(json!({}), &json!({})));
        let call = modern(json!({ "name": ready.tool, "arguments": ready.arguments }), &json!({}));
        let answer = process.request(3, "tools/call", &call);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        check(&ready, &list["result"]["tools"], server.n_tools, &answer["result"]);
    }
}

#[track_caller]
fn check(ready: &Ready, tools: &Value, n_tools: usize, result: &Value) {
    assert_eq!(tools.as_array().map(Vec::len), Some(n_tools), "{tools}");
    assert!(text(result).contains(ready.answer) && result["isError"] != true, "{result}");
}

fn start(ready: &Ready) -> Process {
    let mut command = Command::new(&ready.command);
    command.args(&ready.args).env_clear().envs(&ready.env);
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    Process::start(command)
}

#[test]
fn everything_listens_with_either_kind_of_http() {
    let http = Everything::start(Kind::Http);
    let sse = Everything::start(Kind::Sse);
    let address =
        |url: &str| url.split('/').nth(2).and_then(|address| address.parse().ok()).expect("an address");

    let mut connection = gantry_testkit::Connection::open(address(&http.url)).unwrap();
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake(&json!({})) });
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let answer = connection.request("POST", "/mcp", &headers, request.to_string().as_bytes()).unwrap();
    assert!(answer.status == 200 && answer.headers.contains_key("mcp-session-id"), "{answer:?}");

    let mut connection = gantry_testkit::Connection::open(address(&sse.url)).unwrap();
    let answer = connection.request("GET", "/sse", &[], b"").unwrap();
    assert_eq!(
        (answer.status, &answer.headers["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
}
