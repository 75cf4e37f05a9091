//! The old trait of a family of tools, which the tools for developers, the web and searching still have. Goes with the
//! last of them.

pub use crate::builtin::BuiltinProvider as Own;

pub(crate) use crate::text::display_text as shown;
pub(crate) use crate::toolbox::arguments;

use crate::failure;
use crate::toolbox::ToolFamily;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{Fault, Permit, Refusal, ResolvedCall, ToolError};
use gantry_provider::{BoxFuture, CallContext, no_preflight};
use std::fmt::Debug;

/// A family of tools that reads its arguments and writes its definitions itself.
pub trait Part: Send + Sync + Debug {
    /// As for a [`ToolFamily`].
    fn tools(&self) -> &[ToolSpec];

    /// As [`ToolFamily::unavailable_reason`].
    fn objection(&self) -> Option<String> {
        None
    }

    /// As [`ToolFamily::preflight`].
    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::ready(Err(no_preflight(call))))
    }

    /// As for a [`ToolFamily`].
    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit)
    -> BoxFuture<'a, Result<String, Fault>>;

    /// As for a [`ToolFamily`].
    fn instructions(&self) -> Option<&str> {
        None
    }

    /// As for a [`ToolFamily`].
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a family says about a tool that is none of its own.
pub(crate) fn missing(tool: &str) -> ToolError {
    failure::unknown_tool(tool).error
}

impl<P: Part> ToolFamily for P {
    fn tools(&self) -> &[ToolSpec] {
        Part::tools(self)
    }

    fn unavailable_reason(&self) -> Option<String> {
        self.objection()
    }

    fn preflight<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        self.inspect(call)
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<String, Fault>> {
        Part::execute(self, cx, permit)
    }

    fn instructions(&self) -> Option<&str> {
        Part::instructions(self)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Part::close(self)
    }
}
