//! Servers that are down and tools that are quarantined, as the agents see it that have them and those that do not.

use super::{Site, faulty, lasting, path};
use crate::passthrough::{Door, Talk, text};
use crate::results::mcp_call;
use gantry_testkit::TestDir;
use gantry_testkit::faulty::Faulty;
use serde_json::json;

/// `bad`, which starts once and then never again, and `good`; an agent of each, and one that has a bit of both.
fn site() -> Site {
    let script = "cd \"$0\"; test -f stop && { echo out of order >&2; exit 9; }; exec $FAULTY";
    let bad = json!({ "command": "sh", "args": ["-c", script, "."], "env": { "FAULTY": Faulty::program() } });
    let config = json!({
        "mcpServers": { "bad": bad, "good": faulty(&[]) },
        "agents": {
            "has": { "tools": ["bad__echo", "bad__pid", "good__echo"] },
            "lacks": { "tools": ["good__echo"] },
        },
    });
    let site = Site::of(&config);
    let pid = site.result("has", "bad__pid", &json!({}));
    site.home.write("stop", "");
    let pid =
        pid.as_str().and_then(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?)).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    site.server.eventually("bad is down", || {
        let bad = site.server.get_as_admin("/api/v1/servers/bad").json();
        bad["light"] == "red" && bad["lastError"].as_str().is_some_and(|why| why.contains("out of order"))
    });
    site
}

#[test]
fn pol_5_an_agent_learns_why_its_own_tool_does_not_work() {
    let site = site();
    assert_eq!(site.tools("has"), ["bad__echo", "bad__pid", "good__echo"], "what is down for a moment stays");
    let error = site.error("has", "bad__echo", &json!({ "text": "x" }), "UPSTREAM_UNAVAILABLE");
    let message = error["message"].as_str().expect("a message");
    for words in ["server bad is down since ", "out of order", "it is tried again at ", "Nothing was sent"] {
        assert!(message.contains(words), "{words}: {error}");
    }
    let details = &error["details"];
    assert_eq!((&details["server"], &details["status"]), (&json!("bad"), &json!("down")), "{error}");
    // Both are moments; the one that is past is in the message word for word.
    let since = details["since"].as_str().expect("a moment");
    assert!(message.contains(since) && details["retryAt"].as_str().is_some_and(|at| at > since), "{error}");
    let by_mcp = mcp_call(&site.server, &path("has"), "bad__echo", &json!({ "text": "x" }));
    assert_eq!(by_mcp["result"]["isError"], true, "{by_mcp}");
    assert!(text(&by_mcp["result"]).contains("server bad is down since "), "{by_mcp}");
    assert_eq!(by_mcp["result"]["_meta"]["gantry/error"]["details"]["server"], "bad", "{by_mcp}");
    assert_eq!(site.result("has", "good__echo", &json!({ "text": "x" })), "x", "the rest goes on");
}

#[test]
fn nam_6_nothing_is_shown_of_a_hidden_tool_of_a_server_that_is_down() {
    let site = site();
    // For one agent all of the server is hidden, for the other the tool.
    for (agent, hidden, unknown) in [
        ("lacks", "bad__echo", "dab__echo"),
        ("lacks", "bad__pid", "dab__pid"),
        ("has", "bad__env", "bad__emv"),
    ] {
        for name in [hidden, unknown] {
            let reply = site.not_found(agent, name, &json!({}));
            assert!(
                !reply.to_string().contains("down") && !reply.to_string().contains("out of order"),
                "{reply}"
            );
        }
        let answer = |name: &str| {
            let mut client = Talk::legacy(Door::Http(&site.server, &path(agent)));
            let by_mcp = client.ask("tools/call", &json!({ "name": name, "arguments": {} })).to_string();
            let over_http = lasting(site.call(agent, name, &json!({}))).to_string();
            (by_mcp.replace(name, "NAME"), over_http.replace(name, "NAME"))
        };
        assert_eq!(answer(hidden), answer(unknown), "{agent} {hidden}");
    }
    assert_eq!(site.tools("lacks"), ["good__echo"]);
}

#[test]
fn pol_5_a_server_that_never_started_leaves_its_agents_the_rest() {
    let config = json!({
        "mcpServers": { "bad": faulty(&["--exit-on-start"]), "good": faulty(&[]) },
        "agents": { "a": { "tools": { "use": ["bad", "good"], "allowed": ["bad__echo", "good__echo"] } } },
    });
    let site = Site::of(&config);
    assert_eq!(site.tools("a"), ["good__echo"]);
    assert_eq!(site.result("a", "good__echo", &json!({ "text": "x" })), "x");
    site.not_found("a", "bad__echo", &json!({}));
    // The output says why, and that the agent's list names it.
    let doctor = site.home.run(["doctor", "bad__echo", "--agent", "a"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("server bad is down since "), "{doctor:?}");
    assert!(doctor.stdout.contains("it was told to exit on start"), "{doctor:?}");
}

#[test]
fn pol_5_a_quarantined_tool_is_explained_to_its_agents_and_unknown_to_others() {
    let home = TestDir::with_test_tools().config(
        "agents: { has: { tools: [test__bad_schema, test__echo] }, lacks: { tools: [test__echo] } }\n",
    );
    let site = Site::at(home);
    let error = site.error("has", "test__bad_schema", &json!({}), "TOOL_QUARANTINED");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("/properties/a/type")), "{error}");
    // It is listed for people, with the reason, and not offered to models.
    let listed = site.listing("has");
    assert_eq!(
        (&listed[0]["name"], &listed[0]["status"]),
        (&json!("test__bad_schema"), &json!("quarantined"))
    );
    assert_eq!(crate::results::mcp_tools(&site.server, &path("has")), ["test__echo"]);
    let answer =
        |name: &str| lasting(site.not_found("lacks", name, &json!({}))).to_string().replace(name, "NAME");
    assert_eq!(answer("test__bad_schema"), answer("test__bad_schemx"));
    assert_eq!(site.tools("lacks"), ["test__echo"]);
}

#[test]
fn pol_5_a_tool_that_changes_under_its_agents_is_withheld_from_them_and_unknown_to_others() {
    let config = json!({
        "mcpServers": { "s": faulty(&[]) },
        "agents": { "has": { "tools": ["s__versioned", "s__rug_pull"] }, "lacks": { "tools": ["s__echo"] } },
    });
    let site = Site::of(&config);
    let body = json!({ "server": "s" }).to_string();
    let accepted =
        gantry_testkit::server::send(&site.server.admin(), http::Method::POST, "/api/v1/lock", &[], &body);
    assert_eq!(accepted.status, 200, "{accepted:?}");
    assert_eq!(site.result("has", "s__versioned", &json!({})), "versioned");
    let unknown = lasting(site.not_found("lacks", "s__versioned", &json!({})));
    site.result("has", "s__rug_pull", &json!({}));
    let call = |agent: &str| site.call(agent, "s__versioned", &json!({}));
    site.server.eventually("it is withheld", || call("has")["error"]["code"] == "TOOL_QUARANTINED");
    let withheld = site.error("has", "s__versioned", &json!({}), "TOOL_QUARANTINED");
    assert!(
        withheld["message"].as_str().is_some_and(|text| text.contains("gantry lock diff s")),
        "{withheld}"
    );
    assert_eq!(lasting(site.not_found("lacks", "s__versioned", &json!({}))), unknown);
    site.server.eventually("it is not offered any more", || {
        crate::results::mcp_tools(&site.server, &path("has")) == ["s__rug_pull"]
    });
}
