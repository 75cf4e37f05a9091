//! Agents: what each may use, under which names and how deep, and that nothing else is there for it by any door.
//!
//! Scenarios that speak of MCP servers run against servers that others wrote; where a server has to change, fail or
//! have unusual names, it is our own.

mod aliases;
mod allowed;
mod approved;
mod catalogue;
mod depth;
mod doors;
mod down;
mod filtered;
mod formats;
mod forms;
mod hidden;
mod lasting;
mod mistakes;
mod transports;

use crate::passthrough::Door;
use gantry_testkit::faulty::entry as faulty;
use gantry_testkit::real_servers::{self, Ready};
use gantry_testkit::server::Answer;
use gantry_testkit::{Server, TestDir, with};
use serde_json::{Value, json};

/// A Gantry with agents, serving.
struct Site {
    server: Server,
    home: TestDir,
}

impl Site {
    /// With this configuration.
    fn of(config: &Value) -> Self {
        Self::at(TestDir::new().config(&config.to_string()))
    }

    /// In this home.
    fn at(home: TestDir) -> Self {
        let server = home.serve();
        let site = Self { server, home };
        site.settled();
        site
    }

    /// Waits until every server has started or failed, and what they have can be seen.
    #[track_caller]
    fn settled(&self) {
        self.server.eventually("every server has started or failed", || {
            let servers = self.server.get_as_admin("/api/v1/servers").json();
            servers["items"].as_array().expect("servers").iter().all(|server| server["status"] != "starting")
        });
        // A client that connects waits for the pool that follows from it.
        crate::passthrough::Talk::legacy(Door::Http(&self.server, "/mcp")).tools();
    }

    /// A call of an agent over HTTP.
    fn post(&self, agent: &str, tool: &str, arguments: &Value) -> Answer {
        let call = json!({ "tool": tool, "arguments": arguments, "agent": agent });
        crate::pipeline::post(&self.server, &call)
    }

    /// Its reply.
    #[track_caller]
    fn call(&self, agent: &str, tool: &str, arguments: &Value) -> Value {
        self.post(agent, tool, arguments).json()
    }

    /// What a call of an agent answers that has to work.
    #[track_caller]
    fn result(&self, agent: &str, tool: &str, arguments: &Value) -> Value {
        let mut reply = self.call(agent, tool, arguments);
        assert_eq!(reply["ok"], true, "{agent} {tool}: {reply}");
        reply["result"].take()
    }

    /// That a call of an agent is answered as one of a tool that does not exist, and the reply.
    #[track_caller]
    fn not_found(&self, agent: &str, tool: &str, arguments: &Value) -> Value {
        let answer = self.post(agent, tool, arguments);
        let reply = answer.json();
        let (code, state) = (&reply["error"]["code"], &reply["state"]);
        assert_eq!((answer.status, code), (404, &json!("TOOL_NOT_FOUND")), "{agent} {tool}: {reply}");
        assert_eq!(state, "REFUSED", "{agent} {tool}: {reply}");
        reply
    }

    /// The error of a call of an agent that has to fail with this code.
    #[track_caller]
    fn error(&self, agent: &str, tool: &str, arguments: &Value, code: &str) -> Value {
        let mut reply = self.call(agent, tool, arguments);
        assert_eq!(reply["error"]["code"], code, "{agent} {tool}: {reply}");
        reply["error"].take()
    }

    /// What an agent is listed over HTTP.
    #[track_caller]
    fn listing(&self, agent: &str) -> Vec<Value> {
        let mut listed = self.server.get(&format!("/api/v1/tools?agent={agent}")).json();
        let items = listed["items"].take();
        let Value::Array(items) = items else { panic!("no list for {agent}: {listed}") };
        items
    }

    /// The names in it.
    #[track_caller]
    fn tools(&self, agent: &str) -> Vec<String> {
        self.listing(agent).iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The rows that the ledger has about calls of this spelling, newest first.
    #[track_caller]
    fn rows(&self, tool: &str) -> Vec<Value> {
        let rows = self.home.run(["audit", "--tool", tool, "--json"]).json();
        rows.as_array().expect("rows").clone()
    }

    /// Another configuration, which holds when this returns.
    #[track_caller]
    fn reload(&self, config: &Value) {
        self.home.write("gantry.yaml", &config.to_string());
        let answer = self.server.apply_configuration();
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The events of this kind, as those who administer read them.
    fn events(&self, kind: &str) -> Vec<Value> {
        let stream = self.server.get_as_admin("/api/v1/events?follow=false").text;
        let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
        let events = data.map(|data| serde_json::from_str::<Value>(data).expect("JSON"));
        events.filter(|event| event["type"] == kind).collect()
    }
}

/// Where MCP clients of an agent connect.
fn path(agent: &str) -> String {
    format!("/mcp/default/agents/{agent}")
}

/// A server that others wrote, ready to start in a home. On a busy machine some take long.
fn real(home: &TestDir, id: &str) -> (Ready, Value) {
    let ready = real_servers::find(id).prepare(home.path());
    let entry = with(ready.entry(), &json!({ "startupTimeoutMs": 60_000 }));
    (ready, entry)
}

/// A reply without what differs between two equal calls: its id and how long it took.
pub(crate) fn lasting(mut reply: Value) -> Value {
    reply["id"].take();
    reply["latencyMs"].take();
    reply
}
