//! The ledger as people and programs read it: calls, approvals, runs, and the tree of operations of a run.

mod approval;
mod runs;

pub use approval::{Approval, ApprovalCaller, Decided};
pub use runs::{Branch, Operation, OperationRequest, OperationResponse, Run, RunTree, Totals, Turn};

use crate::clock::Timestamp;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, SessionId};
use gantry_core::{EntryPoint, State};
use gantry_store::CallRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// One call, as the audit trail has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Its id.
    pub id: CallId,
    /// Its state.
    pub state: State,
    /// The displayed name of the tool.
    pub tool: Arc<str>,
    /// The id of the tool's provider.
    pub provider: Arc<str>,
    /// The tool's name at its provider.
    pub original: Arc<str>,
    /// The kind of the provider; empty where no tool was found.
    #[schemars(extend("enum" = ["builtin", "mcp", "rest", "agent", ""]))]
    pub kind: Cow<'static, str>,
    /// The namespace of the provider.
    pub namespace: Arc<str>,
    /// What the tool may change; empty where no tool was found.
    #[schemars(extend("enum" = ["read", "write", "destructive", ""]))]
    pub effect: Cow<'static, str>,
    /// The fingerprint of the tool's definition.
    pub fingerprint: Option<Digest>,
    /// The arguments as JSON text, with secrets masked, and cut if they are long.
    pub arguments: Arc<str>,
    /// The digest of the canonical arguments.
    pub arguments_digest: Option<Digest>,
    /// The project of the caller.
    pub project: Arc<str>,
    /// Who called.
    pub principal: Arc<str>,
    /// The agent as which they called.
    pub agent: Option<Arc<str>>,
    /// The entry point of the call.
    #[schemars(with = "EntryPoint")]
    pub door: Cow<'static, str>,
    /// Its run.
    pub session: SessionId,
    /// The call below which it was made.
    pub parent: Option<CallId>,
    /// The turn of the run in which it was made.
    pub turn: u32,
    /// The decision under which it ran, such as `approved by person`.
    pub decision: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What it cost, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// Whether it had its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gantry_core::error::EffectState>")]
    pub effect_state: Option<Cow<'static, str>>,
    /// Whether the reply came from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedError>,
    /// Decisions about it that were refused, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_decisions: Vec<RefusedDecision>,
}

/// What a call cost, and the agent or principal that caused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accounting {
    /// How long it took.
    pub latency_ms: u64,
    /// Characters of the request.
    pub characters_in: u64,
    /// Characters of the reply.
    pub characters_out: u64,
    /// How it ended.
    #[schemars(extend("enum" = ["ok", "failed"]))]
    pub status: Cow<'static, str>,
    /// The namespace of the provider.
    pub namespace: Arc<str>,
    /// The agent that called, or the principal of a caller without one.
    pub actor: Arc<str>,
    /// Its cost, in millionths of the currency.
    pub cost_micros: u64,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedError {
    /// The error code.
    #[schemars(with = "gantry_core::ErrorCode")]
    pub code: Cow<'static, str>,
    /// What happened and what to do.
    pub message: Option<String>,
}

/// A decision about a call that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedDecision {
    /// The approval that it was about.
    pub approval_id: ApprovalId,
    /// Who wanted to decide.
    pub by: Arc<str>,
    /// By which entry point.
    pub via: Arc<str>,
    /// Whether they wanted to approve; null if they may not decide at all.
    pub approved: Option<bool>,
    /// Why it does not count.
    pub why: Arc<str>,
    /// When.
    pub at: Timestamp,
}

impl From<&CallRow> for CallRecord {
    fn from(row: &CallRow) -> Self {
        let (head, outcome) = (&row.head, row.outcome.as_ref());
        let (tool, caller) = (&head.tool, &head.caller);
        Self {
            id: head.id,
            state: row.state,
            tool: Arc::clone(&tool.name),
            provider: Arc::clone(&tool.provider),
            original: Arc::clone(&tool.tool),
            kind: tool.kind.clone(),
            namespace: Arc::clone(&tool.namespace),
            effect: tool.effect.clone(),
            fingerprint: tool.fingerprint,
            arguments: Arc::clone(&head.arguments),
            arguments_digest: head.arguments_digest,
            project: Arc::clone(&caller.project),
            principal: Arc::clone(&caller.principal),
            agent: caller.agent.clone(),
            door: caller.door.clone(),
            session: head.session,
            parent: head.parent,
            turn: head.turn,
            decision: head.decision.clone(),
            started_at: Timestamp(head.started_us),
            finished_at: outcome.map(|outcome| Timestamp(outcome.finished_us)),
            accounting: Accounting::of(row),
            effect_state: outcome.map(|outcome| outcome.effect_state.clone()),
            cached: outcome.map(|outcome| outcome.cached),
            error: RecordedError::of(row),
            refused_decisions: row.refused.iter().map(RefusedDecision::from).collect(),
        }
    }
}

impl Accounting {
    fn of(row: &CallRow) -> Option<Self> {
        let (outcome, caller) = (row.outcome.as_ref()?, &row.head.caller);
        let status = if row.state == State::CompletedSuccess { "ok" } else { "failed" };
        Some(Self {
            latency_ms: outcome.latency_us / 1000,
            characters_in: outcome.characters_in,
            characters_out: outcome.characters_out,
            status: status.into(),
            namespace: Arc::clone(&row.head.tool.namespace),
            actor: Arc::clone(caller.agent.as_ref().unwrap_or(&caller.principal)),
            cost_micros: outcome.cost_micros,
        })
    }
}

impl RecordedError {
    fn of(row: &CallRow) -> Option<Self> {
        let outcome = row.outcome.as_ref()?;
        Some(Self { code: outcome.code.clone()?, message: outcome.message.clone() })
    }
}

impl From<&gantry_store::RefusedDecision> for RefusedDecision {
    fn from(refused: &gantry_store::RefusedDecision) -> Self {
        Self {
            approval_id: refused.approval,
            by: Arc::clone(&refused.by),
            via: Arc::clone(&refused.via),
            approved: refused.approved,
            why: Arc::clone(&refused.why),
            at: Timestamp(refused.at_us),
        }
    }
}
