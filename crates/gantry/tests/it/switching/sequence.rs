//! In any order of switches: what is listed is what the active agent's definition says, and nothing else.

use super::{Stage, faulty, remote};
use crate::results::mcp_tools;
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{Random, long, process};
use serde_json::json;

/// Switches in one sequence.
const SWITCHES: usize = 12;
const SWITCHES_LONG: usize = 100;

/// An agent and what it has: its name, its tools as they are listed, its servers, and how they show in the processes.
type Row = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const AGENTS: [Row; 4] = [
    ("builtin", &["list_directory", "read_file"], &[], &[]),
    ("first", &["s1__echo", "s1__env", "s1__only_first"], &["s1"], &["only-first"]),
    (
        "mixed",
        &["read", "read_file", "s1__pid", "s2__pid", "t__pid"],
        &["s1", "s2", "t"],
        &["only-first", "only-second"],
    ),
    ("second", &["s2__only_second", "whoami"], &["s2"], &["only-second"]),
];

/// The names that are another name of a tool that is listed too.
const ALIASES: [&str; 2] = ["read", "whoami"];

#[test]
fn pol_8_after_each_of_many_switches_the_tools_are_those_of_the_agents_definition() {
    let socket = Faulty::start(Kind::Tcp, &[]);
    let stage = Stage::of(&json!({
        "mcpServers": {
            "s1": faulty(&["--tool", "only-first"]),
            "s2": faulty(&["--tool", "only-second"]),
            "t": remote("tcp", &socket.url),
        },
        "agents": {
            "builtin": { "tools": ["list_dir*", "read_file"] },
            "first": { "tools": ["s1__only_*", "s1__e[cn]*", "s1__echo", "s1__env"] },
            "mixed": { "tools": { "use": ["*__pid", "@workspace/read_file"], "aliases": { "read": "@workspace/read_file" } } },
            "second": { "tools": { "use": ["s2"], "allowed": ["whoami"], "aliases": { "whoami": "@s2/only-second" } } },
        },
    }));
    let mut random = Random(0x5DEE_CE66_D1CE_4E5B);
    let mut path = Vec::new();
    for _ in 0..if long() { SWITCHES_LONG } else { SWITCHES } {
        let (agent, tools, servers, marks) = AGENTS[random.index(AGENTS.len())];
        path.push(agent);
        let switched = stage.activate(agent);
        assert_eq!(stage.tools(), tools, "{path:?}");
        assert_eq!(mcp_tools(&stage.server, "/mcp"), tools, "{path:?}");
        let n_tools = tools.iter().filter(|name| !ALIASES.contains(name)).count();
        assert_eq!(switched["tools"], n_tools, "{path:?} {switched}");
        let listed = stage.server.get_as_admin("/api/v1/servers").json();
        let ids: Vec<&str> =
            listed["items"].as_array().expect("servers").iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(ids, servers, "{path:?}");
        for mark in ["only-first", "only-second"] {
            assert_eq!(!stage.running(mark).is_empty(), marks.contains(&mark), "{path:?}: {mark}");
        }
        let wanted = usize::from(servers.contains(&"t"));
        let connected = || process::connections(socket.address.port()) == wanted;
        stage.server.eventually(&format!("{path:?}: the socket is connected {wanted} times"), connected);
    }
}
