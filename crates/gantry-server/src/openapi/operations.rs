//! What can be asked of the API.

/// One operation of the API.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    /// Name of the schema of the body, and of the answer.
    pub(super) body: Option<&'static str>,
    pub(super) answer: Option<&'static str>,
}

/// The name of a parameter, and what it means.
type Parameter = (&'static str, &'static str);

const PROJECT: Parameter = ("project", "In this project; else in default");
const OF_PROJECT: Parameter = ("project", "Of this project; else of all");
const CURSOR: Parameter = ("cursor", "The `next` of the page before");
const LIMIT: Parameter = ("limit", "At most so many, up to 1000");

const CALLS: [Parameter; 9] = [
    OF_PROJECT,
    ("tool", "Displayed name of the tool"),
    ("session", "Id of the run"),
    ("state", "State of the call"),
    ("principal", "Who made it; for those who may see all"),
    ("since", "RFC 3339, or back from now: 15m, 2h, 7d"),
    ("until", "RFC 3339, or back from now"),
    CURSOR,
    LIMIT,
];

const WAIT: Parameter = ("wait", "Wait so many seconds for something to change, up to 60");

const APPROVALS: [Parameter; 8] = [
    ("state", "State of the call, such as PENDING_APPROVAL"),
    OF_PROJECT,
    ("tool", "Displayed name of the tool"),
    ("session", "Id of the run"),
    ("call", "Id of the call"),
    CURSOR,
    LIMIT,
    ("wait", "If there is none, wait so many seconds until there is, up to 60"),
];

/// Every operation, in the order of the routes.
pub(super) const OPERATIONS: [Operation; 42] = [
    get("/api/v1/tools", "List the tools that the caller may use")
        .query(&[
            PROJECT,
            ("agent", "See what this agent sees"),
            ("format", "json, or as models take them: mcp, openai, anthropic; then only what can be called"),
        ])
        .answer("ToolList"),
    post("/api/v1/calls", "Call a tool").body("CallRequest").answer("CallReply"),
    get("/api/v1/calls", "List calls, newest first").query(&CALLS).answer("RecordList"),
    get("/api/v1/calls/{id}", "Look a call up, with its reply if it was kept")
        .query(&[("wait", "Wait so many seconds until the call is over, up to 60")])
        .answer("CallReply"),
    delete("/api/v1/calls/{id}", "Cancel a call that runs, or withdraw one that waits"),
    post("/api/v1/calls/{id}/cancel", "The same, for those who cannot send DELETE"),
    get("/api/v1/approvals", "List the calls that wait for a person or for their time, and those that did")
        .query(&APPROVALS)
        .answer("ApprovalList"),
    get("/api/v1/approvals/{id}", "A call that waits or has waited").query(&[WAIT]).answer("Approval"),
    post(
        "/api/v1/approvals/{id}/decision",
        "Say yes or no; takes the key of an approver. 409 if somebody was first, 410 if it is too late",
    )
    .body("Decision")
    .answer("Approval"),
    post("/api/v1/approvals/{id}/cancel", "Withdraw a call that waits; for its caller and for administrators")
        .answer("Approval"),
    get("/api/v1/grants", "List the yeses that hold for more than one call")
        .query(&[OF_PROJECT, ("revoked", "true shows those too that were revoked"), CURSOR, LIMIT])
        .answer("GrantList"),
    delete("/api/v1/grants/{id}", "Revoke a grant; takes the key of an approver"),
    get("/api/v1/keys", "List the keys, without their secrets; takes the key of an administrator")
        .answer("KeyList"),
    post("/api/v1/keys", "Make a key, which is shown once; takes the key of an administrator")
        .body("NewKey")
        .answer("MadeKey"),
    delete("/api/v1/keys/{id}", "Revoke a key, by its id or its name; takes the key of an administrator"),
    get("/api/v1/events", "What happens, as server-sent events")
        .query(&[
            OF_PROJECT,
            ("follow", "false ends after the recent ones"),
            ("type", "Only of these types, separated by commas, such as approval"),
        ]),
    get("/api/v1/runs", "List runs, newest first").query(&[
        OF_PROJECT,
        ("agent", "Of this agent"),
        CURSOR,
        LIMIT,
    ]),
    get("/api/v1/runs/{id}", "A run as a tree of operations"),
    post("/api/v1/runs/{id}/cancel", "Cancel a run and all its calls"),
    get("/api/v1/servers", "List the MCP servers and how they are doing")
        .query(&[OF_PROJECT])
        .answer("ServerList"),
    post("/api/v1/servers", "Add an MCP server until Gantry stops; takes the key of an administrator")
        .query(&[PROJECT])
        .body("NewServer")
        .answer("Server"),
    get("/api/v1/servers/{id}", "An MCP server").query(&[PROJECT]).answer("Server"),
    delete(
        "/api/v1/servers/{id}",
        "Stop an MCP server and take its tools away, until Gantry stops; takes the key of an administrator",
    )
    .query(&[PROJECT]),
    post(
        "/api/v1/servers/{id}/restart",
        "Stop an MCP server and start it anew; takes the key of an administrator",
    )
    .query(&[PROJECT])
    .answer("Server"),
    get("/api/v1/agents", "List the agents, and which of them is active")
        .query(&[OF_PROJECT])
        .answer("AgentList"),
    get("/api/v1/agents/{name}", "An agent and its tools").query(&[PROJECT]).answer("AgentDetails"),
    post(
        "/api/v1/agents/{name}/activate",
        "Make an agent the active one of its project; takes the key of an administrator",
    )
    .query(&[PROJECT])
    .body("ProjectName")
    .answer("Switched"),
    post(
        "/api/v1/agents/{name}/deactivate",
        "Make no agent active, if this one is; takes the key of an administrator",
    )
    .query(&[PROJECT])
    .body("ProjectName")
    .answer("Switched"),
    get("/api/v1/projects", "List the projects and what each has").answer("ProjectList"),
    get(
        "/api/v1/config",
        "Whether the configuration on the disk is the one that holds; takes the key of an administrator",
    )
    .answer("Configuration"),
    post(
        "/api/v1/config/reload",
        "Read the configuration again and apply what has changed; takes the key of an administrator",
    )
    .answer("Reloaded"),
    get(
        "/api/v1/lock",
        "What is different between the pinned definitions of tools and those of now; takes the key of an administrator",
    )
    .query(&[PROJECT, ("server", "Of this server"), ("tool", "Of this tool of it")])
    .answer("LockDiffList"),
    post(
        "/api/v1/lock",
        "Accept and pin the definitions of now: all, a server's, or one tool's; takes the key of an administrator",
    )
    .body("LockRequest")
    .answer("LockDiffList"),
    get("/api/v1/queues", "Depth, use and waits of the queues"),
    get("/api/v1/audit", "The audit trail, newest first").query(&CALLS).answer("RecordList"),
    get("/api/v1/audit/verify", "Prove that the audit trail is whole; takes the key of an administrator"),
    get(
        "/api/v1/explain",
        "Why a tool is visible to an agent, or not; without a tool, what looks wrong; takes the key of an administrator",
    )
    .query(&[
        PROJECT,
        ("tool", "Which"),
        ("agent", "To whom"),
        ("depth", "How far below the first agent; 0 unless said"),
    ]),
    post(
        "/api/v1/policy/test",
        "What would be decided about a call, with nothing run and nobody asked; takes the key of an administrator",
    )
    .body("ImaginedCall")
    .answer("Foresight"),
    get("/api/openapi.json", "This document"),
    get("/metrics", "Counters for Prometheus"),
    get("/healthz", "Whether the process lives"),
    get("/readyz", "Whether a call could be put on record now"),
];

const fn get(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "get", path, summary, query: &[], body: None, answer: None }
}

const fn post(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "post", ..get(path, summary) }
}

const fn delete(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "delete", ..get(path, summary) }
}

impl Operation {
    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    const fn answer(self, schema: &'static str) -> Self {
        Self { answer: Some(schema), ..self }
    }
}
