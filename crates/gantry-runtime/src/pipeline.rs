//! The life of a tool call, in order.
//!
//! Each stage takes what the stage before it made, so a stage cannot be left out or moved without a type error. The
//! entry opens before anything can happen and is closed on every way out, and only the receipt of closing it can
//! become a reply.

mod admit;
mod approve;
mod authorise;
mod execute;
pub(crate) mod idempotency;
mod record;
mod resolve;
mod shape;
pub(crate) mod timer;

use admit::eviction_suffix;
pub(crate) use admit::sleep_until_opt;

use crate::cache::{Answer, WaitLimits};
use crate::context::PipelineContext;
use crate::reply::{Receipt, Reply, Shaped};
use crate::runtime::{Runtime, Snapshot};
use gantry_core::{CallError, CallRequest, ErrorCode, Permit, Refusal, Verdict};
use gantry_provider::RawOutput;
use record::Entry;

pub(crate) async fn run(rt: &Runtime, cx: &PipelineContext, request: &CallRequest) -> Reply {
    rt.record_session(&cx.session).await;
    let mut entry = record::open(cx, request);
    let outcome = record::catch_panic(stages(rt, cx, request, &mut entry)).await;
    let Receipt(reply) = record::close(rt, cx, entry, outcome).await;
    reply
}

/// What is decided about a call: the first stages, without an effect.
pub(crate) async fn verdict(rt: &Runtime, cx: &PipelineContext, request: &CallRequest) -> Verdict {
    let mut snapshot = rt.snapshot();
    let resolved = resolve::tool(rt, &mut snapshot, cx, request).await;
    let scope = CallScope { rt, snapshot: &snapshot, cx, request };
    match resolved.and_then(|call| authorise::judge(&scope, call)) {
        Ok(judged) => authorise::verdict(&scope, judged).await,
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn stages(
    rt: &Runtime,
    cx: &PipelineContext,
    request: &CallRequest,
    entry: &mut Entry,
) -> Result<Shaped, CallError> {
    let mut snapshot = rt.snapshot();
    let call = resolve::tool(rt, &mut snapshot, cx, request).await?;
    entry.resolved(&call);
    let scope = &CallScope { rt, snapshot: &snapshot, cx, request };
    let judged = authorise::judge(scope, call)?;
    if let Some(earlier) = idempotency::earlier(scope, judged.call(), entry).await? {
        return Ok(earlier);
    }
    approve::join_duplicate(scope, &judged, entry).await?;
    let permit = match authorise::verdict(scope, judged).await {
        Verdict::Allow(permit) => approve::apply_delay(scope, permit, entry).await?,
        Verdict::Ask(question) => approve::approve(scope, question, entry).await?,
        Verdict::Deny(refusal) => return Err(refusal.into()),
    };
    entry.permitted(&permit);
    let entry = &*entry;
    // A key promises one execution and its result, and so does a decision: the cache has no say.
    let is_cacheable = request.idempotency_key.is_none() && request.resumed.is_none();
    let answer = match permit.tool().settings.cache.filter(|_| is_cacheable) {
        None => Answer { output: dispatch(scope, &permit, entry).await?.into(), cached: false },
        Some(lifetime) => {
            let limit = execute::time_limit(scope, &permit);
            let provider = snapshot.instance_of(&permit.tool().key.provider);
            let limits = WaitLimits { cancel: &cx.cancel, deadline: entry.deadline, limit, provider };
            let execute = || dispatch(scope, &permit, entry);
            // Boxed, so that calls without a cache do not carry its state.
            Box::pin(rt.cache.get_or_execute(&permit, lifetime, &limits, execute)).await?
        }
    };
    shape::apply(scope, answer).await
}

/// What only one of several equal calls does: wait for its turn, put the intent on record, and execute.
async fn dispatch(scope: &CallScope<'_>, permit: &Permit, entry: &Entry) -> Result<RawOutput, CallError> {
    let slot = admit::slot(scope, permit, entry.deadline).await?;
    let on_record = record::intend(scope, permit, entry).await?;
    execute::run(scope, permit, &slot, on_record).await
}

/// The refusal of a call about which the store could not be asked.
fn not_looked_up(what: &str, error: &gantry_store::Error) -> Refusal {
    let message = format!("{what} could not be looked up, so nothing was run: {error}");
    Refusal::new(ErrorCode::InternalError, message)
}

/// A call in its stages: the runtime, the snapshot that it goes by to its end, its context and its request.
pub(crate) struct CallScope<'a> {
    pub(crate) rt: &'a Runtime,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) cx: &'a PipelineContext,
    pub(crate) request: &'a CallRequest,
}
