//! The configuration through the program: where it is found, in which formats, and how it is refused.

#![cfg(test)]

use gantry_testkit::{BUILT_IN, CommandOutput, TestDir};
use serde_json::{Value, json};
use std::path::Path;

const YAML: &str = r#"
tools:
  workspace: { toolsDenied: ["delete_*"], queue: disk, toolsTimeout: { read_file: 5000 } }
queues: { disk: { concurrent: 2 } }
agents:
  reader: { tools: ["read_*", "@workspace/list_directory"] }
policies:
  - { name: no-pem, tools: ["*"], when: "args.path.endsWith('.pem')", decide: deny }
"#;

const JSON: &str = r#"{
  "tools": { "workspace": { "toolsDenied": ["delete_*"], "queue": "disk", "toolsTimeout": { "read_file": 5000 } } },
  "queues": { "disk": { "concurrent": 2 } },
  "agents": { "reader": { "tools": ["read_*", "@workspace/list_directory"] } },
  "policies": [{ "name": "no-pem", "tools": ["*"], "when": "args.path.endsWith('.pem')", "decide": "deny" }]
}"#;

const TOML: &str = r#"
[tools.workspace]
toolsDenied = ["delete_*"]
queue = "disk"
toolsTimeout = { read_file = 5000 }
[queues.disk]
concurrent = 2
[agents.reader]
tools = ["read_*", "@workspace/list_directory"]
[[policies]]
name = "no-pem"
tools = ["*"]
when = "args.path.endsWith('.pem')"
decide = "deny"
"#;

/// Asserts that the configuration is refused as a whole, and gives what was said.
#[track_caller]
fn refused(home: &TestDir) -> String {
    refusal(&home.run(["tools"]))
}

#[track_caller]
fn refusal(ran: &CommandOutput) -> String {
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    let words = ran.stderr.strip_prefix("error: ").expect("an error");
    words.trim_end().to_owned()
}

/// The path that `doctor` gives for a thing.
#[track_caller]
fn found(ran: &CommandOutput, what: &str) -> String {
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    let check = report.as_array().expect("checks").iter().find(|check| check["check"] == what);
    check.expect("the check")["found"].as_str().expect("a text").to_owned()
}

/// The canonical path of something in a home, as the program sees it.
fn at(home: &TestDir, path: &str) -> String {
    std::path::absolute(home.path().join(path)).expect("a path").display().to_string()
}

#[test]
fn yaml_json_and_toml_say_the_same() {
    let results = [("gantry.yaml", YAML), ("gantry.yml", YAML), ("gantry.json", JSON), ("gantry.toml", TOML)]
        .map(|(name, text)| {
            let home = TestDir::new();
            home.write(name, text);
            home.write("a.pem", "");
            let denied = home.call("read_file", &json!({ "path": "a.pem" }));
            assert_eq!(denied["error"]["code"], "PERMISSION_DENIED", "{name}: {denied}");
            (home.run(["tools", "--json"]).json(), home.run(["tools", "--agent", "reader", "--json"]).json())
        });
    let names = |tools: &Value| {
        tools.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (all, reader) = &results[0];
    assert_eq!(names(all), BUILT_IN.into_iter().filter(|name| *name != "delete_file").collect::<Vec<_>>());
    assert_eq!(names(reader), ["list_directory", "read_file"]);
    assert!(results.iter().all(|result| result == &results[0]));
}

#[test]
fn without_a_file_gantry_runs_on_defaults() {
    let home = TestDir::new();
    let doctor = home.run(["doctor", "--json"]);
    assert_eq!(found(&doctor, "configuration"), "none, running on defaults");
    assert_eq!(found(&doctor, "workspace"), at(&home, "."));
    assert_eq!(found(&doctor, "data folder"), at(&home, ".gantry"));
    assert!(found(&doctor, "server").contains("127.0.0.1:7420"));
    assert_eq!(home.run(["tools", "--json"]).json().as_array().unwrap().len(), BUILT_IN.len());
    assert_eq!(home.read(".gantry/.gitignore"), "*\n", "nothing in there belongs into a repository");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(home.path().join(".gantry")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "the data folder is its owner's only");
}

#[test]
fn an_unknown_key_is_refused_at_its_line_with_the_nearest_one() {
    for (name, text, line) in [
        ("gantry.yaml", "# two lines\nagents:\n  reader:\n    tols: [\"read_*\"]\n", 4),
        (
            "gantry.json",
            "{\n  \"agents\": {\n    \"reader\": {\n      \"tols\": [\"read_*\"]\n    }\n  }\n}\n",
            4,
        ),
        ("gantry.toml", "\n[agents.reader]\ntols = [\"read_*\"]\n", 3),
    ] {
        let home = TestDir::new();
        home.write(name, text);
        let said = refused(&home);
        assert_eq!(
            said,
            format!("{name}:{line}: unknown key \"tols\" in agents.reader; did you mean \"tools\"?")
        );
    }
}

#[test]
fn every_problem_is_reported_at_once_in_the_order_of_the_lines() {
    let home = TestDir::new().config(
        "workspce: .\ndefaults: { toolTimeout: soon }\nqueues:\n  disk: { concurrent: 0 }\nmodels: {}\n",
    );
    let said = refused(&home);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    for (line, (place, word)) in lines.iter().zip([
        ("gantry.yaml:1:", "workspace"),
        ("gantry.yaml:2:", "toolTimeout"),
        ("gantry.yaml:4:", "concurrent"),
        ("gantry.yaml:5:", "not available in this version"),
    ]) {
        assert!(line.starts_with(place) && line.contains(word), "{line}");
    }
}

#[test]
fn keys_of_later_versions_are_refused_and_not_ignored() {
    for (key, value) in [("models", "{}"), ("auth", "{}")] {
        let said = refused(&TestDir::new().config(&format!("{key}: {value}\n")));
        assert!(said.contains(key) && said.contains("not available in this version"), "{said}");
        let inside = format!("projects:\n  p:\n    workspace: .\n    {key}: {value}\n");
        let said = refused(&TestDir::new().config(&inside));
        let place = format!("gantry.yaml:4: projects.p.{key} is ");
        assert!(said.starts_with(&place) && said.contains("not available in this version"), "{said}");
    }
}

#[test]
fn keys_that_every_agent_may_have_and_gantry_does_not_use_yet_are_named_and_stop_nothing() {
    for key in ["guardrails", "memory", "limits", "router", "surface"] {
        let home = TestDir::new()
            .config(&format!("agents:\n  a:\n    tools: [read_file]\n    {key}: {{ anything: 1 }}\n"));
        let ran = home.run(["tools", "--agent", "a", "--json"]);
        assert_eq!((ran.code, ran.json().as_array().map(Vec::len)), (0, Some(1)), "{ran:?}");
        let doctor = home.run(["doctor", "--json"]).json();
        let unusual = |check: &Value| {
            let found = check["found"].as_str().unwrap_or_default();
            check["severity"] == "warning" && found.starts_with("gantry.yaml:4:") && found.contains(key)
        };
        assert!(doctor.as_array().unwrap().iter().any(unusual), "{key}: {doctor}");
    }
}

#[test]
fn cal_6_an_unknown_queue_is_a_load_error() {
    let said = refused(
        &TestDir::new()
            .config("tools: { workspace: { queue: disc } }\nqueues: { disk: { concurrent: 1 } }\n"),
    );
    assert_eq!(said, "gantry.yaml:1: tools.workspace.queue: unknown queue \"disc\"; did you mean \"disk\"?");
    let said = refused(&TestDir::new().config("tools:\n  workspace:\n    toolsQueue: { read_file: fast }\n"));
    assert!(said.starts_with("gantry.yaml:3:") && said.contains("\"fast\""), "{said}");
}

#[test]
fn variables_come_from_the_environment_then_from_dotenv_then_from_their_default() {
    let place = |home: &TestDir| found(&home.run(["doctor", "--json"]), "workspace");
    let make = || {
        let home = TestDir::new().config("workspace: ${WS:-by-default}\n");
        for folder in ["by-default", "by-file", "by-environment"] {
            home.write(&format!("{folder}/x"), "");
        }
        home
    };
    let home = make();
    assert_eq!(place(&home), at(&home, "by-default"));
    home.write(".env", "# where\nexport WS=\"by-file\"\n");
    assert_eq!(place(&home), at(&home, "by-file"));
    let home = home.env("WS", "by-environment");
    assert_eq!(place(&home), at(&home, "by-environment"));

    let said = refused(&TestDir::new().config("\nworkspace: ${NOT_SET_ANYWHERE}\n"));
    assert!(
        said.starts_with("gantry.yaml:2: workspace:") && said.contains("${NOT_SET_ANYWHERE} is not set"),
        "{said}"
    );
}

#[test]
fn a_dotenv_that_cannot_be_read_is_reported_with_its_line() {
    let home = TestDir::new().config("workspace: .\n");
    home.write(".env", "A=1\nthis is no assignment\n");
    let said = refused(&home);
    assert!(said.starts_with(".env:2:"), "{said}");
}

#[test]
fn the_flag_beats_the_variable_and_both_beat_the_working_folder() {
    let home = TestDir::new().env("GANTRY_CONFIG", "by-variable/gantry.toml");
    home.write("gantry.yaml", "workspce: the working folder's file is not even read\n");
    home.write("by-variable/gantry.toml", "workspace = \"ws\"\n");
    home.write("by-variable/ws/x", "");
    home.write("by-flag/other.json", "{ \"workspace\": \"ws\" }");
    home.write("by-flag/ws/x", "");

    let by_variable = home.run(["doctor", "--json"]);
    assert_eq!(found(&by_variable, "configuration"), at(&home, "by-variable/gantry.toml"));
    assert_eq!(found(&by_variable, "workspace"), at(&home, "by-variable/ws"));
    assert_eq!(found(&by_variable, "data folder"), at(&home, "by-variable/.gantry"));
    let by_flag = home.run(["doctor", "--json", "--config", "by-flag/other.json"]);
    assert_eq!(found(&by_flag, "configuration"), at(&home, "by-flag/other.json"));
    assert_eq!(found(&by_flag, "data folder"), at(&home, "by-flag/.gantry"));
    assert!(!home.path().join(".gantry").exists());
}

#[test]
fn the_data_folder_is_where_the_flag_or_the_variable_says() {
    let home = TestDir::new().env("GANTRY_DATA", "by-variable");
    home.call("list_directory", &json!({ "path": "." }));
    assert!(home.path().join("by-variable/gantry.db").exists());
    let absolute = at(&home, "by-flag/deep");
    let ran = home.run(["--data", &absolute, "call", "list_directory", "{\"path\": \".\"}", "--json"]);
    assert_eq!(ran.json()["ok"], true);
    assert!(Path::new(&absolute).join("gantry.db").exists());
    assert!(!home.path().join(".gantry").exists());
    // What happened there is on record there.
    let calls = |args: &[&str]| home.run(args).json().as_array().unwrap().len();
    assert_eq!((calls(&["audit", "--json"]), calls(&["audit", "--json", "--data", &absolute])), (1, 1));
}

#[test]
fn empty_variables_count_as_unset() {
    let home = TestDir::new().env("GANTRY_CONFIG", "").env("GANTRY_DATA", "");
    let doctor = home.run(["doctor", "--json"]);
    assert_eq!(found(&doctor, "configuration"), "none, running on defaults");
    assert_eq!(found(&doctor, "data folder"), at(&home, ".gantry"));
}

#[test]
fn a_file_that_is_named_and_not_there_is_never_replaced_by_defaults() {
    let home = TestDir::new();
    let said = refusal(&home.run(["tools", "--config", "none.yaml"]));
    assert!(said.starts_with("none.yaml: there is no such file"), "{said}");
    let said = refused(&TestDir::new().env("GANTRY_CONFIG", "none.yaml"));
    assert!(
        said.starts_with("none.yaml:") && said.contains("$GANTRY_CONFIG"),
        "it says who named it: {said}"
    );
    let said = refusal(&home.run(["tools", "-c", "gantry.ini"]));
    assert!(said.contains("gantry.ini"), "{said}");
    std::os::unix::fs::symlink("nowhere", home.path().join("gantry.yaml")).unwrap();
    assert!(refused(&home).starts_with("gantry.yaml: "));
    let home = TestDir::new();
    home.write("gantry.yaml/x", "a folder in its place");
    assert!(refused(&home).contains("not a file"));
}

#[test]
fn files_that_cannot_both_hold_or_cannot_be_read_are_refused() {
    let home = TestDir::new().config("workspace: .\n");
    home.write("gantry.toml", "");
    let said = refused(&home);
    assert!(
        said.contains("gantry.yaml") && said.contains("gantry.toml") && said.contains("--config"),
        "{said}"
    );

    for (text, place) in [
        ("agents: [\n", "gantry.yaml:1:"),
        ("workspace: .\nworkspace: .\n", "gantry.yaml:2:"),
        ("server:\n\tbind: x\n", "gantry.yaml:2:"),
        ("- a list\n", "gantry.yaml:1:"),
    ] {
        let said = refused(&TestDir::new().config(text));
        assert!(said.starts_with(place), "{text:?}: {said}");
    }
    let home = TestDir::new();
    std::fs::write(home.path().join("gantry.yaml"), b"workspace: .\nagents: \xff\n").unwrap();
    let said = refused(&home);
    assert!(said.starts_with("gantry.yaml:2:") && said.contains("UTF-8"), "{said}");
}

#[test]
fn a_workspace_that_is_not_there_or_inside_the_data_folder_is_refused() {
    let said = refused(&TestDir::new().config("\n\nworkspace: nowhere\n"));
    assert!(said.starts_with("gantry.yaml:3: workspace:") && said.contains("nowhere"), "{said}");
    let home = TestDir::new().config("workspace: .gantry/ws\n");
    home.write(".gantry/ws/x", "");
    let ran = home.run(["tools"]);
    assert!(ran.code != 0 && ran.stderr.contains("which no tool may touch"), "{ran:?}");
}

#[test]
fn a_rule_or_pattern_that_cannot_hold_is_refused_at_its_line() {
    for (text, line, word) in [
        ("policies:\n  - { name: a, tools: [\"*\"], decide: deny, when: \"args.path ==\" }\n", 2, "policy a"),
        (
            "policies:\n  - name: a\n    tools: [\"*\"]\n    decide: deny\n    when: \"args.path == 'x'\"\n    \
             examples: { deny: [{ path: y }] }\n",
            6,
            "its own example",
        ),
        ("agents:\n  a:\n    tools: [\"\"]\n", 3, "tools"),
        ("policies:\n  - { name: a, tools: [\"*\"], decide: allow }\n", 2, "decide"),
    ] {
        let said = refused(&TestDir::new().config(text));
        assert!(said.starts_with(&format!("gantry.yaml:{line}:")) && said.contains(word), "{text}\n{said}");
    }
}

#[test]
fn tools_that_are_switched_off_are_not_there() {
    let home = TestDir::new().config("tools: { workspace: { enabled: false } }\n");
    let ran = home.run(["tools"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("no tools"), "{ran:?}");
    assert_eq!(home.call("read_file", &json!({ "path": "x" }))["error"]["code"], "TOOL_NOT_FOUND");
    let home = TestDir::new().config("tools: { workspace: { toolsAllowed: [] } }\n");
    assert_eq!(home.run(["tools", "--json"]).json(), json!([]), "an empty list offers none");
}

#[test]
fn escapes_in_a_configuration_do_not_reach_the_terminal() {
    let home = TestDir::new().config("workspace: \"no\\e[31mwhere\\u202e\"\n");
    for args in [["tools"].as_slice(), &["doctor"]] {
        let ran = home.run(args);
        let all = ran.stdout + &ran.stderr;
        assert!(all.contains("where") && !all.contains(['\x1b', '\u{202e}']), "{all:?}");
    }
}
