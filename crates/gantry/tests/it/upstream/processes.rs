//! Servers that are processes of Gantry's: what they know of it, and that nothing of them survives.

use super::{Rig, processes_with, stdio, with};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long what Gantry started may outlive it when it was killed.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Servers that run at once.
const MANY: usize = 50;

/// A server with a grandchild that hides in a session of its own, and the text by which both are found.
fn with_family(home: &TestDir) -> (Value, String) {
    let marker = home.path().join("grandchild").to_str().expect("UTF-8").to_owned();
    (stdio(&["--spawn-grandchild", &marker]), marker)
}

/// A Gantry with one such server that is ready, and whose only family is that of the process that is used.
fn family() -> (Rig, String) {
    let home = TestDir::new();
    let (entry, marker) = with_family(&home);
    let rig = Rig::at(home.config(&json!({ "mcpServers": { "bad": entry } }).to_string()));
    rig.ready("bad");
    let pid = rig.result("bad__pid", &json!({})).parse().expect("a process id");
    // To find out its era Gantry started two; the other one and its grandchild have to go.
    rig.server.eventually("one family is left", || {
        let family = processes_with(&marker);
        // Two guards, the server, the grandchild.
        family.len() == 4 && family.contains(&pid)
    });
    (rig, marker)
}

/// Waits until nothing with this text in its command line runs.
#[track_caller]
fn gone_within(limit: Duration, marker: &str) {
    let end = Instant::now() + limit;
    loop {
        let left = processes_with(marker);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{} processes are left after {limit:?}: {left:?}", left.len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ups_9_a_process_gets_the_environment_that_is_configured_and_nothing_else() {
    let entry =
        with(stdio(&[]), &json!({ "env": { "TOKEN": "${FROM_OUTSIDE}", "EMPTY": "", "PATH_LIKE": "a:b" } }));
    let folder = tempfile::tempdir().expect("a folder");
    let home = TestDir::new()
        .config(&json!({ "mcpServers": { "bad": entry } }).to_string())
        .env("FROM_OUTSIDE", "value")
        .env("LANG", "C.UTF-8")
        .env("TMPDIR", folder.path().to_str().expect("UTF-8"))
        .env("GANTRY_SECRET_OF_MINE", "leaked")
        .env("LD_LIBRARY_PATH_OF_MINE", "leaked");
    home.write(".env", "FROM_FILE=leaked\n");
    let rig = Rig::at(home);
    rig.ready("bad");
    let found: BTreeMap<String, String> =
        serde_json::from_str(&rig.result("bad__env", &json!({}))).expect("an environment");
    // What every program needs comes from Gantry's own environment.
    let own = ["PATH", "HOME"].map(|name| (name, std::env::var(name).expect("every machine has it")));
    let set = [("LANG", "C.UTF-8".to_owned()), ("TMPDIR", folder.path().to_str().expect("UTF-8").to_owned())];
    let configured = [("TOKEN", "value"), ("EMPTY", ""), ("PATH_LIKE", "a:b")]
        .map(|(name, value)| (name, value.to_owned()));
    let expected: BTreeMap<String, String> =
        own.into_iter().chain(set).chain(configured).map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(found, expected);
}

#[test]
fn ups_9_stopping_gantry_ends_the_whole_family_of_a_server() {
    let (rig, marker) = family();
    let (code, said) = rig.server.stop();
    assert_eq!(code, 0, "{said}");
    assert_eq!(processes_with(&marker), Vec::<u32>::new(), "it stops when everything is gone");
}

#[test]
fn ups_9_killing_gantry_ends_the_whole_family_of_a_server() {
    let (rig, marker) = family();
    rig.server.kill();
    gone_within(AFTER_KILL, &marker);
}

#[test]
fn ups_9_removing_a_server_ends_its_whole_family() {
    let (rig, marker) = family();
    assert_eq!(rig.admin(Method::DELETE, "/api/v1/servers/bad", &Value::Null).status, 200);
    rig.server.eventually("the family is gone", || processes_with(&marker).is_empty());
}

#[test]
fn ups_9_restarting_a_server_ends_its_whole_family_and_starts_another() {
    let (rig, marker) = family();
    let before = processes_with(&marker);
    rig.restart("bad");
    rig.server.eventually("the family is another", || {
        let family = processes_with(&marker);
        family.len() == 4 && family.iter().all(|pid| !before.contains(pid))
    });
    rig.ready("bad");
}

#[test]
fn ups_9_a_server_that_dies_takes_its_family_along() {
    let (rig, marker) = family();
    let before = processes_with(&marker);
    rig.call("bad__die", &json!({}));
    rig.server.eventually("nothing of it is left", || {
        let family = processes_with(&marker);
        family.iter().all(|pid| !before.contains(pid))
    });
}

#[test]
fn ups_9_a_command_leaves_no_process_behind() {
    let home = TestDir::new();
    let (entry, marker) = with_family(&home);
    let home = home.config(&json!({ "mcpServers": { "bad": entry } }).to_string());
    assert_eq!(home.call("bad__echo", &json!({ "text": "x" }))["result"], "x");
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn ups_9_heavy_fifty_servers_start_and_none_survives_the_death_of_gantry() {
    let home = TestDir::new();
    let marker = home.path().to_str().expect("UTF-8").to_owned();
    let journal = home.path().join("journal.txt");
    let args = ["--journal", journal.to_str().expect("UTF-8")];
    // Of servers that start all at once on a small machine, each takes long.
    let entry = with(stdio(&args), &json!({ "startupTimeoutMs": 120_000 }));
    let servers: Value = Value::Object((0..MANY).map(|n| (format!("s{n:02}"), entry.clone())).collect());
    let config = json!({ "defaults": { "mcpInitConcurrency": MANY }, "mcpServers": servers });
    let rig = Rig::at(home.config(&config.to_string()));
    rig.server.eventually("all are ready", || {
        let listed = rig.server.get("/api/v1/servers").json();
        listed["items"].as_array().is_some_and(|servers| {
            servers.len() == MANY && servers.iter().all(|server| server["status"] == "ready")
        })
    });
    let each = rig.status("s00")["tools"].as_u64().and_then(|n| usize::try_from(n).ok()).expect("a number");
    rig.server.eventually("all tools are listed", || {
        rig.tools().iter().filter(|tool| tool.starts_with('s') && tool.contains("__")).count() == MANY * each
    });
    for n in 0..MANY {
        assert_eq!(rig.result(&format!("s{n:02}__echo"), &json!({ "text": n.to_string() })), n.to_string());
    }
    assert!(processes_with(&marker).len() >= MANY);
    rig.server.kill();
    gone_within(AFTER_KILL, &marker);
}
