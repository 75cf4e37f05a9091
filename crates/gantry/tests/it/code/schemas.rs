//! Every tool of Gantry's own has both schemas, and what it returns fits: each is called through the program at least once.

use gantry_core::schema::Schema;
use gantry_testkit::git_server::GitServer;
use gantry_testkit::server::send;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

/// A page, and a search service's answer, on loopback. It ends with the test's process.
fn web() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let n = stream.read(&mut asked).unwrap_or(0);
            let (kind, body) = if asked[..n].starts_with(b"GET /search") {
                (
                    "application/json",
                    json!({ "results": [{ "title": "T", "url": "https://example.com/", "content": "C" }] })
                        .to_string(),
                )
            } else if asked[..n].starts_with(b"GET /bytes") {
                ("application/octet-stream", "\u{1}\u{2}\0".to_owned())
            } else {
                (
                    "text/html",
                    "<html><head><title>A page</title></head><body><h1>Head</h1><p>Text</p></body></html>"
                        .to_owned(),
                )
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).ok();
        }
    });
    address
}

/// Each tool with arguments of calls that succeed, in this order.
fn calls(web: SocketAddr) -> Vec<(&'static str, Value)> {
    vec![
        ("list_directory", json!({ "path": ".", "recursive": true })),
        ("read_file", json!({ "path": "src/lib.rs" })),
        ("read_file", json!({ "path": "src/lib.rs", "encoding": "base64" })),
        ("write_file", json!({ "path": "new.txt", "content": "x" })),
        ("move_file", json!({ "from": "new.txt", "to": "moved.txt" })),
        ("delete_file", json!({ "path": "moved.txt" })),
        ("docs__list_directory", json!({ "path": "docs" })),
        ("docs__read_file", json!({ "path": "docs/a.md" })),
        ("notes__write_file", json!({ "path": "notes/a.txt", "content": "x", "createDirs": true })),
        ("notes__move_file", json!({ "from": "notes/a.txt", "to": "notes/b.txt" })),
        ("notes__delete_file", json!({ "path": "notes/b.txt" })),
        ("run_code", json!({ "language": "bash", "code": "echo hi; echo ho >&2; exit 3" })),
        ("run_code", json!({ "language": "python", "code": "print('x' * (2 << 20))" })),
        ("sh__shell_exec", json!({ "command": "echo", "args": ["hi"] })),
        ("search_code", json!({ "query": "double", "mode": "literal", "context": 1 })),
        ("search_code", json!({ "query": "fn +dou", "mode": "regex" })),
        ("search_code", json!({ "query": "double number" })),
        ("search_code", json!({ "query": "nothing has this", "mode": "literal" })),
        ("web_fetch", json!({ "url": format!("http://{web}/page") })),
        ("web_fetch", json!({ "url": format!("http://{web}/page"), "format": "markdown" })),
        ("web_fetch", json!({ "url": format!("http://{web}/bytes") })),
        ("web_search", json!({ "query": "anything" })),
        ("git_status", json!({})),
        ("git_commit", json!({ "message": "Second\n\nWith a body.", "all": true })),
        ("git_diff", json!({ "from": "HEAD~1", "to": "HEAD" })),
        ("git_log", json!({})),
        ("git_push", json!({})),
        ("git_status", json!({})),
        ("run_tests", json!({ "path": "py" })),
        ("format_code", json!({ "path": "src/lib.rs", "check": true })),
        ("format_code", json!({ "path": "src/lib.rs" })),
        ("install_package", json!({ "path": "js" })),
    ]
}

fn git(home: &TestDir, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(args).current_dir(home.path());
    assert!(command.status().expect("git is installed").success(), "{args:?}");
}

fn prepare(web: SocketAddr, remote: &GitServer) -> TestDir {
    let home = TestDir::new().config(&format!(
        "
defaults: {{ toolResponseMaxBytes: 50000000 }}
tools:
  docs: {{ kind: builtin, builtinPolicy: {{ name: fs_read, allowedPaths: [docs] }} }}
  notes: {{ kind: builtin, builtinPolicy: {{ name: fs_write, allowedPaths: [notes] }} }}
  sh: {{ kind: builtin, builtinPolicy: {{ name: shell_exec, allowedCommands: [echo] }} }}
web:
  allowPrivate: [127.0.0.1/32]
  allow: [\"http://127.0.0.1:{}/*\"]
  search: {{ api: searxng, url: \"http://{web}\" }}
git: {{ author: {{ name: A, email: a@example.com }} }}
",
        web.port()
    ));
    home.write("src/lib.rs", "/// Twice a number.\npub fn double(n : u32) -> u32 { 2*n }\n");
    home.write("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    home.write("docs/a.md", "# A\n");
    home.write(".gitignore", ".gantry\n");
    home.write(
        "py/test_sums.py",
        "import unittest\nclass Sums(unittest.TestCase):\n    def test_good(self): pass\n    def test_bad(self): self.assertEqual(1, 2)\n",
    );
    home.write("js/package.json", r#"{ "name": "sample", "version": "1.0.0", "private": true }"#);
    git(&home, &["init", "-q", "-b", "main"]);
    git(&home, &["add", "-A"]);
    git(&home, &["commit", "-q", "-m", "First"]);
    git(&home, &["remote", "add", "origin", &format!("http://{}/x.git", remote.address)]);
    home.write("docs/a.md", "# A\n\nMore.\n");
    home
}

/// A call by the person, who says yes to it.
fn call(server: &Server, tool: &str, arguments: &Value) -> Value {
    let body = json!({ "tool": tool, "arguments": arguments, "approve": true }).to_string();
    send(&server.admin(), http::Method::POST, "/api/v1/calls", &[("content-type", "application/json")], &body)
        .json()
}

/// The name of a tool and the schema of its results; it must have both schemas.
fn compiled(tool: &Value) -> (String, Schema) {
    let name = tool["name"].as_str().expect("a name").to_owned();
    let compile = |field: &str| {
        assert_eq!(tool[field]["type"], "object", "{name} has no {field}");
        Schema::compile(&tool[field]).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    compile("inputSchema");
    let output = compile("outputSchema");
    (name, output)
}

#[track_caller]
fn fits(schema: &Schema, tool: &str, arguments: &Value, reply: &Value) {
    assert_eq!(reply["ok"], true, "{tool} {arguments}: {reply}");
    if let Err(violations) = schema.check(&reply["result"]) {
        panic!("{tool} {arguments} gave {}, which does not fit: {violations:?}", reply["result"]);
    }
}

#[test]
fn blt_6_every_built_in_has_both_schemas_and_its_results_fit() {
    let (web, remote) = (web(), GitServer::open());
    let home = prepare(web, &remote);
    let listed = home.run(["tools", "--format", "json"]).json();
    let own = listed.as_array().expect("tools").iter().filter(|tool| tool["provider"]["kind"] == "builtin");
    let schemas: BTreeMap<String, Schema> = own.map(compiled).collect();
    let server = home.serve();
    let mut called = BTreeSet::new();
    for (tool, arguments) in calls(web) {
        let schema = schemas.get(tool).unwrap_or_else(|| panic!("{tool} is not listed as built in"));
        fits(schema, tool, &arguments, &call(&server, tool, &arguments));
        called.insert(tool);
    }
    let missed: Vec<&String> = schemas.keys().filter(|tool| !called.contains(tool.as_str())).collect();
    assert!(missed.is_empty(), "tools without a call in this test: {missed:?}");
    stored_outputs();
}

/// The tool that reads large outputs is there for those who have one.
fn stored_outputs() {
    let home = TestDir::new();
    let server = home.serve();
    let reply = server.call("run_code", &json!({ "language": "bash", "code": "seq 100000" })).json();
    let handle =
        reply["result"]["tool_output"]["handle"].as_str().unwrap_or_else(|| panic!("no handle: {reply}"));
    let listed = server.get("/api/v1/tools").json();
    let mut tools = listed["items"].as_array().into_iter().flatten();
    let (_, schema) = compiled(tools.find(|tool| tool["name"] == "tool_output").expect("the tool"));
    for more in
        [json!({}), json!({ "mode": "grep", "pattern": "777" }), json!({ "mode": "tail", "count": 3 })]
    {
        let mut arguments = json!({ "handle": handle });
        more.as_object().into_iter().flatten().for_each(|(name, value)| arguments[name] = value.clone());
        fits(&schema, "tool_output", &arguments, &server.call("tool_output", &arguments).json());
    }
}
