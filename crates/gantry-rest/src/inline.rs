//! Inline tools: each is one request that the configuration spells out.

use super::client::{self, Request, RestClient};
use super::error::{self, ErrorContext};
use super::options::{Inline, StreamMode, Streaming};
use super::response::{self, ReadOptions};
use super::template::{Arguments, BodyTemplate, Media, Text, UrlTemplate};
use super::{NAMESPACE, tool_spec, warn_about_cleartext};
use gantry_core::digest::Digest;
use gantry_core::tool::{ApprovalRule, Origin, Target, ToolSpec};
use gantry_core::{Effect, ErrorCode, Fault, Permit, ToolError, ToolKind};
use gantry_egress::{BodyKind, MediaType, Url};
use gantry_openapi::Method;
use gantry_provider::redact::{PERHAPS_SECRET_BYTES, Redactor};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Parameters that an error names.
const NAMED: usize = 10;

/// The shortest part of a path that can be a key.
const KEY_BYTES: usize = 20;

/// The provider of the inline tools.
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
    media: Media,
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
    ///
    /// # Errors
    /// Names the first one that cannot be used, and says why.
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

    async fn run(&self, cx: &CallContext, permit: &Permit) -> Result<RawOutput, Fault> {
        let name = permit.tool().spec.name.as_str();
        let Some(tool) = self.tool(name) else {
            let message = format!("{NAMESPACE} has no tool {name}");
            return Err(Fault::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
        };
        let options = ReadOptions::new(permit.tool(), tool.streaming.as_ref(), cx.limit);
        let request = tool.request(&error::arguments(permit)?).map_err(error::invalid)?;
        let context = ErrorContext {
            method: tool.method,
            url: &request.url,
            reads: permit.tool().effect == Effect::Read,
            secrets: &tool.secrets,
            advice: Some(format!("set the header that it wants in restTools.{name}.headers")),
        };
        if !tool.secrets.is_empty() {
            warn_about_cleartext(&tool.warned, &format!("restTools.{name}"), &request.url);
        }
        let reached = self.client.send(&request).await.map_err(|error| context.unanswered(&error))?;
        response::read(reached, &context, &*cx.client, options).await
    }
}

impl Tool {
    fn compile(tool: &Inline) -> Result<Self, String> {
        let url = UrlTemplate::parse(&tool.url, &tool.query)?;
        let headers = tool.headers.iter().map(|(name, value)| header(name, value));
        let headers = headers.collect::<Result<Vec<_>, _>>()?;
        let media = media(&headers)?;
        let body = tool.body_template.as_ref().map(|body| BodyTemplate::parse(body, media)).transpose()?;
        let compiled = Self {
            method: tool.method,
            secrets: secrets(&url, &headers, body.as_ref()),
            url,
            headers,
            body,
            media,
            streaming: tool.streaming.clone(),
            warned: AtomicBool::new(false),
        };
        compiled.check_parameters(&tool.parameters_schema)?;
        Ok(compiled)
    }

    /// Checks that every placeholder names a parameter of the tool.
    fn check_parameters(&self, schema: &Value) -> Result<(), String> {
        let open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let Some(known) = schema.get("properties").and_then(Value::as_object).filter(|_| !open) else {
            return Ok(());
        };
        let headers = self.headers.iter().flat_map(|(_, value)| value.paths());
        let body = self.body.iter().flat_map(BodyTemplate::paths);
        let unknown =
            self.url.paths().chain(headers).chain(body).find(|path| !known.contains_key(path.root()));
        let Some(path) = unknown else { return Ok(()) };
        let names: Vec<&str> = known.keys().take(NAMED).map(String::as_str).collect();
        let near = names.iter().find(|name| name.eq_ignore_ascii_case(path.root()));
        let hint = match (near, names.as_slice()) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, []) => "it has no parameters".to_owned(),
            (None, names) => format!("there are {}", names.join(", ")),
        };
        Err(format!("${{parameters.{path}}} is no parameter of the tool; {hint}"))
    }

    fn request(&self, arguments: &Arguments) -> Result<Request, String> {
        let url = self.url.fill(arguments)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(self.accepts()));
        for (name, text) in self.headers.iter().filter(|(_, text)| !text.is_void(arguments)) {
            headers.insert(name, client::header_value(name.as_str(), &text.fill(arguments))?);
        }
        let filled = self.body.as_ref().map(|body| body.fill(arguments, self.media)).transpose()?.flatten();
        let (kind, body) = filled.unwrap_or_default();
        if let Some(kind) = kind {
            headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        Ok(Request { method: self.method, url, headers, body, public_only: false })
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
    Ok(match said.kind() {
        BodyKind::Json => Media::Json,
        BodyKind::Ndjson => Media::Unescaped,
        BodyKind::Text if said.is_xml() => Media::Unescaped,
        BodyKind::Text if said.essence() == "application/x-www-form-urlencoded" => Media::Form,
        BodyKind::Text | BodyKind::Events | BodyKind::Unknown => Media::Other,
        BodyKind::Image | BodyKind::Audio | BodyKind::Binary => Media::Other,
    })
}

fn secrets(url: &UrlTemplate, headers: &[(HeaderName, Text)], body: Option<&BodyTemplate>) -> Redactor {
    let mut secrets = Redactor::default();
    if let Ok(origin) = Url::parse(url.origin()) {
        secrets.add_user(&origin);
    }
    url.literal_segments().filter(|part| is_key(part)).for_each(|part| secrets.add(part));
    for (name, value) in url.literal_pairs() {
        secrets.add_named(&name, &value);
    }
    for (name, value) in headers {
        value.literals().for_each(|literal| secrets.add_header(name.as_str(), literal));
    }
    if let Some(body) = body {
        body.each_text(&mut |name, text| {
            text.literal().into_iter().for_each(|literal| secrets.add_named(name, literal));
            let parts = text.literals().filter(|part| part.len() >= PERHAPS_SECRET_BYTES);
            parts.for_each(|part| secrets.add_named(name, part));
        });
    }
    secrets
}

/// Whether a part of a path looks like a key: some services have them there.
fn is_key(part: &str) -> bool {
    let has = |test: fn(&char) -> bool| part.chars().any(|c| test(&c));
    part.len() >= KEY_BYTES && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
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

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.run(cx, permit))
    }
}
