//! Gantry's own tools as providers: files, code, web, git, search, development.
//!
//! The families of a workspace share one id, so that no name of a configured server (`git`, `web`, `search`) is taken;
//! an entry of the tool catalogue is a single family under its own id.

use crate::failure::{self, Result};
use crate::toolbox::ToolBox;
use gantry_core::names::Style;
use gantry_core::policy::Preflight;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{Permit, Refusal, ResolvedCall, ToolKind};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use std::time::Duration;

/// The id and the namespace of the tools of a workspace.
pub const NAMESPACE: &str = "workspace";

/// A provider of one or more families. Each tool is of one of them.
#[derive(Debug)]
pub struct BuiltinProvider {
    origin: Origin,
    style: Style,
    families: Vec<ToolBox>,
}

impl BuiltinProvider {
    #[must_use]
    pub fn workspace(families: Vec<ToolBox>) -> Self {
        Self { origin: origin(NAMESPACE), style: Style::Bare, families }
    }

    /// The tools of an entry of the tool catalogue, under the entry's id.
    #[must_use]
    pub fn entry(id: &str, family: ToolBox) -> Self {
        Self { origin: origin(id), style: Style::Prefixed, families: vec![family] }
    }

    /// The tools whose calls may take longer than those of others, and how long.
    #[must_use]
    pub fn time_limits(&self) -> Vec<(&'static str, Duration)> {
        self.families.iter().flat_map(|family| &family.time_limits).copied().collect()
    }

    fn family(&self, tool: &str) -> Result<&ToolBox> {
        let is_of = |family: &&ToolBox| family.tools().iter().any(|spec| spec.name == tool);
        self.families.iter().find(is_of).ok_or_else(|| failure::unknown_tool(&self.origin.provider, tool))
    }
}

fn origin(id: &str) -> Origin {
    Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Builtin }
}

impl Provider for BuiltinProvider {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        self.style
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.families.iter().flat_map(|family| family.tools()).cloned().collect()
    }

    fn quarantine_reason(&self, tool: &str) -> Option<String> {
        (self.family(tool).ok()?.unavailable_reason)()
    }

    fn preflight<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<Preflight, Refusal>> {
        Box::pin(async {
            let tool = &call.tool().spec.name;
            let looked = async { self.family(tool)?.preflight(tool, call.arguments()).await };
            looked.await.map_err(|fault| Refusal::from(fault.error))
        })
    }

    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, Result<RawOutput>> {
        Box::pin(async {
            let family = self.family(&permit.tool().spec.name)?;
            family.execute(cx, permit).await.map(RawOutput::Json)
        })
    }

    fn instructions(&self) -> Option<String> {
        let all: Vec<&str> =
            self.families.iter().filter_map(|family| family.instructions.as_deref()).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}
