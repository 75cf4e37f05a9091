//! POL-2: what a tool put beside the configuration while Gantry ran, or after it, is not taken up by the next start.

use crate::projects::{Site, faulty};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::process::Stdio;

const ASKS: &str = "it was not there when Gantry last ran here, and tools can write in this folder";

/// Runs Gantry in a folder for the first time, and puts a file there, as a tool does and then in its place.
fn plant(home: &TestDir, name: &str, content: &str) {
    home.call_yes("write_file", &json!({ "path": name, "content": content }));
    let code = format!("mkdir -p $(dirname {name}); printf x > {name}");
    let code = json!({ "language": "bash", "code": code }).to_string();
    // If the file is the configuration, Gantry does not start any more.
    home.run(["call", "--yes", "run_code", &code]);
    home.write(name, content);
}

/// Every way to start Gantry.
fn starts(home: &TestDir) -> Vec<(&'static str, CommandOutput)> {
    let mut serve = home.command(["serve", "--bind", "127.0.0.1:0"]);
    serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = serve.output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let serve = CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    vec![
        ("serve", serve),
        ("call", home.run(["call", "list_directory", r#"{"path":"."}"#])),
        ("mcp", home.run(["mcp"])),
        ("tools", home.run(["tools"])),
    ]
}

#[test]
fn pol_2_a_configuration_or_dotenv_that_a_tool_made_refuses_the_start_until_a_person_accepts_it() {
    let start = "mcpServers: { x: { command: touch, args: [./started] } }\n";
    let table = [("gantry.yaml", start, None), (".env", "GITHUB_TOKEN=theirs\n", Some("workspace: .\n"))];
    for (name, content, config) in table {
        let home = TestDir::new();
        config.iter().for_each(|config| home.write("gantry.yaml", config));
        plant(&home, name, content);
        for (how, ran) in starts(&home) {
            assert_eq!(ran.code, 2, "{how}: {ran:?}");
            let expected = format!("{name}: not used: {ASKS}");
            assert!(
                ran.stderr.contains(&expected) && ran.stderr.contains("gantry config apply"),
                "{how}: {ran:?}"
            );
        }
        let named = home.run(["--config", "gantry.yaml", "tools"]);
        assert_eq!(named.code, 2, "{named:?}");
        let doctor = home.run(["doctor"]);
        assert!(doctor.code == 1 && doctor.stdout.contains(ASKS), "{doctor:?}");
        assert!(!home.path().join("started").exists(), "{name}");
        // It can be looked at, and a person who is not asked accepts nothing.
        assert_eq!(home.run(["config", "check"]).code, 0);
        let asked = home.run(["config", "apply"]);
        assert!(asked.code == 2 && asked.stderr.contains(name), "{asked:?}");
        assert_eq!(home.run(["tools"]).code, 2);
        let accepted = home.run(["config", "apply", "--yes", "--json"]);
        assert_eq!(accepted.json(), json!({ "applied": true, "held": [name] }), "{accepted:?}");
        assert_eq!(home.run(["tools"]).code, 0);
        // It is accepted for good, and again new once it was gone.
        std::fs::remove_file(home.path().join(name)).expect("it is there");
        assert_eq!(home.run(["tools"]).code, 0);
        home.write(name, content);
        assert_eq!(home.run(["tools"]).code, 2);
    }
}

#[test]
fn pol_2_definitions_that_a_tool_made_are_left_out_of_the_next_start_until_a_person_accepts_them() {
    let marker = json!({ "kind": "mcp", "transport": "stdio", "command": "touch", "args": ["./started"] });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "servers": [{ "url": "http://127.0.0.1:9" }],
        "paths": { "/a": { "get": { "operationId": "a", "responses": {} } } },
    });
    let files = [
        ("agents/x.md", "---\ntools: [\"*\"]\n---\nAll.\n".to_owned()),
        ("agents/broken.md", "---\nname: broken\ntols: x\nmodel: [\n---\n".to_owned()),
        ("tools/x/tool.json", marker.to_string()),
        (
            "gantry.lock",
            json!({ "version": 1, "servers": { "s": { "instructions": null, "tools": {} } } }).to_string(),
        ),
        ("api.json", document.to_string()),
    ];
    let config =
        json!({ "mcpServers": { "s": faulty(&[]) }, "openapiSpecs": { "t": { "spec": "./api.json" } } });
    let home = TestDir::new().config(&config.to_string());
    for (name, content) in &files {
        plant(&home, name, content);
    }
    // What defines nothing needs no person.
    plant(&home, "agents/README.md", "# Agents\n");
    let site = Site::at(home);
    let stderr = site.server.stderr();
    let doctor = site.home.run(["doctor"]);
    for (name, _) in &files {
        let why = if name.contains("broken") { "left out: " } else { ASKS };
        assert!(stderr.lines().any(|line| line.contains(name) && line.contains(why)), "{name}: {stderr}");
        assert!(doctor.stdout.contains(name), "{name}: {doctor:?}");
    }
    assert!(stderr.contains("gantry config apply") && !stderr.contains("README.md: left out"), "{stderr}");
    assert!(!site.home.path().join("started").exists());
    assert_eq!(site.server.get("/api/v1/agents").json()["items"], json!([]));
    assert!(!site.tools("default").iter().any(|name| name.starts_with("rest__t")));
    site.pid("default", "s");
    // What remains in the way is said; then all of it counts.
    std::fs::remove_file(site.home.path().join("agents/broken.md")).expect("it is there");
    let reasons = site.is_held();
    assert!(reasons.contains(&"agents/x.md was not there before".to_owned()), "{reasons:?}");
    site.home.accept_files();
    assert_eq!(site.server.get("/api/v1/agents/x").status, 200);
    site.server.eventually("the API is there", || site.tools("default").contains(&"rest__t_a".to_owned()));
    site.server.eventually("its program was started", || site.home.path().join("started").exists());
    site.error("default", "s__pid", &json!({}), "TOOL_QUARANTINED");
}

#[test]
fn pol_2_a_server_is_not_started_from_what_a_tool_made_until_a_person_accepts_it() {
    let entry = json!({ "command": "sh", "args": ["mcp/server.sh"], "startupTimeoutMs": 2000 });
    let home = TestDir::new().config(&json!({ "mcpServers": { "s": entry } }).to_string());
    plant(&home, "mcp/server.sh", "touch \"$0.ran\"; exec cat\n");
    let ran = || home.path().join("mcp/server.sh.ran").exists();
    for start in [&["tools"][..], &["call", "list_directory", r#"{"path":"."}"#]] {
        let started = home.run(start);
        assert!(started.code == 0 && !ran(), "{started:?}");
    }
    let doctor = home.run(["doctor"]);
    assert!(doctor.stdout.contains(ASKS) && doctor.stdout.contains("mcp"), "{doctor:?}");
    assert!(!ran());
    let accepted = home.run(["config", "apply", "--yes", "--json"]);
    assert_eq!(accepted.json()["applied"], true, "{accepted:?}");
    home.run(["tools"]);
    assert!(ran(), "a person accepted it");
}

#[test]
fn pol_2_commands_without_a_server_leave_out_what_a_tool_made_and_accept_it() {
    let home = TestDir::new().config("workspace: .\n");
    plant(&home, "agents/x.md", "---\ntools: [read_file]\n---\n");
    let listed = home.run(["agents", "--json"]);
    assert_eq!(listed.json(), json!([]), "{listed:?}");
    assert!(listed.stderr.contains("agents/x.md: left out"), "{listed:?}");
    home.accept_files();
    assert_eq!(home.run(["agents", "--json"]).json()[0]["name"], "x");
    let again = home.run(["config", "apply"]);
    assert!(again.code == 0 && again.stderr.contains("nothing to accept"), "{again:?}");
}

#[test]
fn pol_2_what_is_there_at_the_first_start_and_what_no_tool_can_reach_needs_no_person() {
    let home = TestDir::new().config("workspace: ws\n");
    home.write("ws/a.txt", "");
    home.write("agents/x.md", "---\ntools: [read_file]\n---\n");
    assert_eq!(home.run(["agents", "--json"]).json()[0]["name"], "x");
    // Tools write in ws alone.
    home.write("agents/y.md", "---\ntools: [read_file]\n---\n");
    home.write(".env", "A=1\n");
    assert_eq!(home.run(["agents", "--json"]).json().as_array().map(Vec::len), Some(2));
    // A workspace that there was once counts for good.
    home.write("gantry.yaml", "workspace: .\n");
    home.run(["tools"]);
    home.write("gantry.yaml", "workspace: ws\n");
    home.write("agents/z.md", "---\ntools: [read_file]\n---\n");
    assert_eq!(home.run(["agents", "--json"]).json().as_array().map(Vec::len), Some(2));
}

#[test]
fn pol_2_a_link_that_a_tool_turns_elsewhere_is_not_followed() {
    let home = TestDir::new();
    home.write("real.md", "---\ntools: [read_file]\n---\n");
    home.write("agents/none.txt", "");
    let link = home.path().join("agents/x.md");
    std::os::unix::fs::symlink("../real.md", &link).expect("a link");
    assert_eq!(home.run(["agents", "--json"]).json()[0]["name"], "x");
    home.write("other.md", "---\ntools: [\"*\"]\n---\n");
    std::fs::remove_file(&link).expect("a link");
    std::os::unix::fs::symlink("../other.md", &link).expect("a link");
    assert_eq!(home.run(["agents", "--json"]).json(), json!([]));
}

#[test]
fn pol_2_a_list_of_accepted_files_that_cannot_be_read_stops_the_start() {
    let home = TestDir::new();
    assert_eq!(home.run(["tools"]).code, 0);
    home.write(".gantry/accepted.json", "{");
    let ran = home.run(["tools"]);
    assert!(ran.code == 2 && ran.stderr.contains("accepted.json: cannot be read"), "{ran:?}");
    std::fs::remove_file(home.path().join(".gantry/accepted.json")).expect("it is there");
    assert_eq!(home.run(["tools"]).code, 0);
    let list: Value = serde_json::from_str(&home.read(".gantry/accepted.json")).expect("JSON");
    assert_eq!(list["files"], json!([]));
}
