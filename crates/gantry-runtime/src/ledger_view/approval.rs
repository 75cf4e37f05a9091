//! An approval as the API and the webhook show it. Arguments stay as they were written, to the last digit.

use crate::approvals::grants;
use crate::clock::Timestamp;
use gantry_core::approval::Remember;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, SessionId};
use gantry_core::{Effect, EntryPoint, State};
use gantry_store::{ApprovalRow, DecisionRow, Scope, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// A call that waits for a person or for its time, or has waited.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The call that is held.
    pub call_id: CallId,
    /// The state of the call.
    pub state: State,
    /// The displayed name of the tool.
    pub tool: Arc<str>,
    /// Exactly as they were sent, an object; null in a list if they have more than 2 KiB.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub arguments: Option<Box<RawValue>>,
    /// How many bytes they have.
    pub arguments_bytes: usize,
    /// Why a person is asked.
    pub reason: Arc<str>,
    /// The same as `callId`.
    pub step_id: CallId,
    /// The agents above the caller, the topmost first, and the caller's own last.
    pub agent_path: Vec<Arc<str>>,
    /// Who called.
    pub caller: ApprovalCaller,
    /// The first of the rules that ask.
    pub rule: Option<Arc<str>>,
    /// The rules that ask.
    pub rules: Vec<Arc<str>>,
    /// The widest scope of a yes that each of these rules allows.
    pub remember: Remember,
    /// The scopes that a yes may have: those that every rule allows; `session` only for a caller with a session of its own.
    pub scopes: Vec<Scope>,
    /// Who may decide: one person of every list. No list means every approver.
    pub approvers: Vec<Vec<Arc<str>>>,
    /// What the tool may change.
    #[schemars(with = "Effect")]
    pub effect: Arc<str>,
    /// The id of the tool's provider.
    pub provider: Arc<str>,
    /// The fingerprint of the tool's definition.
    pub fingerprint: Digest,
    /// When it was held.
    pub created_at: Timestamp,
    /// When it is rejected if no approver has decided.
    pub expires_at: Option<Timestamp>,
    /// When it runs.
    pub scheduled_for: Option<Timestamp>,
    /// How often its execution was tried.
    pub attempts: u32,
    /// The estimated cost of the call.
    pub estimated_cost: u64,
    /// How long it waits after it was approved.
    pub delay_ms: u64,
    /// Whether the caller has a session of its own.
    pub session_grant: bool,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Arc<str>>,
    /// By which entry point: `cli`, `http`, `page`, `elicitation` or `webhook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_via: Option<Arc<str>>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it ended as it did, where neither state nor decision says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The approval that this one takes the place of, because the call that was approved had changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<ApprovalId>,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decided>,
}

/// The caller of a call that waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalCaller {
    /// Who called.
    pub principal: Arc<str>,
    /// The agent as which they called.
    pub agent: Option<Arc<str>>,
    /// The project.
    pub project: Arc<str>,
    /// The entry point of the call.
    #[schemars(with = "EntryPoint")]
    pub door: Arc<str>,
    /// The run of the call.
    pub session: SessionId,
}

/// What was decided about a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Whether it may run.
    pub approved: bool,
    /// Why, for the caller to read.
    pub reason: Option<Arc<str>>,
    /// For how long the decision holds.
    pub scope: Scope,
    /// The arguments that were approved instead, an object; null in a list if they are long.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub modified_args: Option<Box<RawValue>>,
    /// How many bytes these have, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_args_bytes: Option<usize>,
    /// The grant that it made, if it holds for longer than the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
}

impl From<&ApprovalRow> for Approval {
    fn from(row: &ApprovalRow) -> Self {
        Self::within(row, usize::MAX)
    }
}

impl Approval {
    /// The approval without arguments that have more bytes than this; `arguments_bytes` still says how many there are.
    pub(crate) fn within(row: &ApprovalRow, limit: usize) -> Self {
        let (asked, decision) = (&row.details, row.decision.as_ref());
        let deadline =
            |states: &[State]| row.deadline_us.filter(|_| states.contains(&row.state)).map(Timestamp);
        Self {
            id: row.id,
            call_id: row.call,
            state: row.state,
            tool: Arc::clone(&row.name),
            arguments: arguments(Some(&asked.arguments), limit),
            arguments_bytes: row.omitted.arguments.unwrap_or(asked.arguments.len()),
            reason: Arc::clone(&asked.reason),
            step_id: row.call,
            agent_path: asked.agent_path.clone(),
            caller: ApprovalCaller {
                principal: Arc::clone(&row.principal),
                agent: row.agent.clone(),
                project: Arc::clone(&row.project),
                door: Arc::clone(&asked.door),
                session: row.session,
            },
            rule: asked.rules.first().cloned(),
            rules: asked.rules.clone(),
            remember: asked.remember.clone(),
            scopes: grants::scopes(asked),
            approvers: asked.approvers.clone(),
            effect: Arc::clone(&asked.effect),
            provider: Arc::clone(&asked.provider),
            fingerprint: asked.fingerprint,
            created_at: Timestamp(row.created_us),
            expires_at: deadline(&[State::PendingApproval, State::RejectedByTimeout]),
            scheduled_for: deadline(&[State::ScheduledForExecution]),
            attempts: row.attempts,
            estimated_cost: asked.estimated_cost,
            delay_ms: asked.delay_ms,
            session_grant: asked.own_session,
            decided_by: decision.map(|decision| Arc::clone(&decision.by)),
            decided_via: decision.map(|decision| Arc::clone(&decision.via)),
            decided_at: decision.map(|decision| Timestamp(decision.at_us)),
            ended_at: row.ended_us.map(Timestamp),
            message: row.message.clone(),
            supersedes: row.supersedes,
            decision: decision.map(|decision| decided(decision, row.omitted.modified_args, limit)),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn decided(decision: &DecisionRow, omitted: Option<usize>, limit: usize) -> Decided {
    let modified = decision.modified_args.as_deref();
    Decided {
        approved: decision.verdict == Verdict::Approved,
        reason: decision.reason.clone(),
        scope: decision.scope,
        modified_args: arguments(modified, limit),
        modified_args_bytes: omitted.or_else(|| modified.map(str::len)),
        grant: decision.grant,
    }
}

/// Arguments as they were written, if they are no longer than this.
fn arguments(text: Option<&str>, limit: usize) -> Option<Box<RawValue>> {
    serde_json::from_str(text.filter(|text| text.len() <= limit)?).ok()
}
