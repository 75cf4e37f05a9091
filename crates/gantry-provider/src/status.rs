//! How a server is doing, and how its tools differ from the pinned ones, as the API shows both.

use crate::clock::Timestamp;
use gantry_core::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a server is doing, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// It answers.
    Green,
    /// It is slow, missed one check, is starting, or some of its replicas are down.
    Yellow,
    /// It is down.
    Red,
    /// It is switched off.
    Off,
}

impl HealthStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
            Self::Off => "off",
        }
    }
}

/// An MCP server, or an API, as `GET /api/v1/servers` lists it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Server")]
pub struct ProviderStatus {
    /// Its id.
    pub id: Arc<str>,
    /// The project that it belongs to.
    pub project: Arc<str>,
    /// The active agent that it runs for alone; the others of the project have their own process or connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// How it is reached.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["stdio", "http", "sse", "websocket", "tcp", "openapi"]))]
    pub kind: Cow<'static, str>,
    /// How it is doing.
    #[serde(rename = "light")]
    pub health: HealthStatus,
    /// The same in other words.
    #[schemars(extend("enum" = ["ready", "starting", "slow", "down", "off"]))]
    pub status: Cow<'static, str>,
    /// When its health changed last.
    pub since: Timestamp,
    /// The protocol version that is spoken with it.
    pub era: Option<Cow<'static, str>>,
    /// How long its last answer took.
    pub latency_ms: Option<f64>,
    /// How many tools it has.
    pub tools: usize,
    /// How many of them are quarantined.
    pub quarantined: usize,
    /// How many resources, templates included.
    pub resources: usize,
    /// How many prompts.
    pub prompts: usize,
    /// The last failure; for administrators.
    pub last_error: Option<String>,
    /// When it is tried again, while it is down.
    pub retry_at: Option<Timestamp>,
    /// What looks suspicious in its definitions.
    pub flags: Vec<String>,
    /// Each replica, where there are several; for administrators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaStatus>,
    /// For an API whose document was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportStatus>,
}

/// What became of the OpenAPI document of an API. Each of its other operations is a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Import")]
pub struct ImportStatus {
    /// How many operations the document has.
    pub operations: usize,
    /// How many of them the configuration leaves out.
    pub left_out: usize,
    /// How many of them cannot be tools.
    pub skipped: usize,
    /// Security schemes that operations need and no credential is configured for.
    pub missing_credentials: Vec<String>,
}

/// One replica of a server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Replica")]
pub struct ReplicaStatus {
    /// Its address, or its number.
    pub name: String,
    /// How it is doing.
    #[serde(rename = "light")]
    pub health: HealthStatus,
    /// Requests under way.
    pub in_flight: usize,
    /// The last failure.
    pub last_error: Option<String>,
}

/// One difference between a pinned definition and the one that a server has now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LockDiff")]
pub struct PinDiff {
    /// The server.
    pub server: Arc<str>,
    /// The tool, or `null` for the server's instructions.
    pub tool: Option<String>,
    /// `unpinned` is the change of everything that a server has while nothing of it is pinned.
    #[schemars(extend("enum" = ["added", "changed", "removed", "unpinned"]))]
    pub change: Cow<'static, str>,
    /// The definition that is pinned; its text as a string where it is JSON that cannot be shown as a value.
    pub pinned: Option<serde_json::Value>,
    /// The one that the server has now.
    pub current: Option<serde_json::Value>,
    /// The digest of every byte of it that carries meaning, so that two definitions that look alike are told apart.
    pub fingerprint: Option<String>,
    /// What looks suspicious in the new one.
    pub flags: Vec<String>,
}

impl PinDiff {
    /// A digest of exactly these differences: an acceptance that names it accepts what was shown and nothing else.
    pub fn revision(differences: &[Self]) -> String {
        let text = serde_json::to_string(differences).unwrap_or_default();
        Digest::of(text.as_bytes()).to_string()
    }
}

/// What the lock file of a project pins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pins {
    /// The name of the file.
    pub file: String,
    /// Why the file cannot be used; it pins everything then.
    pub error: Option<String>,
    /// The names of the pinned tools, by server.
    pub servers: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default)]
pub struct PinChoice {
    pub server: Option<String>,
    /// One tool only, or everything.
    pub tool: Option<String>,
    /// The [`PinDiff::revision`] that the person has seen; if the differences are others by now, nothing is pinned.
    pub seen: Option<String>,
}
