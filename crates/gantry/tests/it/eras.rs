//! Clients and servers of different protocol revisions with Gantry in between: every combination works, and what one side
//! cannot say is put into the words of the other.

mod asking;
mod cells;
mod fixtures;
mod parking;
mod sdks;
mod states;
mod tasks;
mod versions;
mod whose;

use crate::passthrough::{Door, Talk, parsed};
use gantry_egress::LocalServer;
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::process::ChildGuard;
use gantry_testkit::server::{Answer, send};
use gantry_testkit::test_dir::executable;
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The newest version with a handshake, and the one without.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Where a request of 2026-07-28 says how much it wants to hear.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// A Gantry with MCP servers.
struct Rig {
    server: Server,
    home: TestDir,
    _remote: Vec<Remote>,
}

/// A server that Gantry does not start itself.
#[expect(dead_code, reason = "each ends when this is dropped")]
enum Remote {
    Faulty(Faulty),
    Fixture(ChildGuard),
}

impl Rig {
    /// Servers by what they are: the program, the era and the transport, as in `faulty_legacy_stdio`; what follows only
    /// tells them apart.
    #[track_caller]
    fn of(names: &[&str]) -> Self {
        let servers: Vec<_> = names.iter().map(|name| (*name, &[][..])).collect();
        Self::with(&json!({}), &servers)
    }

    /// The same, each with more arguments, in a Gantry with more configuration; what it says of a server is added to
    /// its entry.
    #[track_caller]
    fn with(config: &Value, servers: &[(&str, &[&str])]) -> Self {
        let home = TestDir::new();
        let (mut config, mut remote) = (config.clone(), Vec::new());
        for (name, more) in servers {
            let entry = entry(&home, name, more, &mut remote);
            for (key, value) in entry.as_object().expect("an entry") {
                config["mcpServers"][*name][key] = value.clone();
            }
        }
        home.write("gantry.yaml", &config.to_string());
        let server = home.serve();
        let rig = Self { server, home, _remote: remote };
        servers.iter().for_each(|(name, _)| rig.ready(name));
        rig
    }

    #[track_caller]
    fn ready(&self, name: &str) {
        let tool = if name.starts_with("fixture") { "greet" } else { "echo" };
        let (explain, status) =
            (format!("/api/v1/explain?tool={name}__{tool}"), format!("/api/v1/servers/{name}"));
        self.server.eventually(&format!("{name} is ready"), || {
            self.server.get_as_admin(&status).json()["status"] == "ready"
                && self.server.get_as_admin(&explain).json()["visible"] == true
        });
    }

    /// The usual door.
    fn door(&self) -> Door<'_> {
        Door::Http(&self.server, "/mcp")
    }

    /// `gantry mcp` in front of the server.
    fn pipe(&self) -> Door<'_> {
        Door::Stdio(&self.home, &[])
    }

    /// What a server wrote down.
    fn journal(&self, name: &str) -> Vec<String> {
        self.home.lines(&journal(name))
    }

    /// Waits until a server has written this down.
    #[track_caller]
    fn journalled(&self, name: &str, line: &str) {
        self.server.eventually(&format!("{name} says {line}"), || {
            self.journal(name).iter().any(|found| found == line)
        });
    }

    /// The calls of a tool that are on record, newest first.
    fn calls(&self, tool: &str) -> Vec<Value> {
        let rows = self.home.run(["audit", "--json"]).json();
        rows.as_array().expect("rows").iter().filter(|row| row["tool"] == tool).cloned().collect()
    }

    /// Those of them that have ended.
    fn ended(&self, tool: &str) -> Vec<Value> {
        self.calls(tool).into_iter().filter(|row| !row["finishedAt"].is_null()).collect()
    }

    /// One request of 2026-07-28 on a connection of its own.
    fn post(&self, method: &str, params: &Value) -> Answer {
        post(&self.server.client(), "/mcp", method, params)
    }

    /// A call of 2026-07-28 on a connection of its own, with more params.
    fn call(&self, tool: &str, arguments: &Value, more: &Value) -> Answer {
        self.post("tools/call", &call(tool, arguments, more))
    }
}

fn journal(name: &str) -> String {
    format!("{name}.journal")
}

/// What stands in the configuration for a server, which is started if it has to be.
fn entry(home: &TestDir, name: &str, more: &[&str], remote: &mut Vec<Remote>) -> Value {
    let mut words = name.split('_');
    let mut word = || words.next().expect("program, era and transport");
    let (program, era, transport) = (word(), word(), word());
    let journal = home.path().join(journal(name)).display().to_string();
    let mut args = vec!["--era", era];
    if program == "faulty" {
        args.extend(["--journal", journal.as_str()]);
    }
    args.extend(more);
    match (program, transport) {
        ("fixture", "stdio") => {
            args.push("--stdio");
            json!({ "command": executable("fixture"), "args": args })
        }
        (_, "stdio") => json!({ "command": Faulty::program(), "args": args }),
        ("fixture", _) => {
            let mut command = Command::new(executable("fixture"));
            command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = ChildGuard(command.spawn().expect("the fixture starts"));
            let url = child.first_line();
            remote.push(Remote::Fixture(child));
            json!({ "type": "http", "url": url })
        }
        _ => {
            let faulty = Faulty::start(Kind::Http, &args);
            let url = faulty.url.clone();
            remote.push(Remote::Faulty(faulty));
            json!({ "type": "http", "url": url })
        }
    }
}

/// A client of either era that can be asked everything.
struct Client {
    talk: Talk,
    era: Era,
}

impl Client {
    #[track_caller]
    fn connect(door: Door<'_>, era: Era) -> Self {
        let talk = match era {
            Era::Legacy => shaken(door, LEGACY, &capabilities()),
            Era::Modern => {
                let mut talk = Talk::silent(door);
                talk.meta = modern_meta(&capabilities());
                talk
            }
        };
        Self { talk, era }
    }

    /// Sends a request, answers what is asked, which has to be these methods, and returns the params of the questions
    /// and the answer.
    #[track_caller]
    fn converse(&mut self, method: &str, params: &Value, answers: &[(&str, Value)]) -> (Vec<Value>, Value) {
        match self.era {
            Era::Legacy => self.converse_directly(method, params, answers),
            Era::Modern => self.converse_in_rounds(method, params, answers),
        }
    }

    #[track_caller]
    fn converse_directly(
        &mut self,
        method: &str,
        params: &Value,
        answers: &[(&str, Value)],
    ) -> (Vec<Value>, Value) {
        let id = self.talk.begin(method, &params.to_string());
        let mut questions = Vec::new();
        for (asked, answer) in answers {
            let question = self.talk.hear(asked);
            self.talk.answer(&question, answer);
            questions.push(question["params"].clone());
        }
        let answer = parsed(&self.talk.end(id));
        for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
            assert!(self.talk.heard(method).is_empty(), "{method} was asked once too often");
        }
        (questions, answer)
    }

    #[track_caller]
    fn converse_in_rounds(
        &mut self,
        method: &str,
        params: &Value,
        answers: &[(&str, Value)],
    ) -> (Vec<Value>, Value) {
        let (mut params, mut questions, mut left) = (params.clone(), Vec::new(), answers.to_vec());
        loop {
            let answer = self.talk.ask(method, &params);
            if answer["result"]["resultType"] != "input_required" {
                assert!(left.is_empty(), "nobody asked for {left:?}: {answer}");
                return (questions, answer);
            }
            let mut responses = json!({});
            for (key, question) in answer["result"]["inputRequests"].as_object().expect("questions") {
                let at = left.iter().position(|(asked, _)| question["method"] == *asked);
                responses[key] = left.remove(at.unwrap_or_else(|| panic!("not expected: {question}"))).1;
                questions.push(question["params"].clone());
            }
            params["inputResponses"] = responses;
            params["requestState"] = answer["result"]["requestState"].clone();
        }
    }

    /// Calls a tool that asks once for each of these answers to a form, and returns the questions and the text.
    #[track_caller]
    fn fill_in(&mut self, tool: &str, arguments: &Value, answers: &[Value]) -> (Vec<Value>, String) {
        let answers: Vec<_> = answers.iter().map(|answer| ("elicitation/create", answer.clone())).collect();
        let params = json!({ "name": tool, "arguments": arguments });
        let (questions, answer) = self.converse("tools/call", &params, &answers);
        assert_ne!(answer["result"]["isError"], true, "{tool}: {answer}");
        (questions, crate::passthrough::text(&answer["result"]))
    }
}

/// A client of this version after its handshake. It opens no stream but those of its requests.
#[track_caller]
fn shaken(door: Door<'_>, version: &str, capabilities: &Value) -> Talk {
    let mut talk = Talk::silent(door);
    let client = json!({ "name": "eras", "version": "1" });
    let hello = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
    let answer = talk.ask("initialize", &hello);
    assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
    talk.tell("notifications/initialized", &json!({}));
    talk
}

fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The members of `_meta` that every request of 2026-07-28 has.
fn modern_meta(capabilities: &Value) -> String {
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
    )
}

/// Sends one request of 2026-07-28 on a connection of its own, which is closed after the answer.
fn post(to: &LocalServer, path: &str, method: &str, params: &Value) -> Answer {
    let mut params = params.clone();
    params["_meta"] = parsed(&format!("{{{}}}", modern_meta(&capabilities())));
    let name = params["name"].as_str().unwrap_or_default();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    send(to, Method::POST, path, &headers, &body.to_string())
}

/// The params of a call, with more of them.
fn call(tool: &str, arguments: &Value, more: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    for (key, value) in more.as_object().expect("params") {
        params[key] = value.clone();
    }
    params
}

/// An accepted form with this answer.
fn accept(answer: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": answer } })
}
