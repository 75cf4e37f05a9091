//! `search_code` through the built program: text, expressions and ranked, by the command line, over HTTP and over MCP.

#![cfg(test)]

use gantry_core::schema::Schema;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::{Arc, Mutex};
use std::thread;

fn home() -> TestDir {
    let home = TestDir::new();
    home.write("src/profile.rs", "//! Users.\n\npub fn load_user_profile(id: u32) {\n    fetch(id)\n}\n");
    home.write("src/mail.py", "class MailSender:\n    def send(self, user):\n        return user.profile\n");
    home.write("docs/guide.md", "# Guide\n\nHow retries are configured.\n");
    home.write("target/out.rs", "fn load_user_profile_copy() {}\n");
    home.write(".gitignore", "target/\n");
    home
}

/// A result that fits the schema that the program itself shows.
#[track_caller]
fn fits(home: &TestDir, reply: &Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!((&reply["kind"], &reply["namespace"]), (&json!("builtin"), &json!("workspace")));
    let tools = home.run(["tools", "--json"]).json();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "search_code").expect("the tool");
    Schema::compile(&tool["outputSchema"]).unwrap().check(&reply["result"]).unwrap();
    reply["result"].clone()
}

#[track_caller]
fn found(home: &TestDir, arguments: &Value) -> Value {
    fits(home, &home.call("search_code", arguments))
}

fn places(result: &Value) -> Vec<String> {
    let matches = result["matches"].as_array().expect("matches");
    matches.iter().map(|found| format!("{}:{}", found["path"].as_str().unwrap(), found["line"])).collect()
}

#[track_caller]
fn over_http(server: &Server, arguments: &Value) -> Value {
    let reply = server.call("search_code", arguments).json();
    assert_eq!(reply["ok"], true, "{reply}");
    reply["result"].clone()
}

#[test]
fn blt_5_search_code_finds_text_expressions_and_the_best_file() {
    let home = home();
    let literal = found(&home, &json!({ "query": "user.profile", "mode": "literal" }));
    let expected =
        json!([{ "path": "src/mail.py", "line": 3, "column": 16, "text": "        return user.profile" }]);
    assert_eq!(literal, json!({ "mode": "literal", "matches": expected, "filesSearched": 3 }));

    let regex = found(&home, &json!({ "query": r"^(pub )?fn|\bdef\b", "mode": "regex", "glob": "src/**" }));
    assert_eq!(places(&regex), ["src/mail.py:2", "src/profile.rs:3"]);

    let ranked = found(&home, &json!({ "query": "where is a user's profile loaded" }));
    let best = &ranked["matches"][0];
    assert_eq!((&best["path"], &best["line"]), (&json!("src/profile.rs"), &json!(3)), "{ranked}");
    assert_eq!(best["symbol"], "load_user_profile");
    assert_eq!((&ranked["filesSearched"], ranked.get("indexed")), (&json!(3), None));
    assert_eq!(places(&found(&home, &json!({ "query": "retry configured" })))[0], "docs/guide.md:3");
}

#[test]
fn blt_5_search_code_removes_the_index_of_an_earlier_version() {
    let home = home();
    found(&home, &json!({ "query": "profile" }));
    let database = walk(&home.path().join(".gantry")).into_iter().find(|path| path.ends_with("gantry.db"));
    let index = database.expect("the store").with_file_name("search.db");
    fs::write(&index, "an index").unwrap();
    let ranked = found(&home, &json!({ "query": "load user profile" }));
    assert_eq!(ranked["matches"][0]["path"], "src/profile.rs");
    assert!(!index.exists());
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn blt_5_search_code_is_cut_in_order_and_says_so() {
    let home = TestDir::new();
    for n in 0..50 {
        home.write(&format!("d{}/f{n:02}.txt", n % 3), "a line\nhit\nhit\n");
    }
    let all = places(&found(&home, &json!({ "query": "hit", "mode": "literal" })));
    assert_eq!(all.len(), 100);
    assert!(all.is_sorted(), "{all:?}");
    let first = found(&home, &json!({ "query": "hit", "mode": "literal", "maxResults": 7, "context": 1 }));
    assert_eq!((places(&first), &first["truncated"]), (all[..7].to_vec(), &json!(true)));
    assert_eq!(first["matches"][0]["before"], json!(["a line"]));
}

#[test]
fn blt_5_search_code_refuses_nonsense_with_the_reason() {
    let home = home();
    for (arguments, code, reason) in [
        (json!({ "query": "(", "mode": "regex" }), "INVALID_ARGUMENTS", "unclosed group"),
        (json!({ "query": "a\\nb", "mode": "regex" }), "INVALID_ARGUMENTS", "line by line"),
        (json!({ "query": "x", "mode": "best" }), "INVALID_ARGUMENTS", "mode"),
        (json!({ "query": "->" }), "INVALID_ARGUMENTS", "mode literal"),
        (json!({ "query": "user", "path": "nowhere" }), "FILE_NOT_FOUND", "nowhere"),
        (json!({ "query": "user", "mode": "literal", "path": "../" }), "INVALID_PATH", "outside"),
        (json!({ "query": "user", "mode": "literal", "path": ".gantry" }), "PERMISSION_DENIED", "Gantry"),
    ] {
        let ran = home.run(["call", "search_code", &arguments.to_string(), "--json"]);
        let reply = ran.json();
        assert_eq!((ran.code, &reply["error"]["code"]), (1, &json!(code)), "{arguments}: {reply}");
        let message = reply["error"].to_string();
        assert!(message.contains(reason), "{arguments}: {message}");
    }
}

#[test]
fn blt_5_search_code_never_shows_what_is_outside_or_gantrys_own() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.rs"), "SECRET marker\n").unwrap();
    let home = home();
    home.write("a.rs", "marker\n");
    symlink(outside.path(), home.path().join("out")).unwrap();
    symlink(outside.path().join("secret.rs"), home.path().join("link.rs")).unwrap();
    // A rule that asks for the data folder does not get it either.
    home.write(".ignore", "!.gantry\n!.gantry/**\n");
    let server = home.serve();
    home.write(".gantry/marker.txt", "SECRET marker\n");
    for mode in ["literal", "regex", "ranked"] {
        let result = over_http(&server, &json!({ "query": "marker", "mode": mode }));
        assert_eq!(places(&result), ["a.rs:1"], "{mode}: {result}");
        let reply =
            server.call("search_code", &json!({ "query": "marker", "mode": mode, "path": "out" })).json();
        assert_eq!(reply["error"]["code"], "INVALID_PATH", "{reply}");
    }
}

#[test]
fn blt_5_search_code_follows_the_files_while_the_server_runs_and_after() {
    let home = home();
    let server = home.serve();
    let ranked = |query: &str| places(&over_http(&server, &json!({ "query": query })));
    assert!(ranked("zebra").is_empty());
    let written =
        server.call("write_file", &json!({ "path": "src/zoo.rs", "content": "fn feed_zebra() {}\n" }));
    assert_eq!(written.json()["ok"], true);
    assert_eq!(ranked("zebra"), ["src/zoo.rs:1"]);
    home.write("src/zoo.rs", "\nfn feed_giraffe() {}\n");
    assert!(ranked("zebra").is_empty());
    assert_eq!(ranked("giraffe"), ["src/zoo.rs:2"]);
    let moved = server.call("move_file", &json!({ "from": "src/zoo.rs", "to": "docs/zoo.rs" }));
    assert_eq!(moved.json()["ok"], true);
    assert_eq!(ranked("giraffe"), ["docs/zoo.rs:2"]);
    server.stop();
    fs::remove_file(home.path().join("docs/zoo.rs")).unwrap();
    assert!(places(&found(&home, &json!({ "query": "giraffe" }))).is_empty());
    assert_eq!(places(&found(&home, &json!({ "query": "mail sender" })))[0], "src/mail.py:1");
}

#[test]
fn blt_5_search_code_says_what_it_cannot_look_at() {
    /// A user that no machine has.
    const ORDINARY: u32 = 61_236;
    let home = home();
    home.write("locked/zoo.rs", "fn feed_zebra() {}\n");
    // For root nothing is locked.
    let home = if rustix::process::geteuid().is_root() { home.run_by(ORDINARY) } else { home };
    let server = home.serve();
    let answer = |mode: &str| over_http(&server, &json!({ "query": "load_user_profile", "mode": mode }));
    let counts = |answer: &Value| (answer["filesSearched"].as_u64(), answer["skipped"].as_u64());
    let lock =
        |mode| fs::set_permissions(home.path().join("locked"), fs::Permissions::from_mode(mode)).unwrap();
    for mode in ["ranked", "literal"] {
        assert_eq!(counts(&answer(mode)), (Some(4), None), "{mode}");
        lock(0o000);
        let locked = answer(mode);
        lock(0o755);
        assert_eq!(counts(&locked), (Some(3), Some(1)), "{mode}: {locked}");
        assert_eq!(locked["matches"][0]["path"], "src/profile.rs");
    }
    home.write("new.rs", "fn new() {}\n");
    assert_eq!(counts(&answer("ranked")), (Some(5), None));
}

#[test]
fn blt_5_search_code_answers_over_mcp_and_is_on_record() {
    let home = home();
    let server = home.serve();
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "search_code", "arguments": { "query": "load_user_profile" },
    } });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let opened = server.request(http::Method::POST, "/mcp", &headers, &initialize.to_string());
    let session = opened.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let mut headers = headers.to_vec();
    headers.extend(session.as_deref().map(|id| ("mcp-session-id", id)));
    let answer = server.request(http::Method::POST, "/mcp", &headers, &ask.to_string());
    let data = answer.text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&answer.text);
    let reply: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    let result = &reply["result"]["structuredContent"];
    assert_eq!(result["matches"][0]["path"], "src/profile.rs", "{answer:?}");
    server.stop();
    let record = home.run(["audit", "--json"]).stdout;
    assert!(record.contains("search_code") && record.contains("load_user_profile"), "{record}");
}

/// A model whose numbers are those of a text's words, where a car and an automobile are one word.
fn model(asked: &Arc<Mutex<usize>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::clone(asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let asked = Arc::clone(&asked);
            thread::spawn(move || while serve(&stream.as_ref().unwrap().try_clone().unwrap(), &asked) {});
        }
    });
    url
}

/// Answers one request, if there is one.
fn serve(stream: &TcpStream, asked: &Mutex<usize>) -> bool {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
            length = text.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if length == 0 || reader.read_exact(&mut body).is_err() {
        return false;
    }
    let request: Value = serde_json::from_slice(&body).unwrap();
    let texts = request["input"].as_array().unwrap();
    *asked.lock().unwrap() += texts.len();
    let vector = |text: &str| {
        let mut numbers = vec![0.0; 32];
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
        {
            let word = if word == "automobile" { "car" } else { word };
            let hash = word.bytes().fold(5usize, |hash, byte| (hash * 131 + usize::from(byte)) % 65_521);
            numbers[hash % 32] += 1.0;
        }
        numbers
    };
    let data: Vec<Value> =
        texts.iter().map(|text| json!({ "embedding": vector(text.as_str().unwrap()) })).collect();
    let body = json!({ "data": data }).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    (&*stream).write_all((head + &body).as_bytes()).is_ok()
}

#[test]
fn blt_5_search_code_orders_by_meaning_where_a_model_is_configured() {
    let asked = Arc::default();
    let url = model(&asked);
    let home = home().config(&format!("search: {{ embeddings: {{ url: \"{url}\", model: words }} }}\n"));
    home.write("a.txt", "sell bread\n");
    home.write("b.txt", "sell a car car car car\n");
    let server = home.serve();
    // Both have one word of the question; the first is shorter, the second is nearer.
    let result = over_http(&server, &json!({ "query": "sell an automobile" }));
    assert_eq!(places(&result), ["b.txt:1", "a.txt:1"], "{result}");
    assert_eq!(result.get("note"), None);
    // The question, and what is shown of the two files.
    assert_eq!(*asked.lock().unwrap(), 3);
}

#[test]
fn blt_5_search_code_ranks_by_words_where_the_model_does_not_answer() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home =
        home().config(&format!("search: {{ embeddings: {{ url: \"http://{closed}\", model: words }} }}\n"));
    let result = found(&home, &json!({ "query": "load user profile" }));
    assert_eq!(result["matches"][0]["path"], "src/profile.rs");
    assert!(result["note"].as_str().unwrap().contains("words alone"), "{result}");
}
