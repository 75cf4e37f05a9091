//! Calls of a server's tools: sent once, to a replica that has the tool as it was judged.

use crate::answer;
use crate::replica::Replica;
use crate::server::UpstreamServer;
use gantry_core::error::{ErrorCode, Fault, ToolError};
use gantry_core::{Permit, Tool};
use gantry_mcp::RequestContext;
use gantry_mcp::client::Failure;
use gantry_provider::CallContext;
use gantry_provider::{Provider as _, RawOutput};
use std::sync::Arc;

impl UpstreamServer {
    pub(super) async fn call(&self, cx: &CallContext, permit: &Permit) -> Result<RawOutput, Fault> {
        let tool = permit.tool();
        self.is_as_judged(tool)?;
        let mut picked = self.pick_besides(&[], Some(tool)).ok_or_else(|| self.has_none(tool))?;
        let mut tried = Vec::new();
        let result = loop {
            let connection_for = self.connection_for(&picked, tool, &*cx.client).await;
            let turn = RequestContext { audience: Arc::clone(&cx.client), cancel: cx.cancel.clone() };
            let called = if self.has_changed(picked.replica, tool) {
                Err(Failure::Unavailable(format!("it has changed what {} is", tool.name)))
            } else {
                connection_for.call(permit, cx.meta.as_deref(), turn).await
            };
            let failure = match called {
                Ok(result) => break result,
                Err(failure) => failure,
            };
            tried.push(picked.replica);
            // Only a call that was certainly not sent may be sent to another replica.
            let is_unsent = matches!(failure, Failure::Unavailable(_));
            let next = is_unsent.then(|| self.pick_besides(&tried, Some(tool))).flatten();
            picked = next.ok_or_else(|| answer::fault(self.id(), tool, self.hidden(failure)))?;
        };
        let at = answer::At { replica: picked.replica, epoch: picked.epoch };
        answer::output(self, at, &cx.caller, tool, &result)
    }

    /// Refuses a call whose tool the server defines otherwise by now, or that is quarantined: a permit is for the
    /// definition that was judged.
    fn is_as_judged(&self, tool: &Tool) -> Result<(), Fault> {
        if let Some(reason) = self.objection(&tool.key.tool) {
            return Err(quarantined(&format!("{} is quarantined: {reason}", tool.name)));
        }
        let (id, name, known) = (self.id(), &tool.name, self.listing());
        match known.as_ref().map(|known| (known.defines(tool), known.tool(&tool.key.tool).is_some())) {
            Some((true, _)) => Ok(()),
            Some((false, true)) => {
                Err(quarantined(&format!("server {id} has changed what {name} is; list the tools again")))
            }
            Some((false, false)) | None => Err(answer::unavailable(&format!(
                "server {id} does not have {name} any more; list the tools again"
            ))),
        }
    }

    /// Whether a replica that was chosen for a tool defines it otherwise by now: opening a session may have taken a while.
    fn has_changed(&self, replica: usize, tool: &Tool) -> bool {
        let listing = self.replicas.get(replica).and_then(Replica::listing);
        listing.is_some_and(|listing| !listing.defines(tool))
    }

    /// No replica is ready to run a tool as it was judged.
    fn has_none(&self, tool: &Tool) -> Fault {
        if self.connections().is_empty() {
            return answer::absent(self);
        }
        quarantined(&format!(
            "no replica of server {} that is ready has {} as it was judged; see `gantry doctor`",
            self.id(),
            tool.name
        ))
    }
}

fn quarantined(reason: &str) -> Fault {
    Fault::without_effect(ToolError::new(ErrorCode::ToolQuarantined, format!("{reason}. Nothing was sent.")))
}
