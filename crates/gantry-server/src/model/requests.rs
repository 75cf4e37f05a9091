//! The bodies of requests.

use gantry_core::{Priority, Role};
use gantry_runtime::ledger::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A call to make.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRequest {
    /// The tool, by any of its names.
    pub tool: String,
    /// Its arguments, an object; none means `{}`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub arguments: Option<Box<RawValue>>,
    /// The agent as which it is made; else the active one, if there is one.
    pub agent: Option<String>,
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    /// Whether the answer waits for the outcome; it does unless given.
    #[serde(default)]
    pub mode: Mode,
    /// A repeated call with the same key gets the first result.
    #[schemars(length(max = 256))]
    pub idempotency_key: Option<String>,
    /// Its priority in a queue; `normal` unless given.
    #[serde(default)]
    pub priority: Priority,
    /// A time limit below the configured one.
    pub timeout_ms: Option<u64>,
    /// If the call is held, wait so long for its outcome.
    #[schemars(range(max = 60_000))]
    pub wait_ms: Option<u64>,
    /// Approve the call in advance; takes the key of the data folder.
    #[serde(default)]
    pub approve: bool,
}

/// Whether the answer to a call waits for its outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Wait,
    /// The outcome is fetched by the call's id later.
    Defer,
}

/// A decision about a call that waits.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// Whether it may run.
    pub approved: bool,
    /// Run it with these arguments instead; they are checked like those of any call.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub modified_args: Option<Box<RawValue>>,
    /// Why, for the caller to read.
    pub reason: Option<String>,
    /// For this call, for such calls of its session, or for all such calls of its caller; `once` unless given.
    #[serde(default)]
    pub scope: Scope,
}

/// A key to make.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewKey {
    /// The principal of its callers.
    #[schemars(regex(pattern = "^[A-Za-z0-9._-]{1,64}$"))]
    pub name: String,
    pub role: Role,
    /// The projects that it is for; all unless given.
    pub projects: Option<Vec<Arc<str>>>,
    /// For the role agent: the agent as which it acts, always.
    pub agent: Option<Arc<str>>,
    /// For the role approver: patterns of the tools that it may decide about; all unless given.
    pub tools: Option<Vec<Arc<str>>>,
    /// When it ends, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// Instead of `expiresAt`, a span such as 90m, 12h or 30d.
    pub expires_in: Option<String>,
}

/// A server to add: its id, and the keys of an entry of `mcpServers` in the configuration.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct NewServer {
    pub id: String,
    #[serde(flatten)]
    pub entry: Map<String, Value>,
}

// Without the entry, whose environment and headers hold secrets.
impl fmt::Debug for NewServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewServer").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The change of the configuration to apply.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The `revision` of the change that was seen; if another one is held now, or none, the answer is 409.
    pub revision: String,
}

/// The definitions to pin: all, those of a server, or that of one tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockRequest {
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// The `revision` of the differences that were seen; if there are others now, the answer is 409.
    pub revision: Option<String>,
}

/// A call to judge, without running it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTestRequest {
    /// The tool, by any of its names.
    pub tool: String,
    /// Its arguments, an object; none means `{}`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub arguments: Option<Box<RawValue>>,
    pub agent: Option<String>,
    /// In this project; else in the only one of the key, or in default.
    pub project: Option<String>,
    /// The caller; `local` unless given.
    pub principal: Option<String>,
    /// The caller's role; agent unless given.
    pub role: Option<Role>,
}
