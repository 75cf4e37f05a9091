//! Inline tools: each is one request that the configuration spells out.

use super::client::{self, RestClient};
use super::error;
use super::options::{Inline, StreamMode, Streaming};
use super::response::{self, RestCall, reading_end};
use super::template::{Arguments, BodyTemplate, Media, Text, UrlTemplate};
use super::{NAMESPACE, tool_spec, warn_about_cleartext};
use gantry_core::digest::Digest;
use gantry_core::tool::{ApprovalRule, Origin, Target, ToolSpec};
use gantry_core::{CallFailure, Effect, ErrorCode, Permit, ToolError, ToolKind};
use gantry_egress::{BodyKind, MediaType, OutboundRequest};
use gantry_provider::redact::{PERHAPS_SECRET_BYTES, Redactor};
use gantry_provider::{BoxFuture, CallContext, CallResult, Provider};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Parameters that an error names.
const NAMED: usize = 10;

#[derive(Debug)]
pub(super) struct InlineTools {
    origin: Origin,
    tools: Vec<(ToolSpec, Tool)>,
    client: Arc<RestClient>,
}

/// One of them, compiled. Its templates may hold secrets, so `Debug` shows nothing of them.
struct Tool {
    method: Method,
    url: UrlTemplate,
    headers: Vec<(HeaderName, Text)>,
    body: Option<BodyTemplate>,
    streaming: Option<Streaming>,
    secrets: Redactor,
    warned: AtomicBool,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("method", &self.method).finish_non_exhaustive()
    }
}

impl InlineTools {
    /// Compiles these tools.
    pub(super) fn new(tools: &[Inline], client: &Arc<RestClient>) -> Result<Self, String> {
        let origin = Origin { provider: NAMESPACE.into(), namespace: NAMESPACE.into(), kind: ToolKind::Rest };
        let compile = |tool: &Inline| {
            let compiled = Tool::compile(tool)?;
            Ok((spec(tool, &compiled.secrets)?, compiled))
        };
        let named = |tool: &Inline| {
            compile(tool).map_err(|error: String| format!("restTools.{}: {error}", tool.name))
        };
        let tools = tools.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Self { origin, tools, client: Arc::clone(client) })
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|(spec, _)| spec.name == name).map(|(_, tool)| tool)
    }
}

impl Tool {
    fn compile(tool: &Inline) -> Result<Self, String> {
        let url = UrlTemplate::parse(&tool.url, &tool.query)?;
        let headers = tool.headers.iter().map(|(name, value)| header(name, value));
        let headers = headers.collect::<Result<Vec<_>, _>>()?;
        let media = media(&headers)?;
        let body = tool.body_template.as_ref().map(|body| BodyTemplate::parse(body, media)).transpose()?;
        let texts = body.as_ref().map(BodyTemplate::texts).transpose()?.unwrap_or_default();
        let of_headers = headers.iter().flat_map(|(_, text)| &text.paths);
        let of_body = texts.iter().flat_map(|(_, text)| &text.paths);
        check_parameters(url.paths().chain(of_headers).chain(of_body), &tool.parameters_schema)?;
        Ok(Self {
            method: client::verb(tool.method)?,
            secrets: secrets(&url, &headers, &texts),
            url,
            headers,
            streaming: tool.streaming.clone(),
            warned: AtomicBool::new(false),
            body,
        })
    }

    fn request(&self, arguments: &Arguments) -> Result<OutboundRequest, String> {
        let url = self.url.fill(arguments)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(self.accepts()));
        for (name, text) in self.headers.iter().filter(|(_, text)| !text.is_void(arguments)) {
            headers.insert(name, client::header_value(name.as_str(), &text.fill(arguments))?);
        }
        let filled = self.body.as_ref().map(|body| body.fill(arguments)).transpose()?.flatten();
        let (kind, body) = filled.unwrap_or_default();
        if let Some(kind) = kind {
            headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        Ok(OutboundRequest { method: self.method.clone(), url, headers, body: body.into() })
    }

    fn accepts(&self) -> &'static str {
        match self.streaming.as_ref().map(|streaming| &streaming.mode) {
            Some(StreamMode::Ndjson) => "application/x-ndjson, application/json;q=0.9, */*;q=0.5",
            Some(StreamMode::Sse) => "text/event-stream, application/json;q=0.9, */*;q=0.5",
            Some(StreamMode::JsonStream) => "*/*",
            None => client::ACCEPT,
        }
    }
}

/// Checks that these placeholders name parameters of the tool.
fn check_parameters<'a>(mut paths: impl Iterator<Item = &'a String>, schema: &Value) -> Result<(), String> {
    let open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    let Some(known) = schema.get("properties").and_then(Value::as_object).filter(|_| !open) else {
        return Ok(());
    };
    let is_unknown = |path: &&String| !known.contains_key(path.split('.').next().unwrap_or_default());
    let Some(path) = paths.find(is_unknown) else { return Ok(()) };
    let names: Vec<&str> = known.keys().take(NAMED).map(String::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(format!("${{parameters.{path}}} is no parameter of the tool; there are {names}"))
}

/// A header that may be set.
fn header(name: &str, value: &str) -> Result<(HeaderName, Text), String> {
    let parsed = client::header_name(name)?;
    // The URL says where a request goes, and what may be sent there was judged by that.
    if parsed == header::HOST {
        return Err(format!("the header {name} is not set by hand; leave it out"));
    }
    let text = Text::parse(value).map_err(|error| format!("the header {name}: {error}"))?;
    text.literals().try_for_each(|literal| client::header_value(name, literal).map(drop))?;
    Ok((parsed, text))
}

/// What the `Content-Type` header says about the body.
fn media(headers: &[(HeaderName, Text)]) -> Result<Media, String> {
    let said = headers.iter().find(|(name, _)| *name == header::CONTENT_TYPE);
    let Some(said) = said.and_then(|(_, text)| text.literal()) else {
        return Ok(if said.is_some() { Media::Other } else { Media::Unsaid });
    };
    let said = MediaType::parse(said);
    if said.essence().starts_with("multipart/") {
        let message = "a multipart body cannot be written as a template; describe the API by an OpenAPI document instead";
        return Err(message.to_owned());
    }
    Ok(match said.essence() {
        _ if said.kind() == BodyKind::Json => Media::Json,
        _ if said.kind() == BodyKind::Ndjson || said.is_xml() => Media::Unescaped,
        "application/x-www-form-urlencoded" => Media::Form,
        _ => Media::Other,
    })
}

fn secrets(url: &UrlTemplate, headers: &[(HeaderName, Text)], body: &[(&str, Text)]) -> Redactor {
    let mut secrets = Redactor::default();
    url.add_to(&mut secrets);
    for (name, value) in headers {
        value.literals().for_each(|literal| secrets.add_header(name.as_str(), literal));
    }
    for (name, text) in body {
        text.literal().into_iter().for_each(|literal| secrets.add_named(name, literal));
        let parts = text.literals().filter(|part| part.len() >= PERHAPS_SECRET_BYTES);
        parts.for_each(|part| secrets.add_named(name, part));
    }
    secrets
}

fn spec(tool: &Inline, secrets: &Redactor) -> Result<ToolSpec, String> {
    let mut schema = tool.parameters_schema.clone();
    if schema.is_null() {
        schema = json!({ "type": "object", "properties": {} });
    }
    let Value::Object(members) = &mut schema else {
        return Err("its schema is no JSON Schema object".to_owned());
    };
    members.entry("type").or_insert_with(|| "object".into());
    Ok(ToolSpec {
        name: tool.name.clone(),
        title: None,
        description: tool.description.clone(),
        input_schema: schema.into(),
        output_schema: None,
        annotations: tool_spec::annotations(tool.method, tool.effect.unwrap_or_else(|| tool.method.effect())),
        approval_rule: ApprovalRule::Never,
        raw: None,
        target: Some(target(tool, secrets)),
    })
}

/// The request as approvals are bound to it. The value of a header without placeholders is usually a credential and does
/// not count, so that a new one needs no new approval.
fn target(tool: &Inline, secrets: &Redactor) -> Target {
    let Inline { method, url, query, headers, body_template: body, .. } = tool;
    let headers: Vec<(&str, Option<&str>)> = headers
        .iter()
        .map(|(name, value)| (&**name, Some(&**value).filter(|it| it.contains("${"))))
        .collect();
    let decides = format!("{method} {url} {query:?} {headers:?} {body:?}");
    let address = url.split(['?', '#']).next().unwrap_or_default().replace("${parameters.", "{");
    let shown = format!("{method} {}", secrets.mask(address));
    Target { shown: shown.into(), digest: Digest::of(decides.as_bytes()) }
}

impl Provider for InlineTools {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn shares_namespace(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|(spec, _)| spec.clone()).collect()
    }

    fn execute<'a>(&'a self, cx: &'a CallContext, permit: &'a Permit) -> BoxFuture<'a, CallResult> {
        let name = permit.tool().spec.name.as_str();
        Box::pin(async move {
            let Some(tool) = self.tool(name) else {
                let message = format!("{NAMESPACE} has no tool {name}");
                return Err(CallFailure::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
            };
            let until = reading_end(cx.limit);
            let request = tool.request(&error::arguments(permit)?).map_err(error::invalid)?;
            if !tool.secrets.is_empty() {
                warn_about_cleartext(&tool.warned, &format!("restTools.{name}"), &request.url);
            }
            let call = RestCall {
                request: &request,
                reads: permit.tool().effect == Effect::Read,
                secrets: &tool.secrets,
                advice: Some(format!("set the header that it wants in restTools.{name}.headers")),
                schema: None,
                streaming: tool.streaming.as_ref(),
                until,
                client: &*cx.client,
            };
            response::read(self.client.send(request.clone(), false).await, &call).await
        })
    }
}
