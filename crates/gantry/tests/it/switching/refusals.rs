//! Switches that are refused, that change nothing, that meet each other, and what they read from the disk.

use super::{Stage, faulty, of, two, types};
use gantry_testkit::server::send;
use gantry_testkit::{TestDir, process};
use http::Method;
use serde_json::{Value, json};
use std::thread;

#[test]
fn pol_8_an_agent_that_is_not_configured_is_refused_with_the_names_and_nothing_is_torn_down() {
    let stage = Stage::two();
    let (process, n_steps) = (stage.pid("sa__pid"), stage.steps().len());
    let answer = stage.switch("c");
    let body = answer.json();
    let message = body["error"]["message"].as_str().expect("a message");
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(message.contains("no agent \"c\"") && message.contains("a, b"), "{message}");
    let ran = stage.home.run(["agents", "switch", "c"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("a, b") && ran.stdout.is_empty(), "{ran:?}");
    assert_eq!(stage.admin(Method::POST, "/api/v1/agents/a/activate?project=nope").status, 404);
    assert_eq!(stage.active().as_deref(), Some("a"));
    assert_eq!(stage.pid("sa__pid"), process, "the process is the one of before");
    assert_eq!(stage.steps().len(), n_steps);
}

#[test]
fn pol_8_only_who_has_the_key_switches() {
    let stage = Stage::two();
    let (process, n_steps) = (stage.pid("sa__pid"), stage.steps().len());
    for path in ["/api/v1/agents/b/activate", "/api/v1/agents/a/deactivate", "/api/v1/agents/nope/activate"] {
        let refused = stage.server.post(path, "");
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (403, &json!("PERMISSION_DENIED")),
            "{path}"
        );
        let wrong = gantry_egress::LocalServer::new(stage.server.address, Some("wrong".to_owned()));
        assert!([401, 403].contains(&send(&wrong, Method::POST, path, &[], "").status), "{path}");
    }
    assert_eq!((stage.active().as_deref(), stage.pid("sa__pid")), (Some("a"), process));
    assert_eq!(stage.steps().len(), n_steps);
}

#[test]
fn pol_8_switching_to_the_active_agent_changes_nothing() {
    let stage = Stage::two();
    let process = stage.pid("sa__pid");
    let held = stage.hold("sa");
    let n_steps = stage.steps().len();
    let switched = stage.activate("a");
    assert_eq!(
        (&switched["from"], &switched["to"], &switched["changed"], &switched["tools"]),
        (&json!("a"), &json!("a"), &json!(false), &json!(5)),
        "{switched}"
    );
    let ran = stage.home.run(["agents", "switch", "a"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a is active in default already, with 5 tools\n"));
    assert_eq!(held.end().json()["result"], "slept");
    assert_eq!(stage.pid("sa__pid"), process);
    assert_eq!(stage.steps().len(), n_steps);
}

#[test]
fn pol_8_switches_at_once_end_in_one_of_them_with_nothing_left_behind() {
    let servers = json!({ "sa": faulty(&["--tool", "of-a"]), "sb": faulty(&["--tool", "of-b"]), "sc": faulty(&["--tool", "of-c"]) });
    let agents =
        json!({ "a": { "tools": of("sa") }, "b": { "tools": of("sb") }, "c": { "tools": of("sc") } });
    let stage = Stage::of(&json!({ "mcpServers": servers, "agents": agents }));
    stage.activate("a");
    for _ in 0..3 {
        thread::scope(|scope| {
            for agent in ["b", "c", "a", "c", "b"] {
                let stage = &stage;
                scope.spawn(move || stage.activate(agent));
            }
        });
        let active = stage.active().expect("an agent");
        let own = format!("s{active}");
        assert_eq!(stage.tools(), of(&own));
        let answering = stage.pid(&format!("{own}__pid"));
        assert!(process::is_running(answering));
        for other in ["a", "b", "c"].into_iter().filter(|other| *other != active) {
            assert_eq!(stage.running(&format!("of-{other}")), Vec::<u32>::new(), "{other} beside {active}");
        }
        let finished = stage.steps();
        let last = finished.last().expect("a switch");
        assert_eq!((&last["type"], &last["to"]), (&json!("agent_switch_finished"), &json!(active)));
    }
    // One after the other: no step of one is between the steps of another.
    let steps = stage.steps();
    for switch in steps.split_inclusive(|step| step["type"] == "agent_switch_finished").skip(1) {
        assert_eq!(
            types(switch),
            ["agent_switch_started", "teardown", "teardown_finished", "build", "agent_switch_finished"]
        );
    }
}

#[test]
fn pol_8_a_switch_goes_on_with_the_configuration_of_before_while_the_one_on_the_disk_is_broken() {
    let stage = Stage::two();
    stage.home.write("gantry.yaml", "mcpServers: { sa: { comand: x } }\n");
    let switched = stage.activate("b");
    let refused = switched["refused"].as_str().expect("a reason");
    assert!(refused.contains("comand"), "{refused}");
    assert_eq!(stage.tools(), of("sb"));
    let ran = stage.home.run(["agents", "switch", "a"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a is active in default with 5 tools\n"), "{ran:?}");
    assert!(ran.stderr.contains("warning: the configuration on the disk cannot be used"), "{ran:?}");
    assert_eq!(stage.tools(), of("sa"));
    assert!(stage.events().iter().any(|event| event["type"] == "configuration_refused"));
    // Once it is mended, the next switch has nothing to say of it.
    stage.home.write("gantry.yaml", &two(&faulty(&[]), &faulty(&[])).to_string());
    assert!(stage.activate("b").get("refused").is_none());
}

#[test]
fn pol_8_the_command_line_says_that_a_switch_went_on_with_the_configuration_of_before() {
    let mut config = two(&faulty(&[]), &faulty(&[]));
    config["projects"] = json!({ "other": { "workspace": ".", "agents": { "o": { "tools": [] } } } });
    let stage = Stage::of(&config);
    stage.activate("a");
    let other = stage.home.run(["agents", "switch", "o", "--project", "other"]);
    assert_eq!(other.code, 0, "{other:?}");
    // In itself it is right; but not while that agent is active.
    config["projects"]["other"]["agents"] = json!({});
    stage.home.write("gantry.yaml", &config.to_string());
    let ran = stage.home.run(["agents", "switch", "b"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "b is active in default with 5 tools\n");
    assert!(ran.stderr.contains("warning: the configuration on the disk cannot be used"), "{ran:?}");
    assert!(ran.stderr.contains("project other: agent o is active and would be gone"), "{ran:?}");
}

#[test]
fn pol_8_a_switch_loads_what_is_on_the_disk_at_that_moment() {
    let home = TestDir::new().config(&two(&faulty(&[]), &faulty(&[])).to_string());
    home.write("agents/late.md", "---\ntools: [sa__echo]\n---\n");
    let stage = Stage::at(home);
    stage.activate("late");
    assert_eq!(stage.tools(), ["sa__echo"]);
    stage.activate("b");
    // Changed and switched to before any client has looked at the file.
    stage.home.write("agents/late.md", "---\ntools: [sb__pid, sb__echo]\n---\n");
    assert_eq!(stage.activate("late")["tools"], 2);
    assert_eq!(stage.tools(), ["sb__echo", "sb__pid"]);
    let build = stage.last_steps().into_iter().find(|step| step["type"] == "build").expect("a build");
    assert_eq!(build["servers"], json!(["sb"]));
    // One that is not there yet, with a server that is not there yet either.
    stage.home.write("agents/newer/agent.json", r#"{ "tools": ["sn__pid"] }"#);
    let mut config = two(&faulty(&[]), &faulty(&[]));
    config["mcpServers"]["sn"] = faulty(&["--tool", "new"]);
    stage.home.write("gantry.yaml", &config.to_string());
    // A new file waits until an administrator applies it.
    let applied = stage.server.apply_configuration();
    assert_eq!(applied.status, 200, "{applied:?}");
    assert_eq!(stage.activate("newer")["tools"], 1);
    assert!(stage.running("--tool new").contains(&stage.pid("sn__pid")));
}

#[test]
fn pol_8_the_active_agent_cannot_vanish_from_the_configuration_unnoticed() {
    let stage = Stage::two();
    let mut without = two(&faulty(&[]), &faulty(&[]));
    without["agents"].as_object_mut().expect("agents").remove("a");
    stage.home.write("gantry.yaml", &without.to_string());
    stage.says("agent a is active and would be gone");
    assert_eq!(stage.tools(), of("sa"), "it goes on as it was");
    // Once another one is active, what remains is that an agent is removed, which an administrator applies.
    let held = stage.activate("b")["refused"].as_str().expect("a reason").to_owned();
    assert!(held.contains("agent a is removed") && held.contains("gantry config apply"), "{held}");
    assert_eq!(stage.server.apply_configuration().status, 200);
    let agents = stage.server.get("/api/v1/agents").json();
    assert_eq!(crate::passthrough::names(&agents["items"]), ["b"], "and the rest holds");
    assert_eq!(stage.switch("a").status, 404);
    assert_eq!(stage.tools(), of("sb"));
}

#[test]
fn pol_8_going_back_to_no_agent_gives_callers_the_whole_project_again() {
    let stage = Stage::of(&two(&faulty(&[]), &faulty(&[])));
    stage.server.eventually("both servers are there", || {
        let tools = stage.tools();
        tools.contains(&"sa__pid".to_owned()) && tools.contains(&"sb__pid".to_owned())
    });
    let everything = stage.tools();
    stage.activate("a");
    assert_eq!(stage.tools(), of("sa"));
    let wrong = stage.admin(Method::POST, "/api/v1/agents/b/deactivate");
    assert_eq!(wrong.status, 409, "{wrong:?}");
    let own = stage.pid("sa__pid");
    let switched = stage.deactivate("a");
    assert_eq!(
        (&switched["from"], &switched["to"], &switched["changed"]),
        (&json!("a"), &Value::Null, &json!(true))
    );
    assert_eq!((stage.active(), stage.tools()), (None, everything.clone()));
    assert!(!process::is_running(own), "the agent's own process is gone");
    stage.activate("b");
    let ran = stage.home.run(["agents", "switch", "--none"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.starts_with("no agent is active in default any more"), "{ran:?}");
    assert_eq!((stage.active(), stage.tools()), (None, everything));
    let again = stage.home.run(["agents", "switch", "--none"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "no agent is active in default\n"));
    for wrong in [&["agents", "switch"] as &[&str], &["agents", "switch", "a", "--none"]] {
        assert_eq!(stage.home.run(wrong).code, 2);
    }
}
