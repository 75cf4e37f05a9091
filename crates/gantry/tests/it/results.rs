//! What becomes of results: stored outputs, budgets, conversations, run trees, accounting, events and the ledger.

mod budgets;
mod conversations;
mod costly;
mod events;
mod ledger;
mod runs;
mod stored;

use gantry_testkit::Server;
use serde_json::{Value, json};

/// One call as a modern MCP client makes it, without a session of its own; the whole JSON-RPC answer.
pub(crate) fn mcp_call(server: &Server, path: &str, tool: &str, arguments: &Value) -> Value {
    mcp(server, path, "tools/call", tool, &json!({ "name": tool, "arguments": arguments }))
}

/// The names that a modern MCP client is listed.
pub(crate) fn mcp_tools(server: &Server, path: &str) -> Vec<String> {
    let answer = mcp(server, path, "tools/list", "", &json!({}));
    let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn mcp(server: &Server, path: &str, method: &str, name: &str, params: &Value) -> Value {
    const VERSION: &str = "2026-07-28";
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers =
        vec![("content-type", "application/json"), ("mcp-protocol-version", VERSION), ("mcp-method", method)];
    if method == "tools/call" {
        headers.push(("mcp-name", name));
    }
    server.request(http::Method::POST, path, &headers, &body).json()
}
