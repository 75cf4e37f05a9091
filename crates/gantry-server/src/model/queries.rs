//! The queries of requests. The OpenAPI document takes its parameters from them.

use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId, GrantId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that has no query: a parameter that would be ignored may have been meant, a project above all.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoQuery {}

/// The project that a request is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InProject {
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
}

/// The project that a list is of.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfProject {
    /// Of this project; else of all.
    pub project: Option<String>,
}

/// How long a request may wait for its answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Wait so many seconds for the call to change or end, up to 60.
    pub wait: Option<u64>,
}

/// Which tools are listed, and how.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    /// See what this agent sees.
    pub agent: Option<String>,
    /// `json`, or as models take them: `mcp`, `openai`, `anthropic`; then only what can be called.
    pub format: Option<String>,
}

/// What is to be explained.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    /// This tool; without one, what looks wrong.
    pub tool: Option<String>,
    /// Its visibility to this agent.
    pub agent: Option<String>,
    /// How far below the first agent.
    #[serde(default)]
    pub depth: u32,
}

/// Which calls are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallQuery {
    /// Of this project; else of all.
    pub project: Option<String>,
    /// Of the tool with this displayed name.
    pub tool: Option<String>,
    /// Of this run.
    pub session: Option<SessionId>,
    /// In this state.
    pub state: Option<State>,
    /// Made by this principal; for administrators.
    pub principal: Option<String>,
    /// RFC 3339, or back from now: 15m, 2h, 7d.
    pub since: Option<String>,
    /// RFC 3339, or back from now.
    pub until: Option<String>,
    /// The `next` of the page before.
    pub cursor: Option<CallId>,
    /// At most so many, up to 1000; 50 unless given.
    pub limit: Option<u32>,
}

/// Which approvals are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalQuery {
    /// In this state.
    pub state: Option<State>,
    /// Of this project; else of all.
    pub project: Option<String>,
    /// Of the tool with this displayed name.
    pub tool: Option<String>,
    /// Of this run.
    pub session: Option<SessionId>,
    /// Of this call.
    pub call: Option<CallId>,
    /// The `next` of the page before.
    pub cursor: Option<ApprovalId>,
    /// At most so many, up to 1000; 50 unless given.
    pub limit: Option<u32>,
    /// If there is none, wait so many seconds until there is, up to 60.
    pub wait: Option<u64>,
}

/// Which grants are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantQuery {
    /// Of this project; else of all.
    pub project: Option<String>,
    /// Also those that were revoked.
    #[serde(default)]
    pub revoked: bool,
    /// The `next` of the page before.
    pub cursor: Option<GrantId>,
    /// At most so many, up to 1000; 50 unless given.
    pub limit: Option<u32>,
}

/// Which runs are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// Of this project; else of all.
    pub project: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// The `next` of the page before.
    pub cursor: Option<SessionId>,
    /// At most so many, up to 1000; 50 unless given.
    pub limit: Option<u32>,
}

/// Which events are sent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Of this project; else of all.
    pub project: Option<String>,
    /// false ends the stream after the recent events.
    #[serde(default = "yes")]
    pub follow: bool,
    /// Only of these types, separated by commas, such as `approval`.
    #[serde(rename = "type")]
    pub types: Option<String>,
}

fn yes() -> bool {
    true
}

/// Which differences from the pinned definitions are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockQuery {
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    /// Of this server.
    pub server: Option<String>,
    /// Of this tool of the server.
    pub tool: Option<String>,
}
