//! Many switches under load: nothing is left behind, and no call of one agent is answered by the other's server.

use super::{Stage, faulty, remote};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{Connection, Server, long, process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Switches in all; the first part of them is what the rest is compared with.
const SWITCHES: usize = 60;
const SWITCHES_LONG: usize = 1000;
const FIRST_PART: usize = 5;

/// What Gantry may have grown by in the rest of the switches, in KiB.
const ROOM_KIB: usize = 24 * 1024;

/// Threads for blocking work that may be there beyond that: looking at the files of the configuration twice a second keeps
/// so many of them from being idle for as long as it takes to end one.
const SPARE_THREADS: usize = 20;

/// The ledger's second reading connection is opened when two first read at once, which may be late: its file, its log, and
/// the memory that they share.
const SPARE_FILES: usize = 3;

/// Calls that are answered between two switches, at least.
const CALLS_BETWEEN: usize = 10;

/// Switches after which another process may have the id of one that is gone; ids are given out in a circle.
const REUSED_AFTER: usize = 20;

/// Rows of the audit log that one request gets.
const PAGE: usize = 1000;

const JSON: (&str, &str) = ("content-type", "application/json");

/// How the clients are doing.
#[derive(Debug, Default)]
struct Progress {
    answered: AtomicUsize,
    switches: AtomicUsize,
    enough: AtomicBool,
}

impl Progress {
    /// Counts an answer; returns whether the client is to go on.
    fn goes_on(&self) -> bool {
        self.answered.fetch_add(1, Ordering::AcqRel);
        !self.enough.load(Ordering::Acquire)
    }
}

/// What a client was answered: by the id of the call, where it gets one, with how many switches there were by then.
#[derive(Debug, Default)]
struct Heard {
    by_id: HashMap<String, (String, usize)>,
    n_unnamed: usize,
}

/// What a Gantry has when only one agent is there.
#[derive(Debug, Clone, Copy)]
struct Level {
    processes: usize,
    files: usize,
    threads: usize,
    kib: usize,
}

/// Two agents that call by the same names a server of their own behind a socket, and one that both have as a process.
struct Scene {
    stage: Stage,
    own: [Faulty; 2],
}

impl Scene {
    fn new() -> Self {
        let own =
            [Faulty::start(Kind::Tcp, &["--tool", "only-a"]), Faulty::start(Kind::Ws, &["--tool", "only-b"])];
        let agent = |server: &str, own: &str| {
            let aliases = json!({ "who": format!("@{server}/{own}"), "process": "@both/pid" });
            json!({ "tools": { "use": [server, "both"], "aliases": aliases } })
        };
        let mut both = faulty(&[]);
        both["protocol"] = json!("legacy");
        let stage = Stage::of(&json!({
            "mcpServers": { "sa": remote("tcp", &own[0].url), "sb": remote("websocket", &own[1].url), "both": both },
            "agents": { "a": agent("sa", "only-a"), "b": agent("sb", "only-b") },
        }));
        Self { stage, own }
    }

    /// What is there when `a` is active and no other agent has a caller left.
    fn level(&self) -> Level {
        // Turning to b takes b's callers out of the shared runtime, and turning to a those of a.
        let Self { stage, own } = self;
        stage.activate("b");
        stage.activate("a");
        let servers = stage.server.get_as_admin("/api/v1/servers").json();
        let agents: Vec<_> =
            servers["items"].as_array().expect("servers").iter().map(|server| &server["agent"]).collect();
        assert_eq!(agents, [&json!("a"), &json!("a")], "{servers}");
        stage.server.eventually("one connection is left", || {
            own.each_ref().map(|server| process::connections(server.address.port())) == [1, 0]
        });
        let pid = stage.server.pid();
        Level {
            processes: process::descendants(pid).len(),
            files: process::open_files(pid),
            threads: process::threads(pid),
            kib: process::resident_kib(pid),
        }
    }
}

/// The calls of a client alternate between the name of the server and its process.
fn wanted(n: usize) -> &'static str {
    if n.is_multiple_of(2) { "who" } else { "process" }
}

/// Calls over HTTP, as this agent or as none in particular, until it is enough.
fn client(server: &Server, agent: Option<&str>, progress: &Progress) -> Heard {
    let (mut connection, mut heard) = (server.connect(), Heard::default());
    for n in 0.. {
        let call = json!({ "tool": wanted(n), "arguments": {}, "agent": agent }).to_string();
        let answer =
            connection.request("POST", "/api/v1/calls", &[JSON], call.as_bytes()).expect("an answer");
        let reply = answer.json();
        assert_eq!(reply["ok"], true, "as {agent:?}: {reply}");
        let id = reply["id"].as_str().expect("an id").to_owned();
        let answer = (text(&reply, "result").to_owned(), progress.switches.load(Ordering::Acquire));
        heard.by_id.insert(id, answer);
        if !progress.goes_on() {
            break;
        }
    }
    heard
}

/// Calls in one MCP session until it is enough.
fn mcp_client(server: &Server, progress: &Progress) -> Heard {
    let (mut connection, mut heard) = (server.connect(), Heard::default());
    let info = json!({ "name": "load", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    let (_, session) = say(&mut connection, None, "initialize", &hello);
    let session = session.expect("a session");
    for n in 0.. {
        let call = json!({ "name": wanted(n), "arguments": {} });
        let (answer, _) = say(&mut connection, Some(&session), "tools/call", &call);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        assert!(!text(&answer["result"]["content"][0], "text").is_empty(), "{answer}");
        heard.n_unnamed += 1;
        if !progress.goes_on() {
            break;
        }
    }
    let end = connection.request("DELETE", "/mcp", &[("mcp-session-id", &session)], b"").expect("an answer");
    assert!(end.status < 300, "{end:?}");
    heard
}

fn say(
    connection: &mut Connection,
    session: Option<&str>,
    method: &str,
    params: &Value,
) -> (Value, Option<String>) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers = vec![JSON];
    headers.extend(session.map(|id| ("mcp-session-id", id)));
    let answer = connection.request("POST", "/mcp", &headers, body.as_bytes()).expect("an answer");
    let session = answer.headers.get("mcp-session-id").map(|id| id.to_str().expect("text").to_owned());
    (answer.json(), session)
}

/// Switches to and fro while all kinds of clients call; returns what they heard.
fn under_load(stage: &Stage, switches: Range<usize>) -> Vec<Heard> {
    let (progress, server) = (&Progress::default(), &stage.server);
    thread::scope(|scope| {
        let agents = [None, None, Some("a"), Some("b")];
        let mut clients: Vec<_> =
            agents.into_iter().map(|agent| scope.spawn(move || client(server, agent, progress))).collect();
        clients.push(scope.spawn(move || mcp_client(server, progress)));
        let switching = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for n in switches {
                progress.switches.store(n, Ordering::Release);
                let before = progress.answered.load(Ordering::Acquire);
                server.eventually("some calls are answered", || {
                    progress.answered.load(Ordering::Acquire) >= before + CALLS_BETWEEN
                });
                let switched = stage.activate(if n.is_multiple_of(2) { "b" } else { "a" });
                assert_eq!(
                    (&switched["changed"], &switched["cutOff"]),
                    (&json!(true), &json!(0)),
                    "{switched}"
                );
            }
        }));
        progress.enough.store(true, Ordering::Release);
        let heard = clients.into_iter().map(|client| client.join().expect("a client without complaints"));
        let heard = heard.collect();
        switching.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        heard
    })
}

/// The whole audit log, page by page.
fn audit_log(server: &Server) -> Vec<Value> {
    let (mut rows, mut next) = (Vec::new(), String::new());
    loop {
        let page = server.get_as_admin(&format!("/api/v1/audit?limit={PAGE}{next}")).json();
        rows.extend_from_slice(page["items"].as_array().expect("items"));
        let Some(cursor) = page["next"].as_str() else { return rows };
        next = format!("&cursor={cursor}");
    }
}

/// Holds what was heard against the records: each call has one, and was answered by its agent's own server.
fn examine(stage: &Stage, heard: &[Heard]) -> usize {
    let rows = audit_log(&stage.server);
    let n_calls: usize = heard.iter().map(|heard| heard.by_id.len() + heard.n_unnamed).sum();
    let agents: HashMap<&str, &str> = rows.iter().map(|row| (text(row, "id"), text(row, "agent"))).collect();
    assert_eq!((rows.len(), agents.len()), (n_calls, n_calls), "each call has one record");
    for row in &rows {
        let own = if text(row, "original") == "pid" {
            "both".to_owned()
        } else {
            format!("s{}", text(row, "agent"))
        };
        assert_eq!((&row["state"], &row["provider"]), (&json!("COMPLETED_SUCCESS"), &json!(own)), "{row}");
    }
    let mut processes: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    for (id, (answer, switch)) in heard.iter().flat_map(|heard| &heard.by_id) {
        let agent = agents[id.as_str()];
        match answer.strip_prefix("only-") {
            Some(owner) => assert_eq!(owner, agent, "{id}: {answer} has answered for {agent}"),
            None => processes.entry(answer).or_default().push((*switch, agent)),
        }
    }
    for (process, mut answers) in processes {
        answers.sort_unstable();
        for pair in answers.windows(2) {
            let [(before, first), (after, second)] = pair else { continue };
            let is_another = after - before > REUSED_AFTER;
            assert!(first == second || is_another, "{process} has answered for both agents: {answers:?}");
        }
    }
    n_calls
}

#[track_caller]
fn text<'row>(row: &'row Value, key: &str) -> &'row str {
    row[key].as_str().unwrap_or_else(|| panic!("no {key}: {row}"))
}

#[test]
fn pol_8_heavy_many_switches_under_load_leave_nothing_behind_and_mix_nothing_up() {
    let scene = Scene::new();
    let stage = &scene.stage;
    stage.activate("a");
    let switches = if long() { SWITCHES_LONG } else { SWITCHES };
    let first = switches / FIRST_PART;
    let mut heard = under_load(stage, 0..first);
    let early = scene.level();
    heard.extend(under_load(stage, first..switches));
    let late = scene.level();
    let n_calls = examine(stage, &heard);
    eprintln!("{switches} switches, {n_calls} calls: {early:?} then {late:?}");
    assert_eq!(late.processes, early.processes, "{early:?} {late:?}");
    assert!(late.kib < early.kib + ROOM_KIB, "{early:?} {late:?}");
    assert!(late.threads <= early.threads + SPARE_THREADS, "{early:?} {late:?}");
    // Idle connections go by themselves, but not at once.
    let pid = stage.server.pid();
    stage.server.eventually("no file, pipe or socket is left", || {
        process::open_files(pid) <= early.files + SPARE_FILES
    });
    assert_eq!(scene.stage.server.stop().0, 0);
}
