//! The shapes of approvals, grants and keys.

use serde_json::{Map, Value, json};

/// Every schema of this family, by its name.
pub(super) fn all() -> Map<String, Value> {
    let schemas = [
        ("Approval", approval()),
        ("ApprovalList", super::list("Approval")),
        ("Decision", decision()),
        ("Grant", grant()),
        ("GrantList", super::list("Grant")),
        ("Key", json!({ "type": "object", "properties": key() })),
        ("KeyList", super::list("Key")),
        ("NewKey", new_key()),
        ("MadeKey", made_key()),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn words(of: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": of })
}

fn time(of: &str) -> Value {
    json!({ "type": ["string", "null"], "format": "date-time", "description": of })
}

fn approval() -> Value {
    let states: Vec<&str> = gantry_core::State::ALL.iter().map(|state| state.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" }, "callId": { "type": "string" }, "stepId": { "type": "string", "description": "The same as callId" },
            "state": { "enum": states }, "tool": { "type": "string" },
            "arguments": { "type": ["object", "null"], "description": "Exactly as they were sent; null in a list if they have more than 2 KiB" },
            "argumentsBytes": { "type": "integer" },
            "reason": { "type": "string", "description": "Why a person is asked" },
            "agentPath": words("The agents above the caller, the topmost first, and the caller's own last"),
            "caller": {
                "type": "object",
                "properties": {
                    "principal": { "type": "string" }, "agent": { "type": ["string", "null"] }, "project": { "type": "string" },
                    "door": { "enum": ["cli", "http", "mcp"] }, "session": { "type": "string" }
                }
            },
            "rule": { "type": ["string", "null"], "description": "The first of the rules that ask" }, "rules": words("The rules that ask"),
            "approvers": { "type": "array", "items": words("One of these has to say yes"), "description": "Somebody of every list" },
            "effect": { "enum": ["read", "write", "destructive"] }, "provider": { "type": "string" },
            "fingerprint": { "type": "string", "description": "Of the tool's definition" },
            "createdAt": { "type": "string", "format": "date-time" },
            "expiresAt": time("When it is rejected because nobody decided"), "scheduledFor": time("When it runs"),
            "attempts": { "type": "integer" }, "estimatedCost": { "type": "integer" },
            "delayMs": { "type": "integer", "description": "How long it waits after a yes" },
            "sessionGrant": { "type": "boolean", "description": "Whether a yes may be for the session: its caller has one of its own" },
            "decidedBy": { "type": "string" }, "decidedVia": { "type": "string" }, "decidedAt": { "type": "string", "format": "date-time" },
            "decision": {
                "type": "object",
                "properties": {
                    "approved": { "type": "boolean" }, "reason": { "type": ["string", "null"] },
                    "scope": { "enum": ["once", "session", "always"] }, "modifiedArgs": { "type": ["object", "null"] },
                    "modifiedArgsBytes": { "type": "integer" }, "grant": { "type": "string" }
                }
            },
            "endedAt": { "type": "string", "format": "date-time" },
            "message": { "type": "string", "description": "Why it ended as it did, where neither state nor decision says it" },
            "supersedes": { "type": "string", "description": "The approval that this one takes the place of, because what was approved had changed" }
        }
    })
}

fn decision() -> Value {
    json!({
        "type": "object", "required": ["approved"], "additionalProperties": false,
        "properties": {
            "approved": { "type": "boolean" },
            "modifiedArgs": { "type": "object", "description": "Run it with these instead; they are checked like those of any call" },
            "reason": { "type": "string", "description": "Why, in words that the caller reads" },
            "scope": { "enum": ["once", "session", "always"], "default": "once", "description": "For this call, for such calls of its session, or for all such calls of its caller" }
        }
    })
}

fn grant() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" }, "project": { "type": "string" }, "principal": { "type": "string" },
            "agentPath": words("The agents above the caller, and the caller's own last"),
            "provider": { "type": "string" }, "tool": { "type": "string" },
            "original": { "type": "string", "description": "The tool's name at its provider" },
            "fingerprint": { "type": "string", "description": "Of the definition that it is for; it is void for any other" },
            "rules": words("The rules whose questions it answers"), "scope": { "enum": ["session", "always"] },
            "session": { "type": ["string", "null"] }, "grantedBy": { "type": "string" }, "approvalId": { "type": ["string", "null"] },
            "createdAt": { "type": "string", "format": "date-time" },
            "expiresAt": time("When it ends by itself, with the key of whoever has it or gave it"), "revokedAt": time("When it was revoked"),
            "revokedBy": { "type": ["string", "null"] }
        }
    })
}

fn roles() -> Value {
    json!({ "enum": ["agent", "approver", "admin"] })
}

fn key() -> Map<String, Value> {
    let list =
        |of: &str| json!({ "type": ["array", "null"], "items": { "type": "string" }, "description": of });
    let members = [
        ("id", json!({ "type": "string" })),
        ("name", json!({ "type": "string", "description": "The principal of whoever uses it" })),
        ("role", roles()),
        ("projects", list("Those that it is for; null for all")),
        ("agent", json!({ "type": ["string", "null"], "description": "The agent as which it acts, always" })),
        ("tools", list("Patterns of the tools that it may decide about; null for all")),
        ("state", json!({ "enum": ["active", "expired", "revoked"] })),
        ("createdAt", json!({ "type": "string", "format": "date-time" })),
        ("expiresAt", time("When it stops to hold")),
        ("revokedAt", time("When it was revoked")),
    ];
    members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn new_key() -> Value {
    json!({
        "type": "object", "required": ["name", "role"], "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" }, "role": roles(),
            "projects": words("Those that it is for; all unless said"),
            "agent": { "type": "string", "description": "For the role agent: the agent as which it acts, always" },
            "tools": words("For the role approver: patterns of the tools that it may decide about; all unless said"),
            "expiresAt": { "type": "string", "format": "date-time" },
            "expiresIn": { "type": "string", "description": "Instead of expiresAt: 90m, 12h, 30d" }
        }
    })
}

fn made_key() -> Value {
    let mut members = key();
    let secret = json!({ "type": "string", "description": "The key itself. It is shown this once; the store has only a digest of it" });
    members.insert("key".into(), secret);
    json!({ "type": "object", "properties": members })
}
