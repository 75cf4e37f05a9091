//! What is hidden from an agent is answered exactly like what is not there, by every door.

use super::{Site, lasting, path, real};
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// `files`, which others wrote, and an agent that may read. Without the server, the same with nothing to hide.
fn site(has_server: bool) -> Site {
    let home = TestDir::new();
    let mut servers = json!({});
    if has_server {
        servers["files"] = real(&home, "filesystem").1;
    }
    let config = json!({
        "mcpServers": servers,
        "agents": {
            "a": { "tools": { "use": ["workspace", "files"], "allowed": ["read_file", "list_directory"] } },
            "b": { "tools": ["read_file", "list_directory"] },
        },
    });
    Site::at(home.config(&config.to_string()))
}

const HIDDEN: [&str; 4] = ["files__write_file", "@files/write_file", "write_file", "@workspace/write_file"];

/// What is answered to a call, by every door, with the tool's name blanked out.
fn answers(site: &Site, agent: &str, tool: &str) -> Vec<String> {
    let arguments = json!({ "path": "x", "content": "y", "odd": true });
    let over_http = site.post(agent, tool, &arguments);
    let by_cli = site.home.run(["call", tool, &arguments.to_string(), "--agent", agent, "--json"]);
    let in_words = site.home.run(["call", tool, &arguments.to_string(), "--agent", agent]);
    let mut answers = vec![
        format!("{} {}", over_http.status, lasting(over_http.json())),
        format!("{} {} {}", by_cli.code, lasting(by_cli.json()), by_cli.stderr),
        format!("{} {} {}", in_words.code, in_words.stdout, in_words.stderr),
    ];
    let (agent_path, socket) = (path(agent), format!("/ws/default/agents/{agent}"));
    for door in [Door::Http(&site.server, &agent_path), Door::Ws(&site.server, &socket)] {
        for mut client in [Talk::legacy(door), Talk::modern(door)] {
            let id = client.begin("tools/call", &json!({ "name": tool, "arguments": arguments }).to_string());
            answers.push(client.end(id));
        }
    }
    answers.iter().map(|answer| answer.replace(tool, "NAME")).collect()
}

#[test]
fn nam_6_a_blocked_tool_is_answered_exactly_like_an_unknown_one_by_every_door() {
    let site = site(true);
    for agent in ["a", "b"] {
        for hidden in HIDDEN {
            // A name that no tool has, and just as far from the names that are there.
            let unknown = hidden.replace('w', "v");
            assert_eq!(answers(&site, agent, hidden), answers(&site, agent, &unknown), "{agent} {hidden}");
        }
    }
    assert!(!site.home.path().join("x").exists());
}

#[test]
fn nam_6_a_blocked_tool_is_answered_as_where_it_does_not_exist() {
    let (there, nowhere) = (site(true), site(false));
    for hidden in &HIDDEN[..2] {
        assert_eq!(answers(&there, "a", hidden), answers(&nowhere, "a", hidden), "{hidden}");
    }
}

#[test]
fn nam_6_suggestions_never_name_what_is_blocked() {
    let site = site(true);
    for tool in ["write_fil", "files__writ_file", "files__read_text_fil", "delete_file"] {
        for answer in answers(&site, "a", tool) {
            for blocked in ["write_file", "files__", "delete_file", "move_file"] {
                assert!(!answer.contains(blocked), "{tool}: {answer}");
            }
        }
    }
    // What is there is suggested, by its names.
    let near = site.not_found("a", "read_fil", &json!({}));
    assert_eq!(near["error"]["details"]["closest"][0], "read_file", "{near}");
}

#[test]
fn nam_6_why_a_tool_is_hidden_is_shown_only_to_those_who_may_know() {
    let site = site(true);
    let asked = "/api/v1/explain?tool=files__write_file&agent=a";
    assert_eq!(site.server.get(asked).status, 403);
    let explained = site.server.get_as_admin(asked).json();
    assert_eq!(explained["visible"], false, "{explained}");
    let reasons: Vec<&str> =
        explained["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let words = "agent a may not use it: provider \"files\" in its tools matches, but it is allowed only \"read_file\", \
                 \"list_directory\"";
    assert!(reasons.contains(&words), "{explained}");
    let doctor = site.home.run(["doctor", "files__write_file", "--agent", "a"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(words), "{doctor:?}");
    // To know why it is hidden makes it no less so.
    site.not_found("a", "files__write_file", &json!({}));
}
