//! Resolve: which tool of the caller's toolset is meant, and with what arguments.

use crate::context::CallCx;
use crate::provider::output;
use crate::runtime::Runtime;
use gantry_core::{CallRequest, Refusal, ResolvedCall};
use std::sync::Arc;

pub(super) fn tool(rt: &Runtime, cx: &CallCx, request: &CallRequest) -> Result<ResolvedCall, Refusal> {
    // `tool_output` is there once a session has something to read, whatever its toolset says.
    if request.tool == output::NAME && cx.session.has_outputs() {
        return ResolvedCall::of(Arc::clone(&rt.output_tool), request);
    }
    ResolvedCall::resolve(&cx.session.toolset(), request)
}
