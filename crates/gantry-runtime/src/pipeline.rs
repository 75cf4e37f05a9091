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

pub(crate) use admit::until;

use crate::cache::{Answer, WaitLimits};
use crate::context::CallCx;
use crate::reply::{Reply, Shaped};
use crate::runtime::{Runtime, State};
use gantry_core::{CallError, CallRequest, Permit, Verdict};
use gantry_provider::RawOutput;
use record::Entry;

/// Runs one call from request to reply.
pub(crate) async fn run(rt: &Runtime, cx: &CallCx, request: &CallRequest) -> Reply {
    rt.record_session(&cx.session).await;
    let mut entry = record::open(cx, request);
    let outcome = record::catch_panic(stages(rt, cx, request, &mut entry)).await;
    record::close(rt, cx, entry, outcome).await.into_reply()
}

/// What is decided about a call: the first stages, without an effect.
pub(crate) async fn verdict(rt: &Runtime, cx: &CallCx, request: &CallRequest) -> Verdict {
    let mut state = rt.state();
    let judged = match resolve::tool(rt, &mut state, cx, request).await {
        Ok(call) => authorise::judge(&state, cx, call),
        Err(refusal) => Err(refusal),
    };
    match judged {
        Ok(judged) => authorise::verdict(rt, &state, cx, judged).await,
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn stages(
    rt: &Runtime,
    cx: &CallCx,
    request: &CallRequest,
    entry: &mut Entry,
) -> Result<Shaped, CallError> {
    let mut state = rt.state();
    let call = resolve::tool(rt, &mut state, cx, request).await?;
    entry.resolved(&call);
    let state = &*state;
    let judged = authorise::judge(state, cx, call)?;
    if let Some(earlier) = idempotency::earlier(rt, cx, request, judged.call(), entry).await? {
        return Ok(earlier);
    }
    let at = At { rt, state, cx };
    approve::joined(&at, request, &judged, entry).await?;
    let permit = match authorise::verdict(rt, state, cx, judged).await {
        Verdict::Allow(permit) => approve::in_time(&at, request, permit, entry).await?,
        Verdict::Ask(question) => approve::obtain(&at, request, question, entry).await?,
        Verdict::Deny(refusal) => return Err(refusal.into()),
    };
    entry.permitted(&permit);
    let entry = &*entry;
    // A key promises one execution and its result, and so does a decision: the cache has no say.
    let answer = if request.idempotency_key.is_some() || request.resumed.is_some() {
        Answer::fresh(dispatch(&at, request, &permit, entry).await?)
    } else {
        let limit = execute::time_limit(state, request, &permit);
        let provider = state.number_of(&permit.tool().key.provider);
        let limits = WaitLimits { cancel: &cx.cancel, deadline: entry.deadline(), limit, provider };
        rt.cache.get_or_execute(&permit, &limits, || dispatch(&at, request, &permit, entry)).await?
    };
    shape::apply(rt, state, cx, answer).await
}

/// What only one of several equal calls does: wait for its turn, put the intent on record, and execute.
async fn dispatch(
    at: &At<'_>,
    request: &CallRequest,
    permit: &Permit,
    entry: &Entry,
) -> Result<RawOutput, CallError> {
    let At { rt, cx, .. } = at;
    let slot = admit::slot(rt, cx, request, permit, entry.deadline()).await?;
    let on_record = record::intend(rt, cx, request, permit, entry).await?;
    execute::run(at, request, permit, &slot, on_record).await
}

/// Where a call is: in which runtime, under what holds there since it began.
struct At<'a> {
    rt: &'a Runtime,
    state: &'a State,
    cx: &'a CallCx,
}
