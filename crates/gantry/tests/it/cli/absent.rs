//! Servers that are not there: what `tools`, `call`, `doctor` and `mcp` say about them to a person, and to no program.

use super::run;
use gantry_testkit::TestDir;
use gantry_testkit::faulty::Faulty;
use serde_json::{Value, json};

/// A program that is not there.
const MISSING_PROGRAM: &str = "gantry-no-such-program";

/// A server that works, one whose program is missing, one that wants a variable, one that is switched off.
fn home() -> TestDir {
    let token = json!({ "TOKEN": "${NO_SUCH_TOKEN}" });
    let servers = json!({
        "good": { "command": Faulty::program() },
        "missing": { "command": MISSING_PROGRAM },
        "novar": { "command": "x", "env": token },
        "silent": { "command": "x", "enabled": false },
    });
    let agents = json!({ "reader": { "tools": ["read_*"] } });
    TestDir::new().config(&json!({ "mcpServers": servers, "agents": agents }).to_string())
}

#[test]
fn nam_6_only_the_command_line_says_that_a_tool_may_be_missing_with_its_server() {
    let home = home();
    let called = run(&home, &["call", "missing__x"]);
    assert_eq!(called.code, 1, "{called:?}");
    assert!(called.stderr.contains("tool not found: missing__x"), "{called:?}");
    assert!(called.stderr.contains("server missing is down; see gantry doctor missing__x\n"), "{called:?}");
    assert!(!called.stderr.contains("novar"), "only the server that is meant: {called:?}");
    let called = run(&home, &["call", "silent__x", "--json"]);
    assert!(called.stderr.contains("server silent is switched off"), "{called:?}");
    assert!(!called.stdout.contains("switched off"), "{called:?}");
    // Any server whose names are unchanged may have had it.
    home.write(
        "gantry.yaml",
        &format!("mcpServers: {{ bare: {{ command: {MISSING_PROGRAM}, prefix: false }} }}\n"),
    );
    let called = run(&home, &["call", "anything"]);
    assert!(called.stderr.contains("server bare is down; see gantry doctor anything"), "{called:?}");
    // A model learns nothing of it.
    let server = home.serve();
    let answer = server.call("anything", &json!({}));
    assert!(!answer.text.contains("bare") && !answer.text.contains("down"), "{answer:?}");
}

#[test]
fn a_list_of_tools_names_the_servers_that_are_missing_in_it() {
    let home = home();
    for args in [["tools"].as_slice(), &["tools", "--json"], &["tools", "--format", "mcp"]] {
        let ran = run(&home, args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let outcome: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(
            outcome,
            [
                "server missing is down; see gantry doctor missing",
                "server novar is switched off; see gantry doctor novar"
            ],
            "{ran:?}"
        );
        assert!(!ran.stdout.contains("missing__"), "{ran:?}");
    }
}

#[test]
fn obs_4_the_doctor_explains_a_server() {
    let home = home();
    let explained = |id: &str| run(&home, &["doctor", id]);
    let good = explained("good");
    assert_eq!(good.code, 0, "{good:?}");
    assert!(
        good.stdout.starts_with("good ● green: ready since 2") && good.stdout.contains(" UTC\n"),
        "{good:?}"
    );
    assert!(good.stdout.contains("protocol 2025-11-25") && good.stdout.contains(" tools"), "{good:?}");
    let missing = explained("missing");
    assert_eq!(missing.code, 1, "{missing:?}");
    for words in [
        "missing ● red: down since",
        "never started",
        MISSING_PROGRAM,
        "look again with gantry doctor missing",
    ] {
        assert!(missing.stdout.contains(words), "{words}: {missing:?}");
    }
    let novar = explained("novar");
    assert_eq!(novar.code, 1, "{novar:?}");
    assert!(novar.stdout.contains("${NO_SUCH_TOKEN} is not set"), "{novar:?}");
    let silent = explained("silent");
    assert_eq!(silent.code, 0, "{silent:?}");
    assert!(silent.stdout.contains("enabled: true starts it"), "{silent:?}");
    let report = run(&home, &["doctor", "missing", "--json"]);
    assert_eq!((report.code, &report.json()["severity"]), (1, &json!("error")), "{report:?}");
    assert!(report.json()["advice"].as_array().is_some_and(|advice| !advice.is_empty()), "{report:?}");
    // A tool that can be called is what is taken first.
    let tool = explained("read_file");
    assert!(tool.code == 0 && tool.stdout.starts_with("read_file can be called"), "{tool:?}");
}

#[test]
fn obs_4_the_doctor_advises_only_what_works_here() {
    let home = home();
    let ran = run(&home, &["doctor"]);
    assert!(!ran.stdout.contains("servers restart"), "nothing runs that could restart it: {ran:?}");
    let line = |id: &str| ran.stdout.lines().find(|line| line.contains(id)).expect("a line").to_owned();
    assert!(
        line(" missing ●").ends_with("put that right, then look again with gantry doctor missing"),
        "{ran:?}"
    );
    assert!(line(" novar ●").contains("novar ● off: stdio; "), "{ran:?}");
    assert!(line(" silent ●").contains("silent ● off: stdio; its configuration switches it off"), "{ran:?}");
    let server = home.serve();
    server.eventually("it says when it is tried again", || {
        let ran = run(&home, &["doctor", "missing"]);
        ran.stdout.contains("it is tried again at 2")
            && ran.stdout.contains("or now by gantry servers restart missing")
    });
}

#[test]
fn an_unknown_agent_is_refused_before_anything_is_spoken() {
    let home = home();
    let refused = |home: &TestDir| {
        let ran = run(home, &["mcp", "--agent", "nobody"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains("there is no agent \"nobody\"; configured: reader"), "{ran:?}");
        assert_eq!(run(home, &["mcp", "--agent", "reader"]).code, 0);
    };
    refused(&home);
    let server = home.serve();
    refused(&home);
    // What the running Gantry has counts, not what the file says by now.
    home.write("gantry.yaml", "agents: {}\n");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ran = home.run_with_input(["mcp", "--agent", "reader"], &format!("{ping}\n"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["id"], 1, "{ran:?}");
    drop(server);
    let gone = run(&home, &["mcp", "--agent", "reader"]);
    assert!(gone.code == 2 && gone.stderr.contains("configured: none"), "{gone:?}");
}

#[test]
fn obs_2_every_event_has_something_to_say() {
    let traced = json!({ "command": Faulty::program(), "traceMCP": true });
    let servers = json!({ "good": traced, "missing": { "command": MISSING_PROGRAM } });
    let home = TestDir::new().config(&json!({ "mcpServers": servers }).to_string());
    let server = home.serve();
    server.eventually("the tool is there", || server.call("good__grow", &json!({})).json()["ok"] == true);
    server.eventually("it has grown", || server.call("good__grown_1", &json!({})).json()["ok"] == true);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let read = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "gantry:good/faulty://text/none" } });
    let started = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let spoken = home.run_with_input(["mcp"], &format!("{hello}\n{started}\n{read}\n"));
    assert_eq!(spoken.code, 0, "{spoken:?}");
    let ran = run(&home, &["events"]);
    let any = |begin: &str, words: &str| {
        let message = |line: &str| line.split_once(' ').map(|(_, message)| message.trim_start().to_owned());
        let mut messages = ran.stdout.lines().filter_map(message);
        let found = messages.any(|message| message.starts_with(begin) && message.contains(words));
        assert!(found, "{begin} {words}: {}", ran.stdout);
    };
    any("server_up server=good", "era=2025-11-25");
    any("server_down server=missing", MISSING_PROGRAM);
    any("tools_changed server=good", "good__grown_1");
    any("good → {", "");
    any("good ← {", "");
    any("request_answered ", "method=resources/read subject=gantry:good/faulty://text/none status=failed");
    any("tool response ← good__grow", "status: ok");
    any("session_opened", "door=mcp");
    for line in ran.stdout.lines() {
        assert!(line.split_whitespace().count() > 2, "{line:?} says nothing");
    }
    let silent = |event: &Value| !event["type"].is_string();
    let kinds = run(&home, &["events", "--json"]);
    assert!(!kinds.stdout.lines().any(|line| silent(&serde_json::from_str(line).expect("JSON"))));
}
