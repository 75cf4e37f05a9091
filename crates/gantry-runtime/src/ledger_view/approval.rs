//! An approval as the API and the webhook show it. Arguments stay as they were written, to the last digit.

use super::with_known;
use crate::clock::iso;
use gantry_core::{State, raw};
use gantry_store::{ApprovalRow, DecisionRow, Verdict};
use serde_json::json;
use serde_json::value::RawValue;

/// The JSON text of an approval.
#[must_use]
pub fn approval(row: &ApprovalRow) -> String {
    approval_within(row, usize::MAX)
}

/// The same without arguments that have more bytes than this; `argumentsBytes` still says how many there are.
pub(crate) fn approval_within(row: &ApprovalRow, limit: usize) -> String {
    let (asked, decision) = (&row.details, row.decision.as_ref());
    let deadline = |states: &[State]| row.deadline_us.filter(|_| states.contains(&row.state)).map(iso);
    let always = json!({
        "id": row.id,
        "callId": row.call,
        "state": row.state,
        "tool": row.name,
        "arguments": null,
        "argumentsBytes": row.omitted.arguments.unwrap_or(asked.arguments.len()),
        "reason": asked.reason,
        "stepId": row.call,
        "agentPath": asked.agent_path,
        "caller": {
            "principal": row.principal,
            "agent": row.agent,
            "project": row.project,
            "door": asked.door,
            "session": row.session,
        },
        "rule": asked.rules.first(),
        "rules": asked.rules,
        "approvers": asked.approvers,
        "effect": asked.effect,
        "provider": asked.provider,
        "fingerprint": asked.fingerprint,
        "createdAt": iso(row.created_us),
        "expiresAt": deadline(&[State::PendingApproval, State::RejectedByTimeout]),
        "scheduledFor": deadline(&[State::ScheduledForExecution]),
        "attempts": row.attempts,
        "estimatedCost": asked.estimated_cost,
        "delayMs": asked.delay_ms,
        "sessionGrant": asked.own_session,
    });
    let if_known = json!({
        "decidedBy": decision.map(|decision| &decision.by),
        "decidedVia": decision.map(|decision| &decision.via),
        "decidedAt": decision.map(|decision| iso(decision.at_us)),
        "endedAt": row.ended_us.map(iso),
        "message": row.message,
        "supersedes": row.supersedes,
    });
    let mut text = with_known(always, if_known).to_string();
    if let Some(decision) = decision {
        text = raw::with(&text, "decision", &decided(decision, row.omitted.modified_args, limit));
    }
    raw::with(&text, "arguments", arguments(Some(&asked.arguments), limit))
}

fn decided(decision: &DecisionRow, omitted: Option<usize>, limit: usize) -> String {
    let modified = decision.modified_args.as_deref();
    let always = json!({
        "approved": decision.verdict == Verdict::Approved,
        "reason": decision.reason,
        "scope": decision.scope,
        "modifiedArgs": null,
    });
    let if_known =
        json!({ "modifiedArgsBytes": omitted.or_else(|| modified.map(str::len)), "grant": decision.grant });
    raw::with(&with_known(always, if_known).to_string(), "modifiedArgs", arguments(modified, limit))
}

/// Arguments as JSON text, if they are no longer than this.
fn arguments(text: Option<&str>, limit: usize) -> &str {
    let checked = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()).map(RawValue::get);
    checked.filter(|text| text.len() <= limit).unwrap_or("null")
}
