//! Gantry's tools for developers: run the tests of a project, format its code, install its packages.
//!
//! They find out themselves what kind of project a folder holds, run its own programs by the command runner, and say what
//! came of it as data: tests with their messages, files that changed, packages with their versions. A suite that
//! fails is a result and no error; an error is what kept it from being run to its end.

mod act;
mod ecosystem;
mod fault;
mod format;
mod install;
mod site;
mod spec;
mod suite;
#[cfg(test)]
mod tests;
mod words;

use crate::command::runner::CommandRunner;
use crate::own::Part;
use act::Act;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{Fault, Permit, Refusal, ResolvedCall};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use serde_json::Value;
use std::sync::Arc;

/// Where packages come from, where it is not the place that everybody uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registries {
    /// For npm, pnpm and yarn: the address of a registry.
    pub npm: Option<String>,
    /// For pip: the address of a simple index.
    pub pip: Option<String>,
    /// For cargo: the address of a sparse index that stands in for crates.io.
    pub cargo: Option<String>,
    /// For go: the address of a module proxy.
    pub go: Option<String>,
}

/// What the tools are set up with.
#[derive(Debug, Clone, Default)]
pub struct DevelopOptions {
    /// Where packages come from.
    pub registries: Registries,
}

/// The tools for developers on one workspace.
#[derive(Debug)]
pub struct Develop {
    tools: Vec<ToolSpec>,
    runner: Arc<CommandRunner>,
    registries: Registries,
}

impl Develop {
    /// The tools, which run their programs there.
    #[must_use]
    pub fn new(runner: Arc<CommandRunner>, options: DevelopOptions) -> Self {
        Self { tools: spec::tools(), runner, registries: options.registries }
    }

    async fn look(&self, tool: &str, arguments: &str) -> Result<OwnVerdict, Refusal> {
        match Act::parse(tool, arguments)? {
            Act::Test(_) | Act::Format(_) => Ok(OwnVerdict::default()),
            Act::Install(install) => {
                let verdict = install::inspect(self, install).await;
                verdict.map_err(|fault| Refusal::from(fault.error))
            }
        }
    }

    async fn run(&self, permit: &Permit) -> Result<Value, Fault> {
        let act = Act::parse(&permit.tool().spec.name, permit.arguments()).map_err(Fault::without_effect)?;
        match act {
            Act::Test(test) => suite::run(self, test).await,
            Act::Format(format) => format::run(self, format).await,
            Act::Install(install) => install::run(self, install, permit.precondition()).await,
        }
    }
}

impl Part for Develop {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn objection(&self) -> Option<String> {
        CommandRunner::unavailable_reason()
    }

    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(self.look(&call.tool().spec.name, call.arguments()))
    }

    fn execute<'a>(&'a self, _: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { self.run(permit).await.map(|value| value.to_string()) })
    }
}
