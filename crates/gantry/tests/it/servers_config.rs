//! MCP servers in the configuration, as far as they need no server that answers: entries, lights, secrets.

#![cfg(test)]

use gantry_testkit::server::send;
use gantry_testkit::test_dir::executable;
use gantry_testkit::{CommandOutput, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A value that must never be seen.
const SECRET: &str = "hunter2-and-more";

/// The server of this id, as the command line lists it.
#[track_caller]
fn server(home: &TestDir, id: &str) -> Value {
    let ran = home.run(["servers", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let servers = ran.json();
    let found = servers.as_array().expect("servers").iter().find(|server| server["id"] == id);
    found.unwrap_or_else(|| panic!("there is no {id}: {servers}")).clone()
}

#[track_caller]
fn refused(yaml: &str) -> String {
    let ran = TestDir::new().config(yaml).run(["tools"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    ran.stderr
}

/// That nothing of a command shows the secret.
#[track_caller]
fn discreet(ran: &CommandOutput) {
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
}

#[test]
fn ups_7_an_unset_variable_disables_that_server_only_and_names_both() {
    let home = TestDir::new().config(
        "mcpServers:\n  github: { command: npx, env: { GITHUB_TOKEN: \"${NO_SUCH_TOKEN}\" } }\n  \
         other: { command: npx, enabled: false }\n",
    );
    let github = server(&home, "github");
    assert_eq!(
        (&github["light"], &github["type"], &github["tools"]),
        (&json!("off"), &json!("stdio"), &json!(0))
    );
    let why = github["lastError"].as_str().expect("a reason");
    assert!(why.contains("github") && why.contains("${NO_SUCH_TOKEN} is not set"), "{why}");
    // The rest goes on: other servers, Gantry's own tools.
    assert_eq!(server(&home, "other")["lastError"], Value::Null);
    assert_eq!(home.call("list_directory", &json!({ "path": "." }))["ok"], true);
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(
        doctor.stdout.contains("github ● off") && doctor.stdout.contains("${NO_SUCH_TOKEN}"),
        "{doctor:?}"
    );
    let why = home.run(["doctor", "github__search_code"]);
    assert_eq!(why.code, 1, "{why:?}");
    assert!(why.stdout.contains("${NO_SUCH_TOKEN}"), "{why:?}");
}

#[test]
fn ups_7_a_variable_with_a_default_or_from_dotenv_is_set() {
    let home = TestDir::new().config(
        "mcpServers:\n  a: { command: gantry-no-such-program, env: { A: \"${NO_SUCH_TOKEN:-x}\", B: \"${FROM_FILE}\" } }\n",
    );
    home.write(".env", &format!("FROM_FILE={SECRET}\n"));
    let ran = home.run(["servers", "--json"]);
    discreet(&ran);
    assert_ne!(server(&home, "a")["light"], "off", "{ran:?}");
}

#[test]
fn ups_7_enabled_false_switches_the_light_off() {
    let home = TestDir::new().config(
        "mcpServers:\n  a: { command: x, enabled: false }\n  b: { url: \"http://127.0.0.1:9/mcp\", disabled: true }\n",
    );
    for (id, kind) in [("a", "stdio"), ("b", "http")] {
        let found = server(&home, id);
        assert_eq!(
            (&found["light"], &found["status"], &found["type"]),
            (&json!("off"), &json!("off"), &json!(kind))
        );
        assert_eq!(found["lastError"], Value::Null);
    }
    assert_eq!(home.run(["doctor"]).code, 0, "what its configuration switches off is no fault");
}

#[test]
fn a_bad_entry_is_a_load_error() {
    for (entry, words) in [
        ("{}", "needs \"command\""),
        ("{ command: a, url: \"http://a/\" }", "both a command and an address"),
        ("{ url: \"not a url\" }", "mcpServers.x.url must be an http:// or https:// address"),
        ("{ comand: a }", "did you mean \"command\"?"),
        ("{ command: a, queue: nowhere }", "unknown queue"),
    ] {
        let said = refused(&format!("mcpServers:\n  x: {entry}\n"));
        assert!(said.starts_with("error: gantry.yaml:2: ") && said.contains(words), "{entry}: {said}");
    }
}

#[test]
fn the_file_of_an_editor_is_a_configuration() {
    let home = TestDir::new();
    home.write(
        ".mcp.json",
        r#"{ "mcpServers": { "memory": { "command": "npx", "args": ["-y", "x"], "disabled": true,
             "autoApprove": ["read"], "timeout": 60 } } }"#,
    );
    let ran = home.run(["--config", ".mcp.json", "servers", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()[0]["light"], "off", "{ran:?}");
    let doctor = home.run(["--config", ".mcp.json", "doctor"]);
    for key in ["mcpServers.memory.autoApprove has no effect", "mcpServers.memory.timeout has no effect"] {
        assert!(doctor.stdout.contains(key), "{doctor:?}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let home = TestDir::new().config(&format!(
        "mcpServers:\n  a: {{ command: gantry-no-such-program, env: {{ TOKEN: {SECRET} }} }}\n  \
         b: {{ url: \"http://127.0.0.1:9/mcp\", headers: {{ Authorization: \"Bearer {SECRET}\" }} }}\n",
    ));
    for args in
        [["servers"].as_slice(), &["servers", "--json"], &["doctor"], &["-vv", "tools"], &["lock", "diff"]]
    {
        discreet(&home.run(args));
    }
    let bad =
        TestDir::new().config(&format!("mcpServers: {{ a: {{ command: x, env: \"TOKEN={SECRET}\" }} }}\n"));
    discreet(&bad.run(["tools"]));
}

#[test]
fn changing_servers_takes_a_running_gantry() {
    let home = TestDir::new();
    for args in [
        ["servers", "add", "a", "--", "x"].as_slice(),
        &["servers", "remove", "a"],
        &["servers", "restart", "a"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("gantry serve"), "{ran:?}");
    }
    for args in
        [["servers", "add", "a"].as_slice(), &["servers", "add", "a", "--url", "http://a/", "--", "x"]]
    {
        assert_eq!(home.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn without_servers_the_lists_say_so() {
    let home = TestDir::new();
    assert_eq!(home.run(["servers", "--json"]).json(), json!([]));
    let said = home.run(["servers"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said:?}");
    assert!(said.stderr.contains("mcpServers"), "{said:?}");
    let diff = home.run(["lock", "diff", "--json"]);
    assert_eq!((diff.code, diff.json()), (0, json!([])), "{diff:?}");
    let unknown = home.run(["lock", "diff", "nobody"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn an_agent_cannot_change_what_is_pinned() {
    let home = TestDir::new();
    home.write("gantry.lock", "{}");
    for (tool, arguments) in [
        ("write_file", json!({ "path": "gantry.lock", "content": "x" })),
        ("move_file", json!({ "from": "gantry.lock", "to": "x" })),
        ("delete_file", json!({ "path": "gantry.lock" })),
    ] {
        let reply = home.call_yes(tool, &arguments);
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{tool}: {reply}");
    }
    assert_eq!(home.read("gantry.lock"), "{}");
}

#[test]
fn the_api_lets_agents_look_and_admins_change() {
    let home = TestDir::new().config(&format!(
        "mcpServers:\n  a: {{ command: x, env: {{ TOKEN: \"{SECRET} ${{NO_SUCH_TOKEN}}\" }} }}\n",
    ));
    let server = home.serve();
    let listed = server.get("/api/v1/servers").json();
    assert_eq!((&listed["items"][0]["light"], &listed["next"]), (&json!("off"), &Value::Null), "{listed}");
    assert_eq!(listed["items"][0]["lastError"], Value::Null, "what went wrong is for those who administer");
    let shown = server.get_as_admin("/api/v1/servers/a");
    assert!(shown.json()["lastError"].as_str().is_some_and(|why| why.contains("NO_SUCH_TOKEN")), "{shown:?}");
    assert!(!shown.text.contains(SECRET) && !server.stderr().contains(SECRET), "{shown:?}");
    let new = r#"{ "id": "b", "command": "gantry-no-such-program" }"#;
    for (method, path, body) in [
        (Method::POST, "/api/v1/servers", new),
        (Method::DELETE, "/api/v1/servers/a", ""),
        (Method::POST, "/api/v1/servers/a/restart", ""),
        (Method::GET, "/api/v1/lock", ""),
        (Method::POST, "/api/v1/lock", "{}"),
    ] {
        assert_eq!(server.request(method.clone(), path, &[], body).status, 403, "{method} {path}");
    }
    let admin = server.admin();
    for (method, path, body, status, words) in [
        (Method::GET, "/api/v1/servers/b", "", 404, "there is no server \"b\""),
        (Method::DELETE, "/api/v1/servers/b", "", 404, "there is no server"),
        (Method::POST, "/api/v1/servers/b/restart", "", 404, "there is no server"),
        (Method::GET, "/api/v1/lock?server=b", "", 404, "there is no server"),
        (Method::POST, "/api/v1/lock", r#"{"server":"b"}"#, 404, "there is no server"),
        (Method::POST, "/api/v1/lock", r#"{"tool":"b"}"#, 400, "needs"),
        (Method::POST, "/api/v1/lock", r#"{"tols":"b"}"#, 400, "unknown field"),
        (Method::POST, "/api/v1/servers", "{}", 400, "missing field `id`"),
        (Method::POST, "/api/v1/servers", "[]", 400, "not a server"),
        (Method::POST, "/api/v1/servers", r#"{"id":"a","command":"x"}"#, 409, "already"),
        (Method::POST, "/api/v1/servers", r#"{"id":"b"}"#, 400, "mcpServers.b needs"),
        (Method::POST, "/api/v1/servers", r#"{"id":"b","comand":"x"}"#, 400, "did you mean"),
        (Method::POST, "/api/v1/servers", r#"{"id":"agent","command":"x"}"#, 400, "choose another"),
        (
            Method::POST,
            "/api/v1/servers",
            r#"{"id":"b","command":"x","toolsDenied":["a b"]}"#,
            400,
            "or a glob",
        ),
        (
            Method::POST,
            "/api/v1/servers",
            r#"{"id":"b","command":"${NO_SUCH}"}"#,
            400,
            "${NO_SUCH} is not set",
        ),
    ] {
        let answer = send(&admin, method.clone(), path, &[], body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(message.contains(words), "{method} {path} {body}: {message}");
    }
}

#[test]
fn a_server_is_added_and_removed_while_gantry_runs() {
    let home = TestDir::new();
    let running = home.serve();
    let args =
        ["servers", "add", "late", "--env", &format!("TOKEN={SECRET}"), "--", "gantry-no-such-program", "-y"];
    let added = home.run(args);
    assert_eq!(added.code, 0, "{added:?}");
    discreet(&added);
    assert_eq!(
        added.stdout,
        "mcpServers:\n  late:\n    command: \"gantry-no-such-program\"\n    args: [\"-y\"]\n    env: { TOKEN: \"${TOKEN}\" }\n"
    );
    assert!(
        added.stderr.contains("until Gantry stops") && added.stderr.contains("TOKEN in the .env"),
        "{added:?}"
    );
    assert_eq!(server(&home, "late")["type"], "stdio");
    running.eventually("it is down", || server(&home, "late")["light"] == "red");
    let red = home.run(["servers", "--json"]);
    assert!(
        red.json()[0]["lastError"].as_str().is_some_and(|why| why.contains("gantry-no-such-program")),
        "{red:?}"
    );
    assert_eq!(home.run(["servers", "restart", "late"]).code, 0);
    let removed = home.run(["servers", "remove", "late"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (0, ""), "{removed:?}");
    assert_eq!(home.run(["servers", "--json"]).json(), json!([]));
    assert!(!running.stderr().contains(SECRET));
}

#[test]
fn ups_13_a_changed_definition_is_shown_and_accepted_at_the_command_line() {
    let home = TestDir::new();
    let has = |version: u64| {
        let faulty = executable("faulty");
        let args = format!("[\"--definition-version\", \"{version}\"]");
        home.write("gantry.yaml", &format!("mcpServers: {{ f: {{ command: {faulty:?}, args: {args} }} }}\n"));
    };
    has(1);
    assert_eq!(home.run(["lock", "diff"]).code, 1, "what is not pinned yet is a difference");
    let pinned = home.run(["lock"]);
    assert_eq!(pinned.code, 0, "{pinned:?}");
    assert!(pinned.stdout.contains("versioned") && pinned.stderr.contains("in gantry.lock"), "{pinned:?}");
    assert!(home.path().join("gantry.lock").is_file());
    assert_eq!(home.run(["lock", "diff"]).code, 0);
    has(2);
    let diff = home.run(["lock", "diff", "f"]);
    assert_eq!(diff.code, 1, "{diff:?}");
    assert!(diff.stdout.starts_with("f versioned: changed\n  description\n    - "), "{diff:?}");
    let json = home.run(["lock", "diff", "--json"]).json();
    assert_eq!((&json[0]["tool"], &json[0]["change"]), (&json!("versioned"), &json!("changed")), "{json}");
    // Neither pinning again nor an unattended question accepts it.
    let again = home.run(["lock"]);
    assert_eq!(again.code, 1, "{again:?}");
    let unasked = home.run(["lock", "accept", "f/versioned"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(
        unasked.stdout.starts_with("f versioned: changed") && unasked.stderr.contains("--yes"),
        "{unasked:?}"
    );
    assert_eq!(home.run(["lock", "accept", "nobody"]).code, 2);
    assert_eq!(home.run(["lock", "diff"]).code, 1);
    let accepted = home.run(["lock", "accept", "f/versioned", "--yes"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(home.run(["lock", "diff"]).code, 0);
}
