//! Names: how tools are displayed, which spellings reach them, and what a wrong one is answered.

use crate::agents::lasting;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// Every name in `gantry tools`, with the id of its provider.
fn listed(home: &TestDir) -> Vec<(String, String)> {
    let tools = home.run(["tools", "--format", "json"]).json();
    let text = |tool: &Value, pointer: &str| {
        tool.pointer(pointer).map(|text| text.as_str().unwrap_or_default().to_owned())
    };
    let both = |tool: &Value| Some((text(tool, "/name")?, text(tool, "/provider/id")?));
    tools.as_array().into_iter().flatten().filter_map(both).collect()
}

#[test]
fn nam_1_a_providers_tools_are_prefixed_and_gantrys_own_are_bare() {
    let home = TestDir::with_test_tools();
    let tools = listed(&home);
    for (name, provider) in &tools {
        match provider.as_str() {
            "workspace" => assert!(!name.contains("__"), "{name}"),
            "test" => assert!(name.starts_with("test__"), "{name}"),
            other => panic!("{name} of {other}"),
        }
    }
    let bare: Vec<&str> =
        tools.iter().filter(|tool| tool.1 == "workspace").map(|tool| tool.0.as_str()).collect();
    for name in ["read_file", "write_file", "list_directory", "delete_file", "move_file"] {
        assert!(bare.contains(&name), "{name} is missing in {bare:?}");
    }
    assert!(tools.iter().any(|tool| tool.0 == "test__echo"), "{tools:?}");
}

#[test]
fn nam_1_a_bare_name_is_accepted_with_its_namespace_too() {
    let home = TestDir::new();
    home.write("a.txt", "hi");
    for spelling in ["read_file", "workspace__read_file", "@workspace/read_file"] {
        let reply = home.call(spelling, &json!({ "path": "a.txt" }));
        assert_eq!(reply["result"]["content"], "hi", "{spelling}: {reply}");
        assert_eq!(reply["extras"]["tool"], "read_file");
    }
}

#[test]
fn nam_2_slashed_names_are_accepted_in_calls_by_every_door() {
    let home = TestDir::with_test_tools();
    let arguments = json!({ "text": "hi" });
    assert_eq!(home.call("@test/echo", &arguments)["result"], "hi");
    let server = home.serve();
    let over_http = server.call("@test/echo", &arguments).json();
    assert_eq!((&over_http["result"], &over_http["extras"]["tool"]), (&json!("hi"), &json!("test__echo")));
    let over_mcp = crate::results::mcp_call(&server, "/mcp", "@test/echo", &arguments);
    assert_eq!(over_mcp["result"]["content"][0]["text"], "hi", "{over_mcp}");
    let nested = json!({ "tool": "@test/echo", "arguments": arguments });
    assert_eq!(server.call("test__nested", &nested).json()["result"], "hi");
}

#[test]
fn nam_2_slashed_names_are_accepted_wherever_the_configuration_names_tools() {
    let home = TestDir::with_test_tools().config(
        r#"
agents: { a: { tools: ["@test/slow-write", "@test/ec*"] } }
approvals: { requiresApprovalTools: ["@test/echo"] }
policies: [{ name: no-logins, tools: ["@test/login"], decide: deny }]
"#,
    );
    let tools = home.run(["tools", "--agent", "a", "--json"]).json();
    let names: Vec<&Value> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["test__echo", "test__slow_write"]);
    assert_eq!(home.call("test__echo", &json!({}))["error"]["code"], "APPROVAL_REQUIRED");
    assert_eq!(home.call("test__login", &json!({}))["error"]["details"]["policy"], "no-logins");
}

#[test]
fn nam_3_other_characters_become_underscores_and_the_original_spelling_resolves() {
    let home = TestDir::with_test_tools();
    let names = listed(&home);
    assert!(names.iter().any(|tool| tool.0 == "test__slow_write"), "{names:?}");
    let allowed =
        |name: &str| name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    assert!(names.iter().all(|tool| allowed(&tool.0)), "{names:?}");
    let file = home.path().join("out.txt");
    for spelling in ["test__slow_write", "test__slow-write", "@test/slow-write", "@test/slow_write"] {
        let reply = home.call(spelling, &json!({ "ms": 0, "file": file }));
        assert_eq!(reply["result"], "written", "{spelling}: {reply}");
        assert_eq!(reply["extras"]["tool"], "test__slow_write", "the displayed name is one");
    }
    assert_eq!(home.read("out.txt"), "begun\nended\n".repeat(4));
    // Case is part of a name.
    assert_eq!(home.call("test__Slow_Write", &json!({}))["error"]["code"], "TOOL_NOT_FOUND");
}

#[test]
fn nam_5_policies_bind_the_tool_and_not_the_spelling_of_a_call() {
    let spellings = ["test__slow_write", "test__slow-write", "@test/slow-write", "@test/slow_write"];
    let rules = [
        r#"tools: ["test__slow-write"]"#,
        r#"tools: ["test__slow_write"]"#,
        r#"tools: ["*"], when: "tool.provider == 'test' && tool.original == 'slow-write'""#,
    ];
    for rule in rules {
        let home = TestDir::with_test_tools()
            .config(&format!("policies: [{{ name: no-writes, {rule}, decide: deny }}]\n"));
        for spelling in spellings {
            let reply = home.call(spelling, &json!({ "ms": 0, "file": home.path().join("out.txt") }));
            assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{rule} {spelling}: {reply}");
        }
        assert!(!home.path().join("out.txt").exists(), "{rule}");
    }
}

#[test]
fn nam_5_the_ledger_names_the_provider_and_the_original_tool() {
    let home = TestDir::with_test_tools();
    let arguments = json!({ "ms": 0, "file": home.path().join("out.txt") });
    for spelling in ["test__slow_write", "@test/slow-write"] {
        home.call(spelling, &arguments);
    }
    let rows = home.run(["audit", "--tool", "test__slow_write", "--json"]).json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!((&row["provider"], &row["original"]), (&json!("test"), &json!("slow-write")));
        assert_eq!(row["fingerprint"], rows[0]["fingerprint"]);
    }
}

#[test]
fn nam_5_cache_queue_and_time_limit_are_keyed_by_the_original_name() {
    let home = TestDir::with_test_tools().config("queues: { disk: { concurrent: 1 } }\n").settings(&json!({
        "toolsCache": { "tick": 60_000 },
        "toolsQueue": { "slow-write": "disk" },
        "toolsTimeout": { "slow-write": 50 },
    }));
    let server = home.serve();
    let tick = json!({ "file": home.path().join("ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
    let again = server.call("@test/tick", &tick).json();
    assert_eq!((&again["result"], &again["extras"]["cached"]), (&json!("1"), &json!(true)));
    // By either spelling the limit and the queue of `slow-write` apply.
    let slow = json!({ "file": home.path().join("out.txt"), "ms": 60_000 });
    for spelling in ["test__slow_write", "test__slow-write"] {
        assert_eq!(server.call(spelling, &slow).json()["error"]["details"]["timeoutMs"], 50);
    }
    assert_eq!(server.get("/api/v1/queues").json()["items"][0]["admitted"], 2);
}

#[test]
fn nam_6_an_unknown_tool_is_answered_with_the_closest_names() {
    let home = TestDir::with_test_tools();
    let reply = home.call("test__slowwrite", &json!({}));
    assert_eq!(reply["error"]["code"], "TOOL_NOT_FOUND");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("tool not found: test__slowwrite"), "{message}");
    assert_eq!(reply["error"]["details"]["closest"][0], "test__slow_write", "{reply}");
    assert!(reply["error"]["details"]["closest"].as_array().unwrap().len() <= 3);
    assert_eq!(home.run(["call", "test__slowwrite"]).code, 1);
}

#[test]
fn nam_6_suggestions_come_from_what_the_caller_may_see() {
    let home = TestDir::with_test_tools().config("agents: { a: { tools: [test__sleep] } }\n");
    let reply = home.run(["call", "test__slow_writ", "{}", "--agent", "a", "--json"]).json();
    assert_eq!(reply["error"]["code"], "TOOL_NOT_FOUND");
    assert!(!reply.to_string().contains("slow_write"), "a hidden tool was offered: {reply}");
}

#[test]
fn nam_6_a_hidden_tool_is_answered_as_if_it_were_not_there() {
    let config = "agents: { a: { tools: [read_file, write_file] } }\n";
    // The same question where the tool is hidden and where there is no such tool at all.
    let (hidden, absent) = (TestDir::with_test_tools().config(config), TestDir::new().config(config));
    for spelling in ["test__slow_write", "test__slow-write", "@test/slow-write", "test__bad_schema"] {
        for arguments in ["{}", r#"{"ms":"wrong"}"#] {
            let ask = |home: &TestDir| home.run(["call", spelling, arguments, "--agent", "a", "--json"]);
            let (there, not_there) = (ask(&hidden), ask(&absent));
            assert_eq!(there.code, 1);
            assert_eq!(lasting(there.json()), lasting(not_there.json()), "{spelling}");
            assert_eq!(there.stderr, not_there.stderr);
        }
    }
    // And in one place, a hidden name and an invented one: equal but for the name.
    let server = hidden.serve();
    let ask = |tool: &str| {
        let body = json!({ "tool": tool, "arguments": {}, "agent": "a" }).to_string();
        let answer = server.post("/api/v1/calls", &body);
        (answer.status, lasting(answer.json()).to_string().replace(tool, "NAME"))
    };
    assert_eq!(ask("test__sleep"), ask("test__sleeq"));
    assert_eq!(ask("test__sleep").0, 404);
    let ask = |tool: &str| {
        let answer = crate::results::mcp_call(&server, "/mcp/default/agents/a", tool, &json!({}));
        answer.to_string().replace(tool, "NAME")
    };
    assert_eq!(ask("test__sleep"), ask("test__sleeq"));
}
