//! What each entry point may do, and in whose name: a model's entry point gives no more than the agent role, with any key.

use gantry_testkit::server::send;
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A `tools/call` of the newest protocol, with this in its `_meta` besides what the protocol asks for.
fn modern(server: &gantry_egress::LocalServer, tool: &str, arguments: &Value, meta: &str) -> Value {
    let arguments = arguments.to_string();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    );
    let headers = [
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    send(server, Method::POST, "/mcp", &headers, &body).json()
}

fn calls(server: &Server) -> Value {
    server.get_as_admin("/api/v1/audit").json()["items"].clone()
}

#[test]
fn srv_1_a_model_with_the_administrators_key_is_still_a_model() {
    let home = TestDir::new().config(
        "policies: [{ name: models, tools: [\"*\"], when: \"role == 'agent'\", decide: deny, reason: not for models }]\n",
    );
    let server = home.serve();
    let denied = modern(&server.admin(), "list_directory", &json!({ "path": "." }), "");
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    let row = &calls(&server)[0];
    assert_eq!((&row["principal"], &row["error"]["code"]), (&json!("mcp"), &json!("PERMISSION_DENIED")));
    // The same person at the API is not held by a rule for models.
    let listed = home.call("list_directory", &json!({ "path": "." }));
    assert_eq!(listed["ok"], true, "{listed}");
}

#[test]
fn cal_16_an_idempotency_key_counts_however_its_name_is_escaped() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let arguments = json!({ "file": "count.txt", "text": "one" });
    for name in ["gantry/idempotencyKey", r"gantry\/idempotencyKey", r"\u0067antry/idempotencyKey"] {
        let meta = format!(r#","{name}":"k""#);
        let answer = modern(&server.client(), "test__count", &arguments, &meta);
        assert_eq!(answer["result"]["isError"], false, "{name}: {answer}");
    }
    assert_eq!(home.read("count.txt"), "one\n", "it ran once");
}

#[test]
fn cal_12_a_client_whose_session_was_canceled_is_asked_to_begin_anew() {
    let home = TestDir::new();
    let server = home.serve();
    let json = [("content-type", "application/json")];
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = send(&server.client(), Method::POST, "/mcp", &json, hello);
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let within = [json[0], ("mcp-session-id", session.as_str())];
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_directory","arguments":{"path":"."}}}"#;
    let before = send(&server.client(), Method::POST, "/mcp", &within, call).json();
    assert_eq!(before["result"]["isError"], false, "{before}");
    let run = calls(&server)[0]["session"].as_str().unwrap().to_owned();
    let canceled = send(&server.admin(), Method::POST, &format!("/api/v1/runs/{run}/cancel"), &[], "");
    assert_eq!(canceled.json()["canceled"], true);
    let after = send(&server.client(), Method::POST, "/mcp", &within, call).json();
    assert!(after["error"]["message"].as_str().is_some_and(|text| text.contains("connect again")), "{after}");
    assert_eq!(server.call("list_directory", &json!({ "path": "." })).json()["ok"], true, "others go on");
}

#[test]
fn blt_1_no_tool_changes_what_configures_gantry() {
    let home = TestDir::new().config("agents: { a: { tools: [] } }\n");
    home.write("mine.yaml", "workspace: /");
    home.write(".env", "Y=1");
    for (tool, arguments) in [
        ("write_file", json!({ "path": "gantry.yaml", "content": "" })),
        ("write_file", json!({ "path": ".env", "content": "X=1" })),
        ("delete_file", json!({ "path": "gantry.yaml" })),
        ("move_file", json!({ "from": "gantry.yaml", "to": "x" })),
        ("move_file", json!({ "from": "mine.yaml", "to": "gantry.yaml", "overwrite": true })),
    ] {
        assert_eq!(
            home.call_yes(tool, &arguments)["error"]["code"],
            "PERMISSION_DENIED",
            "{tool} {arguments}"
        );
    }
    assert_eq!(home.read("gantry.yaml"), "agents: { a: { tools: [] } }\n");
    let read = home.call("read_file", &json!({ "path": "gantry.yaml" }));
    assert_eq!(read["error"]["code"], "PERMISSION_DENIED", "it may hold secrets: {read}");
}
