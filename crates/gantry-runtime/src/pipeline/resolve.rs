//! Resolve: which tool of the caller's toolset is meant, and with what arguments.

use crate::context::CallCx;
use crate::output_tool;
use crate::runtime::{Runtime, State};
use gantry_core::{CallRequest, ErrorCode, Refusal, ResolvedCall};
use std::sync::Arc;

pub(super) async fn tool(
    rt: &Runtime,
    state: &mut Arc<State>,
    cx: &CallCx,
    request: &CallRequest,
) -> Result<ResolvedCall, Refusal> {
    // `tool_output` is there once a session has something to read, also if its toolset does not have it.
    if request.tool == output_tool::NAME && cx.session.has_outputs() {
        return ResolvedCall::of(Arc::clone(&rt.output_tool), request);
    }
    let seen = cx.session.resolved();
    let call = match ResolvedCall::resolve(&seen.toolset, request) {
        // It may be a tool of a server that was still on its first way up when the session was given its tools. Calls of
        // all other tools do not wait.
        Err(refusal) if refusal.error().code == ErrorCode::ToolNotFound && !seen.settled => {
            tokio::select! {
                () = rt.settled() => {}
                () = cx.cancel.cancelled() => return Err(refusal),
            }
            rt.renew(&cx.session)?;
            *state = rt.state();
            ResolvedCall::resolve(&cx.session.toolset(), request)
        }
        other => other,
    };
    let call = call.map_err(|refusal| rt.unknown(state, &cx.session, refusal, &request.tool))?;
    rt.still_has(state, &cx.session, call, request)
}
