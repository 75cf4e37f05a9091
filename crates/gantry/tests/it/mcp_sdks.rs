//! Clients that others wrote, on the official SDKs of both generations, against `gantry mcp` and `gantry serve`.

use gantry_testkit::{BUILT_IN, CommandOutput, Server, TestDir};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The newest version with a handshake, and the one without.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A client, and the eras it can be made to speak with the version that each leads to.
pub(crate) struct Sdk {
    program: &'static str,
    script: &'static str,
    pub(crate) eras: &'static [(&'static str, &'static str)],
}

pub(crate) const PYTHON: Sdk = Sdk {
    program: "py/bin/python",
    script: "node/py_client.py",
    eras: &[("auto", MODERN), ("legacy", LEGACY), (MODERN, MODERN)],
};
pub(crate) const TYPESCRIPT_1: Sdk =
    Sdk { program: "node", script: "node/ts1_client.mjs", eras: &[("legacy", LEGACY)] };
pub(crate) const TYPESCRIPT_2: Sdk = Sdk {
    program: "node",
    script: "node/ts2_client.mjs",
    eras: &[("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)],
};

/// Every one of them.
pub(crate) const SDKS: [Sdk; 3] = [PYTHON, TYPESCRIPT_1, TYPESCRIPT_2];

/// How a client reaches Gantry.
#[derive(Clone, Copy)]
pub(crate) enum Door<'a> {
    /// It starts `gantry mcp`.
    Stdio,
    /// The same as an agent.
    StdioAs(&'a str),
    /// It connects to a server.
    Http(&'a Server),
}

/// A client that plays a script.
pub(crate) struct Playing {
    child: Child,
    name: String,
}

impl Playing {
    /// What the client saw, when it has played everything.
    #[track_caller]
    pub(crate) fn end(self) -> Value {
        let ran = finished(self.child.wait_with_output().expect("the client ends"));
        assert_eq!(ran.code, 0, "{}: {ran:?}", self.name);
        ran.json()
    }

    /// Ends the client like a crash.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

/// A file of the installed clients; a name without a folder is a program of the machine.
pub(crate) fn installed(name: &str) -> PathBuf {
    if !name.contains('/') {
        return name.into();
    }
    let path = gantry_testkit::test_dir::installed("clients").join(name);
    assert!(path.exists(), "{} is not there; `cargo xtask test --only clients` installs it", path.display());
    path
}

/// A command of a client, with the environment that Gantry itself would get.
fn client(home: &TestDir, program: &str) -> Command {
    let mut command = Command::new(installed(program));
    let base = home.command::<[&str; 0]>([]);
    let env = base.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.env_clear().envs(env).current_dir(home.path());
    command.env("MCP_STORAGE_DIR", home.path().join(".inspector"));
    command.stdin(Stdio::null());
    command
}

fn ran(mut command: Command) -> CommandOutput {
    finished(command.output().expect("the client starts"))
}

fn finished(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Sdk {
    /// Plays a script and returns what the client saw.
    #[track_caller]
    pub(crate) fn play(&self, home: &TestDir, door: Door<'_>, era: &str, script: &Value) -> Value {
        self.play_with(home, door, &["--era", era], script)
    }

    /// The same with these options of the client.
    #[track_caller]
    pub(crate) fn play_with(
        &self,
        home: &TestDir,
        door: Door<'_>,
        options: &[&str],
        script: &Value,
    ) -> Value {
        self.begin(home, door, options, script).end()
    }

    /// Begins to play a script.
    #[track_caller]
    pub(crate) fn begin(&self, home: &TestDir, door: Door<'_>, options: &[&str], script: &Value) -> Playing {
        let mut command = client(home, self.program);
        command.arg(installed(self.script));
        match door {
            Door::Stdio => command.arg("--stdio").arg(home.executable()).arg("mcp"),
            Door::StdioAs(agent) => {
                command.arg("--stdio").arg(home.executable()).args(["mcp", "--agent", agent])
            }
            Door::Http(server) => command.arg("--url").arg(format!("http://{}/mcp", server.address)),
        };
        command.args(options).args(["--script", &script.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = format!("{} {options:?}", self.script);
        Playing { child: command.spawn().expect("the client starts"), name }
    }

    /// Plays the same conversation in every era.
    fn converse(&self, home: &TestDir, door: Door<'_>) {
        for era in self.eras {
            self.converse_in(home, door, *era, &format!("{}.txt", era.0));
        }
    }

    fn converse_in(&self, home: &TestDir, door: Door<'_>, (era, version): (&str, &str), file: &str) {
        let seen = self.play(home, door, era, &conversation(file));
        assert_eq!(
            (&seen["protocol"], &seen["server"]["name"]),
            (&json!(version), &json!("gantry")),
            "{era}"
        );
        let instructions = seen["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("# workspace"), "{instructions}");
        let steps = seen["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 5, "{era}");
        check_list(home, &steps[0]);
        check_calls(file, &steps[1..]);
        check_ledger(home, door, file);
    }
}

fn conversation(file: &str) -> Value {
    let call = |name: &str, arguments: &Value| json!({ "call": { "name": name, "arguments": arguments } });
    json!([
        { "list": {} },
        call("write_file", &json!({ "path": file, "content": "grüße\n" })),
        call("read_file", &json!({ "path": file })),
        call("read_file", &json!({ "path": "missing.txt" })),
        call("no_such_tool", &json!({ "path": file })),
    ])
}

/// Exactly the built-in tools, each as `gantry tools` shows it.
fn check_list(home: &TestDir, step: &Value) {
    assert_eq!(step["tools"], json!(BUILT_IN));
    check_definitions(home, &step["definitions"]);
}

fn check_definitions(home: &TestDir, seen: &Value) {
    let expected = home.run(["tools", "--format", "mcp"]).json();
    let (seen, expected) = (seen.as_array().expect("a list"), expected.as_array().expect("a list"));
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        for field in ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] {
            assert!(!expected[field].is_null(), "{field} of {expected}");
            assert_eq!(seen[field], expected[field], "{field} of {}", expected["name"]);
        }
    }
}

fn text(step: &Value) -> &str {
    assert_eq!(step["content"].as_array().map(Vec::len), Some(1), "{step}");
    assert_eq!(step["content"][0]["type"], "text", "{step}");
    step["content"][0]["text"].as_str().expect("a text")
}

/// The documented results: for programs as a structure, for models as the same in text.
fn check_calls(file: &str, steps: &[Value]) {
    let [written, read, missing, unknown] = steps else { panic!("four calls, not {steps:?}") };
    assert_eq!(written["isError"], false, "{written}");
    assert_eq!(written["structuredContent"], json!({ "path": file, "size": 8 }), "{written}");
    assert_eq!(read["isError"], false, "{read}");
    assert_eq!(read["structuredContent"]["content"], "grüße\n", "{read}");
    assert_eq!(read["structuredContent"]["size"], 8, "{read}");
    for step in [written, read] {
        let outcome: Value = serde_json::from_str(text(step)).expect("JSON as text");
        assert_eq!(outcome, step["structuredContent"], "{step}");
    }
    assert_eq!(
        (&missing["isError"], &missing["structuredContent"]),
        (&json!(true), &Value::Null),
        "{missing}"
    );
    let outcome = text(missing);
    assert!(
        outcome.starts_with("(tool failed: missing.txt does not exist") && outcome.ends_with(')'),
        "{outcome}"
    );
    assert_eq!(missing["_meta"]["gantry/error"]["code"], "FILE_NOT_FOUND", "{missing}");
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(
        unknown["error"]["message"].as_str().expect("a text").contains("tool not found: no_such_tool"),
        "{unknown}"
    );
}

/// The calls of the last conversation, newest first, as they are on record.
fn check_ledger(home: &TestDir, door: Door<'_>, file: &str) {
    let rows = home.run(["audit", "--json", "--limit", "4"]).json();
    let shown: Vec<_> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            let principal = &row["principal"];
            assert_eq!(row["door"], "mcp", "{row}");
            // Behind `gantry mcp` is the person who started it.
            assert_eq!(principal, if matches!(door, Door::Stdio) { "mcp" } else { "local" }, "{row}");
            let field = |name: &str| row[name].as_str().expect("a text");
            (field("tool"), field("state"), row["error"]["code"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("no_such_tool", "REFUSED", "TOOL_NOT_FOUND"),
            ("read_file", "COMPLETED_FAILURE", "FILE_NOT_FOUND"),
            ("read_file", "COMPLETED_SUCCESS", ""),
            ("write_file", "COMPLETED_SUCCESS", ""),
        ],
        "{rows}"
    );
    assert!(rows[3]["arguments"].as_str().expect("a text").contains(file), "{rows}");
}

#[test]
fn srv_1_the_python_sdk_works_over_stdio_in_both_eras() {
    PYTHON.converse(&TestDir::new(), Door::Stdio);
}

#[test]
fn srv_1_the_python_sdk_works_over_http_in_both_eras() {
    let home = TestDir::new();
    PYTHON.converse(&home, Door::Http(&home.serve()));
}

#[test]
fn srv_1_the_typescript_sdk_1_works_over_stdio_and_http() {
    TYPESCRIPT_1.converse(&TestDir::new(), Door::Stdio);
    let home = TestDir::new();
    TYPESCRIPT_1.converse(&home, Door::Http(&home.serve()));
}

#[test]
fn srv_1_the_typescript_client_2_works_over_stdio_in_both_eras() {
    TYPESCRIPT_2.converse(&TestDir::new(), Door::Stdio);
}

#[test]
fn srv_1_the_typescript_client_2_works_over_http_in_both_eras() {
    let home = TestDir::new();
    TYPESCRIPT_2.converse(&home, Door::Http(&home.serve()));
}

#[test]
fn srv_1_clients_that_start_gantry_beside_a_running_server_share_its_queues_and_events() {
    let home = TestDir::new();
    let server = home.serve();
    let sdks = [("py", PYTHON), ("ts1", TYPESCRIPT_1), ("ts2", TYPESCRIPT_2)];
    for (name, sdk) in &sdks {
        sdk.converse_in(&home, Door::Stdio, sdk.eras[0], &format!("{name}.txt"));
    }
    let events = server.get_as_admin("/api/v1/events?follow=false").text;
    let finished = events.lines().filter(|line| line.contains("tool_finished")).count();
    assert_eq!(finished, 4 * sdks.len(), "{events}");
}

/// Runs the Inspector's command line.
pub(crate) fn inspector(home: &TestDir, door: Door<'_>, era: &str, args: &[&str]) -> CommandOutput {
    let mut command = client(home, "node/inspector.sh");
    if let Door::Http(server) = door {
        command.arg(format!("http://{}/mcp", server.address)).args(["--transport", "http"]);
    }
    command.args(["--protocol-era", era]).args(args);
    match door {
        Door::Stdio => drop(command.arg("--").arg(home.executable()).arg("mcp")),
        Door::StdioAs(agent) => {
            command.arg("--").arg(home.executable()).args(["mcp", "--agent", agent]);
        }
        Door::Http(_) => {}
    }
    ran(command)
}

fn inspect(home: &TestDir, door: Door<'_>) {
    for era in ["legacy", "auto", "modern"] {
        let file = format!("{era}.txt");
        let call = |tool: &str, arguments: &Value| {
            let arguments = arguments.to_string();
            let args = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
            inspector(home, door, era, &args)
        };
        let listed = inspector(home, door, era, &["--method", "tools/list"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        let tools = &listed.json()["result"]["tools"];
        let names: Vec<_> =
            tools.as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(json!(names), json!(BUILT_IN));
        check_definitions(home, tools);

        let written = call("write_file", &json!({ "path": file, "content": "grüße\n" }));
        assert_eq!(written.code, 0, "{written:?}");
        assert_eq!(written.json()["result"]["structuredContent"], json!({ "path": file, "size": 8 }));
        let read = call("read_file", &json!({ "path": file })).json();
        assert_eq!(read["result"]["structuredContent"]["content"], "grüße\n", "{read}");
        let missing = call("read_file", &json!({ "path": "missing.txt" }));
        assert_ne!(missing.code, 0, "{missing:?}");
        let result = &missing.json()["result"];
        assert_eq!(result["isError"], true, "{missing:?}");
        assert!(text(result).starts_with("(tool failed: missing.txt does not exist"), "{missing:?}");
        // The Inspector looks a name up in the list first, so this one never gets to Gantry.
        let unknown = call("no_such_tool", &json!({}));
        assert!(unknown.code != 0 && unknown.stderr.contains("tool_not_found"), "{unknown:?}");

        let rows = home.run(["audit", "--json", "--limit", "3"]).json();
        let states: Vec<_> =
            rows.as_array().expect("rows").iter().map(|row| (&row["tool"], &row["state"])).collect();
        let (read_file, write_file, done) =
            (json!("read_file"), json!("write_file"), json!("COMPLETED_SUCCESS"));
        let failed = json!("COMPLETED_FAILURE");
        assert_eq!(states, [(&read_file, &failed), (&read_file, &done), (&write_file, &done)], "{rows}");
    }
}

#[test]
fn srv_1_the_mcp_inspector_works_over_stdio() {
    inspect(&TestDir::new(), Door::Stdio);
}

#[test]
fn srv_1_the_mcp_inspector_works_over_http() {
    let home = TestDir::new();
    inspect(&home, Door::Http(&home.serve()));
}

/// A home whose results are stored beyond 2,000 bytes, with a file of twice that.
fn home_with_small_results() -> TestDir {
    let home = TestDir::with_test_tools().config("defaults: { toolResponseMaxBytes: 2000 }\n");
    let lines: String = (0..400).map(|n| format!("line {n:04}\n")).collect();
    home.write("big.txt", &lines);
    home
}

/// The handle in a message that stands for a stored result.
fn handle(step: &Value) -> String {
    let message: Value = serde_json::from_str(text(step)).expect("JSON as text");
    assert_eq!(message["tool_output"]["reason"], "size_limit_exceeded", "{step}");
    assert!(message["tool_output"]["bytes"].as_u64() > Some(2000), "{step}");
    message["tool_output"]["handle"].as_str().expect("a handle").to_owned()
}

/// A tool with an output schema promises a structure. Clients that hold it to that must still get the message that
/// stands for a stored result, and the way to the result itself.
#[test]
fn cal_9_a_stored_result_does_not_break_clients_that_insist_on_the_output_schema() {
    let script = json!([
        { "list": {} },
        { "call": { "name": "read_file", "arguments": { "path": "big.txt" } } },
        { "call": { "name": "test__flood", "arguments": { "bytes": 5000 } } },
        { "list": {} },
    ]);
    let check = |sdk: &Sdk, home: &TestDir, door: Door<'_>, era: &str| {
        let seen = sdk.play(home, door, era, &script);
        let [before, read, flood, after] = seen["steps"].as_array().expect("steps").as_slice() else {
            panic!("not four steps in {era}")
        };
        // Without the promised structure it can only be an error to them; the text says what to do.
        assert_eq!((&read["isError"], &read["structuredContent"]), (&json!(true), &Value::Null), "{read}");
        assert_eq!(
            (&flood["isError"], &flood["structuredContent"]),
            (&json!(false), &Value::Null),
            "{flood}"
        );
        assert_ne!(handle(read), handle(flood));
        let lists = |step: &Value| step["tools"].as_array().expect("tools").contains(&json!("tool_output"));
        assert!(lists(after), "{}", after["tools"]);
        // Requests of 2026-07-28 over HTTP have one session, in which there may be a handle already.
        assert!(matches!(door, Door::Http(_)) || !lists(before), "{}", before["tools"]);
    };
    for sdk in [PYTHON, TYPESCRIPT_1, TYPESCRIPT_2] {
        check(&sdk, &home_with_small_results(), Door::Stdio, sdk.eras[0].0);
        let home = home_with_small_results();
        let server = home.serve();
        for (era, _) in sdk.eras {
            check(&sdk, &home, Door::Http(&server), era);
        }
    }
}

#[test]
fn cal_9_clients_that_insist_on_the_output_schema_read_a_stored_result() {
    let home = home_with_small_results();
    let server = home.serve();
    for sdk in [PYTHON, TYPESCRIPT_2] {
        let read = json!([{ "call": { "name": "read_file", "arguments": { "path": "big.txt" } } }]);
        let seen = sdk.play(&home, Door::Http(&server), MODERN, &read);
        let handle = handle(&seen["steps"][0]);
        let arguments = json!({ "handle": handle, "mode": "jsonPath", "path": "$.size" });
        let script = json!([{ "list": {} }, { "call": { "name": "tool_output", "arguments": arguments } }]);
        let seen = sdk.play(&home, Door::Http(&server), MODERN, &script);
        let step = &seen["steps"][1];
        assert_eq!(step["isError"], false, "{step}");
        assert_eq!(step["structuredContent"]["handle"], json!(handle), "{step}");
        assert!(step["structuredContent"]["content"].as_str().unwrap().contains("4000"), "{step}");
    }
}
