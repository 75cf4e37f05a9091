//! A result that is too large is stored, and read in parts by the session that it belongs to.

use super::{mcp_call, mcp_tools};
use crate::pipeline::{file, post, post_as_person};
use gantry_testkit::faulty::Faulty;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

/// A home that stores every result above 1000 bytes.
fn small() -> TestDir {
    TestDir::with_test_tools().config("defaults: { toolResponseMaxBytes: 1000 }\nagents: { a: {} }\n")
}

/// Has 160 lines stored, and returns their handle.
fn flood(server: &Server, body: &Value) -> String {
    let mut call = json!({ "tool": "test__flood", "arguments": { "bytes": 2560 } });
    call.as_object_mut()
        .into_iter()
        .for_each(|call| call.extend(body.as_object().cloned().unwrap_or_default()));
    let reply = post(server, &call).json();
    reply["result"]["tool_output"]["handle"].as_str().unwrap_or_default().to_owned()
}

fn tool_names(server: &Server) -> Vec<String> {
    let tools = server.get("/api/v1/tools").json();
    let names = tools["items"].as_array().into_iter().flatten();
    names.map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn cal_9_a_large_result_is_stored_whole_and_replaced_by_a_handle() {
    let home = small();
    let reply = home.call("test__flood", &json!({ "bytes": 2560 }));
    assert_eq!((&reply["ok"], &reply["state"]), (&json!(true), &json!("COMPLETED_SUCCESS")));
    let output = &reply["result"]["tool_output"];
    let handle = output["handle"].as_str().unwrap();
    let expected = json!({
        "tool_output": {
            "handle": handle, "reason": "size_limit_exceeded", "bytes": 2560, "lines": 160, "tokens": 640,
        }
    });
    assert_eq!(reply["result"], expected);
    let (session, id) = handle.split_once('/').unwrap();
    assert!(
        session.starts_with("session-") && session.len() == "session-".len() + 36 && id.len() == 36,
        "{handle}"
    );
    let stored = home.path().join(".gantry/outputs").join(handle);
    assert_eq!(std::fs::read_to_string(&stored).unwrap(), "0123456789abcde\n".repeat(160));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&stored), mode(stored.parent().unwrap())), (0o600, 0o700));
    // What fits exactly is passed on.
    assert_eq!(home.call("test__echo", &json!({ "text": "x".repeat(1000) }))["result"], "x".repeat(1000));
    assert!(
        home.call("test__echo", &json!({ "text": "x".repeat(1001) }))["result"]["tool_output"].is_object()
    );
}

#[test]
fn cal_9_the_reading_tool_is_there_once_there_is_something_to_read() {
    let home = small();
    let server = home.serve();
    let listed = || tool_names(&server).contains(&"tool_output".to_owned());
    assert!(!listed());
    let early = server.call("tool_output", &json!({ "handle": "session-x/y" }));
    assert_eq!((early.status, &early.json()["error"]["code"]), (404, &json!("TOOL_NOT_FOUND")));
    flood(&server, &json!({}));
    assert!(listed());
    // Each session for itself: an MCP client has stored nothing yet.
    assert!(!mcp_tools(&server, "/mcp").contains(&"tool_output".to_owned()));
    mcp_call(&server, "/mcp", "test__flood", &json!({ "bytes": 2560 }));
    assert!(mcp_tools(&server, "/mcp").contains(&"tool_output".to_owned()));
}

#[test]
fn cal_9_a_stored_result_is_read_by_page_lines_pattern_head_and_tail() {
    let home = small();
    let server = home.serve();
    let handle = flood(&server, &json!({}));
    let read = |view: Value| {
        let mut arguments = view;
        arguments["handle"] = handle.as_str().into();
        server.call("tool_output", &arguments).json()
    };
    let first = read(json!({}))["result"].take();
    assert_eq!(
        (&first["totalBytes"], &first["totalLines"], &first["page"]),
        (&json!(2560), &json!(160), &json!(1))
    );
    let pages = first["pages"].as_u64().unwrap();
    assert!(pages > 1);
    let page =
        |n: u64| read(json!({ "mode": "page", "page": n }))["result"]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        (1..=pages).map(page).collect::<String>(),
        "0123456789abcde\n".repeat(160),
        "the pages are the whole"
    );
    let line = "0123456789abcde";
    let content = |view: Value| read(view)["result"]["content"].take();
    assert_eq!(content(json!({ "mode": "lines", "from": 159, "to": 170 })), format!("{line}\n{line}"));
    assert_eq!(content(json!({ "mode": "head", "count": 1 })), line);
    assert_eq!(content(json!({ "mode": "tail", "count": 2 })), format!("{line}\n{line}"));
    let found = read(json!({ "mode": "grep", "pattern": "^0.*e$" }))["result"].take();
    assert_eq!((&found["matches"], &found["truncated"]), (&json!(160), &json!(true)));
    assert!(found["content"].as_str().unwrap().starts_with(&format!("1:{line}\n2:{line}\n")));
    for wrong in [
        json!({ "page": pages + 1 }),
        json!({ "mode": "grep", "pattern": "(" }),
        json!({ "mode": "jsonPath", "path": "$.a" }),
        json!({ "mode": "lines", "from": 2, "to": 1 }),
        json!({ "mode": "backwards" }),
    ] {
        assert_eq!(read(wrong.clone())["error"]["code"], "INVALID_ARGUMENTS", "{wrong}");
    }
}

#[test]
fn cal_9_a_stored_json_result_is_read_by_path() {
    let home = small();
    let server = home.serve();
    let text = "long ".repeat(300);
    let reply = server.call("test__count", &json!({ "file": file(&home, "c"), "text": text })).json();
    let handle = &reply["result"]["tool_output"]["handle"];
    let read = server
        .call("tool_output", &json!({ "handle": handle, "mode": "jsonPath", "path": "$.counted" }))
        .json();
    assert_eq!(read["result"]["matches"], 1, "{read}");
    assert!(read["result"]["content"].as_str().unwrap().starts_with("long long "), "{read}");
    assert!(read["result"]["tool_output"].is_null(), "what reads a stored result is never stored itself");
}

#[test]
fn cal_9_a_large_structure_is_stored_with_its_text_and_read_in_every_way() {
    let faulty = json!({ "command": Faulty::program(), "args": ["--rich-results"] });
    let config = json!({ "defaults": { "toolResponseMaxBytes": 1000 }, "mcpServers": { "one": faulty } });
    let home = TestDir::new().config(&config.to_string());
    let server = home.serve();
    let rows = |count: u64| server.call("one__rows", &json!({ "count": count })).json();
    assert_eq!(rows(2)["result"]["rows"][1]["name"], "row 2", "what is small is passed on");
    let reply = rows(500);
    let output = &reply["result"]["tool_output"];
    let handle = output["handle"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let stored = std::fs::read_to_string(home.path().join(".gantry/outputs").join(handle)).unwrap();
    assert_eq!(output["bytes"], stored.len(), "{output}");
    let whole: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(whole["content"][0]["text"], "500 rows");
    assert_eq!(whole["structuredContent"]["rows"].as_array().unwrap().len(), 500);
    let read = |view: Value| {
        let mut arguments = view;
        arguments["handle"] = handle.into();
        server.call("tool_output", &arguments).json()["result"].take()
    };
    let path = "$.structuredContent.rows[499].name";
    assert_eq!(read(json!({ "mode": "jsonPath", "path": path }))["content"], "row 500");
    let found = read(json!({ "mode": "grep", "pattern": "\"row 77\"", "context": 1 }));
    assert_eq!(found["matches"], 1, "{found}");
    assert!(found["content"].as_str().unwrap().contains("\"id\": 77"), "{found}");
    let head = read(json!({ "mode": "head", "count": 10 }));
    assert!(head["content"].as_str().unwrap().contains("500 rows"), "{head}");
    let pages = read(json!({}))["pages"].as_u64().unwrap();
    let page = |n: u64| read(json!({ "page": n }))["content"].as_str().unwrap().to_owned();
    assert_eq!((1..=pages).map(page).collect::<String>(), stored);
}

#[test]
fn cal_9_only_the_session_that_stored_a_result_reads_it() {
    let home = small();
    let server = home.serve();
    let handle = flood(&server, &json!({}));
    let read = |handle: &str, agent: Value| {
        let call = json!({ "tool": "tool_output", "arguments": { "handle": handle }, "agent": agent });
        let mut reply = post(&server, &call).json();
        (reply["ok"].take(), reply["error"].take())
    };
    assert_eq!(read(&handle, Value::Null).0, true);
    assert_eq!(read(&handle, json!("a")).1["code"], "TOOL_NOT_FOUND", "it has stored nothing itself");
    let own = flood(&server, &json!({ "agent": "a" }));
    assert_eq!(read(&own, json!("a")).0, true);
    // Another one's handle is answered like one that never was.
    let never = format!("{}/01a1deb9-97db-753d-93c8-f59b6b31a78f", own.split_once('/').unwrap().0);
    assert_eq!(read(&handle, json!("a")).1["code"], "FILE_NOT_FOUND");
    assert_eq!(read(&handle, json!("a")), read(&never, json!("a")));
    // So is a handle of another identity, and a path that is none.
    let persons = json!({ "tool": "test__flood", "arguments": { "bytes": 2560 } });
    let persons = post_as_person(&server, &persons).json()["result"]["tool_output"]["handle"].take();
    let session = handle.split_once('/').unwrap().0;
    for other in
        [persons.as_str().unwrap(), &format!("{session}/../../admin.key"), "../admin.key", "/etc/passwd"]
    {
        assert_eq!(read(other, Value::Null), read(&never, Value::Null), "{other}");
    }
}

#[test]
fn cal_9_a_stored_result_expires_with_its_session() {
    let home = small();
    let handle =
        home.call("test__flood", &json!({ "bytes": 2560 }))["result"]["tool_output"]["handle"].take();
    let stored = home.path().join(".gantry/outputs").join(handle.as_str().unwrap());
    // The next command of the same person goes on with the session, and reads it.
    assert_eq!(home.call("tool_output", &json!({ "handle": handle }))["ok"], true);
    home.write("gantry.yaml", "defaults: { outputRetentionMs: 1 }\n");
    let server = home.serve();
    server.eventually("it is gone", || !stored.exists());
}

#[test]
fn cal_16_a_stored_result_that_is_given_again_is_stored_once_for_each_session() {
    let home = small();
    let files = |handle: &str| {
        let folder = home.path().join(".gantry/outputs").join(handle.split_once('/').expect("a handle").0);
        std::fs::read_dir(folder).expect("the folder of the session").count()
    };
    let server = home.serve();
    let call = json!({ "idempotencyKey": "k" });
    let first = flood(&server, &call);
    assert!(!first.is_empty());
    for _ in 0..3 {
        assert_eq!(flood(&server, &call), first);
    }
    assert_eq!(files(&first), 1);
    // A new run of the same caller has one of its own, once.
    let run = server.get("/api/v1/runs").json()["items"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.post(&format!("/api/v1/runs/{run}/cancel"), "").json()["canceled"], true);
    let second = flood(&server, &call);
    assert_ne!(second, first);
    assert_eq!(flood(&server, &call), second);
    assert_eq!((files(&first), files(&second)), (1, 1));
    let read = json!({ "tool": "tool_output", "arguments": { "handle": second } });
    assert_eq!(post(&server, &read).json()["ok"], true);
}
