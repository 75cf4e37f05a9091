//! The ledger as people and programs read it: calls, runs, and the tree of operations of a run.
//!
//! The tree is a view of the ledger, not a second record: session → turns → operations, with sizes, times and sums.

mod approval;

pub(crate) use approval::ApprovalItem;
pub use approval::approval;

use crate::clock::iso;
use gantry_store::{CallRow, RefusedDecision, SessionSummary, State, Totals};
use serde_json::{Map, Value, json};

/// One call, as the audit trail and `GET /api/v1/calls` list it.
#[must_use]
pub fn call(row: &CallRow) -> Value {
    let head = &row.head;
    let outcome = row.outcome.as_ref();
    let mut json = json!({
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
    if let (Some(json), Some(outcome)) = (json.as_object_mut(), outcome) {
        json.insert("finishedAt".into(), iso(outcome.finished_us).into());
        json.insert("accounting".into(), accounting(row));
        json.insert("effectState".into(), (*outcome.effect_state).into());
        json.insert("cached".into(), outcome.cached.into());
        if let Some(code) = &outcome.code {
            json.insert("error".into(), json!({ "code": code, "message": outcome.message }));
        }
    }
    if let Some(json) = json.as_object_mut().filter(|_| !row.refused.is_empty()) {
        let refused: Vec<Value> = row.refused.iter().map(refused).collect();
        json.insert("refusedDecisions".into(), refused.into());
    }
    json
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

/// What a call cost: the figures of the seeds, with who caused them.
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

/// The tree of operations of one run, with the runs that it started under the calls that did. Each has its own totals; who
/// adds them up counts no call twice.
#[must_use]
pub fn tree(branch: &Branch) -> Value {
    let Branch { summary, calls, truncated, below } = branch;
    let mut turns: Vec<(u32, Vec<&CallRow>)> = Vec::new();
    for row in calls {
        match turns.iter_mut().find(|(index, _)| *index == row.head.turn) {
            Some((_, rows)) => rows.push(row),
            None => turns.push((row.head.turn, vec![row])),
        }
    }
    turns.sort_by_key(|(index, _)| *index);
    let turns: Vec<Value> = turns.iter().map(|(index, rows)| turn(*index, rows, below)).collect();
    let mut tree = run(summary);
    if let Some(tree) = tree.as_object_mut() {
        let running = calls.iter().any(|row| row.state == State::Executing);
        let status = match summary.session.ended_us {
            _ if running => "running",
            Some(_) => "ended",
            None => "idle",
        };
        tree.insert("status".into(), status.into());
        tree.insert("turns".into(), turns.into());
        tree.insert("truncated".into(), (*truncated).into());
    }
    tree
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
    let mut op = Map::new();
    op.insert("opId".into(), json!(row.head.id));
    op.insert("kind".into(), if started.is_empty() { "tool" } else { "session" }.into());
    op.insert("name".into(), (*row.head.tool.name).into());
    op.insert("startedAt".into(), iso(row.head.started_us).into());
    op.insert("status".into(), status(row.state).into());
    op.insert("state".into(), row.state.as_str().into());
    op.insert("request".into(), json!({ "payload": &*row.head.arguments }));
    if let Some(outcome) = &row.outcome {
        op.insert("endedAt".into(), iso(outcome.finished_us).into());
        op.insert("accounting".into(), accounting(row));
        op.insert("response".into(), json!({ "size": outcome.characters_out, "cached": outcome.cached }));
        if let Some(code) = &outcome.code {
            op.insert("error".into(), json!({ "code": code, "message": outcome.message }));
        }
    }
    if !below.is_empty() {
        op.insert("ops".into(), below.into());
    }
    if !started.is_empty() {
        op.insert("childSessions".into(), started.into());
    }
    op.into()
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
