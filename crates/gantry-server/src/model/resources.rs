//! The answers that the server builds itself.

use super::{Event, Held, List, LockDiff, Pins, Server, Timestamp};
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, KeyId, NodeId, SessionId};
use gantry_runtime::Explanation;
use gantry_runtime::ledger::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An approval that holds for more than one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub id: GrantId,
    pub project: Arc<str>,
    /// Whose calls it is for.
    pub principal: Arc<str>,
    /// The agents above the caller, and the caller's own last.
    pub agent_path: Vec<String>,
    /// The id of the tool's provider.
    pub provider: Arc<str>,
    /// The displayed name of the tool.
    pub tool: Arc<str>,
    /// The tool's name at its provider.
    pub original: Arc<str>,
    /// The definition of the tool that it is for; it is void for any other.
    pub fingerprint: Digest,
    /// The rules whose questions it answers.
    pub rules: Vec<Arc<str>>,
    /// `session` or `always`.
    pub scope: Scope,
    /// The run that it ends with.
    pub session: Option<SessionId>,
    /// Who gave it.
    pub granted_by: Arc<str>,
    /// The approval that it was given with.
    pub approval_id: Option<ApprovalId>,
    pub created_at: Timestamp,
    /// When it ends by itself, with the key of its holder or of its giver.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<Arc<str>>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    pub id: KeyId,
    /// The principal of its callers.
    pub name: Arc<str>,
    pub role: Role,
    /// The projects that it is for; null means all.
    pub projects: Option<Vec<Arc<str>>>,
    /// The agent as which it acts, always.
    pub agent: Option<Arc<str>>,
    /// Patterns of the tools that it may decide about; null means all.
    pub tools: Option<Vec<Arc<str>>>,
    pub state: KeyState,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Whether a key is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    Active,
    Expired,
    Revoked,
}

/// A key that was just made.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct MadeKey {
    #[serde(flatten)]
    pub key: Key,
    /// The key itself. It is shown this once; the store has only a digest of it.
    #[serde(rename = "key")]
    pub secret: String,
}

// Without the secret.
impl fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A key or a grant that does not hold any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    pub id: String,
    /// The name of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    pub revoked: bool,
    /// Whether it was valid until now.
    pub held: bool,
}

/// A call or a run that was canceled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Canceled {
    pub id: String,
    /// false if there was nothing left to cancel.
    pub canceled: bool,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub name: Arc<str>,
    pub project: Arc<str>,
    pub description: Option<String>,
    pub model: Option<String>,
    /// Whether callers who name no agent are its callers.
    pub active: bool,
    /// How many tools it has; null while it is not running.
    pub tools: Option<usize>,
    /// Other names for its tools, and the tools.
    pub aliases: Option<BTreeMap<String, String>>,
}

/// An agent with its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetails {
    #[serde(flatten)]
    pub agent: Agent,
    /// The names of its tools; null while it is not running.
    pub tool_names: Option<Vec<String>>,
    /// For administrators.
    #[serde(flatten)]
    pub configured: Option<AgentConfiguration>,
}

/// An agent as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentConfiguration {
    /// The tools that it is configured to have.
    pub uses: Vec<String>,
    /// Which of these it may call; null means all.
    pub allowed: Option<Vec<String>>,
    /// Tools whose own rule need not ask a person.
    pub auto_approve: Vec<String>,
    /// Its instructions.
    pub prompt: Option<String>,
}

/// A project, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    pub name: Arc<str>,
    /// The active agent.
    pub active: Option<Arc<str>>,
    pub agents: usize,
    pub servers: usize,
    /// How many tools callers have who name no agent; null while the project has no runtime for them.
    pub tools: Option<usize>,
}

/// A server that was added or restarted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangedServer {
    #[serde(flatten)]
    pub server: ServerInUse,
    /// Keys of its entry that have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A server, or only its name if the active agent has no use for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ServerInUse {
    Used(Box<Server>),
    Unused { id: String, project: Arc<str> },
}

/// A server that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub id: String,
    pub removed: bool,
}

/// The differences between the pinned definitions and those of now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LockDiffs {
    #[serde(flatten)]
    pub list: List<LockDiff>,
    /// A digest of exactly these differences, for accepting what was seen.
    pub revision: String,
    pub pinned: Pins,
}

/// Why an agent can call a tool or not, or what looks wrong.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Explained {
    Tool(Explanation),
    Warnings { warnings: Vec<String> },
}

/// Whether the configuration on the disk is the one that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// What is wrong with the one on the disk; the one before holds.
    pub refused: Option<Arc<str>>,
    /// The change on the disk that waits until an administrator applies it; the one before holds.
    pub held: Option<Held>,
}

/// Whether the audit trail is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerification {
    pub ok: bool,
    /// How many entries fit their chain.
    pub entries: u64,
    /// The first place where a chain breaks.
    pub first_bad: Option<BadEntry>,
}

/// A place where a chain of the audit trail breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadEntry {
    /// The node whose chain it is in.
    pub node: NodeId,
    /// Its number in that chain.
    pub entry: i64,
    /// What is wrong there.
    pub what: String,
}

/// Whether the process lives, or could put a call on record now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    #[schemars(extend("enum" = ["ok", "ready", "unavailable"]))]
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the stream of events has: events, and how many of them are missing.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum StreamedEvent {
    Event(Event<'static>),
    Missed(Missed),
}

/// How many events a reader has missed because it was too slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    pub missed: u64,
    /// The same in words.
    pub message: String,
}
