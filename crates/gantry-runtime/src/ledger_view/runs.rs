//! Runs, and the tree of operations of a run: session → turns → operations, with sizes, times and sums. The tree is a view
//! of the ledger, not a second record.

use super::{Accounting, RecordedError};
use crate::clock::Timestamp;
use gantry_core::id::{CallId, SessionId};
use gantry_core::{EntryPoint, State};
use gantry_store::{CallRow, SessionRow, SessionSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One run of an agent, or one connected client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: SessionId,
    /// Its project.
    pub project: Arc<str>,
    /// Whose it is.
    pub principal: Arc<str>,
    /// The agent as which it acts.
    pub agent: Option<Arc<str>>,
    /// The entry point of its calls.
    #[schemars(with = "EntryPoint")]
    pub door: Cow<'static, str>,
    /// The call that started it.
    pub parent: Option<CallId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was last used.
    pub last_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The sums of its calls, without those of the runs below it.
    pub totals: Totals,
}

/// The sums of the calls of a run that ended or whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// How many there are.
    pub tools_run: u64,
    /// Those of them that did not end well: failed, refused or unknown.
    pub failed: u64,
    /// Those of them that were not run.
    pub refused: u64,
    /// Those of them that may or may not have had their effect.
    pub unknown: u64,
    /// How long they took.
    pub latency_ms: u64,
    /// Characters of the requests.
    pub characters_in: u64,
    /// Characters of the replies.
    pub characters_out: u64,
    /// Their cost, in millionths of the currency.
    pub cost_micros: u64,
}

impl From<&SessionSummary> for Run {
    fn from(summary: &SessionSummary) -> Self {
        let SessionRow { id, key, parent, started_us, last_us, ended_us } = &summary.session;
        let totals = &summary.totals;
        Self {
            id: *id,
            project: Arc::clone(&key.project),
            principal: Arc::clone(&key.principal),
            agent: key.agent.clone(),
            door: key.door.clone(),
            parent: *parent,
            started_at: Timestamp(*started_us),
            last_at: Timestamp(*last_us),
            ended_at: ended_us.map(Timestamp),
            totals: Totals {
                tools_run: totals.calls,
                failed: totals.failed,
                refused: totals.refused,
                unknown: totals.unknown,
                latency_ms: totals.latency_us / 1000,
                characters_in: totals.characters_in,
                characters_out: totals.characters_out,
                cost_micros: totals.cost_micros,
            },
        }
    }
}

/// A run as a tree of operations, with the runs that it started under the calls that did. Each has its own totals, in
/// which no call is counted twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunTree {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// What it is doing.
    #[schemars(extend("enum" = ["running", "idle", "ended"]))]
    pub status: Cow<'static, str>,
    /// Its turns.
    pub turns: Vec<Turn>,
    /// Whether there is more than is shown.
    pub truncated: bool,
}

/// One turn of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Its number.
    pub index: u32,
    /// When its first operation began.
    pub started_at: Timestamp,
    /// When its last operation ended.
    pub ended_at: Option<Timestamp>,
    /// Its operations.
    pub ops: Vec<Operation>,
}

/// One call in a tree of operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The id of the call.
    pub op_id: CallId,
    /// `session` if it started runs.
    #[schemars(extend("enum" = ["tool", "session"]))]
    pub kind: Cow<'static, str>,
    /// The displayed name of the tool.
    pub name: Arc<str>,
    /// When it began.
    pub started_at: Timestamp,
    /// The state in a word.
    #[schemars(extend("enum" = ["running", "waiting", "ok", "failed", "denied", "expired", "canceled", "unknown"]))]
    pub status: Cow<'static, str>,
    /// The state of the call.
    pub state: State,
    /// What was asked for.
    pub request: OperationRequest,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What it cost, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// What came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<OperationResponse>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedError>,
    /// The calls below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Operation>,
    /// The runs that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_sessions: Vec<RunTree>,
}

/// What an operation asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRequest {
    /// The arguments as JSON text, with secrets masked, and cut if they are long.
    pub payload: Arc<str>,
}

/// What came back from an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationResponse {
    /// Characters of the reply.
    pub size: u64,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// A run with its calls, oldest first, and the runs that these started.
#[derive(Debug)]
pub struct Branch {
    pub summary: SessionSummary,
    pub calls: Vec<CallRow>,
    pub truncated: bool,
    /// The runs below it, oldest first.
    pub below: Vec<Branch>,
}

impl From<&Branch> for RunTree {
    fn from(branch: &Branch) -> Self {
        let Branch { summary, calls, truncated, below } = branch;
        let mut turns: BTreeMap<u32, Vec<&CallRow>> = BTreeMap::new();
        for row in calls {
            turns.entry(row.head.turn).or_default().push(row);
        }
        let turns = turns.iter().map(|(index, rows)| turn(*index, rows, below)).collect();
        let running = calls.iter().any(|row| row.state == State::Executing);
        let status = match summary.session.ended_us {
            _ if running => "running",
            Some(_) => "ended",
            None => "idle",
        };
        Self { run: summary.into(), status: status.into(), turns, truncated: *truncated }
    }
}

fn turn(index: u32, rows: &[&CallRow], sessions: &[Branch]) -> Turn {
    let started = rows.iter().map(|row| row.head.started_us).min().unwrap_or_default();
    let ended = rows.iter().filter_map(|row| Some(row.outcome.as_ref()?.finished_us)).max();
    // Operations below another one hang under it; the rest are the turn's own.
    let ids: Vec<_> = rows.iter().map(|row| row.head.id).collect();
    let top = rows.iter().filter(|row| row.head.parent.is_none_or(|parent| !ids.contains(&parent)));
    let ops = top.map(|row| operation(row, rows, sessions)).collect();
    Turn { index, started_at: Timestamp(started), ended_at: ended.map(Timestamp), ops }
}

fn operation(row: &CallRow, all: &[&CallRow], sessions: &[Branch]) -> Operation {
    let below = all.iter().filter(|other| other.head.parent == Some(row.head.id));
    let started = sessions.iter().filter(|below| below.summary.session.parent == Some(row.head.id));
    let child_sessions: Vec<RunTree> = started.map(RunTree::from).collect();
    let outcome = row.outcome.as_ref();
    Operation {
        op_id: row.head.id,
        kind: if child_sessions.is_empty() { "tool" } else { "session" }.into(),
        name: Arc::clone(&row.head.tool.name),
        started_at: Timestamp(row.head.started_us),
        status: status(row.state).into(),
        state: row.state,
        request: OperationRequest { payload: Arc::clone(&row.head.arguments) },
        ended_at: outcome.map(|outcome| Timestamp(outcome.finished_us)),
        accounting: Accounting::of(row),
        response: outcome.map(|it| OperationResponse { size: it.characters_out, cached: it.cached }),
        error: RecordedError::of(row),
        ops: below.map(|other| operation(other, all, sessions)).collect(),
        child_sessions,
    }
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
