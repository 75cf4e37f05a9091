//! The forms of an agent: in `gantry.yaml`, in `agents/<name>/agent.json` and in `agents/<name>.md`.

use super::{Site, path, real};
use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// One agent in every form, under the name of the form, beside `git` and `time`, which others wrote.
fn site(yaml: &str, json: &str, markdown: &str) -> Site {
    let home = TestDir::new();
    let servers = json!({ "git": real(&home, "git").1, "time": real(&home, "time").1 });
    home.write("gantry.yaml", &format!("mcpServers: {servers}\nagents:\n  yaml:\n{yaml}"));
    home.write("agents/json/agent.json", json);
    home.write("agents/markdown.md", markdown);
    Site::at(home)
}

const FORMS: [&str; 3] = ["yaml", "json", "markdown"];

/// That every form is listed this, by every door, and the same about each tool.
#[track_caller]
fn alike(site: &Site, names: &[&str]) {
    for form in FORMS {
        assert_eq!(site.tools(form), names, "{form}");
        assert_eq!(mcp_tools(&site.server, &path(form)), names, "{form}");
        assert_eq!(site.listing(form), site.listing("yaml"), "{form}");
        let by_cli = site.home.run(["tools", "--agent", form, "--json"]).json();
        assert_eq!(by_cli, Value::Array(site.listing("yaml")), "{form}");
    }
}

#[test]
fn pol_6_a_list_of_tools_means_the_same_in_every_form() {
    let site = site(
        "    tools: [git__git_status, \"@git/git_l*\", \"time__*\", read_file]\n",
        r#"{ "tools": ["@git/git_status", "git__git_l*", "@time/*", "read_file"] }"#,
        "---\ntools: mcp__git__git_status, mcp__git__git_l*, mcp__time, read_file\n---\nYou look around.\n",
    );
    alike(
        &site,
        &["git__git_log", "git__git_status", "read_file", "time__convert_time", "time__get_current_time"],
    );
    let repository = json!({ "repo_path": site.home.path() });
    for form in FORMS {
        let status = site.result(form, "git__git_status", &repository);
        assert!(status.as_str().is_some_and(|text| text.contains("untracked.txt")), "{form}: {status}");
        let answer = mcp_call(&site.server, &path(form), "@git/git_status", &repository);
        assert!(answer["result"].to_string().contains("untracked.txt"), "{form}: {answer}");
        site.not_found(form, "git__git_add", &repository);
    }
}

#[test]
fn pol_6_a_group_of_tools_means_the_same_in_every_form() {
    let group = r#"{ "use": ["git", "workspace"], "allowed": ["status", "*_file"], "aliases": { "status": "@git/git_status", "put": "write_file" }, "autoApprove": ["put"] }"#;
    let site = site(
        &format!("    tools: {group}\n"),
        &json!({ "name": "In a file", "prompt": "Look.", "tools": serde_json::from_str::<Value>(group).unwrap() })
            .to_string(),
        &format!("---\ntools: {}\n---\n", group.replace("@git/git_status", "mcp__git__git_status")),
    );
    alike(
        &site,
        &["delete_file", "git__git_status", "move_file", "put", "read_file", "status", "write_file"],
    );
    for form in FORMS {
        for spelling in ["status", "git__git_status", "@git/git_status"] {
            let status = site.result(form, spelling, &json!({ "repo_path": site.home.path() }));
            assert!(status.as_str().is_some_and(|text| text.contains("untracked.txt")), "{form}: {status}");
        }
        site.not_found(form, "git__git_log", &json!({}));
        // What is approved automatically is, in every form.
        for content in ["one", "two"] {
            site.result(form, "put", &json!({ "path": format!("{form}.txt"), "content": content }));
        }
        assert_eq!(site.home.read(&format!("{form}.txt")), "two");
    }
}

#[test]
fn pol_6_an_agent_json_with_all_that_such_files_hold_is_understood() {
    let home = TestDir::new();
    let agent = json!({
        "name": "The reader",
        "description": "Reads what is there",
        "prompt": "You read.",
        "model": "main",
        "guardrails": { "maxTokens": 4000 },
        "tools": {
            "use": ["workspace"],
            "allowed": ["read"],
            "aliases": { "read": "@workspace/read_file" },
            "autoApprove": ["read"],
        },
        "memory": { "kind": "none" },
        "limits": { "maxSteps": 5 },
    });
    home.write("agents/reader/agent.json", &agent.to_string());
    home.write("a.txt", "hi");
    let site = Site::at(home);
    let shown = site.server.get_as_admin("/api/v1/agents/reader").json();
    let expected = json!({
        "name": "reader", "project": "default", "description": "Reads what is there", "model": "main",
        "active": false, "tools": 1, "aliases": { "read": "read_file" }, "toolNames": ["read_file"],
        "uses": ["workspace"], "allowed": ["read"], "autoApprove": ["read"], "prompt": "You read.",
    });
    assert_eq!(shown, expected);
    // The agent's prompt, and how it is made, is not shown to every caller.
    let public = site.server.get("/api/v1/agents/reader").json();
    for key in ["prompt", "uses", "allowed", "autoApprove"] {
        assert_eq!(public.get(key), None, "{public}");
    }
    assert_eq!(site.result("reader", "read", &json!({ "path": "a.txt" }))["content"], "hi");
    // What has no effect yet is named, with its line, wherever a person looks.
    let doctor = site.home.run(["doctor"]);
    for key in ["guardrails", "memory", "limits"] {
        let words = format!(
            "agents/reader/agent.json:1: {key} has no effect; this version of Gantry does not read it"
        );
        assert!(doctor.stdout.contains(&words), "{key}: {doctor:?}");
        site.server.says(&words);
    }
}

#[test]
fn pol_6_an_agent_as_editors_keep_it_works_unchanged() {
    let home = TestDir::new();
    let time = real(&home, "time").1;
    home.write("gantry.yaml", &json!({ "mcpServers": { "time": time } }).to_string());
    home.write(
        "agents/clock-keeper.md",
        "---\nname: clock-keeper\ndescription: Use it when: <example>somebody asks for the time</example>\n\
         tools: Read, Bash(date -u:*), mcp__time__convert_time\nmodel: inherit\ncolor: blue\n---\n\n\
         You know what time it is, and say ${NOTHING} else.\n",
    );
    let site = Site::at(home);
    assert_eq!(site.tools("clock-keeper"), ["time__convert_time"]);
    let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let outcome = site.result("clock-keeper", "time__convert_time", &noon);
    assert!(outcome.to_string().contains("T21:00:00+09:00"), "{outcome}");
    let shown = site.server.get_as_admin("/api/v1/agents/clock-keeper").json();
    assert_eq!(shown["prompt"], "You know what time it is, and say ${NOTHING} else.");
    let said = site.server.stderr();
    // An editor's own tools are none of Gantry's, and that is said.
    assert!(
        said.contains("agents/clock-keeper.md:4: tools: \"Bash(date -u:*)\" names no tool of Gantry's"),
        "{said}"
    );
    assert!(said.contains("[WRN] agent clock-keeper: \"Read\" matches no tool\n"), "{said}");
    assert!(said.contains("agents/clock-keeper.md:6: color has no effect; it is for editors"), "{said}");
}

#[test]
fn pol_6_an_agent_in_a_file_comes_and_goes_with_the_file_while_gantry_runs() {
    let site = Site::at(TestDir::new());
    site.home.write("agents/late.md", "---\ntools: read_file\n---\n");
    assert_eq!(site.server.apply_configuration().status, 200);
    assert_eq!(site.tools("late"), ["read_file"]);
    site.home.write("agents/late.md", "---\ntools: [write_file, list_directory]\n---\n");
    assert_eq!(site.server.apply_configuration().status, 200);
    assert_eq!(site.tools("late"), ["list_directory", "write_file"]);
    std::fs::remove_file(site.home.path().join("agents/late.md")).unwrap();
    assert_eq!(site.server.apply_configuration().status, 200);
    let gone = site.post("late", "write_file", &json!({ "path": "a", "content": "" }));
    assert_eq!((gone.status, &gone.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")), "{gone:?}");
    assert!(!site.home.path().join("a").exists());
}
