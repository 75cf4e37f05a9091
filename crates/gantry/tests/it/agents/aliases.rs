//! Aliases: an agent's own names for tools, which mean the tools themselves and nothing else.

use super::{Site, path, real};
use crate::passthrough::{Door, Talk};
use crate::results::mcp_call;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// The catalogue entry `files` of Gantry's own, which reads, beside files to read.
fn home() -> TestDir {
    let home = TestDir::new();
    let policy = json!({ "name": "fs_read", "allowedPaths": ["docs"] });
    let entry = json!({ "id": "files", "kind": "builtin", "builtinPolicy": policy });
    home.write("tools/files/tool.json", &entry.to_string());
    home.write("docs/a.txt", "hi");
    home
}

fn agent(home: &TestDir, name: &str, tools: &Value) {
    home.write(&format!("agents/{name}/agent.json"), &json!({ "tools": tools }).to_string());
}

#[test]
fn nam_4_an_alias_and_the_full_name_are_the_same_tool() {
    let home = home();
    agent(&home, "a", &json!({ "use": ["files"], "aliases": { "read": "@files/read_file" } }));
    let site = Site::at(home);
    let arguments = json!({ "path": "docs/a.txt" });
    let spellings = ["read", "@files/read_file", "files__read_file"];
    for spelling in spellings {
        assert_eq!(site.result("a", spelling, &arguments)["content"], "hi", "{spelling}");
        let by_mcp = mcp_call(&site.server, &path("a"), spelling, &arguments);
        assert_eq!(by_mcp["result"]["structuredContent"]["content"], "hi", "{spelling}: {by_mcp}");
        let by_cli =
            site.home.run(["call", spelling, &arguments.to_string(), "--agent", "a", "--json"]).json();
        assert_eq!(by_cli["extras"]["tool"], "files__read_file", "{spelling}: {by_cli}");
    }
    // One tool in the ledger, under all its names.
    let rows = site.rows("files__read_file");
    assert_eq!(rows.len(), 9, "{rows:?}");
    for row in &rows {
        assert_eq!((&row["provider"], &row["original"]), (&json!("files"), &json!("read_file")));
        assert_eq!(row["fingerprint"], rows[0]["fingerprint"]);
    }
    assert_eq!(site.rows("read"), [] as [Value; 0]);
}

#[test]
fn nam_4_an_alias_in_the_allow_list_permits_both_spellings_and_nothing_else() {
    let home = home();
    let tools = json!({ "use": ["files"], "allowed": ["read"], "aliases": { "read": "@files/read_file" } });
    agent(&home, "a", &tools);
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["files__read_file", "read"]);
    for spelling in ["read", "@files/read_file", "files__read_file"] {
        assert_eq!(
            site.result("a", spelling, &json!({ "path": "docs/a.txt" }))["content"],
            "hi",
            "{spelling}"
        );
    }
    for blocked in ["@files/list_directory", "files__list_directory", "read_file"] {
        site.not_found("a", blocked, &json!({ "path": "docs" }));
    }
}

#[test]
fn nam_4_aliases_of_a_real_servers_tools_work_the_same() {
    let home = TestDir::new();
    let files = real(&home, "filesystem").1;
    let config = json!({
        "mcpServers": { "files": files },
        "agents": { "a": { "tools": { "use": ["files"], "allowed": ["read"], "aliases": { "read": "@files/read_file" } } } },
    });
    let site = Site::at(home.config(&config.to_string()));
    assert_eq!(site.tools("a"), ["files__read_file", "read"]);
    let arguments = json!({ "path": site.home.path().join("hello.txt") });
    let mut legacy = Talk::legacy(Door::Http(&site.server, "/mcp/default/agents/a"));
    assert_eq!(legacy.tools(), ["files__read_file", "read"]);
    for spelling in ["read", "@files/read_file"] {
        let answer = legacy.result("tools/call", &json!({ "name": spelling, "arguments": arguments }));
        assert!(answer.to_string().contains("hello from the folder"), "{spelling}: {answer}");
        let found = site.result("a", spelling, &arguments);
        assert!(found.to_string().contains("hello from the folder"), "{spelling}: {found}");
    }
    legacy.error("tools/call", &json!({ "name": "@files/read_text_file", "arguments": arguments }), -32602);
}

#[test]
fn nam_4_an_alias_is_listed_as_a_tool_that_says_what_it_stands_for() {
    let home = home();
    agent(&home, "a", &json!({ "use": ["files"], "aliases": { "read": "@files/read_file" } }));
    let site = Site::at(home);
    let listed = site.listing("a");
    let find = |name: &str| listed.iter().find(|tool| tool["name"] == name).expect("it is listed").clone();
    let (own, mut alias) = (find("files__read_file"), find("read"));
    assert_eq!((&own["aliases"], &alias["aliasOf"]), (&json!(["read"]), &json!("files__read_file")));
    let description = own["description"].as_str().expect("a text");
    assert_eq!(alias["description"], format!("The same tool as files__read_file. {description}"));
    // In everything else they are one.
    let mut own = own;
    for key in ["name", "description", "aliases", "aliasOf"] {
        for tool in [&mut own, &mut alias] {
            tool.as_object_mut().unwrap().remove(key);
        }
    }
    assert_eq!(own, alias);
    let table = site.home.run(["tools", "--agent", "a"]).stdout;
    assert!(table.contains("read → files__read_file "), "{table}");
    let shown = site.server.get("/api/v1/agents/a").json();
    assert_eq!(shown["aliases"], json!({ "read": "files__read_file" }));
}

#[test]
fn nam_4_an_alias_is_one_agents_own() {
    let home = home();
    agent(&home, "a", &json!({ "use": ["files"], "aliases": { "read": "@files/read_file" } }));
    agent(&home, "b", &json!({ "use": ["files"], "aliases": { "read": "@files/list_directory" } }));
    agent(&home, "c", &json!({ "use": ["files"] }));
    let site = Site::at(home);
    assert_eq!(site.result("a", "read", &json!({ "path": "docs/a.txt" }))["content"], "hi");
    assert_eq!(site.result("b", "read", &json!({ "path": "docs" }))["entries"][0]["name"], "a.txt");
    site.not_found("c", "read", &json!({ "path": "docs/a.txt" }));
    // Nor does one without an agent have it.
    assert_eq!(site.server.call("read", &json!({ "path": "docs/a.txt" })).status, 404);
}

#[test]
fn nam_4_an_alias_gives_no_right_that_the_agent_does_not_have() {
    let home = home();
    agent(
        &home,
        "a",
        &json!({ "use": ["files"], "allowed": ["files__read_file"], "aliases": { "put": "write_file", "list": "@files/list_directory", "nix": "@nix/none" } }),
    );
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["files__read_file"]);
    for (alias, arguments) in [
        ("put", json!({ "path": "x", "content": "" })),
        ("list", json!({ "path": "docs" })),
        ("nix", json!({})),
    ] {
        // As if there were no such alias.
        let other = format!("{alias}x");
        let answer = |name: &str| {
            let reply = super::lasting(site.not_found("a", name, &arguments));
            reply
                .to_string()
                .replace(&format!(": {name}\""), ": NAME\"")
                .replace(&format!(":\"{name}\""), ":\"NAME\"")
        };
        assert_eq!(answer(alias), answer(&other));
    }
    assert!(!site.home.path().join("x").exists());
    let said = site.server.stderr();
    for (alias, target) in [("put", "write_file"), ("list", "@files/list_directory"), ("nix", "@nix/none")] {
        let left_out = format!(
            "[WRN] agent a: the alias {alias:?} is left out: {target:?} is none of the tools it may call\n"
        );
        assert!(said.contains(&left_out), "{said}");
    }
}

#[test]
fn nam_4_an_alias_never_takes_over_the_name_of_another_tool() {
    let home = home();
    home.write("docs/b.txt", "other");
    let aliases =
        json!({ "files__list_directory": "@files/read_file", "@files/list_directory": "@files/read_file" });
    home.write(
        "gantry.yaml",
        &json!({ "agents": { "a": { "tools": { "use": ["files"], "aliases": aliases } } } }).to_string(),
    );
    let ran = home.run(["tools", "--agent", "a", "--json"]);
    // An alias is a plain name; a path of another tool cannot be written as one.
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("gantry.yaml:1: \"@files/list_directory\" in agents.a.tools.aliases must be a name of 1 to 64 letters, digits, _ and -"), "{ran:?}");
    let aliases = json!({ "files__list_directory": "@files/read_file", "tool_output": "@files/read_file" });
    home.write(
        "gantry.yaml",
        &json!({ "agents": { "a": { "tools": { "use": ["files"], "aliases": aliases } } } }).to_string(),
    );
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["files__list_directory", "files__read_file"]);
    let listed = site.result("a", "files__list_directory", &json!({ "path": "docs" }));
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2), "{listed}");
    let said = site.server.stderr();
    for (alias, tool) in [("files__list_directory", "files__list_directory"), ("tool_output", "tool_output")]
    {
        let words = format!(
            "[WRN] agent a: the alias {alias:?} is left out: {tool} is called that; give the alias another name\n"
        );
        assert!(said.contains(&words), "{said}");
    }
}
