//! Tools that belong together: dispatches calls, reads arguments, builds the definitions that clients see.

mod schema;

use crate::failure;
use crate::tool::Tool;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall, ToolError};
use gantry_provider::{BoxFuture, CallContext};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Tools that belong together, as [`crate::builtin::BuiltinProvider`] has them. They never change, and all of them
/// answer in JSON.
///
/// Only calls of its own tools reach a family. What holds for the futures of a [`gantry_provider::Provider`] holds for
/// these.
pub trait ToolFamily: Send + Sync + Debug {
    /// Its tools.
    fn tools(&self) -> &[ToolSpec];

    /// The tools whose calls may take longer than those of others, and how long.
    fn time_limits(&self) -> Vec<(&'static str, Duration)> {
        Vec::new()
    }

    /// Why none of them can be called, if so.
    fn unavailable_reason(&self) -> Option<String> {
        None
    }

    /// Whether a call needs an approval, and what must still hold when it runs. Changes nothing.
    fn preflight<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>>;

    /// Runs the call that the permit is for, and gives the result as JSON.
    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit)
    -> BoxFuture<'a, Result<String, Fault>>;

    /// What an agent should know about using its tools.
    fn instructions(&self) -> Option<&str> {
        None
    }

    /// Lets go of what it holds open.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A family of typed tools.
#[derive(Debug)]
pub struct ToolBox {
    tools: Vec<Box<dyn AnyTool>>,
    /// One for each tool, in the same order.
    specs: Vec<ToolSpec>,
    instructions: Option<String>,
    unavailable_reason: fn() -> Option<String>,
}

impl ToolBox {
    pub(crate) fn new() -> Self {
        Self { tools: Vec::new(), specs: Vec::new(), instructions: None, unavailable_reason: || None }
    }

    /// The same with another tool.
    pub(crate) fn with<T: Tool>(mut self, tool: T) -> Self {
        self.specs.push(schema::tool_spec(&tool));
        self.tools.push(Box::new(tool));
        self
    }

    /// The same with this to know before an agent uses any of the tools.
    pub(crate) fn with_instructions(self, text: impl Into<String>) -> Self {
        Self { instructions: Some(text.into()), ..self }
    }

    /// The same with this at the end of the description of each tool.
    pub(crate) fn with_note(mut self, text: &str) -> Self {
        for spec in &mut self.specs {
            spec.description = format!("{} {text}", spec.description);
        }
        self
    }

    /// The same where the tools cannot be called on every machine.
    pub(crate) fn unavailable_if(self, unavailable_reason: fn() -> Option<String>) -> Self {
        Self { unavailable_reason, ..self }
    }

    fn tool(&self, name: &str) -> Result<&dyn AnyTool, Fault> {
        let found = self.tools.iter().find(|tool| tool.name() == name);
        found.map(|tool| &**tool).ok_or_else(|| failure::unknown_tool(name))
    }

    /// [`ToolFamily::preflight`] for arguments that may not have been checked against the schema.
    pub(crate) async fn preflight_of(&self, tool: &str, arguments: &str) -> Result<OwnVerdict, Fault> {
        self.tool(tool)?.preflight(arguments).await
    }
}

impl ToolFamily for ToolBox {
    fn tools(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn time_limits(&self) -> Vec<(&'static str, Duration)> {
        self.tools.iter().filter_map(|tool| Some((tool.name(), tool.time_limit()?))).collect()
    }

    fn unavailable_reason(&self) -> Option<String> {
        (self.unavailable_reason)()
    }

    fn preflight<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(async {
            let found = self.preflight_of(&call.tool().spec.name, call.arguments()).await;
            found.map_err(|fault| Refusal::from(fault.error))
        })
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move { self.tool(&permit.tool().spec.name)?.run(cx, permit).await })
    }

    fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }
}

/// A call that may run. Only a [`ToolBox`] makes one, out of a permit.
#[derive(Debug)]
pub(crate) struct PermittedCall<'a, Args> {
    /// What the permit is for.
    pub(crate) args: Args,
    cx: &'a CallContext,
    permit: &'a Permit,
}

impl<Args> PermittedCall<'_, Args> {
    /// What [`Tool::preflight`] said must still hold.
    pub(crate) fn precondition(&self) -> Option<&str> {
        self.permit.precondition()
    }

    /// Fires when the call is to stop.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cx.cancel
    }
}

/// A [`Tool`] of any type.
trait AnyTool: Send + Sync + Debug {
    fn name(&self) -> &'static str;
    fn time_limit(&self) -> Option<Duration>;
    fn preflight<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<OwnVerdict, Fault>>;
    fn run<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn time_limit(&self) -> Option<Duration> {
        T::TIME_LIMIT
    }

    fn preflight<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<OwnVerdict, Fault>> {
        Box::pin(async { Tool::preflight(self, parse_arguments(arguments)?).await })
    }

    fn run<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let args = parse_arguments(permit.arguments())?;
            let output = Tool::run(self, PermittedCall { args, cx, permit }).await?;
            serde_json::to_string(&output).map_err(|error| failure::unwritable_result(T::NAME, &error))
        })
    }
}

/// The arguments of a call, which the tool's schema has let pass.
fn parse_arguments<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    arguments(text).map_err(Fault::without_effect)
}

/// The same, for the tools that are not typed yet.
pub(crate) fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    let read = serde_json::from_str(text).or_else(|error| {
        // To a schema `5.0` is a whole number, to Rust it is none.
        let Ok(mut value) = serde_json::from_str(text) else { return Err(error) };
        normalise_integers(&mut value);
        serde_json::from_value(value)
    });
    read.map_err(|error| {
        ToolError::new(ErrorCode::InvalidArguments, format!("the arguments do not fit the tool: {error}"))
    })
}

/// Writes the numbers among the arguments that are whole as such.
fn normalise_integers(arguments: &mut Value) {
    for value in arguments.as_object_mut().into_iter().flat_map(|object| object.values_mut()) {
        // What a tool counts is far below this, where no two whole numbers are one.
        const MOST: f64 = 9_007_199_254_740_991.0;
        let whole = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MOST);
        if let Some(number) = whole {
            *value = (number as i64).into();
        }
    }
}

#[cfg(test)]
mod tests;
