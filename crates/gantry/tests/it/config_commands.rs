//! `gantry config`: every problem at once, what applies and where it comes from, and the schema in a real editor's server.

#![cfg(test)]

use crate::mcp_sdks::installed;
use gantry_testkit::TestDir;
use gantry_testkit::process::ChildGuard;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn obs_4_config_check_reports_every_problem_of_all_files_at_once() {
    let home = TestDir::new().config(
        "wrkspace: .\ndefaults: { toolTimeout: soon, maxDepth: 99 }\nmcpServers:\n  a: { command: x, url: 'http://a/' }\n  \
         b: { comand: x }\napprovals: { webhook: {} }\n",
    );
    home.write("agents/c/agent.json", "{ \"tols\": [] }");
    let ran = home.run(["config", "check"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for problem in [
        "gantry.yaml:1: unknown key \"wrkspace\"; did you mean \"workspace\"?",
        "gantry.yaml:2: defaults.toolTimeout must be a whole number of milliseconds, found \"soon\"",
        "gantry.yaml:2: defaults.maxDepth must be a whole number, at most 16, found 99",
        "gantry.yaml:4: mcpServers.a has both a command and an address",
        "gantry.yaml:5: unknown key \"comand\" in mcpServers.b; did you mean \"command\"?",
        "gantry.yaml:6: approvals.webhook needs the key \"url\"",
        "gantry.yaml:6: approvals.webhook needs the key \"secret\"",
        "agents/c/agent.json:1: unknown key \"tols\"",
    ] {
        assert!(ran.stderr.contains(problem), "{problem}\n{ran:?}");
    }
    let conditions = TestDir::new().config(
        "policies:\n  - { name: p, tools: [a], decide: deny, when: 'args.(' }\n  - { name: q, tools: [a], decide: ask, when: 'x' }\n",
    );
    let ran = conditions.run(["config", "check"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("gantry.yaml:2: policy p") && ran.stderr.contains("gantry.yaml:3: policy q"),
        "{ran:?}"
    );
    let good = TestDir::new().config("agents: { a: { tools: [read_file], memory: {} } }\n");
    let ran = good.run(["config", "check", "--json"]);
    assert_eq!((ran.code, &ran.json()["ok"]), (0, &json!(true)), "{ran:?}");
    assert!(
        ran.json()["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with("gantry.yaml:1: agents.a.memory has no effect")
    );
    let ran = good.run(["config", "check"]);
    assert!(ran.stdout.contains("no problems") && ran.stdout.contains("1 warning above"), "{ran:?}");
    assert!(ran.stderr.contains("agents.a.memory has no effect"), "{ran:?}");
}

#[test]
fn obs_4_config_show_names_the_line_of_each_value_and_shows_no_secret() {
    let home = TestDir::new()
        .config(
            "defaults: { toolTimeout: 5 }\nmcpServers:\n  x:\n    command: npx\n    env: { TOKEN: '${TOKEN}', KEY: hunter2 }\n\
             web: { search: { api: brave, apiKey: '${KEY:-hunter2}' } }\nprojects: { p: { workspace: . } }\n",
        )
        .env("TOKEN", "hunter2");
    home.write("agents/a/agent.json", "{\n\"tools\": [\"read_file\"] }");
    let ran = home.run(["config", "show", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = ran.json();
    let items = shown["items"].as_array().unwrap();
    let find = |path: &str| {
        let item =
            items.iter().find(|item| item["path"] == path).unwrap_or_else(|| panic!("{path}: {shown}"));
        (item["value"].clone(), item["from"].clone())
    };
    assert_eq!(find("defaults.toolTimeout"), (json!(5), json!("gantry.yaml:1")));
    assert_eq!(find("projects.p.defaults.toolTimeout"), (json!(5), json!("gantry.yaml:1")));
    assert_eq!(find("defaults.maxDepth"), (json!(2), Value::Null));
    assert_eq!(find("server.bind"), (json!("127.0.0.1:7420"), Value::Null));
    assert_eq!(find("mcpServers.x.env.TOKEN"), (json!("${TOKEN}"), json!("gantry.yaml:5")));
    assert_eq!(find("mcpServers.x.env.KEY"), (json!("[secret]"), json!("gantry.yaml:5")));
    assert_eq!(find("mcpServers.x.startupTimeoutMs"), (json!(15_000), Value::Null));
    assert_eq!(find("web.search.apiKey").0, "${KEY}");
    assert_eq!(find("agents.a.tools"), (json!(["read_file"]), json!("agents/a/agent.json:2")));
    let table = home.run(["config", "show"]);
    assert!(table.stdout.contains("gantry.yaml:5") && !table.stdout.contains("hunter2"), "{table:?}");
    assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
}

#[test]
fn obs_4_an_editor_completes_a_key_and_flags_an_unknown_one_in_gantry_yaml() {
    let home = TestDir::new();
    let schema = home.run(["config", "schema"]);
    assert_eq!(schema.code, 0, "{schema:?}");
    home.write("gantry.schema.json", &schema.stdout);
    let line = "# yaml-language-server: $schema=./gantry.schema.json\n";
    let text = format!("{line}wrkspace: .\nmcpServers:\n  x:\n    command: npx\n    toolsD\n");
    let mut editor = Editor::open(home.path(), &text);
    let flagged = editor.wait("textDocument/publishDiagnostics", |message| {
        message["diagnostics"].as_array().is_some_and(|list| !list.is_empty())
    });
    let diagnostics = flagged["diagnostics"].to_string();
    assert!(diagnostics.contains("wrkspace is not allowed"), "{diagnostics}");
    let at = json!({ "textDocument": { "uri": editor.uri }, "position": { "line": 5, "character": 10 } });
    let completed = editor.request("textDocument/completion", &at);
    let items = completed.get("items").unwrap_or(&completed).as_array().cloned().unwrap_or_default();
    let found = items.iter().find(|item| item["label"] == "toolsDenied");
    let found = found.unwrap_or_else(|| panic!("no completion: {completed}"));
    assert!(found["documentation"].to_string().contains("Tools to leave out"), "{found}");
}

/// The YAML language server that editors use, with one open file.
struct Editor {
    child: ChildGuard,
    from: BufReader<std::process::ChildStdout>,
    uri: String,
    next: u64,
}

impl Editor {
    fn open(folder: &Path, text: &str) -> Self {
        let mut child = Command::new("node")
            .arg(installed("node/node_modules/yaml-language-server/bin/yaml-language-server"))
            .arg("--stdio")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let from = BufReader::new(child.stdout.take().expect("its output"));
        let uri = format!("file://{}/gantry.yaml", folder.canonicalize().expect("a folder").display());
        let mut editor = Self { child: ChildGuard(child), from, uri, next: 0 };
        let capabilities = json!({ "textDocument": { "completion": { "completionItem": { "documentationFormat": ["markdown"] } } } });
        let root = format!("file://{}", folder.display());
        editor.request(
            "initialize",
            &json!({ "processId": null, "rootUri": root, "capabilities": capabilities }),
        );
        editor.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
        let document = json!({ "uri": editor.uri, "languageId": "yaml", "version": 1, "text": text });
        let opened = json!({ "textDocument": document });
        editor.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened }));
        editor
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let input = self.child.0.stdin.as_mut().expect("its input");
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("it reads");
        input.flush().expect("it reads");
    }

    /// The next message; requests of the server are answered with nothing.
    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("it writes") > 0, "the language server has ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("a message");
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            let asked = message["params"]["items"].as_array().map_or(0, Vec::len);
            let result = match method {
                "workspace/configuration" => Value::from(vec![Value::Null; asked]),
                _ => Value::Null,
            };
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        message
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
    }

    fn wait(&mut self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if message["method"] == method && is_it(&message["params"]) {
                return message["params"].clone();
            }
        }
    }
}
