//! The routes of the API: one table, from which the router and the OpenAPI document are made.

use super::{
    agents, approvals, calls, config, events, grants, health, keys, lock, policy, projects, runs, servers,
    tools,
};
use crate::model::{
    Agent, AgentDetails, Approval, ApprovalQuery, AuditVerification, CallQuery, CallRecord, CallReply,
    CallRequest, Canceled, ChangedServer, Configuration, Decision, Event, EventQuery, ExplainQuery,
    Explained, Grant, GrantQuery, Health, InProject, Key, List, LockDiffs, LockQuery, LockRequest, MadeKey,
    NewKey, NewServer, OfProject, PolicyTest, PolicyTestRequest, Project, Queue, Reloaded, Removed, Revoked,
    Run, RunQuery, RunTree, Server, Switched, Tool, ToolQuery, Wait,
};
use crate::{App, openapi};
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Makes the schema of a type.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// One operation of the API.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) handler: MethodRouter<App>,
    pub(crate) summary: &'static str,
    /// Whether it takes the key of an administrator.
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

/// Every operation of the API.
#[rustfmt::skip]
pub(crate) fn operations() -> Vec<Operation> {
    vec![
        get::<List<Tool>, _, _>("/api/v1/tools", tools::list,
            "List the tools that the caller may use; in other formats than json, the items are as models take them").query::<ToolQuery>(),
        post::<CallReply, _, _>("/api/v1/calls", calls::create,
            "Call a tool; 202 if the call is deferred, or waits for an approval or for its time").body::<CallRequest>().statuses(&["200", "202"]),
        get::<List<CallRecord>, _, _>("/api/v1/calls", calls::list, "List calls, newest first").query::<CallQuery>(),
        get::<CallReply, _, _>("/api/v1/calls/{id}", calls::show, "Get a call, with its reply if that was kept").query::<Wait>(),
        delete::<Canceled, _, _>("/api/v1/calls/{id}", calls::cancel, "Cancel a call that runs, or withdraw one that waits"),
        post::<Canceled, _, _>("/api/v1/calls/{id}/cancel", calls::cancel, "The same, for clients that cannot send DELETE"),
        get::<List<Approval>, _, _>("/api/v1/approvals", approvals::list,
            "List the calls that wait for a person or for their time, and those that did").query::<ApprovalQuery>(),
        get::<Approval, _, _>("/api/v1/approvals/{id}", approvals::show,
            "Get a call that waits or has waited, by its id or by at least 6 of the digits that this ends with").query::<Wait>(),
        post::<Approval, _, _>("/api/v1/approvals/{id}/decision", approvals::decide,
            "Approve or deny a call; takes the key of an approver. 409 if it was decided before, 410 if it has expired").body::<Decision>().conflict(),
        post::<Approval, _, _>("/api/v1/approvals/{id}/cancel", approvals::cancel,
            "Withdraw a call that waits; for its caller and for administrators").conflict(),
        get::<List<Grant>, _, _>("/api/v1/grants", grants::list,
            "List the approvals that hold for more than one call").query::<GrantQuery>(),
        delete::<Revoked, _, _>("/api/v1/grants/{id}", grants::revoke, "Revoke a grant; takes the key of an approver"),
        get::<List<Key>, _, _>("/api/v1/keys", keys::list, "List the keys, without their secrets").admin(),
        post::<MadeKey, _, _>("/api/v1/keys", keys::create,
            "Make a key, which is shown once").admin().body::<NewKey>().statuses(&["201"]),
        delete::<Revoked, _, _>("/api/v1/keys/{id}", keys::revoke, "Revoke a key, by its id or its name").admin(),
        get::<Event<'static>, _, _>("/api/v1/events", events::stream,
            "The events, as server-sent events: the recent ones, then new ones").query::<EventQuery>().content_type("text/event-stream"),
        get::<List<Run>, _, _>("/api/v1/runs", runs::list, "List runs, newest first").query::<RunQuery>(),
        get::<RunTree, _, _>("/api/v1/runs/{id}", runs::show, "Get a run as a tree of operations"),
        post::<Canceled, _, _>("/api/v1/runs/{id}/cancel", runs::cancel, "Cancel a run and all its calls"),
        get::<List<Server>, _, _>("/api/v1/servers", servers::list,
            "List the MCP servers and the APIs, and how they are doing").query::<OfProject>(),
        post::<ChangedServer, _, _>("/api/v1/servers", servers::add,
            "Add an MCP server until Gantry stops").admin().query::<InProject>().body::<NewServer>().statuses(&["201"]),
        get::<Server, _, _>("/api/v1/servers/{id}", servers::show, "Get an MCP server or an API").query::<InProject>(),
        delete::<Removed, _, _>("/api/v1/servers/{id}", servers::remove,
            "Stop an MCP server and remove its tools, until Gantry stops").admin().query::<InProject>(),
        post::<ChangedServer, _, _>("/api/v1/servers/{id}/restart", servers::restart,
            "Stop an MCP server and start it anew").admin().query::<InProject>(),
        get::<List<Agent>, _, _>("/api/v1/agents", agents::list, "List the agents, and which of them is active").query::<OfProject>(),
        get::<AgentDetails, _, _>("/api/v1/agents/{name}", agents::show, "Get an agent and its tools").query::<InProject>(),
        post::<Switched, _, _>("/api/v1/agents/{name}/activate", agents::activate,
            "Make an agent the active one of its project").admin().query::<InProject>().optional_body::<InProject>(),
        post::<Switched, _, _>("/api/v1/agents/{name}/deactivate", agents::deactivate,
            "Make no agent active, if this one is").admin().query::<InProject>().optional_body::<InProject>(),
        get::<List<Project>, _, _>("/api/v1/projects", projects::list, "List the projects and what each has"),
        get::<Configuration, _, _>("/api/v1/config", config::show, "Whether the configuration on the disk is the one that holds").admin(),
        post::<Reloaded, _, _>("/api/v1/config/reload", config::reload,
            "Read the configuration again and apply what has changed").admin(),
        get::<LockDiffs, _, _>("/api/v1/lock", lock::diff,
            "List the differences between the pinned definitions of tools and those of now").admin().query::<LockQuery>(),
        post::<LockDiffs, _, _>("/api/v1/lock", lock::accept,
            "Accept and pin the definitions of now: all, those of a server, or one tool's").admin().optional_body::<LockRequest>(),
        get::<List<Queue>, _, _>("/api/v1/queues", health::queues, "List the queues: depth, use and waits"),
        get::<List<CallRecord>, _, _>("/api/v1/audit", calls::list, "The audit trail, newest first").query::<CallQuery>(),
        get::<AuditVerification, _, _>("/api/v1/audit/verify", health::verify_audit, "Prove that the audit trail is whole").admin(),
        get::<Explained, _, _>("/api/v1/explain", tools::explain,
            "Why a tool is visible to an agent, or not; without a tool, what looks wrong").admin().query::<ExplainQuery>(),
        post::<PolicyTest, _, _>("/api/v1/policy/test", policy::test,
            "What would be decided about a call, with nothing run and no person asked").admin().body::<PolicyTestRequest>(),
        get::<Map<String, Value>, _, _>("/api/openapi.json", openapi::serve, "This document"),
        get::<String, _, _>("/metrics", health::metrics, "Counters for Prometheus").content_type("application/openmetrics-text"),
        get::<Health, _, _>("/healthz", health::live, "Whether the process lives"),
        get::<Health, _, _>("/readyz", health::ready, "Whether a call could be put on record now"),
    ]
}

fn get<T: JsonSchema, H: Handler<P, App>, P: 'static>(
    path: &'static str,
    handler: H,
    summary: &'static str,
) -> Operation {
    Operation::new::<T>("get", path, routing::get(handler), summary)
}

fn post<T: JsonSchema, H: Handler<P, App>, P: 'static>(
    path: &'static str,
    handler: H,
    summary: &'static str,
) -> Operation {
    Operation::new::<T>("post", path, routing::post(handler), summary)
}

fn delete<T: JsonSchema, H: Handler<P, App>, P: 'static>(
    path: &'static str,
    handler: H,
    summary: &'static str,
) -> Operation {
    Operation::new::<T>("delete", path, routing::delete(handler), summary)
}

impl Operation {
    fn new<T: JsonSchema>(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<App>,
        summary: &'static str,
    ) -> Self {
        Self {
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
