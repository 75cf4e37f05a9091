//! An approval as the API and the webhook show it. Arguments stay as they were written, to the last digit.

use crate::clock::iso;
use gantry_core::State;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, SessionId};
use gantry_store::{ApprovalRow, DecisionRow, Scope, Verdict};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What is shown of an approval.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalItem<'a> {
    id: ApprovalId,
    call_id: CallId,
    state: State,
    tool: &'a str,
    arguments: Option<&'a RawValue>,
    arguments_bytes: usize,
    reason: &'a str,
    step_id: CallId,
    agent_path: &'a [Arc<str>],
    caller: Caller<'a>,
    rule: Option<&'a str>,
    rules: &'a [Arc<str>],
    approvers: &'a [Vec<Arc<str>>],
    effect: &'a str,
    provider: &'a str,
    fingerprint: Digest,
    created_at: String,
    expires_at: Option<String>,
    scheduled_for: Option<String>,
    attempts: u32,
    estimated_cost: u64,
    delay_ms: u64,
    session_grant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_via: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<ApprovalId>,
}

#[derive(Serialize)]
struct Caller<'a> {
    principal: &'a str,
    agent: Option<&'a str>,
    project: &'a str,
    door: &'a str,
    session: SessionId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision<'a> {
    approved: bool,
    reason: Option<&'a str>,
    scope: Scope,
    modified_args: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_args_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantId>,
}

/// The JSON text of an approval.
#[must_use]
pub fn approval(row: &ApprovalRow) -> String {
    // Every part of it is a text, a number or JSON that was checked when it came in.
    serde_json::to_string(&ApprovalItem::of(row)).unwrap_or_default()
}

impl<'a> ApprovalItem<'a> {
    pub(crate) fn of(row: &'a ApprovalRow) -> Self {
        let (asked, decision) = (&row.asked, row.decision.as_ref());
        let deadline = |states: &[State]| row.deadline_us.filter(|_| states.contains(&row.state)).map(iso);
        Self {
            id: row.id,
            call_id: row.call,
            state: row.state,
            tool: &row.name,
            arguments: json(&asked.arguments),
            arguments_bytes: row.omitted.arguments.unwrap_or(asked.arguments.len()),
            reason: &asked.reason,
            step_id: row.call,
            agent_path: &asked.agent_path,
            caller: Caller {
                principal: &row.principal,
                agent: row.agent.as_deref(),
                project: &row.project,
                door: &asked.door,
                session: row.session,
            },
            rule: asked.rules.first().map(|rule| &**rule),
            rules: &asked.rules,
            approvers: &asked.approvers,
            effect: &asked.effect,
            provider: &asked.provider,
            fingerprint: asked.fingerprint,
            created_at: iso(row.created_us),
            expires_at: deadline(&[State::PendingApproval, State::RejectedByTimeout]),
            scheduled_for: deadline(&[State::ScheduledForExecution]),
            attempts: row.attempts,
            estimated_cost: asked.estimated_cost,
            delay_ms: asked.delay_ms,
            session_grant: asked.own_session,
            decided_by: decision.map(|decision| &*decision.by),
            decided_via: decision.map(|decision| &*decision.via),
            decided_at: decision.map(|decision| iso(decision.at_us)),
            decision: decision.map(|decision| decided(decision, row.omitted.modified_args)),
            ended_at: row.ended_us.map(iso),
            message: row.message.as_deref(),
            supersedes: row.supersedes,
        }
    }

    /// The same without arguments that have more bytes than this; `argumentsBytes` still says how many there are.
    pub(crate) fn without_long_arguments(mut self, limit: usize) -> Self {
        let is_short = |text: &&RawValue| text.get().len() <= limit;
        self.arguments = self.arguments.filter(is_short);
        if let Some(decision) = &mut self.decision {
            decision.modified_args = decision.modified_args.filter(is_short);
        }
        self
    }
}

fn decided(decision: &DecisionRow, omitted: Option<usize>) -> Decision<'_> {
    Decision {
        approved: decision.verdict == Verdict::Approved,
        reason: decision.reason.as_deref(),
        scope: decision.scope,
        modified_args: decision.modified_args.as_deref().and_then(json),
        modified_args_bytes: omitted.or_else(|| decision.modified_args.as_deref().map(str::len)),
        grant: decision.grant,
    }
}

fn json(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}
