//! A family of tools: dispatches calls, reads arguments, builds the definitions that clients see.

mod schema;

use crate::failure::{self, Result};
use crate::tool::Tool;
use gantry_core::Permit;
use gantry_core::policy::Preflight;
use gantry_core::tool::ToolSpec;
use gantry_provider::{BoxFuture, CallContext};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A family: tools that belong together. They never change, and all of them answer in JSON.
///
/// Only calls of its own tools reach a family. What holds for the futures of a [`gantry_provider::Provider`] holds for
/// those of a family.
#[derive(Debug)]
pub struct ToolBox {
    tools: Vec<Box<dyn AnyTool>>,
    /// One for each tool, in the same order.
    specs: Vec<ToolSpec>,
    /// The tools whose calls may take longer than those of others, and how long.
    pub(crate) time_limits: Vec<(&'static str, Duration)>,
    /// What an agent should know about using its tools.
    pub(crate) instructions: Option<String>,
    /// Says why none of them can be called, if so.
    pub(crate) unavailable_reason: fn() -> Option<String>,
}

impl ToolBox {
    pub(crate) fn new() -> Self {
        let (tools, specs, time_limits) = (Vec::new(), Vec::new(), Vec::new());
        Self { tools, specs, time_limits, instructions: None, unavailable_reason: || None }
    }

    pub(crate) fn with<T: Tool>(mut self, tool: T) -> Self {
        self.specs.push(schema::tool_spec(&tool));
        self.time_limits.extend(T::TIME_LIMIT.map(|limit| (T::NAME, limit)));
        self.tools.push(Box::new(tool));
        self
    }

    /// Sets what an agent should know before it uses any of the tools.
    pub(crate) fn with_instructions(self, text: impl Into<String>) -> Self {
        Self { instructions: Some(text.into()), ..self }
    }

    /// Appends a text to the description of each tool so far.
    pub(crate) fn with_note(mut self, text: &str) -> Self {
        for spec in &mut self.specs {
            spec.description = format!("{} {text}", spec.description);
        }
        self
    }

    /// Sets the check that says why the tools cannot be called on this machine.
    pub(crate) fn unavailable_if(self, unavailable_reason: fn() -> Option<String>) -> Self {
        Self { unavailable_reason, ..self }
    }

    fn tool(&self, name: &str) -> Result<&dyn AnyTool> {
        let found = self.specs.iter().zip(&self.tools).find(|(spec, _)| spec.name == name);
        found.map(|(_, tool)| &**tool).ok_or_else(|| failure::unknown_tool("the family", name))
    }

    /// Its tools, as clients see them.
    pub(crate) fn tools(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Whether a call needs an approval, and what must still hold when it runs. Changes nothing.
    pub(crate) async fn preflight(&self, tool: &str, arguments: &str) -> Result<Preflight> {
        self.tool(tool)?.preflight(arguments).await
    }

    /// Runs the call that the permit is for, and gives the result as JSON.
    pub(crate) async fn execute(&self, cx: &CallContext, permit: &Permit) -> Result<String> {
        self.tool(&permit.tool().spec.name)?.run(cx, permit).await
    }
}

/// A call that may run. Only a [`ToolBox`] makes one, out of a permit.
#[derive(Debug)]
pub(crate) struct PermittedCall<Args> {
    pub(crate) args: Args,
    precondition: Option<String>,
    cancel: CancellationToken,
}

impl<Args> PermittedCall<Args> {
    /// What [`Tool::preflight`] said must still hold.
    pub(crate) fn precondition(&self) -> Option<&str> {
        self.precondition.as_deref()
    }

    /// The same for a tool whose preflight check always gives it.
    pub(crate) fn judged(&self) -> Result<&str> {
        self.precondition().ok_or_else(failure::missing_precondition)
    }

    /// Fires when the call is to stop, or is not waited for any more.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// A call that no permit is for.
    #[cfg(test)]
    pub(crate) fn unpermitted(args: Args, precondition: Option<String>, cancel: CancellationToken) -> Self {
        Self { args, precondition, cancel }
    }
}

trait AnyTool: Send + Sync + Debug {
    fn preflight<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<Preflight>>;
    fn run<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String>>;
}

impl<T: Tool> AnyTool for T {
    fn preflight<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<Preflight>> {
        Box::pin(async { Tool::preflight(self, parse_arguments(arguments)?).await })
    }

    fn run<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move {
            let args = parse_arguments(permit.arguments())?;
            let cancel = cx.cancel.child_token();
            let _stops_when_dropped = cancel.clone().drop_guard();
            let precondition = permit.precondition().map(str::to_owned);
            let output = Tool::run(self, PermittedCall { args, precondition, cancel }).await?;
            serde_json::to_string(&output).map_err(|error| failure::unwritable_result(T::NAME, &error))
        })
    }
}

/// The arguments of a call, which the tool's schema has let pass.
fn parse_arguments<T: DeserializeOwned>(text: &str) -> Result<T> {
    let read = serde_json::from_str(text).or_else(|error| {
        // To a schema `5.0` is a whole number, to Rust it is none.
        let Ok(mut value) = serde_json::from_str(text) else { return Err(error) };
        normalise_integers(&mut value);
        serde_json::from_value(value)
    });
    read.map_err(|error| failure::invalid(format!("the arguments do not fit the tool: {error}")))
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
