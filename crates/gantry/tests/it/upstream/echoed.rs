//! Servers that repeat what they are given: their variables and headers are seen nowhere.

use super::Rig;
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::net::TcpListener;

/// What a variable and a header hold; no part of them may be seen.
const SECRET: &str = "hunter2/and+more";
const TOKEN: &str = "to-keep-for-oneself";
/// A variable that is no secret: results show it, errors do not.
const PLACE: &str = "/data/memory.json";

/// A server that repeats its secret in every way. It speaks over its standard input with the secret of its environment, and
/// over HTTP, if it is told a port, with that of the header.
const SCRIPT: &str = r#"
import http.server, json, os, sys, threading, urllib.parse

def answer(message, secret, place, notify):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "logging": {}},
                           "serverInfo": {"name": "echo", "version": "1"}, "instructions": "use " + secret}}
    if method == "tools/list":
        if os.path.exists("refuse"):
            return {"error": {"code": -32000, "message": "no list for " + secret, "data": {"place": place}}}
        return {"result": {"tools": [{"name": "say", "description": "knows " + secret, "inputSchema": {"type": "object"}}]}}
    if method == "prompts/list":
        return {"result": {"prompts": [{"name": "p"}]}}
    if method == "prompts/get":
        return {"result": {"messages": [{"role": "user", "content": {"type": "text", "text": secret}}]}}
    if method == "tools/call":
        how = params["arguments"]["how"]
        content = lambda text: {"content": [{"type": "text", "text": text}]}
        if how == "error":
            return {"error": {"code": -32000, "message": "bad " + secret, "data": {"env": [secret, place], "n": 1.10}}}
        if how == "isError":
            return {"result": {**content("bad " + secret + " in " + place), "isError": True}}
        if how == "structured":
            return {"result": {**content("see"), "structuredContent": {"it": secret, secret: 1, "place": place}}}
        if how == "spelled":
            escaped = "".join("\\u%04x" % ord(c) for c in secret)
            text = json.dumps({"inner": secret}) + urllib.parse.quote(secret, safe="") + " " + escaped
            return {"result": content(text)}
        if how == "notes":
            token = params["_meta"]["progressToken"]
            notify("notifications/progress", {"progressToken": token, "progress": 1, "message": "with " + secret})
            notify("notifications/message", {"level": "error", "data": {"said": secret}})
        return {"result": content("here: " + secret + " of " + place)}
    return {"result": {}}

class Web(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        secret = self.headers["authorization"].split(" ")[1]
        said = answer(message, secret, "-", lambda *_: None) if "id" in message else None
        how = message.get("params", {}).get("arguments", {}).get("how")
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode() if said else b""
        status = 500 if how == "status" else 200 if said else 202
        body = ("it failed for " + secret).encode() if how == "status" else body
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.send_error(405)
    def log_message(self, *_):
        pass

secret, place = os.environ["API_TOKEN"], os.environ["MEMORY_FILE_PATH"]
print("starting with", secret, place, file=sys.stderr, flush=True)
if os.path.exists("fail"):
    sys.exit("cannot start with " + secret + " in " + place)
print("this is no message, but has", secret, place, flush=True)
if len(sys.argv) > 1:
    web = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = answer(message, secret, place, lambda method, params: send({"method": method, "params": params}))
        send({"id": message["id"], **said})
"#;

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// A Gantry with the server over its standard input, and over HTTP; it logs everything.
fn rig(files: &[&str]) -> Rig {
    let (port, home) = (port(), TestDir::new().env("GANTRY_LOG", "debug"));
    home.write("echo/echo.py", SCRIPT);
    files.iter().for_each(|name| home.write(&format!("echo/{name}"), ""));
    let env = json!({ "API_TOKEN": SECRET, "MEMORY_FILE_PATH": PLACE, "NODE_ENV": "production" });
    let folder = home.path().join("echo");
    let script = folder.join("echo.py");
    let bad = json!({ "command": "python3", "args": [script, port.to_string()], "env": env, "cwd": folder });
    let headers = json!({ "Authorization": format!("Bearer {TOKEN}") });
    let web = json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp"), "headers": headers });
    let config = json!({ "mcpServers": { "bad": bad, "web": web }, "defaults": { "traceMCP": true } });
    Rig::at(home.config(&config.to_string()))
}

fn ready(rig: &Rig, id: &str) {
    rig.server.eventually(&format!("{id} is ready"), || rig.status(id)["status"] == "ready");
}

/// Whether a text has a part of a secret, in any spelling.
#[track_caller]
fn is_clean(what: &str, text: &str) {
    for part in ["hunter2", "and+more", "and%2B", "u0068\\u0075", "to-keep-for"] {
        assert!(!text.contains(part), "{part} in {what}: {text:.3000}");
    }
}

/// Nothing that Gantry keeps or shows has a secret.
#[track_caller]
fn nothing_shows(rig: &Rig) {
    is_clean("the log", &rig.server.stderr());
    for path in ["/api/v1/events?follow=false", "/api/v1/servers", "/api/v1/servers/bad", "/api/v1/tools"] {
        is_clean(path, &rig.server.get_as_admin(path).text);
    }
    for command in [&["audit", "--json"][..], &["servers", "--json"], &["doctor"]] {
        let ran = rig.home.run(command);
        is_clean(&format!("{command:?}"), &format!("{}{}", ran.stdout, ran.stderr));
    }
}

#[test]
fn ups_19_what_a_server_repeats_of_its_environment_is_masked_everywhere() {
    let rig = rig(&[]);
    ready(&rig, "bad");
    for (how, shows) in
        [("text", true), ("structured", true), ("spelled", false), ("error", false), ("isError", false)]
    {
        let reply = rig.call("bad__say", &json!({ "how": how }));
        is_clean(how, &reply.to_string());
        assert!(reply.to_string().contains("[redacted]"), "{how}: {reply}");
        assert_eq!(
            reply.to_string().contains(PLACE),
            shows,
            "a place is no secret, but errors hide it: {reply}"
        );
    }
    let error = rig.call("bad__say", &json!({ "how": "error" }));
    assert_eq!(error["error"]["details"]["data"]["n"], json!(1.10), "the rest is as it was: {error}");

    let mut client = Talk::legacy(Door::Http(&rig.server, "/mcp"));
    client.meta = r#""progressToken":"mine""#.to_owned();
    client.result("logging/setLevel", &json!({ "level": "debug" }));
    for how in ["text", "structured", "spelled", "isError", "error", "notes"] {
        let answer = client.ask("tools/call", &json!({ "name": "bad__say", "arguments": { "how": how } }));
        is_clean(how, &answer.to_string());
        assert!(answer.to_string().contains("[redacted]"), "{how}: {answer}");
    }
    for note in ["notifications/progress", "notifications/message"] {
        let note = client.hear(note);
        assert!(note.to_string().contains("[redacted]"), "{note}");
        is_clean("a notification", &note.to_string());
    }
    let prompt = client.ask("prompts/get", &json!({ "name": "bad__p" }));
    assert!(prompt.to_string().contains("[redacted]"), "{prompt}");
    is_clean("a prompt", &prompt.to_string());
    is_clean("the tools", &client.ask("tools/list", &json!({})).to_string());
    nothing_shows(&rig);
}

#[test]
fn ups_19_what_a_server_repeats_of_its_headers_is_masked_everywhere() {
    let rig = rig(&[]);
    ready(&rig, "web");
    for how in ["text", "structured", "spelled", "error", "isError", "status"] {
        let reply = rig.call("web__say", &json!({ "how": how }));
        is_clean(how, &reply.to_string());
        assert!(reply.to_string().contains("[redacted]"), "{how}: {reply}");
    }
    nothing_shows(&rig);
}

#[test]
fn ups_19_a_server_that_does_not_start_shows_nothing_of_its_environment() {
    for (file, says) in [("fail", "cannot start with [redacted]"), ("refuse", "no list for [redacted]")] {
        let rig = rig(&[file]);
        let error = || rig.status("bad")["lastError"].as_str().unwrap_or_default().to_owned();
        rig.server.eventually("it is down", || error().contains(says));
        assert!(!error().contains(PLACE), "{}", error());
        let reply: Value = rig.call("bad__say", &json!({ "how": "text" }));
        is_clean("the reply", &reply.to_string());
        nothing_shows(&rig);
    }
}
