//! The OpenAPI document of the API. A test holds it against the table of routes, so that neither can be forgotten.

use axum::Json;
use serde_json::{Map, Value, json};

/// `GET /api/openapi.json`.
pub(crate) async fn serve() -> Json<Value> {
    Json(document())
}

/// One operation of the API.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    /// Name of the schema of the body, and of the answer.
    body: Option<&'static str>,
    answer: Option<&'static str>,
}

const PAGE: [(&str, &str); 2] =
    [("cursor", "The `next` of the page before"), ("limit", "At most so many, up to 1000")];

const CALLS: [(&str, &str); 8] = [
    ("tool", "Displayed name of the tool"),
    ("session", "Id of the run"),
    ("state", "State of the call"),
    ("principal", "Who made it; for those who may see all"),
    ("since", "RFC 3339, or back from now: 15m, 2h, 7d"),
    ("until", "RFC 3339, or back from now"),
    PAGE[0],
    PAGE[1],
];

const OPERATIONS: [Operation; 24] = [
    get(
        "/api/v1/tools",
        "List the tools that the caller may use",
        &[("agent", "See what this agent sees")],
        Some("ToolList"),
    ),
    post("/api/v1/calls", "Call a tool", Some("CallRequest"), Some("CallReply")),
    get("/api/v1/calls", "List calls, newest first", &CALLS, Some("RecordList")),
    get("/api/v1/calls/{id}", "Look a call up, with its reply if it was kept", &[], Some("CallReply")),
    post("/api/v1/calls/{id}/cancel", "Cancel a call that waits or runs", None, None),
    get(
        "/api/v1/events",
        "What happens, as server-sent events",
        &[("follow", "false ends after the recent ones")],
        None,
    ),
    get("/api/v1/runs", "List runs, newest first", &[("agent", "Of this agent"), PAGE[0], PAGE[1]], None),
    get("/api/v1/runs/{id}", "A run as a tree of operations", &[], None),
    post("/api/v1/runs/{id}/cancel", "Cancel a run and all its calls", None, None),
    get("/api/v1/servers", "List the MCP servers and how they are doing", &[], Some("ServerList")),
    post(
        "/api/v1/servers",
        "Add an MCP server until Gantry stops; takes the key of the data folder",
        Some("NewServer"),
        Some("Server"),
    ),
    get("/api/v1/servers/{id}", "An MCP server", &[], Some("Server")),
    Operation {
        method: "delete",
        path: "/api/v1/servers/{id}",
        summary: "Stop an MCP server and take its tools away, until Gantry stops; takes the key of the data folder",
        query: &[],
        body: None,
        answer: None,
    },
    post(
        "/api/v1/servers/{id}/restart",
        "Stop an MCP server and start it anew; takes the key of the data folder",
        None,
        Some("Server"),
    ),
    get(
        "/api/v1/lock",
        "What is different between the pinned definitions of tools and those of now; takes the key of the data folder",
        &[("server", "Of this server"), ("tool", "Of this tool of it")],
        Some("LockDiffList"),
    ),
    post(
        "/api/v1/lock",
        "Accept and pin the definitions of now: all, a server's, or one tool's; takes the key of the data folder",
        Some("LockRequest"),
        Some("LockDiffList"),
    ),
    get("/api/v1/queues", "Depth, use and waits of the queues", &[], None),
    get("/api/v1/audit", "The audit trail, newest first", &CALLS, Some("RecordList")),
    get("/api/v1/audit/verify", "Prove that the audit trail is whole", &[], None),
    get(
        "/api/v1/explain",
        "Why a tool is visible to an agent, or not; without a tool, what looks wrong",
        &[("tool", "Which"), ("agent", "To whom")],
        None,
    ),
    get("/api/openapi.json", "This document", &[], None),
    get("/metrics", "Counters for Prometheus", &[], None),
    get("/healthz", "Whether the process lives", &[], None),
    get("/readyz", "Whether a call could be put on record now", &[], None),
];

const fn get(
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    answer: Option<&'static str>,
) -> Operation {
    Operation { method: "get", path, summary, query, body: None, answer }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    answer: Option<&'static str>,
) -> Operation {
    Operation { method: "post", path, summary, query: &[], body, answer }
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in &OPERATIONS {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(operation.method.into(), described(operation));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gantry", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "The one door between AI agents and everything they can do. MCP clients use /mcp.",
        },
        "security": [{}, { "key": [] }],
        "paths": paths,
        "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } }, "schemas": schemas() },
    })
}

fn described(operation: &Operation) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let mut parameters: Vec<Value> = operation
        .query
        .iter()
        .map(|(name, text)| json!({ "name": name, "in": "query", "description": text, "schema": { "type": "string" } }))
        .collect();
    if operation.path.contains("{id}") {
        parameters
            .push(json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    let answer = operation.answer.map_or_else(|| json!({}), reference);
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "Done", "content": { "application/json": { "schema": answer } } },
            "default": { "description": "Not done; the error says why", "content": { "application/json": { "schema": reference("Failure") } } },
        },
    });
    if let (Some(body), Some(described)) = (operation.body, described.as_object_mut()) {
        let content =
            json!({ "required": true, "content": { "application/json": { "schema": reference(body) } } });
        described.insert("requestBody".into(), content);
    }
    described
}

fn schemas() -> Value {
    let codes: Vec<&str> = gantry_core::ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let list = |of: &str| {
        let items = json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } });
        json!({ "type": "object", "properties": { "items": items, "next": { "type": ["string", "null"] } } })
    };
    json!({
        "CallRequest": {
            "type": "object", "required": ["tool"], "additionalProperties": false,
            "properties": {
                "tool": { "type": "string" }, "arguments": { "type": "object" },
                "agent": { "type": "string" }, "project": { "type": "string" },
                "mode": { "enum": ["wait", "defer"], "default": "wait" },
                "idempotencyKey": { "type": "string", "maxLength": 256 },
                "priority": { "enum": ["low", "normal", "high"], "default": "normal" },
                "timeoutMs": { "type": "integer", "minimum": 0 },
                "approve": { "type": "boolean", "description": "Say yes to what the call asks; takes a key that may decide" }
            }
        },
        "CallReply": {
            "type": "object", "required": ["ok", "id", "state"],
            "properties": {
                "ok": { "type": "boolean" }, "result": {}, "error": { "$ref": "#/components/schemas/Error" },
                "latencyMs": { "type": "integer" }, "kind": { "type": ["string", "null"] },
                "namespace": { "type": ["string", "null"] }, "extras": { "type": "object" },
                "id": { "type": "string" }, "state": { "type": "string" }
            }
        },
        "Error": {
            "type": "object", "required": ["code", "message"],
            "properties": { "code": { "enum": codes }, "message": { "type": "string" }, "details": {} }
        },
        "Failure": { "type": "object", "properties": { "ok": { "const": false }, "error": { "$ref": "#/components/schemas/Error" } } },
        "Tool": {
            "type": "object",
            "properties": {
                "name": { "type": "string" }, "title": { "type": ["string", "null"] }, "description": { "type": "string" },
                "inputSchema": {}, "outputSchema": {}, "annotations": { "type": "object" },
                "provider": { "type": "object" }, "status": { "enum": ["ready", "quarantined"] }, "reason": { "type": ["string", "null"] }
            }
        },
        "Record": { "type": "object", "description": "One call as the ledger has it" },
        "Server": server(),
        "NewServer": new_server(),
        "LockRequest": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "server": { "type": "string" }, "tool": { "type": "string" },
                "revision": { "type": "string", "description": "of the differences that were seen; anything else is refused with 409" }
            }
        },
        "LockDiff": {
            "type": "object",
            "properties": {
                "server": { "type": "string" }, "tool": { "type": ["string", "null"], "description": "null for its instructions" },
                "change": { "enum": ["added", "changed", "removed", "unpinned"] },
                "pinned": {}, "current": {},
                "fingerprint": { "type": ["string", "null"], "description": "of the definition of now" }, "flags": { "type": "array", "items": { "type": "string" } }
            }
        },
        "ServerList": list("Server"),
        "LockDiffList": list("LockDiff"),
        "ToolList": list("Tool"),
        "RecordList": list("Record"),
    })
}

fn new_server() -> Value {
    json!({
        "type": "object", "required": ["id"],
        "description": "The keys of an entry of `mcpServers` in the configuration, and its id.",
        "properties": {
            "id": { "type": "string" }, "type": { "enum": ["stdio", "http", "sse", "websocket", "tcp"] },
            "command": { "type": "string" }, "args": { "type": "array", "items": { "type": "string" } },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
            "url": { "type": "string" }, "headers": { "type": "object", "additionalProperties": { "type": "string" } }
        }
    })
}

fn server() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" }, "project": { "type": "string" },
            "type": { "enum": ["stdio", "http", "sse", "websocket", "tcp"] },
            "light": { "enum": ["green", "yellow", "red", "off"] }, "status": { "type": "string" },
            "since": { "type": "string", "format": "date-time" }, "era": { "type": ["string", "null"] },
            "latencyMs": { "type": ["number", "null"] }, "tools": { "type": "integer" },
            "quarantined": { "type": "integer" }, "resources": { "type": "integer" }, "prompts": { "type": "integer" },
            "lastError": { "type": ["string", "null"], "description": "For those who administer" },
            "retryAt": { "type": ["string", "null"] }, "flags": { "type": "array", "items": { "type": "string" } },
            "replicas": { "type": "array", "items": { "type": "object" }, "description": "For those who administer" }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        let mut described: Vec<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
        described.dedup();
        let routed: Vec<&str> = crate::api::routes().into_iter().map(|(path, _)| path).collect();
        assert_eq!(described, routed);
    }
}
