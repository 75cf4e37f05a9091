//! POL-1: a project has its own servers, workspace, agents, policies, lock file and data, and inherits nothing.

use super::{Site, faulty, named, pair, with};
use crate::pipeline::{file, lines};
use http::Method;
use serde_json::{Value, json};

/// What each of the two projects is called, and who its server is.
const BOTH: [(&str, &str); 2] = [("default", "one"), ("other", "two")];

#[test]
fn pol_1_servers_of_one_id_are_two_servers_with_settings_of_their_own() {
    let mut config = pair();
    config["mcpServers"]["s"]["toolsDenied"] = json!(["journal"]);
    config["projects"]["other"]["mcpServers"]["s"]["toolsAllowed"] = json!(["env", "pid"]);
    let site = Site::of(&config);
    for (project, who) in BOTH {
        assert_eq!(site.variable(project, "s", "WHO"), who);
    }
    assert_ne!(site.pid("default", "s"), site.pid("other", "s"));
    let tools = |project: &str| {
        site.tools(project).into_iter().filter(|name| name.starts_with("s__")).collect::<Vec<_>>()
    };
    assert_eq!(tools("other"), ["s__env", "s__pid"]);
    assert!(tools("default").contains(&"s__echo".to_owned()), "{:?}", tools("default"));
    assert!(!tools("default").contains(&"s__journal".to_owned()), "{:?}", tools("default"));
    // Both are listed, each with its project, and they can be distinguished.
    let servers = site.server.get("/api/v1/servers").json();
    let projects: Vec<_> =
        servers["items"].as_array().unwrap().iter().map(|s| (&s["id"], &s["project"])).collect();
    assert_eq!(projects, [(&json!("s"), &json!("default")), (&json!("s"), &json!("other"))]);
    // Restarting one is nothing to the other.
    let (one, two) = (site.pid("default", "s"), site.pid("other", "s"));
    let restarted = site.admin(Method::POST, "/api/v1/servers/s/restart?project=other", &Value::Null);
    assert_eq!((restarted.status, &restarted.json()["project"]), (200, &json!("other")), "{restarted:?}");
    site.server.eventually("it is another process", || {
        site.call("other", "s__pid", &json!({})).json()["result"].as_str().is_some_and(|pid| pid != two)
    });
    assert_eq!(site.pid("default", "s"), one);
}

#[test]
fn pol_1_a_workspace_is_one_projects_own() {
    let site = Site::of(&pair());
    let read = |project: &str, path: &str| {
        site.call(project, "read_file", &json!({ "path": path })).json()["result"]["content"].clone()
    };
    assert_eq!(read("default", "mine.txt"), "of one");
    assert_eq!(read("other", "yours.txt"), "of two");
    site.error("default", "read_file", &json!({ "path": "yours.txt" }), "FILE_NOT_FOUND");
    site.error("other", "read_file", &json!({ "path": "mine.txt" }), "FILE_NOT_FOUND");
    for path in ["../one/mine.txt".to_owned(), site.home.path().join("one/mine.txt").display().to_string()] {
        let reply = site.call("other", "read_file", &json!({ "path": path })).json();
        assert_eq!(reply["ok"], false, "{path}: {reply}");
        assert!(!reply.to_string().contains("of one"), "{path}: {reply}");
    }
    // What is written is written where it belongs.
    site.call("other", "write_file", &json!({ "path": "new.txt", "content": "of other" }));
    assert_eq!(site.home.read("two/new.txt"), "of other");
    assert!(!site.home.path().join("one/new.txt").exists());
}

#[test]
fn pol_1_a_server_that_others_wrote_reaches_the_files_of_its_own_project_only() {
    let files = gantry_testkit::real_servers::find("filesystem");
    let home = gantry_testkit::TestDir::new();
    let of = |folder: &str| {
        home.write(&format!("{folder}/{folder}.txt"), folder);
        files.prepare(&home.path().join(folder)).entry()
    };
    let config = json!({
        "workspace": "one",
        "mcpServers": { "files": of("one") },
        "projects": { "other": { "workspace": "two", "mcpServers": { "files": of("two") } } },
    });
    home.write("gantry.yaml", &config.to_string());
    let site = Site { server: home.serve(), home };
    let read = |project: &str, folder: &str| {
        let path = site.home.path().join(folder).join(format!("{folder}.txt"));
        site.call(project, "files__read_text_file", &json!({ "path": path })).json()
    };
    for (project, own) in BOTH {
        assert_eq!(read(project, own)["ok"], true, "{project}: {}", read(project, own));
    }
    for (project, foreign) in [("default", "two"), ("other", "one")] {
        let reply = read(project, foreign);
        assert_eq!(reply["ok"], false, "{project}: {reply}");
        assert!(reply["error"]["message"].as_str().is_some_and(|why| why.contains("denied")), "{reply}");
    }
}

#[test]
fn pol_1_a_workspace_around_another_one_can_touch_no_file_that_governs_either() {
    let mut config = pair();
    config["projects"]["other"]["workspace"] = ".".into();
    let site = Site::of(&config);
    let read = site.call("other", "read_file", &json!({ "path": "one/mine.txt" })).json();
    assert_eq!(read["result"]["content"], "of one", "{read}");
    let before = site.home.read("gantry.yaml");
    for (tool, arguments) in [
        ("read_file", json!({ "path": "gantry.yaml" })),
        ("write_file", json!({ "path": "gantry.yaml", "content": "x" })),
        ("move_file", json!({ "from": "gantry.yaml", "to": "x" })),
    ] {
        let reply = site.call("other", tool, &arguments).json();
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{tool}: {reply}");
    }
    assert_eq!(site.home.read("gantry.yaml"), before);
    let reply = site.call("other", "list_directory", &json!({ "path": ".gantry" })).json();
    assert_eq!(reply["ok"], false, "{reply}");
}

#[test]
fn pol_1_agents_of_one_name_are_two_agents() {
    let mut config = pair();
    config["agents"] = json!({ "a": { "tools": ["s__echo"] }, "only-here": { "tools": ["*"] } });
    config["projects"]["other"]["agents"] =
        json!({ "a": { "tools": ["s__pid"], "description": "The other a" } });
    let site = Site::of(&config);
    let tools = |project: &str| {
        let listed = site.server.get(&format!("/api/v1/tools?agent=a&project={project}")).json();
        crate::passthrough::names(&listed["items"])
    };
    assert_eq!(tools("default"), ["s__echo"]);
    assert_eq!(tools("other"), ["s__pid"]);
    let call = |project: &str, agent: &str| {
        let call =
            json!({ "project": project, "agent": agent, "tool": "s__echo", "arguments": { "text": "x" } });
        let answer = site.post(&call);
        (answer.status, answer.json())
    };
    assert_eq!(call("default", "a").1["result"], "x");
    assert_eq!(call("other", "a").1["error"]["code"], "TOOL_NOT_FOUND");
    // An agent of one is none of the other.
    let (status, reply) = call("other", "only-here");
    assert_eq!((status, &reply["error"]["code"]), (403, &json!("PERMISSION_DENIED")), "{reply}");
    assert!(!reply.to_string().contains("default"), "{reply}");
    assert_eq!(site.server.get("/api/v1/agents/only-here?project=other").status, 404);
    let agents = site.server.get("/api/v1/agents").json();
    let listed: Vec<_> = agents["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["project"].as_str().unwrap(), agent["name"].as_str().unwrap()))
        .collect();
    assert_eq!(listed, [("default", "a"), ("default", "only-here"), ("other", "a")]);
    let shown = site.server.get("/api/v1/agents/a?project=other").json();
    assert_eq!((&shown["description"], &shown["toolNames"]), (&json!("The other a"), &json!(["s__pid"])));
}

#[test]
fn pol_1_agents_and_tools_in_files_belong_to_the_project_of_their_folder() {
    let home = super::furnished(gantry_testkit::TestDir::new(), &pair());
    let agent = |tools: &str| format!("---\nname: a\ntools: {tools}\n---\nWork.\n");
    home.write("agents/a.md", &agent("s__echo"));
    home.write("projects/other/agents/a.md", &agent("s__pid, extra__env"));
    let extra = json!({ "id": "extra", "kind": "mcp", "transport": "stdio", "command": gantry_testkit::faulty::Faulty::program() });
    home.write("projects/other/tools/extra/tool.json", &extra.to_string());
    let site = Site::at(home);
    let names = |project: &str| {
        let agent = site.server.get(&format!("/api/v1/agents/a?project={project}")).json();
        agent["toolNames"].clone()
    };
    assert_eq!(names("default"), json!(["s__echo"]));
    assert_eq!(names("other"), json!(["extra__env", "s__pid"]));
    assert_eq!(site.server.get("/api/v1/servers/extra?project=other").status, 200);
    assert_eq!(site.server.get("/api/v1/servers/extra").status, 404);
    site.error("default", "extra__pid", &json!({}), "TOOL_NOT_FOUND");
}

#[test]
fn pol_1_policies_approvals_and_filters_are_not_inherited() {
    let mut config = pair();
    config["policies"] = json!([{ "name": "no-echo", "tools": ["s__echo", "read_file"], "decide": "deny" }]);
    config["approvals"] = json!({ "requiresApprovalTools": ["s__pid"] });
    config["tools"] = json!({ "workspace": { "toolsDenied": ["list_directory"] } });
    config["projects"]["other"]["policies"] =
        json!([{ "name": "no-fail", "tools": ["s__fail"], "decide": "deny" }]);
    let site = Site::of(&config);
    let text = json!({ "text": "x" });
    let refused = site.error("default", "s__echo", &text, "PERMISSION_DENIED");
    assert!(refused.contains("no-echo"), "{refused}");
    assert_eq!(site.result("other", "s__echo", &text), "x");
    let yours = json!({ "path": "yours.txt" });
    assert_eq!(site.call("other", "read_file", &yours).json()["result"]["content"], "of two");
    let refused = site.error("other", "s__fail", &text, "PERMISSION_DENIED");
    assert!(refused.contains("no-fail"), "{refused}");
    let failed = site.call("default", "s__fail", &text).json();
    assert_ne!(failed["error"]["code"], "PERMISSION_DENIED", "it runs there: {failed}");
    let asked = site.call("default", "s__pid", &json!({})).json();
    assert_eq!(asked["error"]["code"], "APPROVAL_REQUIRED", "{asked}");
    site.pid("other", "s");
    assert!(!site.tools("default").contains(&"list_directory".to_owned()));
    assert!(site.tools("other").contains(&"list_directory".to_owned()));
}

#[test]
fn pol_1_limits_that_a_project_does_not_set_are_the_files_and_those_it_sets_are_its_own() {
    let mut config = pair();
    config["defaults"] = json!({ "toolResponseMaxBytes": 500, "toolTimeout": 50_000 });
    config["projects"]["other"]["defaults"] = json!({ "toolResponseMaxBytes": 5000 });
    config["projects"]["third"] = json!({ "workspace": "two" });
    let site = Site::with_test_tools(&config);
    let stored = |project: &str, bytes: usize| {
        let reply = site.call(project, "test__flood", &json!({ "bytes": bytes })).json();
        reply["result"].get("tool_output").is_some()
    };
    assert_eq!((stored("default", 1000), stored("third", 1000), stored("other", 1000)), (true, true, false));
    assert!(stored("other", 6000));
}

#[test]
fn pol_1_stored_outputs_are_in_the_projects_own_data_folder_and_are_not_read_from_another() {
    let mut config = pair();
    config["defaults"] = json!({ "toolResponseMaxBytes": 1000 });
    let site = Site::with_test_tools(&config);
    let store = |project: &str| {
        let reply = site.call(project, "test__flood", &json!({ "bytes": 3000 })).json();
        reply["result"]["tool_output"]["handle"].as_str().expect("a handle").to_owned()
    };
    let (one, two) = (store("default"), store("other"));
    let read = |project: &str, handle: &str| {
        let arguments = json!({ "handle": handle, "mode": "head", "count": 1 });
        site.call(project, "tool_output", &arguments).json()
    };
    assert_eq!(read("default", &one)["result"]["content"], "0123456789abcde");
    assert_eq!(read("other", &two)["result"]["content"], "0123456789abcde");
    assert_eq!(read("default", &two)["ok"], false, "a handle of the other project");
    assert_eq!(read("other", &one)["ok"], false, "a handle of the other project");
    let stored = |data: &str| {
        walk(&site.home.path().join(data)).into_iter().filter(|it| it.contains("output")).count()
    };
    assert!(stored(".gantry/projects/other") > 0, "{:?}", walk(&site.home.path().join(".gantry")));
    let all = stored(".gantry");
    assert!(all > stored(".gantry/projects"), "{:?}", walk(&site.home.path().join(".gantry")));
}

/// Every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => walk(&path),
            path => vec![path.display().to_string()],
        })
        .collect()
}

#[test]
fn pol_1_the_same_idempotency_key_in_two_projects_is_two_calls() {
    let site = Site::with_test_tools(&pair());
    let call = |project: &str| {
        let arguments = json!({ "file": file(&site.home, "count.txt"), "text": "ran" });
        let call = json!({ "project": project, "tool": "test__count", "arguments": arguments, "idempotencyKey": "k" });
        site.post(&call).json()
    };
    for project in ["default", "other", "default", "other"] {
        let reply = call(project);
        assert_eq!(reply["result"]["counted"], "ran", "{project}: {reply}");
    }
    assert_eq!(lines(&site.home, "count.txt"), 2, "once in each project");
    // A key that was used in one for something else is free in the other.
    let other = json!({ "project": "other", "tool": "test__echo", "arguments": { "text": "x" }, "idempotencyKey": "k2" });
    assert_eq!(site.post(&other).json()["result"], "x");
    let mut here = other;
    here["project"] = "default".into();
    here["arguments"]["text"] = "y".into();
    assert_eq!(site.post(&here).json()["result"], "y");
}

#[test]
fn pol_1_the_standing_session_of_a_caller_is_another_in_each_project() {
    let site = Site::of(&pair());
    let session = |project: &str| {
        let reply = site.call(project, "s__echo", &json!({ "text": "x" })).json();
        let id = reply["id"].as_str().expect("an id").to_owned();
        site.server.get(&format!("/api/v1/calls/{id}")).json()["record"]["session"].clone()
    };
    let (one, two) = (session("default"), session("other"));
    assert_ne!(one, two);
    assert_eq!((session("default"), session("other")), (one, two.clone()));
    let runs = site.server.get("/api/v1/runs?project=other").json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
    assert_eq!((&runs["items"][0]["id"], &runs["items"][0]["project"]), (&two, &json!("other")));
}

#[test]
fn pol_1_the_ledger_and_the_events_name_the_project() {
    let site = Site::of(&pair());
    for (project, who) in BOTH {
        site.result(project, "s__echo", &json!({ "text": who }));
    }
    site.call("other", "no_such_tool", &json!({}));
    for (project, calls) in [("default", 1), ("other", 2)] {
        let rows = site.server.get_as_admin(&format!("/api/v1/audit?project={project}")).json();
        let rows = rows["items"].as_array().unwrap();
        assert_eq!(rows.len(), calls, "{rows:?}");
        assert!(rows.iter().all(|row| row["project"] == project), "{rows:?}");
        let outcome =
            site.server.get_as_admin(&format!("/api/v1/events?follow=false&project={project}")).text;
        let of: Vec<Value> = outcome
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        assert!(of.iter().all(|event| event["project"] == project), "{of:?}");
        assert!(of.iter().any(|event| event["type"] == "tool_finished"), "{of:?}");
    }
    let page = site.server.get_as_admin("/metrics").text;
    for (project, _) in BOTH {
        let light = format!("gantry_server_light{{project=\"{project}\",server=\"s\"}} ");
        assert!(page.contains(&light), "{light} is not in\n{page}");
    }
}

#[test]
fn pol_1_a_lock_file_is_one_projects_own() {
    let mut config = pair();
    config["mcpServers"]["s"] = faulty(&[]);
    config["projects"]["other"]["mcpServers"]["s"] = faulty(&[]);
    let site = Site::of(&config);
    let pinned = site.home.run(["lock", "--project", "other"]);
    assert_eq!(pinned.code, 0, "{pinned:?}");
    assert!(site.home.path().join("gantry.other.lock").exists());
    assert!(!site.home.path().join("gantry.lock").exists());
    // Both definitions change; the one that is pinned is quarantined, the other is not.
    for project in ["default", "other"] {
        assert_eq!(site.result(project, "s__rug_pull", &json!({})), "Definition 2");
    }
    let explain = |project: &str| {
        site.server.get_as_admin(&format!("/api/v1/explain?tool=s__versioned&project={project}")).json()
    };
    site.server.eventually("the change is seen", || explain("other")["visible"] == false);
    let why = explain("other")["reasons"].to_string();
    assert!(why.contains("quarantined"), "{why}");
    assert_eq!(explain("default")["visible"], true);
    assert_eq!(site.home.run(["lock", "diff"]).stdout.matches("versioned").count(), 0);
    let diff = site.home.run(["lock", "diff", "--project", "other"]);
    assert!(diff.code == 1 && diff.stdout.contains("versioned"), "{diff:?}");
    let accepted = site.home.run(["lock", "accept", "s", "--yes", "--project", "other"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    site.server.eventually("it is accepted", || explain("other")["visible"] == true);
    assert!(!site.home.path().join("gantry.lock").exists());
}

#[test]
fn pol_1_an_agent_that_is_active_in_one_project_is_not_in_the_other() {
    let mut config = pair();
    let agents = json!({ "a": { "tools": ["s__env"] } });
    config["agents"] = agents.clone();
    config["projects"]["other"]["agents"] = agents;
    let site = Site::of(&config);
    let (one, two) = (site.pid("default", "s"), site.pid("other", "s"));
    let switched = site.admin(Method::POST, "/api/v1/agents/a/activate?project=other", &Value::Null);
    assert_eq!(switched.status, 200, "{switched:?}");
    assert_eq!(site.tools("other"), ["s__env"]);
    assert!(site.tools("default").len() > 5);
    assert_eq!(site.pid("default", "s"), one, "its process is the same as before");
    assert!(!super::is_running(&two), "the one of the other project has ended");
    let projects = site.server.get("/api/v1/projects").json();
    let active: Vec<_> =
        projects["items"].as_array().unwrap().iter().map(|it| (&it["name"], &it["active"])).collect();
    assert_eq!(active, [(&json!("default"), &Value::Null), (&json!("other"), &json!("a"))]);
}

#[test]
fn pol_1_queues_are_shared_by_all_projects() {
    let queued = |who: &str| with(named(who), &json!({ "queue": "one" }));
    let mut config = pair();
    config["queues"] = json!({ "one": { "concurrent": 1, "maxWaiting": 1 } });
    config["mcpServers"]["s"] = queued("one");
    config["projects"]["other"]["mcpServers"]["s"] = queued("two");
    let site = Site::of(&config);
    let sleep = |project: &str| {
        let call = json!({ "project": project, "tool": "s__sleep", "arguments": { "ms": 600_000 }, "mode": "defer" });
        let answer = site.post(&call);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let queue = || crate::queues::queue(&site.server, "one");
    let running = sleep("default");
    site.server.eventually("the slot is taken", || queue()["inUse"] == 1);
    let waiting = sleep("other");
    site.server.eventually("the other waits", || queue()["depth"] == 1);
    let full = site.call("other", "s__echo", &json!({ "text": "x" })).json();
    assert_eq!(full["error"]["code"], "QUEUE_FULL", "{full}");
    crate::queues::cancel(&site.server, &running);
    crate::queues::cancel(&site.server, &waiting);
    site.server.eventually("the queue is free", || queue()["inUse"] == 0);
    assert_eq!(site.result("other", "s__echo", &json!({ "text": "x" })), "x");
}
