//! What the HTTP API takes and gives: one struct for each request and each answer.
//!
//! The server builds its answers from these, the OpenAPI document is derived from them, and the command line reads answers
//! into them. Answers that are built in another crate are defined there and named here.

mod queries;
mod requests;
mod resources;

pub use gantry_core::error::{ErrorCode, ToolError};
pub use gantry_core::{Effect, EntryPoint, Priority, Role, State, ToolKind};
pub use gantry_provider::{
    HealthStatus, ImportStatus as Import, PinDiff as LockDiff, Pins, ProviderStatus as Server,
    ReplicaStatus as Replica,
};
pub use gantry_runtime::clock::Timestamp;
pub use gantry_runtime::event::{EventKind, EventLine, EventView as Event};
pub use gantry_runtime::ledger::Scope;
pub use gantry_runtime::ledger_view::{
    Approval, CallRecord, Decided, Operation, RecordedError, Run, RunTree, Turn,
};
pub use gantry_runtime::projects::{Held, Reloaded, Switched};
pub use gantry_runtime::queue::Snapshot as Queue;
pub use gantry_runtime::{
    CallReply, DryRun as PolicyTest, Explanation, Extras, ListedTool as Tool, Measured,
    Outcome as PolicyOutcome, ToolProvider,
};
pub use queries::*;
pub use requests::*;
pub use resources::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    pub items: Vec<T>,
    /// The `cursor` of the items after these; null at the end.
    pub next: Option<String>,
}

impl<T> List<T> {
    /// A list that is always given whole.
    #[must_use]
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// The answer to a request that failed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    #[schemars(extend("const" = false))]
    pub ok: bool,
    pub error: ToolError,
}

/// The answer to a decision that came too late: how the approval stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    #[schemars(extend("const" = false))]
    pub ok: bool,
    pub error: ConflictError,
}

/// Why a decision does not count.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConflictError {
    pub code: ErrorCode,
    pub message: String,
    pub details: ConflictDetails,
}

/// What stands instead.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConflictDetails {
    pub approval: Approval,
}
