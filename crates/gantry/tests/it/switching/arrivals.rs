//! Callers that come while a project turns to another agent wait, and are answered by the new one.

use super::{Stage, faulty, of, pid, types};
use crate::passthrough::{Door, Talk};
use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::Server;
use gantry_testkit::server::Answer;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Callers of each kind that come at once.
const CALLERS: usize = 4;

/// Agents whose tool `who` is another server's each, and a third that is never switched to.
fn stage() -> Stage {
    let who = |server: &str| {
        let mut uses = of(server);
        uses.push(format!("{server}__die"));
        json!({ "tools": { "use": uses, "aliases": { "who": format!("@{server}/pid") } } })
    };
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "sb": faulty(&[]), "sc": faulty(&[]) },
        "agents": { "a": who("sa"), "b": who("sb"), "c": who("sc") },
    }));
    stage.activate("a");
    stage
}

/// Does something while the project turns to `b`, for as long as a call of `a` has to be waited for.
fn during_a_switch<T>(stage: &Stage, ms: u64, act: impl FnOnce() -> T) -> T {
    let calling = stage.begin(&json!({ "tool": "sa__sleep", "arguments": { "ms": ms } }));
    let done = thread::scope(|scope| {
        let switching = scope.spawn(|| stage.activate("b"));
        stage.moving();
        let done = act();
        switching.join().expect("a switch without complaints");
        done
    });
    calling.join().expect("a client without complaints");
    done
}

fn post(server: &Server) -> Answer {
    server.call("who", &json!({}))
}

#[test]
fn pol_8_callers_that_come_during_a_switch_wait_and_are_answered_by_the_new_agent() {
    let stage = stage();
    let before = stage.pid("who");
    let (server, home) = (&stage.server, &stage.home);
    let answers: Vec<(&str, String)> =
        during_a_switch(&stage, 3000, || {
            thread::scope(|scope| {
                let mut callers = Vec::new();
                for _ in 0..CALLERS {
                    callers.push(scope.spawn(move || ("http", pid(&post(server).json()).to_string())));
                    callers.push(scope.spawn(move || {
                        let answer = mcp_call(server, "/mcp", "who", &json!({}));
                        (
                            "modern mcp",
                            answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned(),
                        )
                    }));
                    callers.push(scope.spawn(move || {
                        let mut client = Talk::legacy(Door::Http(server, "/mcp"));
                        ("legacy mcp", client.call("who", &json!({})))
                    }));
                }
                callers.push(scope.spawn(move || {
                    ("gantry call", pid(&home.run(["call", "who", "{}", "--json"]).json()).to_string())
                }));
                callers.push(scope.spawn(move || {
                    ("gantry mcp", Talk::legacy(Door::Stdio(home, &[])).call("who", &json!({})))
                }));
                callers.into_iter().map(|caller| caller.join().expect("an answer")).collect()
            })
        });
    let after = stage.pid("who").to_string();
    assert_ne!(before.to_string(), after);
    for (what, answered) in answers {
        assert_eq!(answered, after, "{what}");
    }
    let rows = stage.server.get_as_admin("/api/v1/audit?limit=1000").json();
    let rows = rows["items"].as_array().expect("rows");
    let mine: Vec<_> = rows.iter().filter(|row| row["tool"] == "sb__pid").collect();
    assert!(mine.len() >= 3 * CALLERS && mine.iter().all(|row| row["agent"] == "b"), "{mine:?}");
}

#[test]
fn pol_8_lists_that_are_asked_for_during_a_switch_are_those_of_the_new_agent() {
    let stage = stage();
    let expected = stage.tools_as("b");
    let (server, home) = (&stage.server, &stage.home);
    let lists: Vec<Vec<String>> = during_a_switch(&stage, 3000, || {
        thread::scope(|scope| {
            let legacy = scope.spawn(move || Talk::legacy(Door::Http(server, "/mcp")).tools());
            let modern = scope.spawn(move || mcp_tools(server, "/mcp"));
            let line = scope.spawn(move || crate::passthrough::names(&home.run(["tools", "--json"]).json()));
            [legacy, modern, line].into_iter().map(|list| list.join().expect("a list")).collect()
        })
    });
    for list in lists {
        assert_eq!(list, expected);
    }
}

#[test]
fn pol_8_a_client_that_connects_during_a_switch_sees_what_the_new_agent_has() {
    let stage = stage();
    let server = &stage.server;
    let ask = || {
        let mut client = Talk::silent(Door::Http(server, "/mcp"));
        let info = json!({ "name": "talk", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let legacy = client.result("initialize", &hello);
        let mut modern = Talk::modern(Door::Http(server, "/mcp")).result("server/discover", &json!({}));
        (legacy, modern["capabilities"].take())
    };
    let during = during_a_switch(&stage, 3000, ask);
    assert_eq!(during, ask(), "what it is told is what it is told afterwards");
}

#[test]
fn pol_8_a_connected_client_that_asks_for_something_else_during_a_switch_waits_too() {
    let stage = stage();
    let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp"));
    let read = json!({ "uri": "gantry:sb/faulty://text/one" });
    let (list, read) = during_a_switch(&stage, 3000, || {
        let list = client.begin("resources/list", "{}");
        (list, client.begin("resources/read", &read.to_string()))
    });
    let listed = crate::passthrough::parsed(&client.end(list));
    let uris = crate::passthrough::members(&listed["result"]["resources"], "uri");
    assert!(uris.len() >= 4 && uris.iter().all(|uri| uri.starts_with("gantry:sb/")), "{listed}");
    let read = crate::passthrough::parsed(&client.end(read));
    assert!(read["result"]["contents"].is_array(), "{read}");
}

#[test]
fn pol_8_callers_of_another_agent_by_name_do_not_wait_for_a_switch() {
    let stage = stage();
    let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp/default/agents/c"));
    let own = client.call("who", &json!({}));
    // The call of a does not end by itself, so the switch takes all the time that it has.
    during_a_switch(&stage, 600_000, || {
        assert_eq!(client.call("who", &json!({})), own);
        assert_eq!(
            types(&stage.last_steps()),
            ["agent_switch_started"],
            "it has not gone on in the meantime"
        );
    });
    assert_eq!(client.call("who", &json!({})), own, "and keeps its process");
}

/// Calls again and again until it is enough, and returns what was answered.
fn calling(server: &Server, enough: &AtomicBool) -> Vec<Value> {
    let (mut connection, mut replies) = (server.connect(), Vec::new());
    while !enough.load(Ordering::Acquire) {
        replies.push(connection.call("who", &json!({})).expect("an answer").json());
    }
    replies
}

#[test]
fn pol_8_no_caller_is_turned_away_or_answered_by_the_agent_before_however_close_the_switch() {
    let stage = stage();
    let server = &stage.server;
    let mut processes: HashSet<(String, u32)> = HashSet::new();
    for agent in ["b", "a", "b", "a", "b", "a"] {
        let enough = &AtomicBool::new(false);
        let replies: Vec<Value> = thread::scope(|scope| {
            let callers: Vec<_> =
                (0..CALLERS).map(|_| scope.spawn(move || calling(server, enough))).collect();
            stage.activate(agent);
            enough.store(true, Ordering::Release);
            callers.into_iter().flat_map(|caller| caller.join().expect("no complaints")).collect()
        });
        for reply in &replies {
            assert_eq!(reply["ok"], true, "{reply}");
            let record = stage.record(reply);
            processes.insert((record["agent"].as_str().expect("an agent").to_owned(), pid(reply)));
        }
    }
    let mut seen = HashSet::new();
    for (agent, process) in &processes {
        assert!(seen.insert(process), "{process} has answered for two agents, {agent} is one: {processes:?}");
    }
}
