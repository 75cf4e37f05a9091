//! The routes of the API: one table, from which the router and the OpenAPI document are made.

use super::{agents, approvals, calls, events, grants, health, keys, lock, runs, servers, tools};
use crate::model::{
    Agent, AgentDetails, ApplyRequest, Approval, ApprovalQuery, AuditVerification, CallQuery, CallRecord,
    CallReply, CallRequest, Canceled, ChangedServer, Configuration, Decision, EventQuery, ExplainQuery,
    Explained, Grant, GrantQuery, Health, InProject, Key, List, LockDiffs, LockQuery, LockRequest, MadeKey,
    NewKey, NewServer, OfProject, PolicyTest, PolicyTestRequest, Project, Queue, Reloaded, Removed, Revoked,
    Run, RunQuery, RunTree, Server, StreamedEvent, Switched, Tool, ToolQuery, Wait,
};
use crate::{App, openapi};
use axum::routing::{MethodRouter, delete, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

pub(crate) struct Operation {
    /// Its name, for programs that are generated from the document.
    pub(crate) id: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) handler: MethodRouter<App>,
    pub(crate) summary: &'static str,
    pub(crate) is_for_admins: bool,
    /// The fields of this type are the parameters of the query.
    pub(crate) query: Option<MakeSchema>,
    /// The schema of the body, and whether it is required.
    pub(crate) body: Option<(MakeSchema, bool)>,
    /// The statuses of success.
    pub(crate) statuses: &'static [&'static str],
    pub(crate) content_type: &'static str,
    pub(crate) answer: MakeSchema,
    /// Whether 409 and 410 say how the approval stands instead.
    pub(crate) has_conflict: bool,
}

#[rustfmt::skip]
pub(crate) fn operations() -> Vec<Operation> {
    vec![
        op::<List<Tool>>("get /api/v1/tools", "listTools", get(tools::list),
            "List the tools that the caller may use; in other formats than json, the items are as models take them").query::<ToolQuery>(),
        op::<CallReply>("post /api/v1/calls", "callTool", post(calls::create),
            "Call a tool; 202 if the call is deferred, or waits for an approval or for its time").body::<CallRequest>().statuses(&["200", "202"]),
        op::<List<CallRecord>>("get /api/v1/calls", "listCalls", get(calls::list), "List calls, newest first").query::<CallQuery>(),
        op::<CallReply>("get /api/v1/calls/{id}", "getCall", get(calls::show), "Get a call, with its reply if that was kept").query::<Wait>(),
        op::<Canceled>("delete /api/v1/calls/{id}", "cancelCall", delete(calls::cancel), "Cancel a call that runs, or withdraw one that waits"),
        op::<Canceled>("post /api/v1/calls/{id}/cancel", "postCancelCall", post(calls::cancel), "The same, for clients that cannot send DELETE"),
        op::<List<Approval>>("get /api/v1/approvals", "listApprovals", get(approvals::list),
            "List the calls that wait for a person or for their time, and those that did").query::<ApprovalQuery>(),
        op::<Approval>("get /api/v1/approvals/{id}", "getApproval", get(approvals::show),
            "Get a call that waits or has waited, by its id or by at least 6 of the digits that this ends with").query::<Wait>(),
        op::<Approval>("post /api/v1/approvals/{id}/decision", "decideApproval", post(approvals::decide),
            "Approve or deny a call; takes the key of an approver. 409 if it was decided before, 410 if it has expired").body::<Decision>().conflict(),
        op::<Approval>("post /api/v1/approvals/{id}/cancel", "cancelApproval", post(approvals::cancel),
            "Withdraw a call that waits; for its caller and for administrators").conflict(),
        op::<List<Grant>>("get /api/v1/grants", "listGrants", get(grants::list),
            "List the approvals that hold for more than one call").query::<GrantQuery>(),
        op::<Revoked>("delete /api/v1/grants/{id}", "revokeGrant", delete(grants::revoke), "Revoke a grant; takes the key of an approver"),
        op::<List<Key>>("get /api/v1/keys", "listKeys", get(keys::list), "List the keys, without their secrets").admin(),
        op::<MadeKey>("post /api/v1/keys", "createKey", post(keys::create),
            "Make a key, which is shown once").admin().body::<NewKey>().statuses(&["201"]),
        op::<Revoked>("delete /api/v1/keys/{id}", "revokeKey", delete(keys::revoke), "Revoke a key, by its id or its name").admin(),
        op::<StreamedEvent>("get /api/v1/events", "streamEvents", get(events::stream),
            "The events, as server-sent events: the recent ones, then new ones").query::<EventQuery>().content_type("text/event-stream"),
        op::<List<Run>>("get /api/v1/runs", "listRuns", get(runs::list), "List runs, newest first").query::<RunQuery>(),
        op::<RunTree>("get /api/v1/runs/{id}", "getRun", get(runs::show), "Get a run as a tree of operations"),
        op::<Canceled>("post /api/v1/runs/{id}/cancel", "cancelRun", post(runs::cancel), "Cancel a run and all its calls"),
        op::<List<Server>>("get /api/v1/servers", "listServers", get(servers::list),
            "List the MCP servers and the APIs, and how they are doing").query::<OfProject>(),
        op::<ChangedServer>("post /api/v1/servers", "addServer", post(servers::add),
            "Add an MCP server until Gantry stops").admin().query::<InProject>().body::<NewServer>().statuses(&["201"]),
        op::<Server>("get /api/v1/servers/{id}", "getServer", get(servers::show), "Get an MCP server or an API").query::<InProject>(),
        op::<Removed>("delete /api/v1/servers/{id}", "removeServer", delete(servers::remove),
            "Stop an MCP server and remove its tools, until Gantry stops").admin().query::<InProject>(),
        op::<ChangedServer>("post /api/v1/servers/{id}/restart", "restartServer", post(servers::restart),
            "Stop an MCP server and start it anew").admin().query::<InProject>(),
        op::<List<Agent>>("get /api/v1/agents", "listAgents", get(agents::list), "List the agents, and which of them is active").query::<OfProject>(),
        op::<AgentDetails>("get /api/v1/agents/{name}", "getAgent", get(agents::show), "Get an agent and its tools").query::<InProject>(),
        op::<Switched>("post /api/v1/agents/{name}/activate", "activateAgent", post(agents::activate),
            "Make an agent the active one of its project").admin().query::<InProject>().optional_body::<InProject>(),
        op::<Switched>("post /api/v1/agents/{name}/deactivate", "deactivateAgent", post(agents::deactivate),
            "Make no agent active, if this one is").admin().query::<InProject>().optional_body::<InProject>(),
        op::<List<Project>>("get /api/v1/projects", "listProjects", get(agents::list_projects), "List the projects and what each has"),
        op::<Configuration>("get /api/v1/config", "getConfiguration", get(health::show_config), "Whether the configuration on the disk is the one that holds").admin(),
        op::<Reloaded>("post /api/v1/config/reload", "reloadConfiguration", post(health::reload_config),
            "Read the configuration again and apply what has changed").admin(),
        op::<Reloaded>("post /api/v1/config/apply", "applyConfiguration", post(health::apply_config),
            "Apply a change of the configuration that is held; 409 if it is not the one that was seen").admin().body::<ApplyRequest>(),
        op::<LockDiffs>("get /api/v1/lock", "listLockDiffs", get(lock::diff),
            "List the differences between the pinned definitions of tools and those of now").admin().query::<LockQuery>(),
        op::<LockDiffs>("post /api/v1/lock", "acceptLockDiffs", post(lock::accept),
            "Accept and pin the definitions of now: all, those of a server, or one tool's").admin().optional_body::<LockRequest>(),
        op::<List<Queue>>("get /api/v1/queues", "listQueues", get(health::queues), "List the queues: depth, use and waits"),
        op::<List<CallRecord>>("get /api/v1/audit", "listAuditTrail", get(calls::list), "The audit trail, newest first").query::<CallQuery>(),
        op::<AuditVerification>("get /api/v1/audit/verify", "verifyAuditTrail", get(health::verify_audit), "Prove that the audit trail is whole").admin(),
        op::<Explained>("get /api/v1/explain", "explain", get(tools::explain),
            "Why a tool is visible to an agent, or not; without a tool, what looks wrong").admin().query::<ExplainQuery>(),
        op::<PolicyTest>("post /api/v1/policy/test", "testPolicy", post(tools::test_policy),
            "What would be decided about a call, with nothing run and no person asked").admin().body::<PolicyTestRequest>(),
        op::<Map<String, Value>>("get /api/openapi.json", "getOpenApi", get(openapi::serve), "This document"),
        op::<String>("get /metrics", "getMetrics", get(health::metrics), "Counters for Prometheus").content_type("application/openmetrics-text"),
        op::<Health>("get /healthz", "getHealth", get(health::live), "Whether the process lives"),
        op::<Health>("get /readyz", "getReadiness", get(health::ready), "Whether a call could be put on record now; 503 if not").statuses(&["200", "503"]),
    ]
}

/// An operation with this method and path, which answers with a `T`.
fn op<T: JsonSchema>(
    place: &'static str,
    id: &'static str,
    handler: MethodRouter<App>,
    summary: &'static str,
) -> Operation {
    let (method, path) = place.split_once(' ').unwrap_or(("get", place));
    Operation {
        id,
        method,
        path,
        handler,
        summary,
        is_for_admins: false,
        query: None,
        body: None,
        statuses: &["200"],
        content_type: "application/json",
        answer: SchemaGenerator::subschema_for::<T>,
        has_conflict: false,
    }
}

impl Operation {
    fn admin(self) -> Self {
        Self { is_for_admins: true, ..self }
    }

    fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }
    }

    fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some((SchemaGenerator::subschema_for::<T>, true)), ..self }
    }

    fn optional_body<T: JsonSchema>(self) -> Self {
        Self { body: Some((SchemaGenerator::subschema_for::<T>, false)), ..self }
    }

    fn statuses(self, statuses: &'static [&'static str]) -> Self {
        Self { statuses, ..self }
    }

    fn content_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    fn conflict(self) -> Self {
        Self { has_conflict: true, ..self }
    }
}
