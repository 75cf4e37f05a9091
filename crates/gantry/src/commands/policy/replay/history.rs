//! The calls on record, page by page, and what each came to.

use crate::cli::Replay;
use crate::client::{ApiClient, query};
use gantry_core::State;
use gantry_core::digest::Digest;
use gantry_core::tool::{Effect, ToolKind};
use serde::Deserialize;
use serde_json::Value;

/// Calls that are asked for at once.
const PAGE: &str = "1000";

/// What the policies of then made of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Was {
    /// It ran, or was about to.
    Ran,
    /// It waited for a person, who did not say yes.
    Held,
    /// It waited for a person, who said yes.
    Approved,
    /// A policy refused it.
    Denied,
}

impl Was {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Held => "held",
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }
}

/// A call on record.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) started: String,
    pub(super) project: String,
    pub(super) principal: String,
    pub(super) agent: Option<String>,
    pub(super) name: String,
    pub(super) provider: String,
    pub(super) namespace: String,
    pub(super) original: String,
    pub(super) kind: ToolKind,
    pub(super) effect: Effect,
    pub(super) arguments: String,
    pub(super) digest: Digest,
    pub(super) was: Was,
}

/// A call as the API lists it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    state: String,
    tool: String,
    provider: String,
    original: String,
    kind: ToolKind,
    namespace: String,
    effect: Effect,
    arguments: String,
    arguments_digest: Option<String>,
    project: String,
    principal: String,
    agent: Option<String>,
    decision: Option<String>,
    started_at: String,
    error: Option<Failure>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    code: String,
    message: Option<String>,
}

/// Shows every call that is asked for and that policies had a say about, the newest first.
pub(super) async fn walk(
    client: &ApiClient,
    replay: &Replay,
    mut see: impl FnMut(Entry),
) -> anyhow::Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let query = query(&[
            ("project", replay.project.name()),
            ("since", replay.since.as_deref()),
            ("until", replay.until.as_deref()),
            ("cursor", cursor.as_deref()),
            ("limit", Some(PAGE)),
        ]);
        let mut body = client.get::<Value>(&format!("/api/v1/audit{query}")).await?;
        let Some(Value::Array(items)) = body.get_mut("items").map(Value::take) else {
            anyhow::bail!("the answer has no list");
        };
        items.into_iter().filter_map(entry).for_each(&mut see);
        cursor = match body.get("next") {
            Some(Value::String(next)) => Some(next.clone()),
            Some(Value::Number(next)) => Some(next.to_string()),
            _ => return Ok(()),
        };
    }
}

/// A call that policies had a say about; what was refused before that says nothing about them.
pub(super) fn entry(item: Value) -> Option<Entry> {
    // A call whose tool was not found has no kind and no effect.
    let listed: Listed = serde_json::from_value(item).ok()?;
    let was = was(&listed)?;
    Some(Entry {
        id: listed.id,
        started: listed.started_at,
        project: listed.project,
        principal: listed.principal,
        agent: listed.agent,
        name: listed.tool,
        provider: listed.provider,
        namespace: listed.namespace,
        original: listed.original,
        kind: listed.kind,
        effect: listed.effect,
        arguments: listed.arguments,
        digest: listed.arguments_digest?.parse().ok()?,
        was,
    })
}

fn was(listed: &Listed) -> Option<Was> {
    if listed.decision.is_some() {
        return Some(Was::Approved);
    }
    let code = listed.error.as_ref().map_or("", |error| error.code.as_str());
    match State::parse(&listed.state)? {
        State::PendingApproval | State::ApprovedReady | State::RejectedByUser | State::RejectedByTimeout => {
            Some(Was::Held)
        }
        State::Refused if code == "APPROVAL_REQUIRED" => Some(Was::Held),
        State::Refused if code == "PERMISSION_DENIED" => denied(listed.error.as_ref()?),
        // It never came to a decision of theirs, or somebody took it back.
        State::Refused | State::CancelledBySystem => None,
        State::ScheduledForExecution
        | State::Executing
        | State::CompletedSuccess
        | State::CompletedFailure
        | State::OutcomeUnknown => Some(Was::Ran),
    }
}

/// Tools refuse by the same code; policies say so.
fn denied(error: &Failure) -> Option<Was> {
    let message = error.message.as_deref().unwrap_or_default();
    let by_policy = message.starts_with("denied by policy ") || message.contains(" could not be judged, ");
    by_policy.then_some(Was::Denied)
}
