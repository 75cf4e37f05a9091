//! Each fault of the faulty server is the one that its flag or its tool promises.

use crate::client::{Process, Wire as _, modern, text};
use gantry_testkit::faulty::{LONG_NAME, POISON};
use serde_json::{Value, json};
use std::path::Path;

fn legacy(args: &[&str]) -> Process {
    let mut server = Process::faulty(args);
    assert!(server.initialize(&json!({}))["result"].is_object());
    server
}

fn send_call(server: &mut Process, id: u64, tool: &str, arguments: &Value) {
    let params = json!({ "name": tool, "arguments": arguments });
    server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
}

/// The definition of a tool.
fn definition(server: &mut Process, name: &str) -> Value {
    let list = server.request(100, "tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().expect("tools");
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

/// A journal, and the arguments that name it.
fn journal(folder: &Path) -> (String, impl Fn() -> String) {
    let path = folder.join("journal");
    (path.display().to_string(), move || std::fs::read_to_string(&path).unwrap_or_default())
}

#[test]
fn a_cancelled_call_is_journalled_and_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (path, read) = journal(folder.path());
    let mut server = legacy(&["--journal", &path]);
    send_call(&mut server, 5, "sleep", &json!({ "ms": 600_000 }));
    server.notify("notifications/cancelled", &json!({ "requestId": 5 }));
    // The journal is written before the next call can say so.
    while !read().contains("cancelled") {
        assert_eq!(text(&server.call(6, "journal", &json!({ "text": "tick" }))), "written");
    }
    assert!(!server.close().0.contains(r#""id":5"#));
}

#[test]
fn a_call_that_ran_is_in_the_journal_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, read) = journal(folder.path());
    let mut server = legacy(&["--journal", &path]);
    server.call(1, "journal", &json!({ "text": "one" }));
    server.call(2, "wipe", &json!({ "text": "two" }));
    assert_eq!(read(), "one\nwiped two\n");
}

#[test]
fn a_server_that_never_starts_reads_and_is_silent() {
    let mut server = Process::faulty(&["--never-start"]);
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    assert_eq!(server.close(), (String::new(), Some(0)));
}

#[test]
fn a_slow_server_answers_in_the_end() {
    let mut server = legacy(&["--start-after", "200"]);
    assert_eq!(text(&server.call(1, "echo", &json!({ "text": "late" }))), "late");
}

#[test]
fn a_server_that_is_slow_to_say_that_it_is_there_answers_all_else_before() {
    let mut server = legacy(&["--slow-ping", "1000"]);
    server.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    send_call(&mut server, 6, "echo", &json!({ "text": "at once" }));
    assert_eq!((&server.next()["id"], &server.next()["id"]), (&json!(6), &json!(5)));
}

#[test]
fn chatter_is_right_on_the_wire_counted_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, read) = journal(folder.path());
    let mut server = legacy(&["--journal", &path]);
    let call = json!({ "name": "chatter", "arguments": { "notes": 3 }, "_meta": { "progressToken": 7 } });
    let (notes, answer) = server.request_noting(1, "tools/call", &call);
    assert_eq!(text(&answer["result"]), "chattered");
    let methods: Vec<&str> = notes.iter().filter_map(|note| note["method"].as_str()).collect();
    assert_eq!(methods, ["notifications/progress", "notifications/message"].repeat(3));
    assert_eq!(notes[4]["params"], json!({ "progressToken": 7, "progress": 3 }));

    let later = json!({ "name": "chatter", "arguments": { "notes": 1, "ms": 1 } });
    let (notes, answer) = server.request_noting(2, "tools/call", &later);
    assert_eq!((notes.len(), text(&answer["result"])), (0, "chatters"));
    let notes = [server.next(), server.next()];
    assert_eq!(notes[1]["params"]["data"], "chatter 1", "{notes:?}");

    send_call(&mut server, 2, "chatter", &json!({}));
    let (notes, counters) = server.request_noting(3, "tools/call", &json!({ "name": "session" }));
    assert!(notes.iter().all(|note| note["method"].is_string()), "{notes:?}");
    assert!(text(&counters["result"]).contains("chattered"), "{counters}");
    server.notify("notifications/cancelled", &json!({ "requestId": 2 }));
    // It is silent some time after the cancellation.
    server.request_noting(4, "tools/call", &json!({ "name": "journal", "arguments": { "text": "told" } }));
    while !read().contains("cancelled") {
        server.request_noting(5, "tools/call", &json!({ "name": "pid" }));
    }
}

#[test]
fn servers_that_exit_do_so_with_their_codes() {
    let exit = |args: &[&str], message: &str| {
        let mut server = Process::faulty(args);
        if !message.is_empty() {
            server.initialize(&json!({}));
            server.send(message);
        }
        assert_eq!(server.next_text(), None, "{args:?}");
        server.close().1
    };
    let call = |tool: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } }).to_string()
    };
    let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#;
    assert_eq!(exit(&["--exit-on-start"], ""), Some(3));
    assert_eq!(exit(&["--exit-on-discover"], discover), Some(4));
    assert_eq!(exit(&[], &call("die")), Some(7));
    assert_eq!(exit(&["--exit-mid-call"], &call("echo")), Some(7));
    assert_eq!(exit(&["--close-socket-on-call"], &call("echo")), Some(0));
    assert_eq!(exit(&[], &call("hang-up")), Some(0));
}

#[test]
fn discovery_can_be_met_with_silence() {
    let mut server = Process::faulty(&["--silent-on-discover", "--era", "dual"]);
    let discover = modern(json!({}), &json!({}));
    server.send(
        &json!({ "jsonrpc": "2.0", "id": "d", "method": "server/discover", "params": discover }).to_string(),
    );
    assert!(server.initialize(&json!({}))["result"].is_object());
    assert!(!server.close().0.contains(r#""d""#));
}

#[test]
fn a_latched_connection_refuses_the_handshake() {
    let mut server = Process::faulty(&["--latch"]);
    assert!(server.request(1, "server/discover", &modern(json!({}), &json!({})))["result"].is_object());
    let refused = server.initialize(&json!({}));
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    assert!(legacy(&["--latch"]).call(1, "echo", &json!({ "text": "x" }))["content"].is_array());
}

#[test]
fn a_flood_is_garbage_and_then_an_answer() {
    let mut server = legacy(&[]);
    send_call(&mut server, 1, "flood", &json!({ "mb": 2 }));
    let mut bytes = 0;
    let answer = loop {
        let line = server.next_text().expect("a line");
        if line.starts_with('{') {
            break line;
        }
        bytes += line.len() + 1;
    };
    assert!(bytes > 1_900_000, "{bytes}");
    assert!(answer.contains("flooded"), "{answer}");
}

#[test]
fn a_long_line_is_one_message() {
    let mut server = legacy(&[]);
    assert_eq!(text(&server.call(1, "long-line", &json!({ "mb": 3 }))).len(), 3 * 1024 * 1024);
}

#[test]
fn bad_json_is_half_a_message() {
    let mut server = legacy(&[]);
    send_call(&mut server, 1, "bad-json", &json!({}));
    let line = server.next_text().expect("a line");
    serde_json::from_str::<Value>(&line).unwrap_err();
    assert_eq!(text(&server.call(2, "echo", &json!({ "text": "still here" }))), "still here");
}

#[test]
fn a_call_that_hangs_does_not_hold_others() {
    let mut server = legacy(&[]);
    send_call(&mut server, 1, "hang", &json!({}));
    assert_eq!(text(&server.call(2, LONG_NAME, &json!({}))), LONG_NAME);
}

#[test]
fn schemas_can_lie() {
    let mut server = legacy(&["--lying-schema"]);
    assert_eq!(definition(&mut server, "lying-text")["inputSchema"], "nonsense");
    assert_eq!(definition(&mut server, "lying-type")["inputSchema"]["properties"]["a"]["type"], "strin");
    let promised = definition(&mut server, "lying-output")["outputSchema"]["properties"]["n"]["type"].clone();
    let given = server.call(1, "lying-output", &json!({}))["structuredContent"]["n"].clone();
    assert_eq!((promised, given), (json!("number"), json!("many")));
}

#[test]
fn a_definition_changes_with_its_version_and_while_running() {
    let mut server = legacy(&["--definition-version", "4"]);
    assert_eq!(definition(&mut server, "versioned")["description"], "Definition 4");
    server.call(1, "rug-pull", &json!({}));
    assert_eq!(definition(&mut server, "versioned")["description"], "Definition 5");
}

#[test]
fn poison_hides_in_descriptions_names_and_instructions() {
    let mut server = Process::faulty(&["--poison"]);
    let tagged = |text: &str| text.chars().any(|c| ('\u{e0000}'..='\u{e007f}').contains(&c));
    assert!(tagged(server.initialize(&json!({}))["result"]["instructions"].as_str().unwrap()));
    for (name, text) in POISON {
        let described = definition(&mut server, name)["description"].as_str().unwrap().to_owned();
        assert!(described.starts_with(text), "{name}");
        assert_eq!(tagged(&described), name == "poison-tags");
        assert_eq!(described.len() > 100_000, name == "poison-long");
    }
}

#[test]
fn noise_on_standard_error_does_not_touch_the_messages() {
    let mut server = legacy(&["--stderr-flood"]);
    assert_eq!(text(&server.call(1, "echo", &json!({ "text": "clear" }))), "clear");
}

#[test]
fn endless_pages_have_no_last_one() {
    let mut server = legacy(&["--endless-pages"]);
    let mut params = json!({});
    for _ in 0..200 {
        let page = server.request(1, "prompts/list", &params);
        params = json!({ "cursor": page["result"]["nextCursor"].as_str().expect("a next page") });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_grandchild_has_a_session_of_its_own() {
    use rustix::process::{Pid, Signal, kill_process};

    let marker = format!("marker-{}", std::process::id());
    let mut server = legacy(&["--spawn-grandchild", &marker]);
    // It leaves its parent's session a moment after it has started.
    let grandchild = loop {
        server.call(1, "pid", &json!({}));
        let found = find_process(&marker, server.pid());
        if let Some(pid) = found.filter(|pid| session(*pid) != session(server.pid())) {
            break pid;
        }
    };
    assert_eq!(session(grandchild), grandchild);
    kill_process(Pid::from_raw(i32::try_from(grandchild).unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// The session of a process: 0 when its leader is in another process namespace.
#[cfg(target_os = "linux")]
fn session(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    // The state, the parent and the group come first.
    fields.split(' ').nth(3).and_then(|field| field.parse().ok()).expect("a number")
}

/// A process with this text among its arguments, other than the one that started it.
#[cfg(target_os = "linux")]
fn find_process(marker: &str, parent: u32) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != parent).find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())
    })
}
