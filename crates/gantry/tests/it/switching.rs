//! Switching agents: what runs is waited for, what the agent before had is gone, what the new one has is all there is.
//!
//! Most tests have two agents, `a` and `b`, each with a server of its own, `sa` and `sb`.

mod arrivals;
mod build;
mod clients;
mod clumsy;
mod initiated;
mod lifecycle;
mod load;
mod refusals;
mod remembered;
mod rights;
mod sequence;
mod staying;
mod teardown;
mod timeout;

use crate::passthrough::names;
use gantry_testkit::faulty::Faulty;
use gantry_testkit::real_servers::Ready;
use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir, process};
use http::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// The file in the home that servers write down what really happened in.
const JOURNAL: &str = "journal.txt";

/// The steps of a switch, by the names of their events.
const STEPS: [&str; 6] = [
    "agent_switch_started",
    "teardown",
    "teardown_finished",
    "build",
    "agent_switch_finished",
    "agent_switch_failed",
];

/// The tools that the agents have of their servers here.
const TOOLS: [&str; 5] = ["echo", "env", "journal", "pid", "sleep"];

/// A Gantry whose agents are switched.
struct Stage {
    server: Server,
    home: TestDir,
}

/// A call that runs until the test ends it, so that nothing depends on how fast the machine is.
struct Held {
    calling: JoinHandle<Answer>,
    /// The call ends when this file is there.
    file: PathBuf,
}

impl Held {
    /// Lets the call end, and returns what its client was answered.
    #[track_caller]
    fn end(self) -> Answer {
        std::fs::write(self.file, "").expect("the file");
        self.calling.join().expect("a client without complaints")
    }
}

/// A server on stdio that is run like this and keeps the journal.
fn faulty(args: &[&str]) -> Value {
    let journal = format!("./{JOURNAL}");
    let args = [&["--journal", &journal], args].concat();
    json!({ "command": Faulty::program(), "args": args })
}

/// A server behind this address.
fn remote(kind: &str, url: &str) -> Value {
    json!({ "type": kind, "url": url })
}

/// A real server with the time limits that a busy machine needs.
fn entry(ready: &Ready) -> Value {
    let mut entry = ready.entry();
    entry["startupTimeoutMs"] = json!(60_000);
    entry
}

/// The tools of a server as an agent lists them.
fn of(server: &str) -> Vec<String> {
    TOOLS.iter().map(|tool| format!("{server}__{tool}")).collect()
}

/// Two agents with a server each.
fn two(a: &Value, b: &Value) -> Value {
    json!({
        "mcpServers": { "sa": a, "sb": b },
        "agents": { "a": { "tools": of("sa") }, "b": { "tools": of("sb") } },
    })
}

impl Stage {
    /// Two agents with a well-behaved server each; `a` is active.
    #[track_caller]
    fn two() -> Self {
        let stage = Self::of(&two(&faulty(&[]), &faulty(&[])));
        stage.activate("a");
        stage
    }

    fn of(config: &Value) -> Self {
        Self::at(TestDir::new().config(&config.to_string()))
    }

    fn at(home: TestDir) -> Self {
        let server = home.serve();
        Self { server, home }
    }

    /// A request with the key and nothing in it.
    fn admin(&self, method: Method, path: &str) -> Answer {
        send(&self.server.admin(), method, path, &[], "")
    }

    /// Asks for a switch.
    fn switch(&self, agent: &str) -> Answer {
        self.admin(Method::POST, &format!("/api/v1/agents/{agent}/activate"))
    }

    /// Switches, which has to work, and returns what it came to.
    #[track_caller]
    fn activate(&self, agent: &str) -> Value {
        let answer = self.switch(agent);
        assert_eq!(answer.status, 200, "{answer:?}\n{}", self.server.stderr());
        let switched = answer.json();
        assert_eq!(switched["to"], agent, "{switched}");
        switched
    }

    /// Makes no agent active.
    #[track_caller]
    fn deactivate(&self, agent: &str) -> Value {
        let answer = self.admin(Method::POST, &format!("/api/v1/agents/{agent}/deactivate"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The active agent, as every client sees it.
    fn active(&self) -> Option<String> {
        let projects = self.server.get("/api/v1/projects").json();
        projects["items"][0]["active"].as_str().map(str::to_owned)
    }

    /// The tools of a caller who names no agent.
    #[track_caller]
    fn tools(&self) -> Vec<String> {
        names(&self.server.get("/api/v1/tools").json()["items"])
    }

    /// The tools of a caller who names this agent.
    #[track_caller]
    fn tools_as(&self, agent: &str) -> Vec<String> {
        names(&self.server.get(&format!("/api/v1/tools?agent={agent}")).json()["items"])
    }

    /// Makes a call that names no agent.
    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.server.call(tool, arguments).json()
    }

    /// Makes a call that names this agent.
    #[track_caller]
    fn call_as(&self, agent: &str, tool: &str, arguments: &Value) -> Value {
        let call = json!({ "tool": tool, "arguments": arguments, "agent": agent });
        self.server.post("/api/v1/calls", &call.to_string()).json()
    }

    /// The process that answers a call of this tool.
    #[track_caller]
    fn pid(&self, tool: &str) -> u32 {
        pid(&self.call(tool, &json!({})))
    }

    /// What happened lately.
    fn events(&self) -> Vec<Value> {
        let stream = self.server.get_as_admin("/api/v1/events?follow=false").text;
        let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }

    /// The steps of the switches so far.
    fn steps(&self) -> Vec<Value> {
        let is_step = |event: &Value| STEPS.iter().any(|step| event["type"] == *step);
        self.events().into_iter().filter(is_step).collect()
    }

    /// The steps of the last switch.
    #[track_caller]
    fn last_steps(&self) -> Vec<Value> {
        let mut steps = self.steps();
        let begun = steps.iter().rposition(|step| step["type"] == STEPS[0]).expect("a switch");
        steps.split_off(begun)
    }

    /// Begins a call in a connection of its own, and returns once its server has it.
    #[track_caller]
    fn begin(&self, call: &Value) -> JoinHandle<Answer> {
        static N_CALLS: AtomicU64 = AtomicU64::new(0);
        // A parameter that the server does not know tells this call from all others.
        let mark = format!("mark-{}-{}", self.server.pid(), N_CALLS.fetch_add(1, Ordering::Relaxed));
        let mut call = call.clone();
        call["arguments"]["mark"] = json!(mark);
        let mut connection = self.server.connect();
        let calling = thread::spawn(move || {
            let headers = [("content-type", "application/json")];
            let body = call.to_string();
            connection.request("POST", "/api/v1/calls", &headers, body.as_bytes()).expect("an answer")
        });
        self.server.eventually("the call runs", || {
            let begun = |event: &Value| event["type"] == "tool_started" && event.to_string().contains(&mark);
            self.events().iter().any(begun)
        });
        calling
    }

    /// Begins a call of this server that runs until it is ended.
    #[track_caller]
    fn hold(&self, server: &str) -> Held {
        let file = self.home.path().join(format!("{server}-may-end"));
        let arguments = json!({ "until": file });
        let calling = self.begin(&json!({ "tool": format!("{server}__sleep"), "arguments": arguments }));
        Held { calling, file }
    }

    /// Switches, and ends the call once the switch is under way.
    #[track_caller]
    fn switch_around<T: Send>(&self, held: Held, switch: impl FnOnce() -> T + Send) -> (T, Answer) {
        thread::scope(|scope| {
            let switching = scope.spawn(switch);
            self.moving();
            let answer = held.end();
            (switching.join().expect("a switch without complaints"), answer)
        })
    }

    /// Waits until a switch has begun that is not at its end.
    #[track_caller]
    fn moving(&self) {
        self.server.eventually("a switch is under way", || {
            self.steps().last().is_some_and(|step| {
                let step = step["type"].as_str().expect("a type");
                !step.starts_with("agent_switch_f")
            })
        });
    }

    /// The record of a call.
    #[track_caller]
    fn record(&self, reply: &Value) -> Value {
        let id = reply["id"].as_str().unwrap_or_else(|| panic!("no id: {reply}"));
        self.server.get_as_admin(&format!("/api/v1/calls/{id}")).json()["record"].take()
    }

    /// The processes below Gantry with this text in their command line.
    fn running(&self, text: &str) -> Vec<u32> {
        let below = process::descendants(self.server.pid());
        below.into_iter().filter(|pid| process::command_line(*pid).contains(text)).collect()
    }

    /// The lines of the journal so far.
    fn journal(&self) -> Vec<String> {
        self.home.lines(JOURNAL)
    }

    /// Waits until Gantry has said something with this in it.
    #[track_caller]
    fn says(&self, text: &str) {
        self.server.says(text);
    }
}

/// The process that has answered.
#[track_caller]
fn pid(reply: &Value) -> u32 {
    let pid = reply["result"].as_str().and_then(|text| text.parse().ok());
    pid.unwrap_or_else(|| panic!("no process id: {reply}"))
}

/// The types of these events.
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

/// That a call of a tool was answered exactly like one of a tool that never was.
#[track_caller]
fn assert_unknown(reply: &Value, tool: &str) {
    assert_eq!(
        (&reply["ok"], &reply["error"]["code"], &reply["state"]),
        (&json!(false), &json!("TOOL_NOT_FOUND"), &json!("REFUSED")),
        "{reply}"
    );
    let message = reply["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with(&format!("tool not found: {tool}")), "{reply}");
}
