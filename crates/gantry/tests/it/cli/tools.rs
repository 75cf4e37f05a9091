//! `gantry tools`: a table for people, JSON for programs, and what an MCP client gets.

use super::run;
use gantry_testkit::{BUILT_IN, TestDir};
use serde_json::Value;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_table_has_a_line_per_tool() {
    let home = TestDir::new();
    let ran = run(&home, &["tools"]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("NAME ") && lines[0].contains("KIND") && lines[0].contains("EFFECT"),
        "{ran:?}"
    );
    let names: Vec<_> = lines[1..].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, BUILT_IN);
    let effect = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(
        (effect("read_file"), effect("write_file"), effect("delete_file")),
        ("read".into(), "write".into(), "destructive".into())
    );
}

#[test]
fn as_json_everything_is_known_about_each_tool() {
    let home = TestDir::with_test_tools();
    let json = run(&home, &["tools", "--format", "json"]).json();
    assert_eq!(json, run(&home, &["tools", "--json"]).json());
    for tool in json.as_array().unwrap() {
        assert_eq!(
            keys(tool),
            [
                "name",
                "title",
                "description",
                "inputSchema",
                "outputSchema",
                "annotations",
                "provider",
                "status",
                "reason"
            ],
            "{tool}"
        );
        assert_eq!(keys(&tool["provider"]), ["id", "kind", "namespace"], "{tool}");
    }
    let find =
        |name: &str| json.as_array().unwrap().iter().find(|tool| tool["name"] == name).expect("the tool");
    assert_eq!(find("read_file")["status"], "ready");
    let bad = find("test__bad_schema");
    assert_eq!(bad["status"], "quarantined", "{bad}");
    assert!(!bad["reason"].as_str().unwrap().is_empty(), "{bad}");
}

#[test]
fn as_mcp_a_tool_has_the_fields_of_the_protocol_and_quarantined_ones_are_left_out() {
    let home = TestDir::with_test_tools();
    let tools = run(&home, &["tools", "--format", "mcp"]).json();
    let known = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
    for tool in tools.as_array().unwrap() {
        assert!(keys(tool).iter().all(|key| known.contains(key)), "{tool}");
        assert!(tool["name"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
        assert!(tool.as_object().unwrap().values().all(|value| !value.is_null()), "{tool}");
        assert_ne!(tool["name"], "test__bad_schema");
    }
    // The table tells why it is not there.
    let table = run(&home, &["tools"]).stdout;
    let line = table.lines().find(|line| line.starts_with("test__bad_schema")).unwrap();
    assert!(line.contains("quarantined: "), "{line}");
}

#[test]
fn an_agent_sees_its_own_tools_and_one_without_tools_learns_it() {
    let home = TestDir::new().config("agents: { reader: { tools: [\"read_*\"] }, nobody: { tools: [] } }\n");
    let reader = run(&home, &["tools", "--agent", "reader"]).stdout;
    assert_eq!(
        reader.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["read_file"]
    );
    let missing = run(&home, &["tools", "--agent", "nobody"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (0, ""));
    assert!(missing.stderr.contains("There are no tools here"), "{missing:?}");
    let unknown = run(&home, &["tools", "--agent", "raeder"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("reader") && unknown.stderr.contains("nobody"), "{unknown:?}");
}

#[test]
fn a_running_server_gives_the_same_list() {
    let home = TestDir::new();
    let alone = run(&home, &["tools", "--json"]).json();
    let _server = home.serve();
    assert_eq!(run(&home, &["tools", "--json"]).json(), alone);
}
