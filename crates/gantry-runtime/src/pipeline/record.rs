//! Record: the entry of a call in the ledger, opened first, closed last, on every way out.
//!
//! A call that can change something is on record, durably, before it is dispatched, and its outcome is durable before
//! the caller gets it. A read is recorded once, after it ended, with the next group. If closing fails after the
//! effect, the reply says that the call ran and was not recorded, and never that it may be repeated.

use super::CallScope;
use crate::approvals::hold;
use crate::clock;
use crate::context::PipelineContext;
use crate::event::{EventKind, Finished};
use crate::reply::{Receipt, Reply, Shaped, effect_of};
use crate::runtime::Runtime;
use crate::session::session_key;
use futures_util::FutureExt as _;
use gantry_core::Basis;
use gantry_core::approval::Resumed;
use gantry_core::error::{CallFailure, EffectState, ErrorCode, Refusal, ToolError};
use gantry_core::id::CallId;
use gantry_core::limits::{RECORDED_ARGUMENT_BYTES, TOOL_NAME_CHARS};
use gantry_core::tool::Tool;
use gantry_core::truncate::truncate;
use gantry_core::{CallError, CallRequest, Permit, ResolvedCall};
use gantry_store::{ApprovalRow, CallHead, CalledTool, Intent, IntentOutcome, Outcome, State, WholeCall};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often an outcome that could not be written is tried again, and how long after.
const CLOSE_RETRIES: u32 = 3;
const CLOSE_PAUSE: Duration = Duration::from_millis(100);

/// The same for a call that was held: others may be waiting for it, and only this process can notify them.
const HELD_CLOSE_RETRIES: u32 = 600;

/// Bytes of an error's message; a provider's own words may be long.
const MESSAGE_BYTES: usize = 8 * 1024;

/// How far a call has come, where that decides how its entry is closed.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for this approval, or has joined the call that does; that is on record already.
    Held(Arc<ApprovalRow>),
    /// It is given the answer of this earlier call.
    Repeats(CallId),
    Intended,
    /// Another process turned out to run it, and records it.
    ClaimedElsewhere,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) head: CallHead,
    tool: Option<Arc<Tool>>,
    approved_by: Option<Arc<str>>,
    /// The arguments that a person approved instead of those that were sent, as the ledger may show them.
    executed: Option<Arc<str>>,
    characters_in: u64,
    keep_result: bool,
    started: Instant,
    /// When the caller gives up, if it said so.
    pub(super) deadline: Option<Instant>,
    /// Set at most once: a call takes one of these ways.
    stage: OnceLock<Stage>,
    /// The approval under which it goes on.
    resumed: Option<Arc<Resumed>>,
    attempts: AtomicU32,
}

/// Opens the entry of a call of which only the caller and the request are known yet.
pub(super) fn open(cx: &PipelineContext, request: &CallRequest) -> Entry {
    let now = clock::now_us();
    cx.session.mark_used(now);
    let caller = cx.caller();
    let asked: Arc<str> = truncate(&request.tool, 2 * TOOL_NAME_CHARS).into();
    let head = CallHead {
        id: cx.id,
        session: cx.session.id(),
        parent: cx.parent,
        turn: cx.turn,
        caller: session_key(caller, cx.session.door()),
        tool: CalledTool {
            provider: Arc::default(),
            tool: Arc::clone(&asked),
            name: asked,
            kind: "".into(),
            namespace: Arc::default(),
            effect: "".into(),
            fingerprint: None,
        },
        arguments_digest: None,
        arguments: Arc::default(),
        decision: None,
        started_us: now,
    };
    let started = Instant::now();
    Entry {
        head,
        tool: None,
        approved_by: None,
        executed: None,
        characters_in: request.arguments.as_ref().map_or(0, |text| text.chars().count() as u64),
        keep_result: request.keep_result || request.idempotency_key.is_some(),
        started,
        deadline: request.timeout.and_then(|timeout| started.checked_add(timeout)),
        stage: OnceLock::new(),
        resumed: request.resumed.clone(),
        attempts: AtomicU32::new(0),
    }
}

impl Entry {
    pub(super) fn resolved(&mut self, call: &ResolvedCall) {
        let tool = call.tool();
        self.head.tool = CalledTool {
            provider: Arc::clone(&tool.key.provider),
            tool: Arc::clone(&tool.key.tool),
            name: Arc::clone(&tool.name),
            kind: tool.kind.as_str().into(),
            namespace: Arc::clone(&tool.namespace),
            effect: tool.effect.as_str().into(),
            fingerprint: Some(tool.fingerprint),
        };
        self.head.arguments_digest = Some(call.arguments_digest());
        self.head.arguments = Arc::clone(call.recorded());
        self.tool = Some(Arc::clone(tool));
    }

    /// Notes what was permitted, and on whose word.
    pub(super) fn permitted(&mut self, permit: &Permit) {
        let edited = self.resumed.as_ref().is_some_and(|resumed| resumed.edited);
        let (decision, person) = match permit.basis() {
            Basis::Policy => return,
            Basis::Person(person) if edited => (format!("approved by {person} with other arguments"), person),
            Basis::Person(person) => (format!("approved by {person}"), person),
            Basis::Grant { id, by } => (format!("granted by {by} ({id})"), by),
        };
        self.head.decision = Some(decision);
        self.approved_by = Some(Arc::clone(person));
        if edited {
            self.executed = Some(Arc::clone(permit.recorded_arguments()));
        }
    }

    /// Notes how far the call has come.
    pub(super) fn enter(&self, stage: Stage) {
        self.stage.set(stage).ok(); // Set once: the ways exclude each other.
    }

    fn approval(&self) -> Option<&Arc<ApprovalRow>> {
        if let Some(Stage::Held(row)) = self.stage.get() { Some(row) } else { None }
    }
}

/// Proof that the intent of a call is on record, wherever it has to be. Only [`intend`] makes one, and executing takes it.
#[derive(Debug)]
pub(super) struct OnRecord<'a>(&'a Entry);

impl OnRecord<'_> {
    /// When the caller gives up, if it said so.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    pub(super) fn count_attempt(&self) {
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
    }
}

/// Puts the intent on record where the call can change something, must not run twice, or is asked for later.
pub(super) async fn intend<'a>(
    CallScope { rt, cx, request, .. }: &CallScope<'_>,
    permit: &Permit,
    entry: &'a Entry,
) -> Result<OnRecord<'a>, Refusal> {
    let refused = |error: &gantry_store::Error| {
        tracing::error!("call {}: the intent could not be recorded: {error}", cx.id);
        let message = format!("the call could not be put on record, so it was not run: {error}");
        Refusal::new(ErrorCode::InternalError, message)
    };
    let is_plain = request.idempotency_key.is_none() && request.resumed.is_none() && !request.keep_result;
    if !permit.tool().effect.needs_intent() && is_plain {
        rt.store.check_place().map_err(|error| refused(&error))?;
        return Ok(OnRecord(entry));
    }
    let digest = permit.arguments_digest();
    let idempotency = hold::idempotency(request, digest);
    let approval = request.resumed.as_ref().map(|resumed| resumed.approval);
    let decision = request.resumed.as_ref().and_then(|resumed| resumed.decision.as_ref());
    let decided = decision.map(|decision| decision.binding);
    let intent = Intent { head: entry.head.clone(), idempotency, approval, decided };
    let intended = rt.store.intend(intent).await.map_err(|error| {
        if let gantry_store::Error::Taken { state, .. } = &error {
            // Another process was first, and the record is that of its run.
            entry.enter(Stage::ClaimedElsewhere);
            let message = format!("the call is {state} already; it was not run again");
            return Refusal::new(ErrorCode::AlreadyDecided, message);
        }
        refused(&error)
    })?;
    match intended {
        IntentOutcome::Recorded => {
            entry.enter(Stage::Intended);
            Ok(OnRecord(entry))
        }
        // Looked up a moment ago, the key was free: two equal requests came at once, and this is the second.
        IntentOutcome::Duplicate(row) => Err(Refusal::new(
            ErrorCode::IdempotencyConflict,
            format!(
                "call {} has just taken this idempotency key; repeat the request to get its result",
                row.head.id
            ),
        )),
    }
}

/// Runs the stages; a panic in any of them is a fault like others, and the entry is closed all the same.
pub(super) fn catch_panic(
    stages: impl Future<Output = Result<Shaped, CallError>>,
) -> impl Future<Output = Result<Shaped, CallError>> {
    // A combinator and not an async function, which would hold the stages twice.
    AssertUnwindSafe(stages).catch_unwind().map(|ended| {
        ended.unwrap_or_else(|_panic| {
            let message = "Gantry failed while running this call; the log says more";
            let error = ToolError::new(ErrorCode::InternalError, message);
            Err(CallFailure::with_possible_effect(error).into())
        })
    })
}

pub(super) async fn close(
    rt: &Runtime,
    cx: &PipelineContext,
    entry: Entry,
    outcome: Result<Shaped, CallError>,
) -> Receipt {
    let mut reply = reply(cx, &entry, outcome);
    match entry.stage.get() {
        None if is_retryable_refusal(rt, cx, &entry, &reply) => {
            reply.state = State::ApprovedReady;
            return Receipt(reply);
        }
        // What waits was put on record when it was held.
        Some(Stage::Held(row)) => {
            if entry.keep_result && row.call != cx.id {
                record_duplicate(rt, &entry, row, &reply).await;
            }
            return Receipt(reply);
        }
        Some(Stage::ClaimedElsewhere) => return Receipt(reply),
        None | Some(Stage::Intended | Stage::Repeats(_)) => {}
    }
    let characters_out = reply.outcome.as_ref().map_or(0, |shaped| shaped.text().chars().count() as u64);
    let record = record(&entry, &reply, characters_out);
    let is_intended = matches!(entry.stage.get(), Some(Stage::Intended));
    let Entry { head, characters_in, resumed, .. } = entry;
    let asked = Arc::clone(&head.tool.name);
    let written = if is_intended || resumed.is_some() {
        let tries = if resumed.is_some() { HELD_CLOSE_RETRIES } else { CLOSE_RETRIES };
        close_intent(rt, cx.id, record, tries).await
    } else {
        rt.store.record(WholeCall { head, outcome: record }).await
    };
    if let Err(error) = written {
        tracing::error!("call {}: its outcome could not be recorded: {error}", cx.id);
        reply = unrecorded(reply, is_intended);
    }
    let finished = finished(cx, &reply, asked, (characters_in, characters_out));
    rt.events.emit(Some(&cx.caller().principal), EventKind::ToolFinished(Box::new(finished)));
    if resumed.is_some() {
        rt.services.approvals.changed(cx.id);
    }
    Receipt(reply)
}

/// Whether a held call could not begin for a reason that passes: there is no room, the record cannot be made, Gantry stops.
/// It keeps its place and its yes, and is tried again.
fn is_retryable_refusal(rt: &Runtime, cx: &PipelineContext, entry: &Entry, reply: &Reply) -> bool {
    let (Some(resumed), Err(error)) = (&entry.resumed, &reply.outcome) else { return false };
    let passes = matches!(error.code, ErrorCode::QueueFull | ErrorCode::InternalError)
        || (error.code == ErrorCode::ToolNotFound && rt.is_down(&resumed.provider))
        || (error.code == ErrorCode::Canceled && (rt.closing.is_cancelled() || cx.session.is_evicted()));
    passes && reply.effect == EffectState::None
}

/// Records that an equal call waits already, and where: the reply to this one names it.
async fn record_duplicate(rt: &Runtime, entry: &Entry, row: &ApprovalRow, reply: &Reply) {
    let message = format!("the same call waits already as {} ({}); ask for that one", row.call, row.id);
    let code = Some(ErrorCode::ApprovalRequired.as_str().into());
    let outcome = Outcome {
        state: State::Refused,
        code,
        message: Some(message),
        effect_state: EffectState::None.as_str().into(),
        result: None,
        ..record(entry, reply, 0)
    };
    if let Err(error) = rt.store.record(WholeCall { head: entry.head.clone(), outcome }).await {
        tracing::warn!("call {} could not be recorded: {error}", entry.head.id);
    }
}

fn reply(cx: &PipelineContext, entry: &Entry, outcome: Result<Shaped, CallError>) -> Reply {
    let state = match &outcome {
        Err(_) if let Some(row) = entry.approval() => row.state,
        Ok(_) => State::CompletedSuccess,
        Err(CallError::Failed(fault)) if fault.error.code == ErrorCode::OutcomeUnknown => {
            State::OutcomeUnknown
        }
        Err(CallError::Failed(_)) => State::CompletedFailure,
        Err(CallError::Refused(_)) if entry.resumed.is_some() => State::CancelledBySystem,
        Err(CallError::Refused(_) | CallError::Held(_)) => State::Refused,
    };
    Reply {
        // A caller that joined a call that waits already is given that one's id.
        id: entry.approval().map_or(cx.id, |row| row.call),
        state,
        effect: effect_of(&outcome),
        outcome: outcome.map_err(|error| short(error.error())),
        latency: entry.started.elapsed(),
        tool: entry.tool.clone(),
        approved_by: entry.approved_by.clone(),
        executed_arguments: entry.executed.clone(),
        approval: entry.approval().cloned(),
        repeats: if let Some(Stage::Repeats(call)) = entry.stage.get() { Some(*call) } else { None },
        budget_exceeded: cx.session.budget().is_some_and(gantry_core::Budget::was_exceeded),
    }
}

/// The error with a message that fits a conversation.
fn short(mut error: ToolError) -> ToolError {
    if error.message.len() > MESSAGE_BYTES {
        error.message = format!("{}…", truncate(&error.message, MESSAGE_BYTES));
    }
    error
}

fn record(entry: &Entry, reply: &Reply, characters_out: u64) -> Outcome {
    let error = reply.outcome.as_ref().err();
    Outcome {
        // The store has the last word on how a held call ends that is refused before it began.
        state: if reply.state == State::CancelledBySystem { State::Refused } else { reply.state },
        code: error.map(|error| error.code.as_str().into()),
        message: error.map(|error| truncate(&error.message, RECORDED_ARGUMENT_BYTES).to_owned()),
        effect_state: reply.effect.as_str().into(),
        latency_us: u64::try_from(reply.latency.as_micros()).unwrap_or(u64::MAX),
        characters_in: entry.characters_in,
        characters_out,
        cost_micros: 0,
        // Callers that wait for a held call, or come back for it, go by the steady clock.
        finished_us: if entry.resumed.is_some() { clock::steady_us() } else { clock::now_us() },
        attempts: entry.attempts.load(Ordering::Relaxed),
        cached: reply.outcome.as_ref().is_ok_and(|shaped| shaped.cached),
        result: entry.keep_result.then(|| reply.to_kept_json()),
    }
}

/// The reply when the outcome is not on record.
fn unrecorded(mut reply: Reply, intended: bool) -> Reply {
    let message = if intended {
        reply.state = State::Executing;
        "the call ran, but its outcome could not be recorded. Do not repeat it before you have checked what it did."
    } else {
        reply.state = State::CompletedFailure;
        reply.effect = EffectState::None;
        "the call could not be recorded, so its result is withheld. It changed nothing."
    };
    reply.outcome = Err(ToolError::new(ErrorCode::InternalError, message));
    reply
}

/// Closes an intent; what is known is worth a second and a third try.
async fn close_intent(
    rt: &Runtime,
    call: CallId,
    outcome: Outcome,
    retries: u32,
) -> Result<(), gantry_store::Error> {
    let mut tries = 0;
    loop {
        match rt.store.close(call, outcome.clone()).await {
            Err(error) if tries < retries && !matches!(error, gantry_store::Error::Taken { .. }) => {
                tries += 1
            }
            closed => return closed,
        }
        // Longer and longer, up to a second.
        tokio::time::sleep(CLOSE_PAUSE * tries.min(10)).await;
    }
}

fn finished(
    cx: &PipelineContext,
    reply: &Reply,
    asked: Arc<str>,
    (characters_in, characters_out): (u64, u64),
) -> Finished {
    let error = reply.outcome.as_ref().err();
    Finished {
        call: cx.id,
        session: cx.session.id(),
        tool: asked,
        namespace: reply.tool.as_ref().map_or_else(|| "".into(), |tool| Arc::clone(&tool.namespace)),
        status: if error.is_none() { "ok" } else { "failed" },
        code: error.map(|error| error.code.as_str()),
        error: error.map(|error| error.logged().into()),
        latency_ms: u64::try_from(reply.latency.as_millis()).unwrap_or(u64::MAX),
        latency_us: u64::try_from(reply.latency.as_micros()).unwrap_or(u64::MAX),
        characters_in,
        characters_out,
        cached: reply.outcome.as_ref().is_ok_and(|shaped| shaped.cached),
    }
}
