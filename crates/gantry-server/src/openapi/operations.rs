//! The operations of the API, with the types of their queries, bodies and answers.

use crate::model::{
    Agent, AgentDetails, Approval, ApprovalQuery, AuditVerification, CallQuery, CallRecord, CallReply,
    CallRequest, Canceled, ChangedServer, Configuration, Decision, Event, EventQuery, ExplainQuery,
    Explained, Grant, GrantQuery, Health, InProject, Key, List, LockDiffs, LockQuery, LockRequest, MadeKey,
    NewKey, NewServer, OfProject, PolicyTest, PolicyTestRequest, Project, ProjectName, Queue, Reloaded,
    Removed, Revoked, Run, RunQuery, RunTree, Server, Switched, Tool, ToolQuery, Wait,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Makes the schema of a type.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// One operation of the API.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Option<MakeSchema>,
    pub(super) body: Option<MakeSchema>,
    pub(super) is_body_optional: bool,
    /// The statuses of success.
    pub(super) statuses: &'static [&'static str],
    pub(super) content_type: &'static str,
    pub(super) answer: MakeSchema,
    /// Whether 409 and 410 say how the approval stands instead.
    pub(super) has_conflict: bool,
}

/// Every operation, in the order of the routes.
pub(super) const OPERATIONS: [Operation; 42] = [
    get::<List<Tool>>(
        "/api/v1/tools",
        "List the tools that the caller may use; in other formats than json, the items are as models take them",
    )
    .query::<ToolQuery>(),
    post::<CallReply>("/api/v1/calls", "Call a tool; 202 if the call is deferred, or waits for an approval or for its time")
        .body::<CallRequest>()
        .statuses(&["200", "202"]),
    get::<List<CallRecord>>("/api/v1/calls", "List calls, newest first").query::<CallQuery>(),
    get::<CallReply>("/api/v1/calls/{id}", "Get a call, with its reply if that was kept").query::<Wait>(),
    delete::<Canceled>("/api/v1/calls/{id}", "Cancel a call that runs, or withdraw one that waits"),
    post::<Canceled>("/api/v1/calls/{id}/cancel", "The same, for clients that cannot send DELETE"),
    get::<List<Approval>>("/api/v1/approvals", "List the calls that wait for a person or for their time, and those that did")
        .query::<ApprovalQuery>(),
    get::<Approval>("/api/v1/approvals/{id}", "Get a call that waits or has waited, by its id or by at least 6 of the digits that this ends with").query::<Wait>(),
    post::<Approval>(
        "/api/v1/approvals/{id}/decision",
        "Approve or deny a call; takes the key of an approver. 409 if it was decided before, 410 if it has expired",
    )
    .body::<Decision>()
    .conflict(),
    post::<Approval>(
        "/api/v1/approvals/{id}/cancel",
        "Withdraw a call that waits; for its caller and for administrators",
    )
    .conflict(),
    get::<List<Grant>>("/api/v1/grants", "List the approvals that hold for more than one call").query::<GrantQuery>(),
    delete::<Revoked>("/api/v1/grants/{id}", "Revoke a grant; takes the key of an approver"),
    get::<List<Key>>("/api/v1/keys", "List the keys, without their secrets; takes the key of an administrator"),
    post::<MadeKey>("/api/v1/keys", "Make a key, which is shown once; takes the key of an administrator")
        .body::<NewKey>()
        .statuses(&["201"]),
    delete::<Revoked>("/api/v1/keys/{id}", "Revoke a key, by its id or its name; takes the key of an administrator"),
    get::<Event<'static>>("/api/v1/events", "The events, as server-sent events: the recent ones, then new ones")
        .query::<EventQuery>()
        .content_type("text/event-stream"),
    get::<List<Run>>("/api/v1/runs", "List runs, newest first").query::<RunQuery>(),
    get::<RunTree>("/api/v1/runs/{id}", "Get a run as a tree of operations"),
    post::<Canceled>("/api/v1/runs/{id}/cancel", "Cancel a run and all its calls"),
    get::<List<Server>>("/api/v1/servers", "List the MCP servers and the APIs, and how they are doing").query::<OfProject>(),
    post::<ChangedServer>(
        "/api/v1/servers",
        "Add an MCP server until Gantry stops; takes the key of an administrator",
    )
    .query::<InProject>()
    .body::<NewServer>()
    .statuses(&["201"]),
    get::<Server>("/api/v1/servers/{id}", "Get an MCP server or an API").query::<InProject>(),
    delete::<Removed>(
        "/api/v1/servers/{id}",
        "Stop an MCP server and remove its tools, until Gantry stops; takes the key of an administrator",
    )
    .query::<InProject>(),
    post::<ChangedServer>(
        "/api/v1/servers/{id}/restart",
        "Stop an MCP server and start it anew; takes the key of an administrator",
    )
    .query::<InProject>(),
    get::<List<Agent>>("/api/v1/agents", "List the agents, and which of them is active").query::<OfProject>(),
    get::<AgentDetails>("/api/v1/agents/{name}", "Get an agent and its tools").query::<InProject>(),
    post::<Switched>(
        "/api/v1/agents/{name}/activate",
        "Make an agent the active one of its project; takes the key of an administrator",
    )
    .query::<InProject>()
    .optional_body::<ProjectName>(),
    post::<Switched>(
        "/api/v1/agents/{name}/deactivate",
        "Make no agent active, if this one is; takes the key of an administrator",
    )
    .query::<InProject>()
    .optional_body::<ProjectName>(),
    get::<List<Project>>("/api/v1/projects", "List the projects and what each has"),
    get::<Configuration>(
        "/api/v1/config",
        "Whether the configuration on the disk is the one that holds; takes the key of an administrator",
    ),
    post::<Reloaded>(
        "/api/v1/config/reload",
        "Read the configuration again and apply what has changed; takes the key of an administrator",
    ),
    get::<LockDiffs>(
        "/api/v1/lock",
        "List the differences between the pinned definitions of tools and those of now; takes the key of an administrator",
    )
    .query::<LockQuery>(),
    post::<LockDiffs>(
        "/api/v1/lock",
        "Accept and pin the definitions of now: all, those of a server, or one tool's; takes the key of an administrator",
    )
    .optional_body::<LockRequest>(),
    get::<List<Queue>>("/api/v1/queues", "List the queues: depth, use and waits"),
    get::<List<CallRecord>>("/api/v1/audit", "The audit trail, newest first").query::<CallQuery>(),
    get::<AuditVerification>(
        "/api/v1/audit/verify",
        "Prove that the audit trail is whole; takes the key of an administrator",
    ),
    get::<Explained>(
        "/api/v1/explain",
        "Why a tool is visible to an agent, or not; without a tool, what looks wrong; takes the key of an administrator",
    )
    .query::<ExplainQuery>(),
    post::<PolicyTest>(
        "/api/v1/policy/test",
        "What would be decided about a call, with nothing run and no person asked; takes the key of an administrator",
    )
    .body::<PolicyTestRequest>(),
    get::<Map<String, Value>>("/api/openapi.json", "This document"),
    get::<String>("/metrics", "Counters for Prometheus")
        .content_type("application/openmetrics-text"),
    get::<Health>("/healthz", "Whether the process lives"),
    get::<Health>("/readyz", "Whether a call could be put on record now"),
];

const fn get<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "get",
        path,
        summary,
        query: None,
        body: None,
        is_body_optional: false,
        statuses: &["200"],
        content_type: "application/json",
        answer: SchemaGenerator::subschema_for::<T>,
        has_conflict: false,
    }
}

const fn post<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "post", ..get::<T>(path, summary) }
}

const fn delete<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "delete", ..get::<T>(path, summary) }
}

impl Operation {
    /// The fields of this type are the parameters of the query.
    const fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }
    }

    const fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    const fn optional_body<T: JsonSchema>(self) -> Self {
        Self { is_body_optional: true, ..self.body::<T>() }
    }

    const fn statuses(self, statuses: &'static [&'static str]) -> Self {
        Self { statuses, ..self }
    }

    const fn content_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    const fn conflict(self) -> Self {
        Self { has_conflict: true, ..self }
    }
}
