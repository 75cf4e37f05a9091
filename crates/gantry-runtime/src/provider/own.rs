//! Gantry's own tools on a workspace as one provider: files, code, web, git, search, development.
//!
//! They share an id, so that no name that somebody gives to a server of theirs (`git`, `web`, `search`) is taken.

use super::workspace::NAMESPACE;
use super::{BoxFuture, Provider, RawOutput};
use crate::context::CallCx;
use gantry_core::names::Style;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall, ToolError, ToolKind};
use std::sync::Arc;

/// Several providers under one id. Each tool is of one of them.
#[derive(Debug)]
pub struct Own {
    origin: Origin,
    parts: Vec<Arc<dyn Provider>>,
}

impl Own {
    /// One provider of these.
    #[must_use]
    pub fn new(parts: Vec<Arc<dyn Provider>>) -> Self {
        Self { origin: origin(), parts }
    }

    fn part(&self, tool: &str) -> Result<&dyn Provider, ToolError> {
        let part = self.parts.iter().find(|part| part.has_tool(tool));
        part.map(|part| &**part)
            .ok_or_else(|| ToolError::new(ErrorCode::ToolNotFound, format!("{NAMESPACE} has no tool {tool}")))
    }
}

/// Where Gantry's own tools come from.
pub(crate) fn origin() -> Origin {
    Origin { provider: NAMESPACE.into(), namespace: NAMESPACE.into(), kind: ToolKind::Builtin }
}

impl Provider for Own {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        Style::Bare
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.parts.iter().flat_map(|part| part.tools()).collect()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.has_tool(name))
    }

    fn objection(&self, tool: &str) -> Option<String> {
        self.part(tool).ok()?.objection(tool)
    }

    fn inspect<'a>(
        &'a self,
        cx: &'a CallCx,
        call: &'a ResolvedCall,
    ) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        match self.part(&call.tool().spec.name) {
            Ok(part) => part.inspect(cx, call),
            Err(error) => Box::pin(std::future::ready(Err(error.into()))),
        }
    }

    fn execute<'a>(&'a self, cx: &'a CallCx, permit: &'a Permit) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        match self.part(&permit.tool().spec.name) {
            Ok(part) => part.execute(cx, permit),
            Err(error) => Box::pin(std::future::ready(Err(Fault::without_effect(error)))),
        }
    }

    fn warm_up(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            for part in &self.parts {
                part.warm_up().await?;
            }
            Ok(())
        })
    }

    fn instructions(&self) -> Option<String> {
        let said: Vec<String> = self.parts.iter().filter_map(|part| part.instructions()).collect();
        (!said.is_empty()).then(|| said.join("\n"))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for part in &self.parts {
                part.close().await;
            }
        })
    }
}
