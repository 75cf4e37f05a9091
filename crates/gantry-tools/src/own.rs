//! Gantry's own tools as providers: files, code, web, git, search, development.
//!
//! Each family of tools is a [`Part`]. The parts of a workspace share one id, so that no name that somebody gives to a
//! server of theirs (`git`, `web`, `search`) is taken; an entry of the tool catalogue is a single part under its own.

use crate::workspace::NAMESPACE;
use gantry_core::names::Style;
use gantry_core::policy::OwnVerdict;
use gantry_core::raw::misleads;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall, ToolError, ToolKind};
use gantry_provider::CallContext;
use gantry_provider::{BoxFuture, Provider, RawOutput, no_preflight};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// Characters of a text that [`shown`] shows.
const SHOWN_CHARS: usize = 200;

/// Tools of Gantry's own that belong together. They never change, and all of them answer in JSON.
///
/// Only calls of its own tools reach a part. What holds for the futures of a [`Provider`] holds for these.
pub trait Part: Send + Sync + Debug {
    /// Its tools.
    fn tools(&self) -> &[ToolSpec];

    /// Why none of them can be called, if so.
    fn objection(&self) -> Option<String> {
        None
    }

    /// As for a [`Provider`].
    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(std::future::ready(Err(no_preflight(call))))
    }

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

/// A provider of one or more parts. Each tool is of one of them.
#[derive(Debug)]
pub struct Own {
    origin: Origin,
    style: Style,
    parts: Vec<Box<dyn Part>>,
}

impl Own {
    /// The tools of a workspace.
    #[must_use]
    pub fn workspace(parts: Vec<Box<dyn Part>>) -> Self {
        Self { origin: origin(NAMESPACE), style: Style::Bare, parts }
    }

    /// The tools of an entry of the tool catalogue, under the entry's id.
    #[must_use]
    pub fn entry(id: &str, part: Box<dyn Part>) -> Self {
        Self { origin: origin(id), style: Style::Prefixed, parts: vec![part] }
    }

    /// The one that a tool is of.
    pub(super) fn part(&self, tool: &str) -> Result<&dyn Part, ToolError> {
        let mut parts = self.parts.iter().map(|part| &**part);
        parts.find(|part| part.tools().iter().any(|spec| spec.name == tool)).ok_or_else(|| {
            let message = format!("{} has no tool {tool}", self.origin.provider);
            ToolError::new(ErrorCode::ToolNotFound, message)
        })
    }
}

fn origin(id: &str) -> Origin {
    Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Builtin }
}

/// The arguments of a call, which its schema has let pass.
pub(super) fn arguments<T: DeserializeOwned>(arguments: &str) -> Result<T, ToolError> {
    let read = serde_json::from_str(arguments).or_else(|error| {
        // To a schema `5.0` is a whole number, to Rust it is none.
        let Ok(mut value) = serde_json::from_str(arguments) else { return Err(error) };
        make_whole(&mut value);
        serde_json::from_value(value)
    });
    read.map_err(|error| {
        ToolError::new(ErrorCode::InvalidArguments, format!("the arguments do not fit the tool: {error}"))
    })
}

/// Writes the numbers among the arguments that are whole as such.
fn make_whole(arguments: &mut Value) {
    for value in arguments.as_object_mut().into_iter().flat_map(|object| object.values_mut()) {
        // Whatever a tool counts is far below this, where no two whole numbers are one.
        const MOST: f64 = 9_007_199_254_740_991.0;
        let whole = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MOST);
        if let Some(number) = whole {
            *value = (number as i64).into();
        }
    }
}

/// What a part says about a tool that is none of its own. [`Own`] asks it for no such tool.
pub(super) fn missing(tool: &str) -> ToolError {
    ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool {tool} here"))
}

/// One line of a text that somebody gave, as questions and messages show it: cut to a sensible length, and without
/// anything that misleads. A backslash is doubled, so that nobody fakes what is escaped.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        match c {
            _ if n == SHOWN_CHARS => {
                out.push('…');
                break;
            }
            '\\' => out.push_str("\\\\"),
            _ if misleads(c) => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}

impl Provider for Own {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        self.style
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.parts.iter().flat_map(|part| part.tools()).cloned().collect()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.part(name).is_ok()
    }

    fn objection(&self, tool: &str) -> Option<String> {
        self.part(tool).ok()?.objection()
    }

    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        match self.part(&call.tool().spec.name) {
            Ok(part) => part.inspect(call),
            Err(error) => Box::pin(std::future::ready(Err(error.into()))),
        }
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(async {
            let part = self.part(&permit.tool().spec.name).map_err(Fault::without_effect)?;
            part.execute(cx, permit).await.map(RawOutput::Json)
        })
    }

    fn instructions(&self) -> Option<String> {
        let said: Vec<&str> = self.parts.iter().filter_map(|part| part.instructions()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        #[derive(Debug, serde::Deserialize)]
        struct Call {
            lines: u32,
            seconds: f64,
        }
        let call: Call = arguments(r#"{"lines":5.0,"seconds":0.5}"#).unwrap();
        assert_eq!((call.lines, call.seconds), (5, 0.5));
        for odd in [r#"{"lines":5.5,"seconds":1}"#, r#"{"lines":-5.0,"seconds":1}"#, r#"{"lines":1e300}"#] {
            let error = arguments::<Call>(odd).unwrap_err();
            assert!(error.message.starts_with("the arguments do not fit the tool: "), "{error:?}");
        }
    }

    #[test]
    fn what_misleads_is_escaped_and_no_escape_can_be_faked() {
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(shown("a\n\\u{202e}\u{a0}é"), "a\\n\\\\u{202e}\\u{a0}é");
        assert_eq!(shown(&"ä".repeat(201)), format!("{}…", "ä".repeat(200)));
    }
}
