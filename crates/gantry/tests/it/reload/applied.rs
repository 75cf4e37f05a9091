//! POL-2: what is edited in the file holds without a restart, and what was not edited is left alone.

use super::{count, ran};
use crate::passthrough::{Door, Talk};
use crate::projects::{Site, faulty, is_running, named, pair, with};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};

#[test]
fn pol_2_a_new_agent_is_there_and_a_changed_one_has_other_tools() {
    let config = json!({ "mcpServers": { "s": faulty(&[]) }, "agents": { "a": { "tools": ["s__echo"] } } });
    let site = Site::of(&config);
    let pid = site.pid("default", "s");
    let mut running = Talk::legacy(Door::Http(&site.server, "/mcp/default/agents/a"));
    assert_eq!(running.tools(), ["s__echo"]);
    assert_eq!(site.server.get("/api/v1/tools?agent=b").status, 403);
    let mut edited = config;
    edited["agents"] = json!({ "a": { "tools": ["s__pid"] }, "b": { "tools": ["s__env"] } });
    assert_eq!(site.edit(&edited), ["default"]);
    let mut fresh = Talk::legacy(Door::Http(&site.server, "/mcp/default/agents/b"));
    assert_eq!(fresh.tools(), ["s__env"]);
    // Who is connected keeps nothing that was taken away, and sees what is new once it lists again.
    let refused =
        running.error("tools/call", &json!({ "name": "s__echo", "arguments": { "text": "x" } }), -32602);
    assert_eq!(refused["message"], "tool not found: s__echo");
    assert_eq!(running.tools(), ["s__pid"]);
    assert_eq!(running.call("s__pid", &json!({})), pid, "by the same process as before");
    // And an agent that is gone is gone.
    edited["agents"] = json!({ "b": { "tools": ["s__env"] } });
    assert_eq!(site.edit(&edited), ["default"]);
    let gone = running.ask("tools/call", &json!({ "name": "s__pid", "arguments": {} }));
    assert!(gone.to_string().contains("there is no agent"), "{gone}");
    assert_eq!(site.pid("default", "s"), pid);
}

#[test]
fn pol_2_a_changed_policy_holds_for_sessions_that_run() {
    let site = Site::with_test_tools(&json!({}));
    let mut client = site.client("default");
    client.call("test__count", &count(&site));
    let deny = json!({ "policies": [{ "name": "no-count", "tools": ["test__count"], "decide": "deny" }] });
    site.edit(&deny);
    let call = json!({ "name": "test__count", "arguments": count(&site) });
    let answer = client.ask("tools/call", &call);
    assert!(answer.to_string().contains("no-count"), "{answer}");
    assert_eq!(site.call("default", "test__count", &count(&site)).status, 403);
    assert_eq!(ran(&site), 1);
    // A person is asked where one is to be asked from now on.
    site.edit(&json!({ "approvals": { "requiresApprovalTools": ["test__count"] } }));
    let held = site.call("default", "test__count", &count(&site)).json();
    assert_eq!(held["error"]["code"], "APPROVAL_REQUIRED", "{held}");
    site.edit(&json!({}));
    client.call("test__count", &count(&site));
    assert_eq!(ran(&site), 2);
}

#[test]
fn pol_2_changed_limits_hold_for_the_next_call() {
    let site = Site::at(
        crate::projects::furnished(
            TestDir::with_test_tools(),
            &json!({ "agents": { "a": { "tools": ["spawn_agents"] } } }),
        )
        .env("TEST_GANTRY_COORDINATION", "1"),
    );
    let flood = json!({ "bytes": 2000 });
    assert!(site.call("default", "test__flood", &flood).json()["result"].is_string());
    site.edit(&json!({
        "agents": { "a": { "tools": ["spawn_agents"] } },
        "defaults": { "toolResponseMaxBytes": 1000, "toolTimeout": 50, "maxDepth": 1 },
    }));
    let stored = site.call("default", "test__flood", &flood).json();
    assert!(stored["result"]["tool_output"].is_object(), "{stored}");
    let slow = site.call("default", "test__sleep", &json!({ "ms": 600_000 })).json();
    assert_eq!(
        (&slow["error"]["code"], &slow["error"]["details"]["timeoutMs"]),
        (&json!("TIMEOUT"), &json!(50)),
        "{slow}"
    );
    let explain = |depth: u32| {
        let path = format!("/api/v1/explain?tool=spawn_agents&agent=a&depth={depth}");
        site.server.get_as_admin(&path).json()
    };
    assert_eq!((explain(0)["visible"].clone(), explain(1)["visible"].clone()), (json!(true), json!(false)));
    site.edit(&json!({ "agents": { "a": { "tools": ["spawn_agents"] } }, "defaults": { "maxDepth": 3 } }));
    assert_eq!((explain(2)["visible"].clone(), explain(3)["visible"].clone()), (json!(true), json!(false)));
    assert!(site.call("default", "test__flood", &flood).json()["result"].is_string());
    assert_eq!(site.result("default", "test__sleep", &json!({ "ms": 100 })), "slept");
}

#[test]
fn pol_2_a_new_project_is_there_and_a_removed_one_is_gone_with_all_it_had() {
    let alone = json!({ "workspace": "one", "mcpServers": { "s": named("one") } });
    let site = Site::of(&alone);
    let pid = site.pid("default", "s");
    assert_eq!(site.server.post("/mcp/other", "{}").status, 404);
    assert!(site.edit(&pair()).contains(&"other".to_owned()));
    site.ready("other", "s");
    assert_eq!(site.variable("other", "s", "WHO"), "two");
    let (mut http, mut socket) = (site.client("other"), Talk::legacy(Door::Ws(&site.server, "/ws/other")));
    let mut pipe = Talk::legacy(Door::Stdio(&site.home, &["--project", "other"]));
    let (mut modern, mut beside) =
        (Talk::modern(Door::Ws(&site.server, "/ws/other")), site.client("default"));
    let (tools, other) = (beside.tools(), http.call("s__pid", &json!({})));
    for client in [&mut socket, &mut pipe, &mut modern] {
        assert_eq!(client.call("s__pid", &json!({})), other);
    }
    assert!(site.edit(&alone).contains(&"other".to_owned()));
    site.server.eventually("its server has ended", || !is_running(&other));
    for (who, client) in [("socket", &mut socket), ("modern socket", &mut modern)] {
        let answer = client.ask("tools/call", &json!({ "name": "s__pid", "arguments": {} }));
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains("there is no") && said.contains("project"), "{who}: {answer}");
    }
    let answer = pipe.ask("tools/call", &json!({ "name": "s__pid", "arguments": {} }));
    assert!(answer["error"]["message"].as_str().is_some_and(|said| said.contains("project")), "{answer}");
    let session = http.way.seen().session.expect("a session");
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {} }).to_string();
    let headers = [("content-type", "application/json"), ("mcp-session-id", session.as_str())];
    let answer = site.server.request(Method::POST, "/mcp/other", &headers, &body);
    assert_eq!(
        (answer.status, &answer.json()["error"]["message"]),
        (404, &json!("there is no such project"))
    );
    assert_eq!(site.call("other", "s__pid", &json!({})).status, 404);
    let projects = site.server.get("/api/v1/projects").json();
    assert_eq!(crate::passthrough::names(&projects["items"]), ["default"]);
    assert_eq!(site.server.get("/api/v1/servers").json()["items"].as_array().unwrap().len(), 1);
    // What it did stays on record.
    let rows = site.server.get_as_admin("/api/v1/audit?project=other").json();
    assert!(rows["items"].as_array().unwrap().len() >= 4, "{rows}");
    // The one that stayed has noticed nothing.
    assert_eq!(site.pid("default", "s"), pid);
    assert_eq!(beside.tools(), tools);
    assert_eq!(beside.heard("notifications/tools/list_changed"), [] as [Value; 0]);
    // It can come back.
    site.edit(&pair());
    site.ready("other", "s");
    assert_ne!(site.pid("other", "s"), other);
}

#[test]
fn pol_2_a_call_under_way_in_a_project_that_is_removed_is_recorded_as_what_it_was() {
    let alone = json!({ "workspace": "one" });
    let mut both = alone.clone();
    both["projects"] = json!({ "other": { "workspace": "two" } });
    let site = Site::with_test_tools(&both);
    let begun = |name: &str, ms: u64| {
        let arguments = json!({ "file": crate::pipeline::file(&site.home, name), "ms": ms });
        let call = json!({ "project": "other", "tool": "test__slow_write", "arguments": arguments, "mode": "defer" });
        let id = site.post(&call).json()["id"].as_str().expect("an id").to_owned();
        site.server.eventually("it has begun", || crate::pipeline::lines(&site.home, name) == 1);
        id
    };
    let (short, long) = (begun("short.txt", 1500), begun("long.txt", 600_000));
    site.edit(&alone);
    let record = |id: &str| crate::queues::outcome(&site.server, id).json();
    let short = record(&short);
    assert_eq!(
        (&short["state"], &short["result"]),
        (&json!("COMPLETED_SUCCESS"), &json!("written")),
        "{short}"
    );
    let long = record(&long);
    assert_eq!(long["ok"], false, "{long}");
    assert_eq!(long["record"]["effectState"], "possible", "it may have written more: {long}");
    let said = long["error"]["message"].as_str().expect("a message");
    assert!(said.contains("the project is not configured any more"), "{long}");
    assert_eq!(site.home.read("long.txt"), "begun\n");
}

#[test]
fn pol_2_queues_are_added_changed_and_removed() {
    let server =
        |queue: &Value| with(faulty(&[]), &json!({ "toolsQueue": { "sleep": queue, "echo": queue } }));
    let config =
        |queues: &Value, queue: &Value| json!({ "queues": queues, "mcpServers": { "s": server(queue) } });
    let site = Site::of(&config(&json!({}), &Value::Null));
    let queue = |name: &str| crate::queues::queue(&site.server, name);
    assert_eq!(queue("one"), Value::Null);
    site.edit(&config(&json!({ "one": { "concurrent": 1, "maxWaiting": 1 } }), &json!("one")));
    site.ready("default", "s");
    let sleep = json!({ "tool": "s__sleep", "arguments": { "ms": 600_000 } });
    let text = json!({ "text": "x" });
    let first = crate::queues::defer(&site.server, &sleep);
    site.server.eventually("the slot is taken", || queue("one")["inUse"] == 1);
    let second = crate::queues::defer(&site.server, &sleep);
    site.server.eventually("the next one waits", || queue("one")["depth"] == 1);
    assert_eq!(site.call("default", "s__echo", &text).json()["error"]["code"], "QUEUE_FULL");
    // Wider: the one that waits has its turn, the one that runs goes on, and the server keeps its process.
    let pid = site.pid("default", "s");
    let of = |concurrent: u32| json!({ "concurrent": concurrent, "maxWaiting": 1 });
    site.edit(&config(&json!({ "one": of(3), "unused": { "concurrent": 9 } }), &json!("one")));
    site.server.eventually("both run", || queue("one")["inUse"] == 2 && queue("one")["depth"] == 0);
    assert_eq!(site.result("default", "s__echo", &text), "x");
    assert_eq!((&queue("one")["concurrent"], &queue("unused")["concurrent"]), (&json!(3), &json!(9)));
    // Narrower: what runs goes on, and the next one waits for both.
    site.edit(&config(&json!({ "one": of(1) }), &json!("one")));
    let third = crate::queues::defer(&site.server, &json!({ "tool": "s__echo", "arguments": text }));
    site.server.eventually("it waits", || queue("one")["depth"] == 1);
    assert_eq!((&queue("one")["inUse"], &queue("unused")), (&json!(2), &Value::Null));
    for id in [&first, &second] {
        crate::queues::cancel(&site.server, id);
        let canceled = crate::queues::outcome(&site.server, id).json();
        assert_eq!(canceled["error"]["code"], "CANCELED", "{canceled}");
    }
    assert_eq!(crate::queues::outcome(&site.server, &third).json()["result"], "x", "then it has its turn");
    assert_eq!(site.pid("default", "s"), pid);
    // Gone.
    site.edit(&config(&json!({}), &Value::Null));
    assert_eq!(queue("one"), Value::Null);
    site.ready("default", "s");
    assert_eq!(site.result("default", "s__echo", &text), "x");
}

#[test]
fn pol_2_a_server_that_is_as_it_was_keeps_its_process_through_every_other_change() {
    let keep = json!({ "keep": faulty(&[]) });
    let site = Site::with_test_tools(&json!({ "mcpServers": keep }));
    let pid = site.pid("default", "keep");
    let mut client = site.client("default");
    let before = client.call("keep__session", &json!({}));
    let session = serde_json::from_str::<Value>(&before).expect("JSON")["sessions"].clone();
    for change in [
        json!({ "agents": { "a": { "tools": ["keep__*"] } } }),
        json!({ "policies": [{ "name": "p", "tools": ["x"], "decide": "deny" }] }),
        json!({ "defaults": { "toolTimeout": 30_000, "toolResponseMaxBytes": 5000, "maxDepth": 4 } }),
        json!({ "queues": { "q": { "concurrent": 1 } } }),
        json!({ "workspace": "one" }),
        json!({ "tools": { "workspace": { "enabled": false } } }),
        json!({ "projects": { "p": { "workspace": "two", "mcpServers": { "keep": named("p") } } } }),
    ] {
        let mut config = change.clone();
        config["mcpServers"] = keep.clone();
        config["mcpServers"]["extra"] = faulty(&[]);
        site.edit(&config);
        assert_eq!(site.pid("default", "keep"), pid, "{change}");
    }
    let after = client.call("keep__session", &json!({}));
    assert_eq!(
        serde_json::from_str::<Value>(&after).expect("JSON")["sessions"],
        session,
        "nor was it connected anew"
    );
}

#[test]
fn pol_2_a_call_on_a_server_that_is_replaced_is_finished_there_or_recorded_as_cut_off() {
    let config = |who: &str| json!({ "mcpServers": { "s": named(who) } });
    let site = Site::of(&config("one"));
    let old = site.pid("default", "s");
    let begun = |ms: u64| {
        let call = json!({ "tool": "s__sleep", "arguments": { "ms": ms } });
        crate::queues::defer(&site.server, &call)
    };
    let (short, long) = (begun(1500), begun(600_000));
    site.server.eventually("both run", || {
        site.events("tool_started", 0).iter().filter(|event| event["tool"] == "s__sleep").count() == 2
    });
    site.edit(&config("two"));
    site.ready("default", "s");
    assert_eq!(site.variable("default", "s", "WHO"), "two", "new calls go to the new one");
    let short = crate::queues::outcome(&site.server, &short).json();
    assert_eq!(
        (&short["state"], &short["result"]),
        (&json!("COMPLETED_SUCCESS"), &json!("slept")),
        "{short}"
    );
    let long = crate::queues::outcome(&site.server, &long).json();
    assert_eq!((&long["ok"], &long["state"]), (&json!(false), &json!("COMPLETED_FAILURE")), "{long}");
    assert_eq!(long["record"]["effectState"], "none", "it only reads: {long}");
    site.server.eventually("the one before has ended", || !is_running(&old));
}

#[test]
fn pol_2_a_gantry_that_runs_for_one_client_follows_the_file_too() {
    let home = TestDir::new().config(&json!({ "agents": { "a": { "tools": ["read_file"] } } }).to_string());
    let mut client = Talk::legacy(Door::Stdio(&home, &["--agent", "a"]));
    assert_eq!(client.tools(), ["read_file"]);
    home.write("gantry.yaml", &json!({ "agents": { "a": { "tools": ["list_directory"] } } }).to_string());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while client.tools() != ["list_directory"] {
        assert!(std::time::Instant::now() < deadline, "the change never held");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn pol_2_an_agent_that_is_active_gets_what_its_definition_says_now() {
    let config = |tools: &Value| json!({ "mcpServers": { "s": faulty(&[]), "t": faulty(&[]) }, "agents": { "a": { "tools": tools } } });
    let site = Site::of(&config(&json!(["s__pid"])));
    super::activate(&site, "a");
    let pid = site.pid("default", "s");
    assert_eq!(site.tools("default"), ["s__pid"]);
    assert_eq!(super::running_servers(&site), 1, "only what it may use runs");
    site.edit(&config(&json!(["s__pid", "t__pid"])));
    site.server.eventually("what it may use now is there", || site.tools("default") == ["s__pid", "t__pid"]);
    assert_eq!(site.pid("default", "s"), pid);
    let other = site.pid("default", "t");
    site.edit(&config(&json!(["t__pid"])));
    site.server.eventually("what it may not use has ended", || !is_running(&pid));
    assert_eq!(site.tools("default"), ["t__pid"]);
    assert_eq!(site.pid("default", "t"), other);
    let reply = site.admin(Method::POST, "/api/v1/agents/a/deactivate", &Value::Null);
    assert_eq!(reply.status, 200, "{reply:?}");
    site.settled();
    assert!(site.tools("default").len() > 40);
}
