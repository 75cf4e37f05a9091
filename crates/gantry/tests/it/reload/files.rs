//! POL-2: the files beside the configuration count as it does: variables, agents, tools; and however they are written.

use crate::projects::{Site, faulty, is_running};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::Faulty;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, Instant};

#[test]
fn pol_2_a_changed_variable_of_the_dotenv_replaces_the_servers_that_use_it() {
    let home = TestDir::new();
    home.write(".env", "WHO=first\n");
    let uses = json!({ "command": Faulty::program(), "env": { "WHO": "${WHO}" } });
    let site =
        Site::at(home.config(&json!({ "mcpServers": { "s": uses, "still": faulty(&[]) } }).to_string()));
    let (old, still) = (site.pid("default", "s"), site.pid("default", "still"));
    assert_eq!(site.variable("default", "s", "WHO"), "first");
    assert_eq!(site.edit_file(".env", "WHO=second\n"), ["default"]);
    site.ready("default", "s");
    assert_eq!(site.variable("default", "s", "WHO"), "second");
    site.server.eventually("the one before has ended", || !is_running(&old));
    assert_eq!(site.pid("default", "still"), still, "the one that does not use it goes on");
}

#[test]
fn pol_2_agents_in_files_come_change_and_go() {
    let site = Site::of(&json!({ "mcpServers": { "s": faulty(&[]) } }));
    let page = |tools: &str| format!("---\nname: reader\ntools: {tools}\n---\nRead.\n");
    let tools = || site.server.get("/api/v1/agents/reader").json()["toolNames"].clone();
    let pid = site.pid("default", "s");
    assert_eq!(site.edit_file("agents/reader.md", &page("s__echo")), ["default"]);
    assert_eq!(tools(), json!(["s__echo"]));
    assert_eq!(site.edit_file("agents/reader.md", &page("s__pid, s__env")), ["default"]);
    assert_eq!(tools(), json!(["s__env", "s__pid"]));
    // The same as an agent.json in a folder of its own.
    let json = json!({ "name": "writer", "tools": { "use": ["s"], "allowed": ["s__journal"] } });
    site.edit_file("agents/writer/agent.json", &json.to_string());
    let writer = site.server.get("/api/v1/agents/writer").json();
    assert_eq!(writer["toolNames"], json!(["s__journal"]), "{writer}");
    let from = site.now();
    std::fs::remove_file(site.home.path().join("agents/reader.md")).unwrap();
    assert_eq!(site.applied(from), ["default"]);
    assert_eq!(site.server.get("/api/v1/agents/reader").status, 404);
    // One that cannot be read is refused with its own name and line, and changes nothing.
    let why = site.refused("agents/broken.md", "---\nname: broken\ntols: x\nmodel: [\n---\n");
    assert!(why.starts_with("agents/broken.md:"), "{why}");
    assert_eq!(site.server.get("/api/v1/agents/writer").status, 200);
    std::fs::remove_file(site.home.path().join("agents/broken.md")).unwrap();
    site.server.eventually("it is mended", || super::trouble(&site).is_null());
    assert_eq!(site.pid("default", "s"), pid);
}

#[test]
fn pol_2_tools_in_files_come_change_and_go() {
    let site = Site::of(&json!({ "mcpServers": { "s": faulty(&[]) } }));
    let pid = site.pid("default", "s");
    let mut entry = json!({ "id": "extra", "kind": "mcp", "transport": "stdio", "command": Faulty::program(), "env": { "WHO": "a" } });
    assert_eq!(site.edit_file("tools/extra/tool.json", &entry.to_string()), ["default"]);
    site.ready("default", "extra");
    let extra = site.pid("default", "extra");
    entry["env"]["WHO"] = "b".into();
    entry["exposedTools"] = json!(["pid", "env"]);
    assert_eq!(site.edit_file("tools/extra/tool.json", &entry.to_string()), ["default"]);
    site.ready("default", "extra");
    assert_eq!(site.variable("default", "extra", "WHO"), "b");
    let own =
        || site.tools("default").into_iter().filter(|name| name.starts_with("extra__")).collect::<Vec<_>>();
    assert_eq!(own(), ["extra__env", "extra__pid"]);
    assert!(!is_running(&extra));
    let extra = site.pid("default", "extra");
    let from = site.now();
    std::fs::remove_dir_all(site.home.path().join("tools/extra")).unwrap();
    assert_eq!(site.applied(from), ["default"]);
    assert_eq!(own(), [""; 0]);
    site.server.eventually("it has ended", || !is_running(&extra));
    assert_eq!(site.pid("default", "s"), pid);
    // Gantry's own tools on a part of the workspace come and go as well.
    let docs = json!({ "id": "docs", "kind": "builtin", "builtinPolicy": { "name": "fs_read", "allowedPaths": ["one"] } });
    site.edit_file("tools/docs/tool.json", &docs.to_string());
    assert!(
        site.tools("default").iter().any(|name| name.starts_with("docs__")),
        "{:?}",
        site.tools("default")
    );
}

#[test]
fn pol_2_a_file_that_an_editor_replaces_by_renaming_is_seen() {
    let site = Site::of(&json!({}));
    let from = site.now();
    site.home.write("gantry.yaml.swp", &json!({ "agents": { "a": {} } }).to_string());
    std::fs::rename(site.home.path().join("gantry.yaml.swp"), site.home.path().join("gantry.yaml")).unwrap();
    assert_eq!(site.applied(from), ["default"]);
    assert_eq!(site.server.get("/api/v1/agents/a").status, 200);
}

#[test]
fn pol_2_a_configuration_that_comes_to_be_where_there_was_none_applies() {
    let home = TestDir::new();
    let site = Site::at(home);
    let from = site.now();
    site.home.write("gantry.yaml", "tools: { workspace: { toolsDenied: [\"delete_*\"] } }\n");
    assert_eq!(site.applied(from), ["default"]);
    assert!(!site.tools("default").contains(&"delete_file".to_owned()));
}

#[test]
fn pol_2_a_file_that_goes_missing_takes_no_rule_with_it() {
    let rules = json!({ "policies": [{ "name": "p", "tools": ["read_file"], "decide": "deny" }] });
    let site = Site::of(&rules);
    let (from, file) = (site.now(), site.home.path().join("gantry.yaml"));
    std::fs::remove_file(&file).unwrap();
    site.server.eventually("it is missed", || !super::trouble(&site).is_null());
    let why = super::trouble(&site);
    assert!(why.as_str().is_some_and(|why| why.contains("gantry.yaml is gone")), "{why}");
    site.error("default", "read_file", &json!({ "path": "one/mine.txt" }), "PERMISSION_DENIED");
    assert_eq!(site.events("configuration_applied", from), [] as [Value; 0]);
    assert_eq!(site.home.run(["doctor"]).code, 1);
    // Back again, it is as it was.
    site.home.write("gantry.yaml", &rules.to_string());
    site.server.eventually("it is there", || super::trouble(&site).is_null());
    site.error("default", "read_file", &json!({ "path": "one/mine.txt" }), "PERMISSION_DENIED");
}

/// What a writer does that takes its time: a line now and then. Returns the longest pause between two.
fn written_slowly(site: &Site, lines: &[String]) -> Duration {
    let mut file = std::fs::File::create(site.home.path().join("gantry.yaml")).expect("the file");
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    for line in lines {
        file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.flush()).expect("it is written");
        longest = longest.max(last.elapsed());
        last = Instant::now();
        std::thread::sleep(Duration::from_millis(10));
    }
    longest
}

#[test]
fn pol_2_a_file_is_not_applied_while_it_is_being_written() {
    // What it allows without its end is more than what it allows as a whole.
    let mut lines: Vec<String> = vec!["agents: { a: {} }".into()];
    lines.extend((0..250).map(|n| format!("# line {n}")));
    lines.push("policies: [{ name: at-the-end, tools: [\"read_file\"], decide: deny }]".into());
    loop {
        let site = Site::of(&json!({}));
        let from = site.now();
        let longest = written_slowly(&site, &lines);
        // A machine that stops for that long in the middle makes a file that is at rest; then it is no test.
        if longest > Duration::from_millis(400) {
            continue;
        }
        site.applied(from);
        site.error("default", "read_file", &json!({ "path": "one/mine.txt" }), "PERMISSION_DENIED");
        let all = site.events("configuration_applied", from);
        assert_eq!(all.len(), 1, "half of it never held: {all:?}");
        assert_eq!(site.events("configuration_refused", from), [] as [Value; 0]);
        return;
    }
}
