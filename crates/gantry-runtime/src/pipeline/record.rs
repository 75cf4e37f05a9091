//! Record: the entry of a call in the ledger, opened first, closed last, on every way out.
//!
//! A call that can change something is on record, durably, before it is dispatched, and its outcome is durable before
//! anybody hears of it. A read is recorded once, after it ended, with the next group. If closing fails after the
//! effect, the caller hears that the call ran and was not recorded, and never that it may be repeated.

use crate::clock;
use crate::context::CallCx;
use crate::event::{EventKind, Finished};
use crate::reply::{Receipt, Reply, Shaped};
use crate::runtime::Runtime;
use futures_util::FutureExt as _;
use gantry_core::error::{EffectState, ErrorCode, Fault, Refusal, ToolError};
use gantry_core::id::CallId;
use gantry_core::limits::{RECORDED_ARGUMENT_BYTES, TOOL_NAME_CHARS};
use gantry_core::permit::Basis;
use gantry_core::shape::truncated;
use gantry_core::tool::Tool;
use gantry_core::{CallError, CallRequest, Permit, ResolvedCall};
use gantry_store::{
    CallHead, CalledTool, IdempotencyKey, Intended, Intent, Outcome, SessionKey, State, WholeCall,
};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

/// How often an outcome that could not be written is tried again, and how long after.
const CLOSE_RETRIES: u32 = 3;
const CLOSE_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of an error's message; a provider's own words may be long.
const MESSAGE_BYTES: usize = 8 * 1024;

/// A call's entry while the call runs.
#[derive(Debug)]
pub(super) struct Entry {
    head: CallHead,
    tool: Option<Arc<Tool>>,
    approved_by: Option<Arc<str>>,
    characters_in: u64,
    keep_result: bool,
    started: Instant,
    deadline: Option<Instant>,
    /// Set once the intent is durable.
    intended: OnceLock<()>,
    /// The earlier call whose result is repeated.
    repeats: OnceLock<CallId>,
}

/// Opens the entry of a call about which nothing is known yet but who asks for what.
pub(super) fn open(cx: &CallCx, request: &CallRequest) -> Entry {
    let now = clock::now_us();
    cx.session.touch(now);
    let caller = cx.caller();
    let asked: Arc<str> = truncated(&request.tool, 2 * TOOL_NAME_CHARS).into();
    let head = CallHead {
        id: cx.id,
        session: cx.session.id(),
        parent: cx.parent,
        turn: cx.turn,
        caller: SessionKey {
            project: Arc::clone(&caller.project),
            principal: Arc::clone(&caller.principal),
            agent: caller.agent.clone(),
            door: cx.session.door().as_str().into(),
        },
        tool: CalledTool {
            provider: nothing(),
            tool: Arc::clone(&asked),
            name: asked,
            kind: "".into(),
            namespace: nothing(),
            effect: "".into(),
            fingerprint: None,
        },
        arguments_digest: None,
        arguments: nothing(),
        decision: None,
        started_us: now,
    };
    let started = Instant::now();
    Entry {
        head,
        tool: None,
        approved_by: None,
        characters_in: request.arguments.as_ref().map_or(0, |text| text.chars().count() as u64),
        keep_result: request.keep_result || request.idempotency_key.is_some(),
        started,
        deadline: request.timeout.and_then(|timeout| started.checked_add(timeout)),
        intended: OnceLock::new(),
        repeats: OnceLock::new(),
    }
}

/// The empty text, shared.
fn nothing() -> Arc<str> {
    static NOTHING: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    Arc::clone(&NOTHING)
}

impl Entry {
    /// Notes which tool is meant.
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
        if let Basis::Person(person) = permit.basis() {
            self.head.decision = Some(format!("approved by {person}"));
            self.approved_by = Some(Arc::clone(person));
        }
    }

    /// Notes whose answer this call is given.
    pub(super) fn repeats(&self, call: CallId) {
        self.repeats.set(call).ok(); // Set once: a call repeats one other.
    }

    /// When the caller gives up, if it said so.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// Puts the intent on record where the call can change something, must not run twice, or is asked for later.
pub(super) async fn intend(
    rt: &Runtime,
    cx: &CallCx,
    request: &CallRequest,
    permit: &Permit,
    entry: &Entry,
) -> Result<(), Refusal> {
    if !permit.tool().effect.needs_intent() && request.idempotency_key.is_none() && !request.keep_result {
        return Ok(());
    }
    let digest = permit.arguments_digest();
    let idempotency = request.idempotency_key.clone().map(|key| IdempotencyKey { key, arguments: digest });
    let intent = Intent { head: entry.head.clone(), idempotency };
    let intended = rt.store.intend(intent).await.map_err(|error| {
        tracing::error!("call {}: the intent could not be recorded: {error}", cx.id);
        let message = format!("the call could not be put on record, so it was not run: {error}");
        Refusal::new(ErrorCode::InternalError, message)
    })?;
    match intended {
        Intended::Fresh => {
            entry.intended.set(()).ok(); // Set once: an entry belongs to one dispatch.
            Ok(())
        }
        // Looked up a moment ago, the key was free: two equal requests came at once, and this is the second.
        Intended::Repeated(row) => Err(Refusal::new(
            ErrorCode::IdempotencyConflict,
            format!(
                "call {} has just taken this idempotency key; repeat the request to get its result",
                row.head.id
            ),
        )),
    }
}

/// Runs the stages; a panic in any of them is a fault like others, and the entry is closed all the same.
pub(super) fn unpanicked(
    stages: impl Future<Output = Result<Shaped, CallError>>,
) -> impl Future<Output = Result<Shaped, CallError>> {
    // A combinator and not an async function, which would hold the stages twice.
    AssertUnwindSafe(stages).catch_unwind().map(|ended| {
        ended.unwrap_or_else(|_panic| {
            let message = "Gantry failed while running this call; the log says more";
            let error = ToolError::new(ErrorCode::InternalError, message);
            Err(Fault::with_possible_effect(error).into())
        })
    })
}

/// Closes the entry and tells everybody.
pub(super) async fn close(
    rt: &Runtime,
    cx: &CallCx,
    entry: Entry,
    outcome: Result<Shaped, CallError>,
) -> Receipt {
    let mut reply = reply(cx, &entry, outcome);
    let characters_out = match &reply.outcome {
        Ok(shaped) => shaped.text().chars().count() as u64,
        Err(_) => 0,
    };
    let record = record(&entry, &reply, characters_out);
    let intended = entry.intended.get().is_some();
    let (asked, characters_in) = (Arc::clone(&entry.head.tool.name), entry.characters_in);
    let written = if intended {
        close_intent(rt, cx.id, record).await
    } else {
        rt.store.record(WholeCall { head: entry.head, outcome: record }).await
    };
    if let Err(error) = written {
        tracing::error!("call {}: its outcome could not be recorded: {error}", cx.id);
        reply = unrecorded(reply, intended);
    }
    let finished = Finished { characters_in, characters_out, ..finished(cx, &reply, asked) };
    rt.events.emit(Some(&cx.caller().principal), EventKind::ToolFinished(Box::new(finished)));
    Receipt(reply)
}

fn reply(cx: &CallCx, entry: &Entry, outcome: Result<Shaped, CallError>) -> Reply {
    let state = match &outcome {
        Ok(_) => State::CompletedSuccess,
        Err(CallError::Failed(fault)) if fault.error.code == ErrorCode::OutcomeUnknown => {
            State::OutcomeUnknown
        }
        Err(CallError::Failed(_)) => State::CompletedFailure,
        Err(CallError::Refused(_) | CallError::Held(_)) => State::Refused,
    };
    let effect = match &outcome {
        Ok(_) => EffectState::Done,
        Err(error) => error.effect(),
    };
    Reply {
        id: cx.id,
        state,
        outcome: outcome.map_err(|error| short(error.error())),
        effect,
        latency: entry.started.elapsed(),
        tool: entry.tool.clone(),
        approved_by: entry.approved_by.clone(),
        repeats: entry.repeats.get().copied(),
        budget_exceeded: cx.session.budget().is_some_and(gantry_core::budget::Budget::was_exceeded),
    }
}

/// The error with a message that fits a conversation.
fn short(mut error: ToolError) -> ToolError {
    if error.message.len() > MESSAGE_BYTES {
        error.message = format!("{}…", truncated(&error.message, MESSAGE_BYTES));
    }
    error
}

fn record(entry: &Entry, reply: &Reply, characters_out: u64) -> Outcome {
    let error = reply.outcome.as_ref().err();
    Outcome {
        state: reply.state,
        code: error.map(|error| error.code.as_str().into()),
        message: error.map(|error| truncated(&error.message, RECORDED_ARGUMENT_BYTES).into_owned()),
        effect_state: reply.effect.as_str().into(),
        latency_us: u64::try_from(reply.latency.as_micros()).unwrap_or(u64::MAX),
        characters_in: entry.characters_in,
        characters_out,
        cost_micros: 0,
        finished_us: clock::now_us(),
        cached: reply.outcome.as_ref().is_ok_and(|shaped| shaped.cached),
        result: entry.keep_result.then(|| reply.to_kept_json()),
    }
}

/// What the caller hears when the outcome is not on record.
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
async fn close_intent(rt: &Runtime, call: CallId, outcome: Outcome) -> Result<(), gantry_store::Error> {
    let mut tries = 0;
    loop {
        match rt.store.close(call, outcome.clone()).await {
            Err(_) if tries < CLOSE_RETRIES => tries += 1,
            closed => return closed,
        }
        tokio::time::sleep(CLOSE_PAUSE).await;
    }
}

fn finished(cx: &CallCx, reply: &Reply, asked: Arc<str>) -> Finished {
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
        characters_in: 0,
        characters_out: 0,
        cached: reply.outcome.as_ref().is_ok_and(|shaped| shaped.cached),
    }
}
