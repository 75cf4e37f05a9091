//! The shapes of what the API takes and answers.

mod approvals;

use serde_json::{Map, Value, json};

/// Whether a request needs its body, when the schema of that has this name.
pub(super) fn is_needed(body: &str) -> bool {
    !matches!(body, "ProjectName" | "LockRequest")
}

/// Every schema, by its name.
pub(super) fn all() -> Value {
    let mut all = plain();
    if let Some(all) = all.as_object_mut() {
        all.extend(approvals::all());
    }
    all
}

fn plain() -> Value {
    json!({
        "CallRequest": call_request(),
        "CallReply": call_reply(),
        "Error": error(),
        "Failure": { "type": "object", "properties": { "ok": { "const": false }, "error": { "$ref": "#/components/schemas/Error" } } },
        "Tool": tool(),
        "Record": { "type": "object", "description": "One call as the ledger has it" },
        "Server": server(),
        "NewServer": new_server(),
        "Agent": { "type": "object", "properties": agent() },
        "AgentDetails": agent_details(),
        "Project": project(),
        "ProjectName": {
            "type": "object", "additionalProperties": false, "properties": { "project": { "type": "string" } },
            "description": "For those who would rather not name it in the query"
        },
        "Switched": switched(),
        "Configuration": {
            "type": "object",
            "properties": { "refused": { "type": ["string", "null"], "description": "What is wrong with the one on the disk; the one before holds" } }
        },
        "Reloaded": {
            "type": "object",
            "properties": { "projects": { "type": "array", "items": { "type": "string" }, "description": "Those that are other than before" } }
        },
        "LockRequest": lock_request(),
        "ImaginedCall": imagined_call(),
        "Foresight": dry_run(),
        "LockDiff": lock_diff(),
        "ServerList": list("Server"),
        "AgentList": list("Agent"),
        "ProjectList": list("Project"),
        "LockDiffList": list("LockDiff"),
        "ToolList": list("Tool"),
        "RecordList": list("Record"),
    })
}

fn list(of: &str) -> Value {
    let items = json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } });
    json!({ "type": "object", "properties": { "items": items, "next": { "type": ["string", "null"] } } })
}

fn call_request() -> Value {
    json!({
        "type": "object", "required": ["tool"], "additionalProperties": false,
        "properties": {
            "tool": { "type": "string" }, "arguments": { "type": "object" },
            "agent": { "type": "string" }, "project": { "type": "string" },
            "mode": { "enum": ["wait", "defer"], "default": "wait" },
            "idempotencyKey": { "type": "string", "maxLength": 256 },
            "priority": { "enum": ["low", "normal", "high"], "default": "normal" },
            "timeoutMs": { "type": "integer", "minimum": 0 },
            "waitMs": { "type": "integer", "minimum": 0, "maximum": 60_000, "description": "If the call is held, wait so long for its outcome" },
            "approve": { "type": "boolean", "description": "Say yes to what the call asks; takes the key of the data folder" }
        }
    })
}

fn call_reply() -> Value {
    json!({
        "type": "object", "required": ["ok", "id", "state"],
        "properties": {
            "ok": { "type": "boolean" }, "result": {}, "error": { "$ref": "#/components/schemas/Error" },
            "latencyMs": { "type": "integer" }, "kind": { "type": ["string", "null"] },
            "namespace": { "type": ["string", "null"] }, "extras": { "type": "object" },
            "id": { "type": "string" }, "state": { "type": "string" },
            "approvalId": { "type": "string", "description": "What the call waits for, or has waited for" },
            "record": { "$ref": "#/components/schemas/Record" }
        }
    })
}

fn error() -> Value {
    let codes: Vec<&str> = gantry_core::ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object", "required": ["code", "message"],
        "properties": { "code": { "enum": codes }, "message": { "type": "string" }, "details": {} }
    })
}

fn tool() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" }, "title": { "type": ["string", "null"] }, "description": { "type": "string" },
            "inputSchema": {}, "outputSchema": {}, "annotations": { "type": "object" },
            "provider": { "type": "object" }, "status": { "enum": ["ready", "quarantined"] }, "reason": { "type": ["string", "null"] },
            "aliasOf": { "type": "string", "description": "The tool that this is another name for" },
            "aliases": { "type": "array", "items": { "type": "string" }, "description": "Other names for it" }
        }
    })
}

fn imagined_call() -> Value {
    json!({
        "type": "object", "required": ["tool"], "additionalProperties": false,
        "properties": {
            "tool": { "type": "string" }, "arguments": { "type": "object" }, "agent": { "type": "string" },
            "project": { "type": "string" },
            "principal": { "type": "string", "description": "Who would call; local unless said" },
            "role": { "enum": ["agent", "approver", "admin"], "description": "agent unless said" }
        }
    })
}

fn dry_run() -> Value {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "outcome": { "enum": ["allowed", "held", "denied", "refused"] }, "tool": { "type": "string" },
            "rules": names, "reason": { "type": "string" },
            "approvers": { "type": "array", "items": names, "description": "Who may decide: somebody of every list" },
            "delayMs": { "type": "integer" }, "estimatedCost": { "type": "integer" },
            "error": { "$ref": "#/components/schemas/Error" }
        }
    })
}

fn lock_request() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "project": { "type": "string" }, "server": { "type": "string" }, "tool": { "type": "string" },
            "revision": { "type": "string", "description": "of the differences that were seen; anything else is refused with 409" }
        }
    })
}

fn lock_diff() -> Value {
    json!({
        "type": "object",
        "properties": {
            "server": { "type": "string" }, "tool": { "type": ["string", "null"], "description": "null for its instructions" },
            "change": { "enum": ["added", "changed", "removed", "unpinned"] },
            "pinned": {}, "current": {},
            "fingerprint": { "type": ["string", "null"], "description": "of the definition of now" }, "flags": { "type": "array", "items": { "type": "string" } }
        }
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
            "agent": { "type": "string", "description": "The active agent that it runs for alone" },
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

/// The members of an agent that everybody may know.
fn agent() -> Map<String, Value> {
    let members = [
        ("name", json!({ "type": "string" })),
        ("project", json!({ "type": "string" })),
        ("description", json!({ "type": ["string", "null"] })),
        ("model", json!({ "type": ["string", "null"] })),
        ("active", json!({ "type": "boolean" })),
        (
            "tools",
            json!({ "type": ["integer", "null"], "description": "How many it has; null while it is not running" }),
        ),
        (
            "aliases",
            json!({
                "type": ["object", "null"], "additionalProperties": { "type": "string" },
                "description": "Other names for its tools, and the tools"
            }),
        ),
    ];
    members.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect()
}

fn agent_details() -> Value {
    let texts = |types: Value, of: &str| {
        let description = format!("{of}; for those who administer");
        json!({ "type": types, "items": { "type": "string" }, "description": description })
    };
    let mut members = agent();
    let names = json!({ "type": ["array", "null"], "items": { "type": "string" }, "description": "The names of its tools" });
    members.insert("toolNames".into(), names);
    members.insert("uses".into(), texts(json!("array"), "What it is configured to have"));
    members.insert(
        "allowed".into(),
        texts(json!(["array", "null"]), "Which of these it may call; null for all of them"),
    );
    members.insert("autoApprove".into(), texts(json!("array"), "Tools whose own rule need not ask a person"));
    let prompt = json!({ "type": ["string", "null"], "description": "What it is told to be; for those who administer" });
    members.insert("prompt".into(), prompt);
    json!({ "type": "object", "properties": members })
}

fn project() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "active": { "type": ["string", "null"], "description": "The active agent" },
            "agents": { "type": "integer" }, "servers": { "type": "integer" },
            "tools": { "type": ["integer", "null"], "description": "For callers who name no agent; null while they cannot come in" }
        }
    })
}

fn switched() -> Value {
    json!({
        "type": "object",
        "properties": {
            "project": { "type": "string" }, "from": { "type": ["string", "null"] }, "to": { "type": ["string", "null"] },
            "changed": { "type": "boolean", "description": "false if it was so already" },
            "cutOff": { "type": "integer", "description": "Calls that did not end in time" },
            "tools": { "type": "integer" }, "tookMs": { "type": "integer" },
            "refused": { "type": "string", "description": "Why the configuration on the disk was not loaded; the one before holds" }
        }
    })
}
