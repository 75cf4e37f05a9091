//! The ledger as people and programs read it: calls, runs, and the tree of operations of a run.
//!
//! The tree is a view of the ledger, not a second record: session → turns → operations, with sizes, times and sums.

mod approval;

pub use approval::approval;
pub(crate) use approval::approval_within;

use crate::clock::iso;
use gantry_store::{CallRow, RefusedDecision, SessionSummary, State, Totals};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One call, as the audit trail and `GET /api/v1/calls` list it.
#[must_use]
pub fn call(row: &CallRow) -> Value {
    let head = &row.head;
    let outcome = row.outcome.as_ref();
    let always = json!({
        "id": head.id,
        "state": row.state.as_str(),
        "tool": &*head.tool.name,
        "provider": &*head.tool.provider,
        "original": &*head.tool.tool,
        "kind": &*head.tool.kind,
        "namespace": &*head.tool.namespace,
        "effect": &*head.tool.effect,
        "fingerprint": head.tool.fingerprint,
        "arguments": &*head.arguments,
        "argumentsDigest": head.arguments_digest,
        "project": &*head.caller.project,
        "principal": &*head.caller.principal,
        "agent": head.caller.agent.as_deref(),
        "door": &*head.caller.door,
        "session": head.session,
        "parent": head.parent,
        "turn": head.turn,
        "decision": head.decision,
        "startedAt": iso(head.started_us),
    });
    let refused: Vec<Value> = row.refused.iter().map(refused).collect();
    let if_known = json!({
        "finishedAt": outcome.map(|outcome| iso(outcome.finished_us)),
        "accounting": accounting(row),
        "effectState": outcome.map(|outcome| &*outcome.effect_state),
        "cached": outcome.map(|outcome| outcome.cached),
        "error": error(row),
        "refusedDecisions": Some(refused).filter(|refused| !refused.is_empty()),
    });
    with_known(always, if_known)
}

/// An object with those members of another one that are not null.
pub(crate) fn with_known(always: Value, if_known: Value) -> Value {
    let members = |object| if let Value::Object(members) = object { members } else { Map::new() };
    let known = members(if_known).into_iter().filter(|(_, value)| !value.is_null());
    members(always).into_iter().chain(known).collect()
}

/// Why a call failed, if it did.
fn error(row: &CallRow) -> Option<Value> {
    let outcome = row.outcome.as_ref()?;
    Some(json!({ "code": outcome.code.as_ref()?, "message": outcome.message }))
}

/// A decision about a call that was turned away.
fn refused(refused: &RefusedDecision) -> Value {
    json!({
        "approvalId": refused.approval,
        "by": &*refused.by,
        "via": &*refused.via,
        "approved": refused.approved,
        "why": &*refused.why,
        "at": iso(refused.at_us),
    })
}

/// What a call cost, and the agent or principal that caused it.
fn accounting(row: &CallRow) -> Value {
    let Some(outcome) = &row.outcome else { return Value::Null };
    json!({
        "latencyMs": outcome.latency_us / 1000,
        "charactersIn": outcome.characters_in,
        "charactersOut": outcome.characters_out,
        "status": if row.state == State::CompletedSuccess { "ok" } else { "failed" },
        "namespace": &*row.head.tool.namespace,
        "actor": row.head.caller.agent.as_deref().unwrap_or(&row.head.caller.principal),
        "costMicros": outcome.cost_micros,
    })
}

/// One run, as `GET /api/v1/runs` lists it.
#[must_use]
pub fn run(summary: &SessionSummary) -> Value {
    let session = &summary.session;
    json!({
        "id": session.id,
        "project": &*session.key.project,
        "principal": &*session.key.principal,
        "agent": session.key.agent.as_deref(),
        "door": &*session.key.door,
        "parent": session.parent,
        "startedAt": iso(session.started_us),
        "lastAt": iso(session.last_us),
        "endedAt": session.ended_us.map(iso),
        "totals": totals(&summary.totals),
    })
}

fn totals(totals: &Totals) -> Value {
    json!({
        "toolsRun": totals.calls,
        "failed": totals.failed,
        "refused": totals.refused,
        "unknown": totals.unknown,
        "latencyMs": totals.latency_us / 1000,
        "charactersIn": totals.characters_in,
        "charactersOut": totals.characters_out,
        "costMicros": totals.cost_micros,
    })
}

/// A run with its calls, oldest first, and the runs that these started.
#[derive(Debug)]
pub struct Branch {
    /// The run.
    pub summary: SessionSummary,
    /// Its calls.
    pub calls: Vec<CallRow>,
    /// Whether there is more than is shown.
    pub truncated: bool,
    /// The runs below it, oldest first.
    pub below: Vec<Branch>,
}

/// The tree of operations of one run, with the runs that it started under the calls that did. Each has its own
/// totals, in which no call is counted twice.
#[must_use]
pub fn tree(branch: &Branch) -> Value {
    let Branch { summary, calls, truncated, below } = branch;
    let mut turns: BTreeMap<u32, Vec<&CallRow>> = BTreeMap::new();
    for row in calls {
        turns.entry(row.head.turn).or_default().push(row);
    }
    let turns: Vec<Value> = turns.iter().map(|(index, rows)| turn(*index, rows, below)).collect();
    let running = calls.iter().any(|row| row.state == State::Executing);
    let status = match summary.session.ended_us {
        _ if running => "running",
        Some(_) => "ended",
        None => "idle",
    };
    with_known(run(summary), json!({ "status": status, "turns": turns, "truncated": truncated }))
}

fn turn(index: u32, rows: &[&CallRow], sessions: &[Branch]) -> Value {
    let started = rows.iter().map(|row| row.head.started_us).min().unwrap_or_default();
    let ended = rows.iter().filter_map(|row| Some(row.outcome.as_ref()?.finished_us)).max();
    // Operations below another one hang under it; the rest are the turn's own.
    let ids: Vec<_> = rows.iter().map(|row| row.head.id).collect();
    let top = rows.iter().filter(|row| row.head.parent.is_none_or(|parent| !ids.contains(&parent)));
    let ops: Vec<Value> = top.map(|row| operation(row, rows, sessions)).collect();
    json!({ "index": index, "startedAt": iso(started), "endedAt": ended.map(iso), "ops": ops })
}

fn operation(row: &CallRow, all: &[&CallRow], sessions: &[Branch]) -> Value {
    let below: Vec<Value> = all
        .iter()
        .filter(|other| other.head.parent == Some(row.head.id))
        .map(|other| operation(other, all, sessions))
        .collect();
    let started = sessions.iter().filter(|below| below.summary.session.parent == Some(row.head.id));
    let started: Vec<Value> = started.map(tree).collect();
    let outcome = row.outcome.as_ref();
    let always = json!({
        "opId": row.head.id,
        "kind": if started.is_empty() { "tool" } else { "session" },
        "name": &*row.head.tool.name,
        "startedAt": iso(row.head.started_us),
        "status": status(row.state),
        "state": row.state.as_str(),
        "request": { "payload": &*row.head.arguments },
    });
    let if_known = json!({
        "endedAt": outcome.map(|outcome| iso(outcome.finished_us)),
        "accounting": accounting(row),
        "response": outcome.map(|it| json!({ "size": it.characters_out, "cached": it.cached })),
        "error": error(row),
        "ops": Some(below).filter(|below| !below.is_empty()),
        "childSessions": Some(started).filter(|started| !started.is_empty()),
    });
    with_known(always, if_known)
}

fn status(state: State) -> &'static str {
    match state {
        State::Executing => "running",
        State::PendingApproval | State::ScheduledForExecution | State::ApprovedReady => "waiting",
        State::CompletedSuccess => "ok",
        State::CompletedFailure | State::Refused => "failed",
        State::RejectedByUser => "denied",
        State::RejectedByTimeout => "expired",
        State::CancelledBySystem => "canceled",
        State::OutcomeUnknown => "unknown",
    }
}
