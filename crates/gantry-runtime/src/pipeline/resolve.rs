//! Resolve: which tool of the caller's toolset the request names, with which arguments.

use crate::context::PipelineContext;
use crate::output_tool;
use crate::runtime::{Runtime, Snapshot};
use gantry_core::{CallRequest, ErrorCode, Refusal, ResolvedCall};
use std::sync::Arc;

pub(super) async fn tool(
    rt: &Runtime,
    snapshot: &mut Arc<Snapshot>,
    cx: &PipelineContext,
    request: &CallRequest,
) -> Result<ResolvedCall, Refusal> {
    // `tool_output` is there once a session has something to read, also if its toolset does not have it.
    if request.tool == output_tool::NAME && cx.session.has_outputs() {
        return ResolvedCall::of(Arc::clone(&rt.output_tool), request);
    }
    let seen = cx.session.resolved();
    match snapshot.resolve_call(&cx.session, &seen, request) {
        // It may be a tool of a server that was still on its first way up when the session was given its tools. Calls of
        // all other tools do not wait.
        Err(refusal) if refusal.error().code == ErrorCode::ToolNotFound && !seen.discovered => {
            if cx.cancel.run_until_cancelled(rt.settled()).await.is_none() {
                return Err(refusal);
            }
            rt.renew(&cx.session)?;
            *snapshot = rt.snapshot();
            snapshot.resolve_call(&cx.session, &cx.session.resolved(), request)
        }
        other => other,
    }
}
