//! Calls of a server's tools: sent once, to a replica that has the tool as it was judged.

use crate::answer;
use crate::server::{Picked, UpstreamServer};
use gantry_core::error::{CallFailure, ErrorCode, ToolError};
use gantry_core::{Permit, Tool};
use gantry_mcp::RequestContext;
use gantry_mcp::client::UpstreamError;
use gantry_provider::{CallContext, CallResult};
use std::sync::Arc;

impl UpstreamServer {
    pub(super) async fn call(&self, cx: &CallContext, permit: &Permit) -> CallResult {
        let (tool, mut tried) = (permit.tool(), Vec::new());
        let mut picked = self.pick_judged(tool)?;
        let context = RequestContext { client: Arc::clone(&cx.client), cancel: cx.cancel.clone() };
        let mut has_waited = false;
        let result = loop {
            let called = async {
                let connection = self.connection_for(&picked, tool, &*cx.client).await;
                let connection = connection.map_err(|error| (error, false))?;
                let result = connection.call(permit, cx.meta.as_deref(), &context).await;
                result.map_err(|error| (error, connection.has_ended()))
            };
            let (error, has_ended) = match called.await {
                Ok(result) => break result,
                Err(failed) => failed,
            };
            // Only a call that was certainly not sent may be sent again: to another replica, or once to one that
            // reconnects.
            if !matches!(error, UpstreamError::NotSent(_)) {
                return Err(answer::to_fault(self, tool, error));
            }
            tried.push(picked.replica);
            let mut next = self.pick(&self.view.load(), &tried, Some(tool));
            if next.is_none() && has_ended && !std::mem::replace(&mut has_waited, true) {
                next = self.pick_reconnected(Some(tool), &cx.cancel).await;
            }
            picked = next.ok_or_else(|| answer::to_fault(self, tool, error))?;
        };
        answer::to_output(self, (picked.replica, picked.epoch), &cx.caller, tool, &result)
    }

    /// Picks the replica that a call goes to. Refuses the call if the server defines the tool otherwise by now, or if the
    /// tool is quarantined: a permit is for the definition that was judged.
    fn pick_judged(&self, tool: &Tool) -> Result<Picked, CallFailure> {
        let (id, name, view) = (self.id(), &tool.name, self.view.load());
        let definition = view.listing.as_ref().and_then(|listing| listing.tool(&tool.key.tool));
        let definition = definition.ok_or_else(|| {
            answer::not_sent(&format!("server {id} does not have {name} any more; list the tools again"))
        })?;
        if let Some(reason) = self.context.pins.objection(id, &tool.key.tool, definition.fingerprint) {
            return Err(quarantined(&format!("{name} is quarantined: {reason}")));
        }
        if definition.fingerprint != tool.fingerprint {
            return Err(quarantined(&format!(
                "server {id} has changed what {name} is; list the tools again"
            )));
        }
        self.pick(&view, &[], Some(tool)).ok_or_else(|| match view.is_ready() {
            false => answer::server_down(self),
            true => quarantined(&format!(
                "no replica of server {id} that is ready has {name} as it was judged; see `gantry doctor`"
            )),
        })
    }
}

fn quarantined(reason: &str) -> CallFailure {
    CallFailure::without_effect(ToolError::new(
        ErrorCode::ToolQuarantined,
        format!("{reason}. Nothing was sent."),
    ))
}
