//! Tools for misbehaviour that no real tool shows: slow ones, failing ones, flooding ones, ones that count.

use gantry_core::error::{CallFailure, ErrorCode, ToolError};
use gantry_core::names::Style;
use gantry_core::tool::{Annotations, ApprovalRule, Origin, ToolKind, ToolSpec};
use gantry_core::{CallRequest, Permit};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use gantry_runtime::PipelineContext;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::time::Duration;

/// The tools: a name, whether it only reads, and its arguments.
const TOOLS: [(&str, bool, &str); 12] = [
    ("noop", true, ""),
    ("noop_write", false, ""),
    ("echo", true, "text:string"),
    ("sleep", true, "ms:integer"),
    ("slow-write", false, "ms:integer file:string"),
    ("flood", true, "bytes:integer"),
    ("fail", true, "text:string"),
    ("panic", true, ""),
    ("count", false, "file:string text:string"),
    ("tick", true, "file:string ms:integer"),
    ("nested", true, "tool:string arguments:"),
    ("login", true, "user:string password:string"),
];

/// What a provider does when one of its tools is called.
pub(crate) type Run =
    for<'a> fn(&'a CallContext, &'a Permit) -> BoxFuture<'a, Result<RawOutput, CallFailure>>;

/// A provider with a fixed list of tools.
#[derive(Debug)]
pub struct TestProvider {
    pub(crate) origin: Origin,
    pub(crate) style: Style,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) run: Run,
}

impl Provider for TestProvider {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        self.style
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        (self.run)(cx, permit)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Arguments {
    text: String,
    ms: u64,
    bytes: usize,
    file: String,
    tool: String,
    arguments: Option<Box<serde_json::value::RawValue>>,
}

pub fn test_tools() -> TestProvider {
    let mut tools: Vec<ToolSpec> =
        TOOLS.iter().map(|(name, read_only, arguments)| tool(name, *read_only, arguments)).collect();
    let mut bad = tool("bad-schema", true, "");
    bad.input_schema = json!({ "type": "object", "properties": { "a": { "type": "strin" } } }).into();
    tools.push(bad);
    TestProvider {
        origin: Origin { provider: "test".into(), namespace: "test".into(), kind: ToolKind::Mcp },
        style: Style::Prefixed,
        tools,
        run: |cx, permit| Box::pin(run(cx, permit)),
    }
}

async fn run(cx: &CallContext, permit: &Permit) -> Result<RawOutput, CallFailure> {
    // The no-ops are what the benches measure, so they read nothing.
    if matches!(&*permit.tool().key.tool, "noop" | "noop_write") {
        return Ok(RawOutput::Text("ok".into()));
    }
    let arguments: Arguments =
        serde_json::from_str(permit.arguments()).map_err(|error| fault(&error.to_string()))?;
    match &*permit.tool().key.tool {
        "echo" | "login" => Ok(RawOutput::Text(arguments.text)),
        "sleep" => {
            tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            Ok(RawOutput::Text("slept".into()))
        }
        "slow-write" => {
            append(&arguments.file, "begun");
            tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            append(&arguments.file, "ended");
            Ok(RawOutput::Text("written".into()))
        }
        "flood" => Ok(RawOutput::Text("0123456789abcde\n".repeat(arguments.bytes.div_ceil(16)))),
        "fail" => Err(fault(&arguments.text)),
        "panic" => panic!("a tool that panics"),
        "count" => {
            append(&arguments.file, &arguments.text);
            Ok(RawOutput::Json(json!({ "counted": arguments.text }).to_string()))
        }
        "tick" => {
            tokio::time::sleep(Duration::from_millis(arguments.ms)).await;
            append(&arguments.file, "tick");
            let lines = std::fs::read_to_string(&arguments.file).unwrap_or_default().lines().count();
            Ok(RawOutput::Text(lines.to_string()))
        }
        "nested" => nested(cx, arguments).await,
        other => Ok(RawOutput::Text(other.to_owned())),
    }
}

/// Calls another tool from inside a tool, as agents do.
async fn nested(cx: &CallContext, arguments: Arguments) -> Result<RawOutput, CallFailure> {
    let cx = PipelineContext::from_provider(cx).ok_or_else(|| fault("no engine"))?;
    let runtime = cx.session.runtime().ok_or_else(|| fault("no runtime"))?;
    let request = CallRequest {
        tool: arguments.tool,
        arguments: arguments.arguments.map(|raw| raw.get().into()),
        ..CallRequest::default()
    };
    let reply = runtime.call(cx.child(), request).await;
    Ok(RawOutput::Text(reply.model_text()))
}

fn append(file: &str, line: &str) {
    let mut out =
        std::fs::OpenOptions::new().append(true).create(true).open(file).expect("the file of the test");
    // One write per line, so that lines of calls at once cannot mix.
    out.write_all(format!("{line}\n").as_bytes()).expect("the line of the test");
}

pub(crate) fn fault(message: &str) -> CallFailure {
    CallFailure::without_effect(ToolError::new(ErrorCode::ExecutionError, message))
}

pub(crate) fn tool(name: &str, read_only: bool, arguments: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: None,
        description: format!("The test tool {name}"),
        input_schema: json!({ "type": "object", "properties": properties(arguments) }).into(),
        output_schema: None,
        annotations: Annotations { read_only_hint: Some(read_only), ..Annotations::default() },
        approval_rule: ApprovalRule::Never,
        raw: None,
        target: None,
    }
}

/// The properties of an input schema, each written as `name:type`; without a type any value will do.
pub(crate) fn properties(arguments: &str) -> Map<String, Value> {
    let property = |pair: &str| {
        let (name, kind) = pair.split_once(':').expect("name:type");
        (name.to_owned(), if kind.is_empty() { json!({}) } else { json!({ "type": kind }) })
    };
    arguments.split_whitespace().map(property).collect()
}
