//! A source of tools under one namespace.
//!
//! Everything that Gantry can do is behind this one trait: its own tools, MCP servers, REST services, agents.
//! Executing needs a permit, so no provider can be reached around the pipeline:
//! ```compile_fail
//! use gantry_provider::{CallContext, Provider};
//! async fn bypass(provider: &dyn Provider, cx: &CallContext) { provider.execute(cx, "{}").await; }
//! ```

use crate::{CallContext, RawOutput};
use gantry_core::digest::Digest;
use gantry_core::names::Style;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of tools.
///
/// Futures may be dropped at any await when a call is cancelled or runs out of time; what was sent by then stays
/// sent, and the pipeline records that it may have taken effect.
pub trait Provider: Send + Sync + Debug {
    /// Its id, namespace and kind.
    fn origin(&self) -> &Origin;

    /// How its tools are displayed.
    fn style(&self) -> Style;

    /// Its tools as they are now.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Whether it has a tool of this (original) name.
    fn has_tool(&self, name: &str) -> bool {
        self.tools().iter().any(|tool| tool.name == name)
    }

    /// Why a tool of this (original) name must not be called although it is there, if so.
    fn objection(&self, _tool: &str) -> Option<String> {
        None
    }

    /// Whether its namespace is one that several providers of its kind share. Such a namespace counts as one provider
    /// where names are told apart.
    fn shares_namespace(&self) -> bool {
        false
    }

    /// Which one it is of all that could have its id: another program, another address is another provider. Nothing for
    /// Gantry's own.
    fn identity(&self) -> Option<Arc<str>> {
        None
    }

    /// What it was set up with. When the configuration changes, a provider that is there and says the same as the new one
    /// of its id is kept, with all that it has found out. Nothing for a provider that is made anew each time.
    fn set_up(&self) -> Option<Digest> {
        None
    }

    /// Moves on whenever the provider has something else to offer; none for a provider that never changes.
    fn changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Looks at the world to say what the tool's own rule comes to for this call. Only asked where the tool's rule
    /// is `Depends`, after policies and schema let the call pass. Must change nothing. A provider without such tools
    /// refuses the call.
    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::ready(Err(no_preflight(call))))
    }

    /// Runs the call that the permit is for.
    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>>;

    /// Gets ready. A provider that cannot says why; the others go on.
    fn warm_up(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What an agent should know about using its tools.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Lets go of connections and processes.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The refusal of a call whose tool has a conditional approval rule that its provider does not answer.
#[must_use]
pub fn no_preflight(call: &ResolvedCall) -> Refusal {
    let message = format!(
        "internal error: {} declares a conditional approval rule, but its provider has no preflight check; \
         nothing was run",
        call.tool().name
    );
    Refusal::new(ErrorCode::InternalError, message)
}
