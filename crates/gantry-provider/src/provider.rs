//! A source of tools under one namespace.
//!
//! Everything that Gantry can do is behind this one trait: its own tools, MCP servers, REST services, agents.
//! Executing needs a permit, so no provider can be reached around the pipeline:
//! ```compile_fail
//! use gantry_provider::{CallContext, Provider};
//! async fn bypass(provider: &dyn Provider, cx: &CallContext) { provider.execute(cx, "{}").await; }
//! ```

use crate::{CallContext, ProviderStatus, RawOutput};
use gantry_core::digest::Digest;
use gantry_core::names::Style;
use gantry_core::policy::Preflight;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{CallFailure, ErrorCode, Permit, Refusal, ResolvedCall};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What came of a call.
pub type CallResult = Result<RawOutput, CallFailure>;

/// A source of tools.
///
/// Futures may be dropped at any await when a call is cancelled or runs out of time; what was sent by then stays
/// sent, and the pipeline records that it may have taken effect.
pub trait Provider: Send + Sync + Debug {
    fn origin(&self) -> &Origin;

    /// How its tools are displayed: under its namespace, unless it says otherwise.
    fn naming(&self) -> Style {
        Style::Prefixed
    }

    fn tools(&self) -> Vec<ToolSpec>;

    /// Whether it has a tool of this (original) name.
    fn has_tool(&self, name: &str) -> bool {
        self.tools().iter().any(|tool| tool.name == name)
    }

    /// Why a tool of this (original) name must not be called although it is there, if so.
    fn quarantine_reason(&self, _tool: &str) -> Option<String> {
        None
    }

    /// Whether its namespace is one that several providers of its kind share. Such a namespace counts as one provider
    /// where names are told apart.
    fn shares_namespace(&self) -> bool {
        false
    }

    /// Tells apart the providers that an id can stand for: another program or another address is another provider. None
    /// for Gantry's own.
    fn identity(&self) -> Option<Arc<str>> {
        None
    }

    /// The digest of its configuration. When the configuration changes, a running provider whose digest equals that of the
    /// new one with its id is kept, with its state. None for a provider that is made anew each time.
    fn config_digest(&self) -> Option<Digest> {
        None
    }

    /// Counts the changes of its tools; none for a provider whose tools never change.
    fn subscribe(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Looks at the world to answer the conditional approval rule of the tool for this call. Asked only where that rule is
    /// `Depends`, after policies and schema let the call pass. Must change nothing. A provider without such tools refuses
    /// the call.
    fn preflight<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<Preflight, Refusal>> {
        let message = format!(
            "internal error: {} declares a conditional approval rule, but its provider has no preflight check; \
             nothing was run",
            call.tool().name
        );
        Box::pin(std::future::ready(Err(Refusal::new(ErrorCode::InternalError, message))))
    }

    /// Runs the call that the permit is for.
    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, CallResult>;

    /// Gets ready; called at the start and after each change of the configuration that keeps the provider. A provider that
    /// cannot get ready says why; the others go on.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How a service that is no server is doing. The engine adds its project and agent, and counts its quarantined tools.
    fn service_status(&self) -> Option<ProviderStatus> {
        None
    }

    /// What an agent should know about using its tools.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Closes connections and ends processes.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
