//! `gantry doctor`: what is there, what is broken, and why a tool can or cannot be called.

use super::run;
use gantry_testkit::Home;
use serde_json::json;

#[test]
fn obs_4_a_healthy_set_up_is_all_ticks() {
    let home = Home::new();
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
        assert_eq!(check["health"], "good", "{check}");
        assert!(check["check"].is_string() && check["found"].is_string(), "{check}");
    }
}

#[test]
fn obs_4_a_running_server_is_found() {
    let home = Home::new();
    let server = home.serve();
    let ran = run(&home, &["doctor"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains(&format!("running at http://{}", server.address)), "{ran:?}");
    assert!(ran.stdout.contains(&server.pid().to_string()), "{ran:?}");
}

#[test]
fn obs_4_a_broken_configuration_is_a_cross_with_its_line() {
    let home = Home::new().config("agents:\n  reader: { tols: [] }\n");
    let ran = run(&home, &["doctor"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(ran.stdout.starts_with("✗ configuration") && ran.stdout.contains("gantry.yaml:2:"), "{ran:?}");
    let checks = run(&home, &["doctor", "--json"]);
    assert_eq!((checks.code, &checks.json()[0]["health"]), (1, &json!("bad")));
}

#[test]
fn obs_4_a_broken_ledger_is_a_cross_and_the_rest_is_still_told() {
    let home = Home::new();
    run(&home, &["tools"]);
    home.write(".gantry/gantry.db", "this is no database any more, for whatever reason");
    let ran = run(&home, &["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("✓ workspace") && ran.stdout.contains("✗ runtime"), "{ran:?}");
}

#[test]
fn obs_4_a_quarantined_tool_is_pointed_at() {
    let home = Home::with_test_tools();
    let ran = run(&home, &["doctor"]);
    let line = ran.stdout.lines().find(|line| line.starts_with('!')).expect("something odd");
    assert!(line.contains("test__bad_schema is quarantined"), "{line}");
    assert_eq!(ran.code, 0, "odd is not broken");
}

#[test]
fn pol_10_doctor_explains_why_an_agent_has_a_tool_or_not() {
    let home = Home::new().config(
        "tools: { workspace: { toolsDenied: [\"move_file\"] } }\nagents: { reader: { tools: [\"read_*\"] } }\n",
    );
    let yes = run(&home, &["doctor", "read_file", "--agent", "reader"]);
    assert_eq!(yes.code, 0);
    assert!(yes.stdout.starts_with("read_file can be called\n"), "{yes:?}");
    assert!(yes.stdout.contains("agent reader has it in its tools"), "{yes:?}");

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
    let nobody = run(&home, &["doctor", "read_file", "--agent", "nobody"]);
    assert!(
        nobody.code != 0 && (nobody.stdout + &nobody.stderr).contains("reader"),
        "it names those there are"
    );
    let unknown = run(&home, &["doctor", "raed_file"]);
    assert!(unknown.code == 1 && unknown.stdout.contains("read_file"), "{unknown:?}");
}
