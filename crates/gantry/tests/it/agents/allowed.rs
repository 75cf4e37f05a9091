//! Allow-lists: what of the tools that an agent uses it may call, and what is known of an attempt to call another.

use super::{Site, path, real, with};
use crate::passthrough::{Door, Talk};
use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// A server of files that others wrote, as `files`, and an agent `a` that uses these tools.
fn site(tools: &Value) -> Site {
    let home = TestDir::new();
    let files = real(&home, "filesystem").1;
    let config =
        json!({ "mcpServers": { "files": files }, "agents": { "a": { "tools": tools }, "all": {} } });
    Site::at(home.config(&config.to_string()))
}

/// Arguments that read the file that is there.
fn hello(site: &Site) -> Value {
    json!({ "path": site.home.path().join("hello.txt") })
}

#[test]
fn pol_7_a_tool_in_the_allow_list_runs_and_that_is_logged() {
    let home = TestDir::new();
    let files = real(&home, "filesystem").1;
    let tools = json!({ "use": ["files"], "allowed": ["files__read_text_file"] });
    let home = home.config(
        &json!({ "mcpServers": { "files": files }, "agents": { "a": { "tools": tools } } }).to_string(),
    );
    let server = home.serve_with(&["-v"]);
    let site = Site { server, home };
    site.settled();
    assert_eq!(site.tools("a"), ["files__read_text_file"]);
    let reply = site.call("a", "files__read_text_file", &hello(&site));
    assert!(reply["result"].to_string().contains("hello from the folder"), "{reply}");
    let id = &reply["id"];
    for kind in ["tool_started", "tool_finished"] {
        let events = site.events(kind);
        let own = events.iter().find(|event| event["call"] == *id).expect("an event of the call");
        assert_eq!(own["tool"], "files__read_text_file", "{own}");
    }
    // Lines are written after the answer is sent.
    for line in
        ["[VRB] tool request → files__read_text_file\n", "[VRB] tool response ← files__read_text_file\n"]
    {
        site.server.eventually(line, || site.server.stderr().contains(line));
    }
    let row = &site.rows("files__read_text_file")[0];
    assert_eq!((&row["agent"], &row["state"]), (&json!("a"), &json!("COMPLETED_SUCCESS")), "{row}");
}

#[test]
fn pol_7_a_tool_outside_the_allow_list_is_blocked_and_logged_with_its_name() {
    let site = site(&json!({ "use": ["files"], "allowed": ["files__read_text_file"] }));
    let new = site.home.path().join("new.txt");
    let arguments = json!({ "path": new, "content": "x" });
    let reply = site.not_found("a", "files__write_file", &arguments);
    let message = reply["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("tool not found: files__write_file"), "{reply}");
    let by_mcp = mcp_call(&site.server, &path("a"), "files__write_file", &arguments);
    assert_eq!((&by_mcp["error"]["code"], &by_mcp["error"]["message"]), (&json!(-32602), &json!(message)));
    let call = ["call", "files__write_file", &arguments.to_string(), "--agent", "a"];
    let by_cli = site.home.run(call.iter().chain(&["--json"]));
    assert_eq!((by_cli.code, &by_cli.json()["error"]), (1, &reply["error"]), "{by_cli:?}");
    let in_words = site.home.run(call);
    assert!(
        in_words.code == 1 && in_words.stderr.contains("tool not found: files__write_file"),
        "{in_words:?}"
    );
    assert!(!new.exists(), "nothing was run");
    // It is on record, in the stream and in the log, by its name.
    let rows = site.rows("files__write_file");
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        let found = (&row["agent"], &row["state"], &row["error"]["code"], &row["effectState"]);
        let expected = (&json!("a"), &json!("REFUSED"), &json!("TOOL_NOT_FOUND"), &json!("none"));
        assert_eq!(found, expected, "{row}");
    }
    let ended = site.events("tool_finished");
    let blocked: Vec<&Value> = ended.iter().filter(|event| event["tool"] == "files__write_file").collect();
    assert_eq!(blocked.len(), 4, "{ended:?}");
    assert!(blocked.iter().all(|event| event["code"] == "TOOL_NOT_FOUND"), "{blocked:?}");
    assert!(site.events("tool_started").iter().all(|event| event["tool"] != "files__write_file"));
    site.server.eventually("it is in the log", || {
        site.server.stderr().matches("[WRN] tool response ← files__write_file\n").count() == 4
    });
}

#[test]
fn pol_7_without_an_allow_list_what_is_not_in_use_is_blocked() {
    for allowed in [json!(null), json!([])] {
        let mut tools = json!({ "use": ["files"] });
        if allowed.is_array() {
            tools["allowed"] = allowed;
        }
        let site = site(&tools);
        assert_eq!(site.tools("a").len(), 14, "{tools}: all of its server");
        site.result("a", "files__read_text_file", &hello(&site));
        // Gantry's own tools are not in use, although they are there.
        site.not_found("a", "read_file", &json!({ "path": "hello.txt" }));
        assert_eq!(site.rows("read_file")[0]["error"]["code"], "TOOL_NOT_FOUND");
        site.result("all", "read_file", &json!({ "path": "hello.txt" }));
    }
}

#[test]
fn pol_7_a_star_allows_all_of_use_and_no_more() {
    for allowed in [json!(["*"]), json!(["files__read_text_file", "*"])] {
        let site = site(&json!({ "use": ["files"], "allowed": allowed }));
        let names = site.tools("a");
        assert!(names.len() == 14 && names.iter().all(|name| name.starts_with("files__")), "{names:?}");
        site.result("a", "files__read_text_file", &hello(&site));
        site.not_found("a", "read_file", &json!({ "path": "hello.txt" }));
    }
}

#[test]
fn pol_7_otherwise_exactly_what_is_listed_is_allowed() {
    let site = site(&json!({
        "use": ["files", "read_file"],
        "allowed": ["files__read_text*", "@files/list_allowed_directories", "read_file", "write_file", "files__nothing"],
    }));
    let expected = ["files__list_allowed_directories", "files__read_text_file", "read_file"];
    assert_eq!(site.tools("a"), expected);
    assert_eq!(mcp_tools(&site.server, &path("a")), expected);
    // To allow what is not in use gives nothing, and that is said.
    let said = site.server.stderr();
    for pattern in ["write_file", "files__nothing"] {
        let warning =
            format!("[WRN] agent a: {pattern:?} is allowed, but matches none of the tools it uses\n");
        assert!(said.contains(&warning), "{said}");
    }
    site.not_found("a", "write_file", &json!({ "path": "b", "content": "" }));
}

#[test]
fn pol_7_a_rule_that_denies_beats_an_allow_list_under_every_name() {
    let home = TestDir::new();
    let files = real(&home, "filesystem").1;
    let config = json!({
        "mcpServers": { "files": with(files, &json!({ "toolsDenied": ["get_file_info"] })) },
        "policies": [{ "name": "no-reading", "tools": ["@files/read_text_file"], "decide": "deny", "reason": "not here" }],
        "agents": { "a": { "tools": {
            "use": ["files"],
            "allowed": ["read", "files__get_file_info", "files__list_directory"],
            "aliases": { "read": "@files/read_text_file" },
            "autoApprove": ["*"],
        } } },
    });
    let site = Site::at(home.config(&config.to_string()));
    // What the server may not offer is not there, even if an agent allows it.
    assert_eq!(site.tools("a"), ["files__list_directory", "files__read_text_file", "read"]);
    site.not_found("a", "files__get_file_info", &hello(&site));
    let mut client = Talk::legacy(Door::Http(&site.server, "/mcp/default/agents/a"));
    for spelling in ["read", "files__read_text_file", "@files/read_text_file"] {
        let error = site.error("a", spelling, &hello(&site), "PERMISSION_DENIED");
        let expected = "denied by policy no-reading: not here";
        assert_eq!(
            (&error["message"], &error["details"]["policy"]),
            (&json!(expected), &json!("no-reading"))
        );
        let answer = client.result("tools/call", &json!({ "name": spelling, "arguments": hello(&site) }));
        let text = crate::passthrough::text(&answer);
        assert!(answer["isError"] == true && text.contains(expected), "{spelling}: {answer}");
    }
}
