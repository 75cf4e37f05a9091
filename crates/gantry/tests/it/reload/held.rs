//! POL-2: a change that takes protection away, or brings a file that was not there, is held until an administrator applies it.

use super::trouble;
use crate::projects::{Site, faulty};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};

/// Two rules, an agent and a project, written so that many beginnings of it are configurations as well.
const WHOLE: &str = "\
agents:
  a: { tools: [read_file] }
projects:
  other: { workspace: two }
workspace: one
policies:
  - name: no-read
    decide: deny
    tools:
      - list_directory
      - read_file
  - name: no-delete
    decide: deny
    tools: [\"delete_*\"]
approvals:
  requiresApprovalTools:
    - write_file
";

fn site() -> Site {
    let home = TestDir::new();
    home.write("one/mine.txt", "of one");
    home.write("two/yours.txt", "of two");
    Site::at(home.config(WHOLE))
}

/// That everything of [`WHOLE`] holds.
#[track_caller]
fn holds(site: &Site, what: &str) {
    for (tool, arguments) in [
        ("read_file", json!({ "path": "mine.txt" })),
        ("list_directory", json!({ "path": "." })),
        ("delete_file", json!({ "path": "mine.txt" })),
    ] {
        let reply = site.call("default", tool, &arguments).json();
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{what}: {tool}: {reply}");
    }
    let listed = site.server.get("/api/v1/agents").json();
    assert_eq!(crate::passthrough::names(&listed["items"]), ["a"], "{what}");
    assert_eq!(site.server.get("/api/v1/tools?project=other").status, 200, "{what}");
}

fn held(site: &Site) -> Value {
    site.server.get_as_admin("/api/v1/config").json()["held"].take()
}

fn apply(site: &Site, revision: &Value) -> gantry_testkit::server::Answer {
    site.admin(Method::POST, "/api/v1/config/apply", &json!({ "revision": revision }))
}

#[test]
fn pol_2_a_file_that_is_cut_short_drops_no_rule_wherever_it_ends() {
    let site = site();
    for end in 0..WHOLE.trim_end().len() {
        site.home.write("gantry.yaml", WHOLE.get(..end).expect("it is ASCII"));
        let answer = site.reload();
        let is_kept = answer.status == 422 || answer.json()["held"].is_object();
        assert!(is_kept, "{end}: {answer:?}");
        if end % 20 == 0 {
            holds(&site, &format!("{end} characters"));
        }
    }
    holds(&site, "all but the last character");
    assert_eq!(site.events("configuration_applied", 0), [] as [Value; 0]);
    site.home.write("gantry.yaml", WHOLE);
    site.server.eventually("it is whole", || trouble(&site).is_null() && held(&site).is_null());
    holds(&site, "whole again");
}

#[test]
fn pol_2_a_file_with_nothing_in_it_is_refused_while_running_and_at_the_start() {
    let site = site();
    for nothing in ["", "\n", "# policies: []\n", "---\n", "~\n"] {
        let why = site.refused("gantry.yaml", nothing);
        assert!(why.contains("there is nothing in this file"), "{why}");
        holds(&site, nothing);
        site.home.write("gantry.yaml", WHOLE);
        site.server.eventually("it is mended", || trouble(&site).is_null());
    }
    for (name, nothing) in
        [("gantry.yaml", "# all of it\n"), ("gantry.toml", "# all of it\n"), ("gantry.json", "null")]
    {
        let home = TestDir::new();
        home.write(name, nothing);
        let ran = home.run(["tools"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("there is nothing in this file"), "{ran:?}");
    }
    assert_eq!(TestDir::new().config("{}\n").run(["tools"]).code, 0, "this sets nothing on purpose");
}

#[test]
fn pol_2_what_takes_protection_away_waits_and_says_so_everywhere() {
    let table = [
        (
            WHOLE.replace("  - name: no-delete\n    decide: deny\n    tools: [\"delete_*\"]\n", ""),
            "policy no-delete is removed",
        ),
        (WHOLE.replace("no-read", "others"), "policy no-read is removed"),
        (WHOLE.replace("  a: { tools", "  b: { tools"), "agent a is removed"),
        (WHOLE.replace("  other: { w", "  more: { w"), "project other is removed"),
        (WHOLE.replace("workspace: one", "workspace: ."), "not within"),
        (WHOLE.replace("workspace: one", "workspace: two"), "not within"),
        (WHOLE.replace("{ workspace: two }", "{ workspace: one }"), "the workspace of project other is"),
    ];
    let site = site();
    for (text, word) in table {
        let from = site.now();
        let reasons = site.held("gantry.yaml", &text);
        assert!(reasons.len() == 1 && reasons[0].contains(word), "{reasons:?}");
        holds(&site, word);
        let reported = site.events("configuration_held", from);
        let reported = reported[0]["reason"].as_str().expect("a reason");
        assert!(reported.contains(word) && reported.contains("gantry config apply"), "{reported}");
        site.server.says("[WRN] configuration_held reason=");
        let doctor = site.home.run(["doctor"]);
        assert!(doctor.stdout.contains(word) && doctor.stdout.contains("gantry config apply"), "{doctor:?}");
        assert_eq!(site.events("configuration_applied", from), [] as [Value; 0], "{word}");
        // Put back as it was, nothing waits.
        site.home.write("gantry.yaml", WHOLE);
        site.is_free();
        holds(&site, word);
    }
}

#[test]
fn pol_2_everything_else_applies_at_once_also_after_a_change_that_was_held() {
    let site = site();
    site.held("gantry.yaml", &WHOLE.replace("no-delete", "others"));
    // Judged anew, against what is in use.
    let narrower = WHOLE
        .replace("workspace: one", "workspace: one/below")
        .replace("{ tools: [read_file] }", "{ tools: [] }")
        + "code: { network: false }\n";
    std::fs::create_dir(site.home.path().join("one/below")).expect("a folder");
    let more = narrower.replace("projects:\n", "projects:\n  new: { workspace: . }\n");
    assert!(site.edit_file("gantry.yaml", &more).contains(&"new".to_owned()));
    site.is_free();
    assert_eq!(site.events("configuration_held", 0).len(), 1);
    holds(&site, "the new one");
}

#[test]
fn pol_2_an_administrator_applies_exactly_what_was_shown() {
    let site = site();
    let without = |name: &str| WHOLE.replace(name, "others");
    site.held("gantry.yaml", &without("no-read"));
    let seen = held(&site)["revision"].take();
    assert_eq!(held(&site)["revision"], seen, "it is the same change");
    // Who may not administer can neither see nor apply it.
    let path = "/api/v1/config/apply";
    assert_eq!(site.server.post(path, &json!({ "revision": seen }).to_string()).status, 403);
    // The file changes between the look and the yes.
    site.home.write("gantry.yaml", &without("no-delete"));
    let late = apply(&site, &seen);
    assert_eq!(late.status, 409, "{late:?}");
    holds(&site, "late");
    let reasons = held(&site)["reasons"].take();
    assert_eq!(reasons, json!(["policy no-delete is removed"]), "the other change is held instead");
    assert_eq!(apply(&site, &json!("00000000")).status, 409);
    holds(&site, "another revision");
    let applied = apply(&site, &held(&site)["revision"]);
    assert_eq!(
        (applied.status, applied.json()["projects"].clone()),
        (200, json!(["default"])),
        "{applied:?}"
    );
    assert!(held(&site).is_null());
    assert_eq!(apply(&site, &seen).status, 409, "nothing is held");
    let reply = site.call("default", "delete_file", &json!({ "path": "mine.txt" })).json();
    assert_eq!(reply["error"]["details"]["policy"], "others", "{reply}");
    site.error("default", "read_file", &json!({ "path": "mine.txt" }), "PERMISSION_DENIED");
}

#[test]
fn pol_2_config_apply_shows_what_is_held_and_applies_it() {
    let site = site();
    site.home.write("gantry.yaml", &WHOLE.replace("no-read", "others"));
    // There is no terminal to ask on.
    let asked = site.home.run(["config", "apply"]);
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(
        asked.stderr.contains("policy no-read is removed") && asked.stderr.contains("--yes"),
        "{asked:?}"
    );
    holds(&site, "not applied");
    let applied = site.home.run(["config", "apply", "--yes", "--json"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(applied.json(), json!({ "applied": true, "held": ["policy no-read is removed"] }));
    assert!(held(&site).is_null());
    let again = site.home.run(["config", "apply", "--yes"]);
    assert!(again.code == 0 && again.stderr.contains("No change is held"), "{again:?}");
    // One that cannot be used is refused as ever.
    site.home.write("gantry.yaml", "polices: []\n");
    let broken = site.home.run(["config", "apply", "--yes"]);
    assert!(broken.code == 2 && broken.stderr.contains("polices"), "{broken:?}");
}

/// A call of a tool that may put a file into the workspace: whether it is refused or not, the test writes it as well.
fn plant(site: &Site, name: &str, content: &str) {
    site.call("default", "write_file", &json!({ "path": name, "content": content }));
    let code = json!({ "language": "python", "code": format!(
        "import os\nos.makedirs(os.path.dirname('/workspace/{name}'), exist_ok=True)\nopen('/workspace/{name}', 'w').write({content:?})"
    ) });
    site.call("default", "run_code", &code);
    site.home.write(name, content);
}

#[test]
fn pol_2_what_a_tool_puts_beside_a_running_gantry_never_counts_by_itself() {
    let marker = json!({ "kind": "mcp", "transport": "stdio", "command": "touch", "args": ["started"] });
    let table = [
        ("agents/x.md", "---\ntools: [\"*\"]\n---\nAll.\n".to_owned()),
        ("agents/y/agent.json", json!({ "tools": ["read_file"] }).to_string()),
        ("tools/x/tool.json", marker.to_string()),
        (".env", "WHO=planted\n".to_owned()),
        (
            "gantry.lock",
            json!({ "version": 1, "servers": { "s": { "instructions": null, "tools": {} } } }).to_string(),
        ),
    ];
    let server =
        json!({ "command": gantry_testkit::faulty::Faulty::program(), "env": { "WHO": "${WHO:-mine}" } });
    for (name, content) in table {
        let site = Site::of(&json!({ "mcpServers": { "s": server } }));
        let (pid, tools) = (site.pid("default", "s"), site.tools("default"));
        plant(&site, name, &content);
        let reasons = site.is_held();
        assert_eq!(reasons, [format!("{name} was not there before")]);
        assert_eq!(site.pid("default", "s"), pid, "{name}");
        assert_eq!(site.tools("default"), tools, "{name}");
        assert_eq!(site.variable("default", "s", "WHO"), "mine", "{name}");
        assert_eq!(site.server.get("/api/v1/agents").json()["items"], json!([]), "{name}");
        // What looks at the pins again does not read them either.
        site.admin(Method::POST, "/api/v1/servers", &json!({ "id": "late", "command": "true" }));
        site.pid("default", "s");
        assert!(!site.home.path().join("started").exists(), "{name}");
        // Gone again, nothing waits.
        std::fs::remove_file(site.home.path().join(name)).expect("it is there");
        site.is_free();
    }
}

#[test]
fn pol_2_a_configuration_that_a_tool_writes_where_there_was_none_waits() {
    let site = Site::at(TestDir::new());
    let tools = site.tools("default");
    plant(&site, "gantry.yaml", "mcpServers: { x: { command: touch, args: [started] } }\n");
    assert_eq!(site.is_held(), ["gantry.yaml was not there before"]);
    assert_eq!(site.tools("default"), tools);
    assert!(!site.home.path().join("started").exists());
    site.home.write("gantry.yaml", "agents: { a: {} }\n");
    site.home.accept_files();
    assert_eq!(site.server.get("/api/v1/agents/a").status, 200);
}

#[test]
fn pol_2_a_second_configuration_beside_the_one_in_use_is_ignored() {
    let site = Site::of(&json!({ "agents": { "a": {} } }));
    plant(&site, "gantry.toml", "workspace = \"two\"\n");
    site.server.says("gantry.toml: ignored");
    assert_eq!((trouble(&site), held(&site)), (Value::Null, Value::Null));
    let ran = site.home.run(["tools"]);
    assert!(ran.code == 0 && ran.stderr.contains("gantry.toml: ignored"), "{ran:?}");
    // The one in use goes on to apply.
    site.edit(&json!({ "agents": { "a": {}, "b": {} } }));
    assert_eq!(site.server.get("/api/v1/agents/b").status, 200);
}

#[test]
fn pol_2_a_file_that_was_gone_counts_as_new_when_it_is_back() {
    let home = TestDir::new();
    let page = |tools: &str| format!("---\nname: reader\ntools: [{tools}]\n---\nRead.\n");
    home.write("agents/reader.md", &page("read_file"));
    let site = Site::at(home);
    std::fs::remove_file(site.home.path().join("agents/reader.md")).expect("it is there");
    assert_eq!(site.is_held(), ["agent reader is removed"]);
    // The tool's turn.
    plant(&site, "agents/reader.md", &page("\"*\""));
    site.server.eventually("it is held as a new file", || {
        held(&site)["reasons"] == json!(["agents/reader.md was not there before"])
    });
    assert_eq!(site.server.get("/api/v1/agents/reader").json()["toolNames"], json!(["read_file"]));
    site.home.accept_files();
    assert_ne!(site.server.get("/api/v1/agents/reader").json()["toolNames"], json!(["read_file"]));
    // From now on it counts, and its changes apply at once.
    site.edit_file("agents/reader.md", &page("read_file"));
    assert_eq!(site.events("configuration_held", 0).len(), 2);
}

#[test]
fn pol_2_a_document_of_an_api_that_comes_later_is_no_part_of_it() {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "servers": [{ "url": "http://127.0.0.1:9" }],
        "paths": { "/a": { "get": { "operationId": "a", "responses": {} } }, "/b": { "$ref": "./more.json" } },
    });
    let home = TestDir::new();
    home.write("api.json", &document.to_string());
    let config = json!({ "openapiSpecs": { "t": { "spec": "./api.json" } }, "agents": { "a": {}, "b": {} } });
    let home = home.config(&config.to_string());
    let site = Site { server: home.serve(), home };
    let apis =
        || site.tools("default").into_iter().filter(|name| name.starts_with("rest__t")).collect::<Vec<_>>();
    site.server.eventually("it is there", || apis() == ["rest__t_a"]);
    let before = apis();
    plant(&site, "more.json", &json!({ "get": { "operationId": "planted", "responses": {} } }).to_string());
    assert_eq!(site.is_held(), ["more.json was not there before"]);
    // Even what reads the document again takes only the files that it was made of.
    super::activate(&site, "a");
    super::activate(&site, "b");
    assert!(!site.tools("default").iter().any(|name| name.contains("planted")));
    let answer = site.admin(Method::POST, "/api/v1/agents/b/deactivate", &Value::Null);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(apis(), before);
    site.home.accept_files();
    site.server.eventually("it is part of it", || apis().contains(&"rest__t_planted".to_owned()));
}

#[test]
fn pol_2_a_lock_that_a_person_writes_counts_at_once() {
    let site = Site::of(&json!({ "mcpServers": { "s": faulty(&[]) } }));
    let from = site.now();
    let pinned = site.home.run(["lock"]);
    assert_eq!(pinned.code, 0, "{pinned:?}");
    // Another change is read after it, so that the lock was looked at.
    site.edit(&json!({ "mcpServers": { "s": faulty(&[]) }, "agents": { "a": {} } }));
    assert_eq!(site.events("configuration_held", from), [] as [Value; 0]);
    let Site { server, home } = site;
    server.stop();
    let site = Site::at(home);
    assert!(!site.server.stderr().contains("gantry.lock"), "{}", site.server.stderr());
    let diff = site.home.run(["lock", "diff", "--json"]);
    assert_eq!(diff.json(), json!([]), "{diff:?}");
}
