//! `gantry doctor`: what is there, what is broken, and why a tool can or cannot be called.

use super::run;
use crate::projects::{Site, faulty, with};
use gantry_testkit::faulty::Faulty;
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};

#[test]
fn obs_4_a_healthy_set_up_is_all_ticks() {
    let home = TestDir::new();
    let ran = run(&home, &["doctor"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.lines().count() >= 5 && ran.stdout.lines().all(|line| line.starts_with('✓')),
        "{ran:?}"
    );
    for word in ["configuration", "workspace", "data folder", "server", "ledger", "tools"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    let checks = run(&home, &["doctor", "--json"]).json();
    for check in checks.as_array().unwrap() {
        assert_eq!(check["severity"], "ok", "{check}");
        assert!(check["check"].is_string() && check["found"].is_string(), "{check}");
    }
}

#[test]
fn obs_4_a_running_server_is_found() {
    let home = TestDir::new();
    let server = home.serve();
    let ran = run(&home, &["doctor"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains(&format!("running at http://{}", server.address)), "{ran:?}");
    assert!(ran.stdout.contains(&server.pid().to_string()), "{ran:?}");
}

#[test]
fn obs_4_a_broken_configuration_is_a_cross_with_its_line() {
    let home = TestDir::new().config("agents:\n  reader: { tols: [] }\n");
    let ran = run(&home, &["doctor"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(ran.stdout.starts_with("✗ configuration") && ran.stdout.contains("gantry.yaml:2:"), "{ran:?}");
    let checks = run(&home, &["doctor", "--json"]);
    assert_eq!((checks.code, &checks.json()[0]["severity"]), (1, &json!("error")));
}

#[test]
fn obs_4_a_broken_ledger_is_a_cross_and_the_rest_is_still_shown() {
    let home = TestDir::new();
    run(&home, &["tools"]);
    home.write(".gantry/gantry.db", "this is no database any more, for whatever reason");
    let ran = run(&home, &["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("✓ workspace") && ran.stdout.contains("✗ runtime"), "{ran:?}");
}

#[test]
fn obs_4_a_quarantined_tool_is_pointed_at() {
    let home = TestDir::with_test_tools();
    let ran = run(&home, &["doctor"]);
    let line = ran.stdout.lines().find(|line| line.starts_with('!')).expect("something odd");
    assert!(line.contains("test__bad_schema is quarantined"), "{line}");
    assert_eq!(ran.code, 0, "odd is not broken");
}

#[test]
fn pol_10_doctor_explains_why_an_agent_has_a_tool_or_not() {
    let home = TestDir::new().config(
        "tools: { workspace: { toolsDenied: [\"move_file\"] } }\nagents: { reader: { tools: [\"read_*\"] } }\n",
    );
    let yes = run(&home, &["doctor", "read_file", "--agent", "reader"]);
    assert_eq!(yes.code, 0);
    assert!(yes.stdout.starts_with("read_file can be called\n"), "{yes:?}");
    assert!(yes.stdout.contains("agent reader may use it: \"read_*\" in its tools matches"), "{yes:?}");

    let no = run(&home, &["doctor", "write_file", "--agent", "reader"]);
    assert_eq!(no.code, 1);
    assert!(no.stdout.starts_with("write_file cannot be called\n"), "{no:?}");
    assert!(no.stdout.contains("agent reader does not have it"), "{no:?}");

    let report = run(&home, &["doctor", "write_file", "--agent", "reader", "--json"]);
    assert_eq!((report.code, &report.json()["visible"]), (1, &json!(false)));
    assert!(!report.json()["reasons"].as_array().unwrap().is_empty());

    let denied = run(&home, &["doctor", "move_file"]);
    assert_eq!(denied.code, 1);
    assert!(denied.stdout.contains("toolsDenied"), "it names the rule: {denied:?}");
    let missing = run(&home, &["doctor", "read_file", "--agent", "nobody"]);
    assert!(
        missing.code != 0 && (missing.stdout + &missing.stderr).contains("reader"),
        "it names those there are"
    );
    let unknown = run(&home, &["doctor", "raed_file"]);
    assert!(unknown.code == 1 && unknown.stdout.contains("read_file"), "{unknown:?}");
}

/// An explanation without what is another at every try: how a server failed last, and when it is tried again.
fn lasting(mut body: Value) -> Value {
    let reasons = body["reasons"].as_array_mut().expect("reasons");
    reasons.retain(|reason| !reason.as_str().is_some_and(|reason| reason.contains("it is tried again")));
    body
}

/// What `doctor` says about a tool, and that HTTP says the same to those who may know.
#[track_caller]
fn explained(site: &Site, tool: &str, asked: &[(&str, &str)]) -> (bool, String) {
    let mut args = vec!["doctor".to_owned(), tool.to_owned(), "--json".to_owned()];
    let mut query = format!("/api/v1/explain?tool={tool}");
    for (key, value) in asked {
        args.extend([format!("--{key}"), (*value).to_owned()]);
        query.push_str(&format!("&{key}={value}"));
    }
    let ran: CommandOutput = site.home.run(&args);
    let body = ran.json();
    let visible = body["visible"] == true;
    assert_eq!(ran.code, i32::from(!visible), "{ran:?}");
    assert_eq!(lasting(site.server.get_as_admin(&query).json()), lasting(body.clone()), "{query}");
    let refused = site.server.get(&query);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")));
    let reasons = body["reasons"].as_array().expect("reasons").iter().filter_map(Value::as_str);
    (visible, reasons.collect::<Vec<_>>().join("\n"))
}

#[test]
fn pol_10_what_an_agent_has_is_explained_by_the_entry_the_alias_and_the_allow_list() {
    let site = Site::of(&json!({
        "mcpServers": { "s": faulty(&[]), "t": faulty(&[]) },
        "agents": {
            "a": { "tools": {
                "use": ["s", "read_*"], "allowed": ["s__p*", "look"],
                "aliases": { "look": "@workspace/read_file" }, "autoApprove": ["s__pid"],
            } },
            "b": { "tools": ["t__e*", "*_file"] },
        },
    }));
    let a = [("agent", "a")];
    let (visible, why) = explained(&site, "s__pid", &a);
    assert!(visible && why.contains("agent a may use it: provider \"s\" in its tools matches"), "{why}");
    assert!(why.contains("it is pid of provider s (mcp)") && why.contains("its effect is read"), "{why}");
    assert!(why.contains("need not ask a person"), "{why}");
    // By its alias, and by any other spelling, it is the same tool.
    for spelling in ["look", "read_file", "@workspace/read_file"] {
        let (visible, why) = explained(&site, spelling, &a);
        assert!(visible && why.contains("agent a also calls it \"look\""), "{spelling}: {why}");
        assert!(why.contains("\"read_*\" in its tools matches"), "{spelling}: {why}");
    }
    let (visible, why) = explained(&site, "s__env", &a);
    assert!(!visible, "{why}");
    let sentence = "agent a may not use it: provider \"s\" in its tools matches, but it is allowed only \"s__p*\", \"look\"";
    assert!(why.contains(sentence), "{why}");
    let (visible, why) = explained(&site, "t__echo", &a);
    assert!(!visible && why.contains("agent a does not have it: nothing in its tools matches"), "{why}");
    let (visible, why) = explained(&site, "t__echo", &[("agent", "b")]);
    assert!(visible && why.contains("\"t__e*\" in its tools matches"), "{why}");
    // An alias is its agent's own.
    let (visible, why) = explained(&site, "look", &[("agent", "b")]);
    assert!(!visible && why.contains("tool not found: look"), "{why}");
    let (visible, why) = explained(&site, "t__echo", &[]);
    assert!(visible && why.contains("a caller without an agent may use it"), "{why}");
}

#[test]
fn pol_10_a_server_that_is_down_is_named_with_since_when_and_why() {
    let script = json!({
        "command": "sh", "args": ["-c", "cd \"$0\"; test -f go || exit 9; exec $FAULTY", "."], "env": { "FAULTY": Faulty::program() },
    });
    let home = TestDir::new();
    home.write("go", "");
    let site = Site::at(home.config(
        &json!({
            "mcpServers": {
                "s": script, "never": { "command": "gantry-no-such-program" }, "off": { "command": "x", "enabled": false },
            },
            "agents": { "a": { "tools": ["s__*", "never__*"] } },
        })
        .to_string(),
    ));
    let a = [("agent", "a")];
    let pid = site.pid("default", "s");
    std::fs::remove_file(site.home.path().join("go")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    site.server.eventually("it is down and was tried again", || {
        let status = site.status("default", "s");
        status["light"] == "red" && status["lastError"].to_string().contains("code 9")
    });
    // It keeps its tools for when it is back, and says that it is not.
    let (visible, why) = explained(&site, "s__echo", &a);
    assert!(visible && why.contains("\"s__*\" in its tools matches"), "{why}");
    assert!(why.contains("server s is down since 20") && why.contains("code 9"), "{why}");
    // A tool that it did not have is not said to be a question of its being down.
    let (visible, why) = explained(&site, "s__no_such_tool", &a);
    assert!(!visible && why.contains("it did not have this tool when it was there last"), "{why}");
    assert!(!why.contains("never started"), "{why}");
    let (visible, why) = explained(&site, "never__echo", &a);
    assert!(!visible, "{why}");
    assert!(why.contains("server never is down since 20") && why.contains("gantry-no-such-program"), "{why}");
    assert!(why.contains("whether it has this tool is not known"), "{why}");
    let (visible, why) = explained(&site, "off__echo", &a);
    assert!(!visible && why.contains("server off is switched off (enabled: false)"), "{why}");
}

#[test]
fn pol_10_filters_and_quarantine_are_named() {
    let site = Site::of(&json!({
        "tools": { "workspace": { "toolsDenied": ["delete_*"] } },
        "mcpServers": {
            "s": with(faulty(&["--lying-schema"]), &json!({ "toolsDenied": ["j*"] })),
            "t": with(faulty(&[]), &json!({ "toolsAllowed": ["pid", "rug-pull", "versioned"] })),
        },
        "agents": { "a": {} },
    }));
    let a = [("agent", "a")];
    let (visible, why) = explained(&site, "s__journal", &a);
    assert!(
        !visible && why.contains("provider s has it, but \"j*\" in the toolsDenied of s leaves it out"),
        "{why}"
    );
    let (visible, why) = explained(&site, "t__echo", &a);
    assert!(
        !visible && why.contains("provider t has it, but nothing in the toolsAllowed of t matches it"),
        "{why}"
    );
    let (visible, why) = explained(&site, "delete_file", &a);
    assert!(!visible && why.contains("\"delete_*\" in the toolsDenied of workspace"), "{why}");
    // A schema that is none, with the place in it.
    let (visible, why) = explained(&site, "s__lying_type", &a);
    assert!(!visible && why.contains("it is quarantined: its input schema cannot be used"), "{why}");
    assert!(why.contains("/properties/a/type"), "{why}");
    // A definition that is another than the pinned one.
    assert_eq!(run(&site.home, &["lock"]).code, 0);
    let (visible, _) = explained(&site, "t__versioned", &a);
    assert!(visible);
    site.result("default", "t__rug_pull", &json!({}));
    site.server.eventually("the change is seen", || {
        site.server.get_as_admin("/api/v1/explain?tool=t__versioned").json()["visible"] == false
    });
    let (visible, why) = explained(&site, "t__versioned", &a);
    assert!(!visible && why.contains("it is quarantined") && why.contains("gantry lock"), "{why}");
    let (visible, why) = explained(&site, "t__pid", &a);
    assert!(visible, "the others are as pinned: {why}");
}

#[test]
fn pol_10_depth_is_explained() {
    let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
    let config = json!({
        "defaults": { "maxDepth": 2 },
        "agents": { "named": { "tools": ["spawn_agents", "test__echo"] }, "all": { "tools": ["*"] } },
    });
    let site = Site::at(home.config(&config.to_string()));
    let at =
        |agent: &str, depth: &str| explained(&site, "spawn_agents", &[("agent", agent), ("depth", depth)]);
    for agent in ["named", "all"] {
        assert!(at(agent, "0").0, "at the top everybody may");
    }
    let (visible, why) = at("named", "1");
    assert!(visible, "{why}");
    let (visible, why) = at("all", "1");
    assert!(
        !visible && why.contains("it is at depth 1") && why.contains("must name this one literally"),
        "{why}"
    );
    let (visible, why) = at("named", "2");
    assert!(!visible && why.contains("it is at depth 2, and maxDepth 2 lets no agent start others"), "{why}");
    assert!(why.contains("although its tools name it"), "{why}");
    // No agent gets deeper than that, so deeper is as deep as it gets.
    for depth in ["3", "4294967295"] {
        let (visible, why) = at("named", depth);
        assert!(!visible && why.contains("maxDepth 2 lets no agent start others"), "{why}");
    }
    // Depth is nothing to tools that start no agents.
    assert!(explained(&site, "test__echo", &[("agent", "named"), ("depth", "2")]).0);
    let wrong = site.server.get_as_admin("/api/v1/explain?tool=x&depth=deep");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert_eq!(run(&site.home, &["doctor", "x", "--depth", "deep"]).code, 2);
}

#[test]
fn pol_10_a_project_is_explained_by_itself() {
    let mut config = crate::projects::pair();
    config["agents"] = json!({ "a": { "tools": ["s__pid"] } });
    config["projects"]["other"]["agents"] = json!({ "a": { "tools": ["s__echo"] } });
    config["projects"]["other"]["mcpServers"]["s"]["toolsDenied"] = json!(["env"]);
    let site = Site::of(&config);
    let other = [("agent", "a"), ("project", "other")];
    assert!(!explained(&site, "s__pid", &other).0);
    assert!(explained(&site, "s__pid", &[("agent", "a")]).0);
    let (visible, why) = explained(&site, "s__echo", &other);
    assert!(visible && why.contains("\"s__echo\" in its tools matches"), "{why}");
    let (visible, why) = explained(&site, "s__env", &other);
    assert!(!visible && why.contains("toolsDenied of s"), "{why}");
    let (visible, _) = explained(&site, "s__env", &[("project", "default")]);
    assert!(visible);
}

#[test]
fn pol_10_to_the_model_nothing_of_it_is_said() {
    let site = Site::of(&json!({
        "mcpServers": {
            "s": with(faulty(&["--lying-schema"]), &json!({ "toolsDenied": ["journal"] })),
            "never": { "command": "gantry-no-such-program" },
        },
        "agents": { "a": { "tools": { "use": ["s"], "allowed": ["s__echo"] } } },
    }));
    let path = "/mcp/default/agents/a";
    for tool in ["s__env", "s__journal", "s__lying_type", "never__echo", "read_file", "no_such_tool"] {
        let call = json!({ "tool": tool, "arguments": {}, "agent": "a" });
        let reply = site.post(&call).json();
        let by_mcp = crate::results::mcp_call(&site.server, path, tool, &json!({}));
        for said in [reply["error"]["message"].to_string(), by_mcp["error"]["message"].to_string()] {
            assert!(said.starts_with(&format!("\"tool not found: {tool}")), "{tool}: {said}");
            for word in ["allowed", "Denied", "quarantine", "down", "server", "pinned", "agent a"] {
                assert!(!said.contains(word), "{tool}: {said}");
            }
        }
    }
    for path in ["/api/v1/explain", "/api/v1/explain?tool=s__env&agent=a", "/api/v1/config"] {
        assert_eq!(site.server.get(path).status, 403, "{path}");
    }
}
