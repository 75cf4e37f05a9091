//! Tools that the configuration spells out: each is one request.

use super::answer::{self, Purpose};
use super::client::{Request, RestClient};
use super::fault::{self, ErrorContext};
use super::options::{Inline, StreamMode, Streaming};
use super::template::{Arguments, BodyTemplate, Media, Text, UrlTemplate};
use super::{NAMESPACE, show};
use gantry_core::digest::Digest;
use gantry_core::names::Style;
use gantry_core::tool::{Origin, OwnRule, Target, ToolSpec};
use gantry_core::{Effect, ErrorCode, Fault, Permit, ToolError, ToolKind};
use gantry_egress::address_guard::is_loopback;
use gantry_egress::{BodyKind, MediaType, Url};
use gantry_openapi::Method;
use gantry_provider::CallContext;
use gantry_provider::client::ClientChannel;
use gantry_provider::redact::{PERHAPS_SECRET_BYTES, Redactor};
use gantry_provider::{BoxFuture, Provider, RawOutput};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Parameters that an error names.
const NAMED: usize = 10;

/// The shortest part of a path that is taken for a key.
const KEY_BYTES: usize = 20;

/// The tools that the configuration spells out.
#[derive(Debug)]
pub(super) struct InlineTools {
    origin: Origin,
    specs: Vec<ToolSpec>,
    tools: HashMap<String, Tool>,
    client: Arc<RestClient>,
}

/// One of them, compiled.
#[derive(Debug)]
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

impl InlineTools {
    /// Compiles these tools.
    ///
    /// # Errors
    /// Names the first one that cannot be used, and says why.
    pub(super) fn new(tools: Vec<Inline>, client: &Arc<RestClient>) -> Result<Self, String> {
        let origin = Origin { provider: NAMESPACE.into(), namespace: NAMESPACE.into(), kind: ToolKind::Rest };
        let mut specs = Vec::with_capacity(tools.len());
        let mut compiled = HashMap::with_capacity(tools.len());
        for tool in tools {
            let of_tool = |error: String| format!("restTools.{}: {error}", tool.name);
            let ready = Tool::compile(&tool).map_err(of_tool)?;
            specs.push(spec(&tool, &ready.secrets).map_err(of_tool)?);
            compiled.insert(tool.name.clone(), ready);
        }
        Ok(Self { origin, specs, tools: compiled, client: Arc::clone(client) })
    }

    /// Runs the call that the permit is for. It is over when the limit is reached.
    pub(super) async fn run(
        &self,
        audience: &dyn ClientChannel,
        permit: &Permit,
        limit: Option<Duration>,
    ) -> Result<RawOutput, Fault> {
        let name = permit.tool().spec.name.as_str();
        let Some(tool) = self.tools.get(name) else {
            let message = format!("{NAMESPACE} has no tool {name}");
            return Err(Fault::without_effect(ToolError::new(ErrorCode::ToolNotFound, message)));
        };
        let arguments: Arguments = serde_json::from_str(permit.arguments())
            .map_err(|error| fault::invalid(format!("the arguments are no object: {error}")))?;
        let purpose = Purpose::of(permit.tool(), tool.streaming.as_ref()).within(limit);
        let request = tool.request(&arguments).map_err(fault::invalid)?;
        let reads = permit.tool().effect == Effect::Read;
        let advice = "set the header that it wants in restTools.".to_owned() + name + ".headers";
        let context = ErrorContext {
            method: tool.method,
            url: &request.url,
            reads,
            secrets: &tool.secrets,
            advice: Some(advice),
        };
        tool.warn(name, &request.url);
        let reached = self.client.send(&request).await.map_err(|missed| context.unanswered(&missed))?;
        answer::read(reached, &context, audience, purpose).await
    }
}

impl Tool {
    fn compile(tool: &Inline) -> Result<Self, String> {
        let url = UrlTemplate::parse(&tool.url, &tool.query)?;
        let mut headers = Vec::with_capacity(tool.headers.len());
        for (name, value) in &tool.headers {
            headers.push(header(name, value)?);
        }
        let media = media(&headers)?;
        let body = tool.body.as_ref().map(|body| BodyTemplate::parse(body, media)).transpose()?;
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
        compiled.check_parameters(&tool.schema)?;
        Ok(compiled)
    }

    /// Every placeholder has to stand for something that the tool takes.
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
            let value = text.fill(arguments);
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_bad| format!("the header {name} cannot have line breaks or control characters"))?;
            headers.insert(name, value);
        }
        let made = self.body.as_ref().map(|body| body.fill(arguments, self.media)).transpose()?.flatten();
        let mut body = Vec::new();
        if let Some((said, bytes)) = made {
            if let Some(said) = said {
                headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(said));
            }
            body = bytes;
        }
        Ok(Request { method: self.method, url, headers, body, public_only: false })
    }

    /// Says once that others can read what the tool has to show, if they can.
    fn warn(&self, name: &str, url: &Url) {
        let in_clear = url.scheme() == "http" && !is_loopback(url);
        if in_clear && !self.secrets.is_empty() && !self.warned.swap(true, Ordering::AcqRel) {
            let host = url.host_str().unwrap_or_default();
            tracing::warn!("restTools.{name} sends credentials to {host} without encryption");
        }
    }

    fn accepts(&self) -> &'static str {
        match self.streaming.as_ref().map(|streaming| &streaming.mode) {
            Some(StreamMode::Ndjson) => "application/x-ndjson, application/json;q=0.9, */*;q=0.5",
            Some(StreamMode::Sse) => "text/event-stream, application/json;q=0.9, */*;q=0.5",
            Some(StreamMode::Json { .. }) => "*/*",
            None => show::ACCEPT,
        }
    }
}

/// A header that may be set.
fn header(name: &str, value: &str) -> Result<(HeaderName, Text), String> {
    let parsed = HeaderName::try_from(name).map_err(|_bad| format!("{name:?} is no name of a header"))?;
    // Whom a request is for is said by its address, and what may be sent there was judged by that.
    if show::is_of_connection(&parsed) || parsed == header::HOST {
        return Err(format!("the header {name} is not set by hand; leave it out"));
    }
    let text = Text::parse(value).map_err(|error| format!("the header {name}: {error}"))?;
    if text.literals().any(|literal| literal.contains(|c: char| c.is_control() && c != '\t')) {
        return Err(format!("the header {name} has line breaks or control characters"));
    }
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
    url.fixed_segments().filter(|part| is_key(part)).for_each(|part| secrets.add(part));
    for (name, value) in url.fixed() {
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
    let mut schema = tool.schema.clone();
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
        annotations: show::annotations(tool.method, tool.effect.unwrap_or_else(|| tool.method.effect())),
        own_rule: OwnRule::Never,
        raw: None,
        target: Some(target(tool, secrets)),
    })
}

/// Where its calls go, and with what. A header that has no placeholder is a credential more often than not; another one
/// of the same name changes nothing.
fn target(tool: &Inline, secrets: &Redactor) -> Target {
    let Inline { method, url, query, headers, body, .. } = tool;
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

    fn style(&self) -> Style {
        Style::Prefixed
    }

    fn shares_namespace(&self) -> bool {
        true
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        Box::pin(self.run(&*cx.client, permit, Some(cx.limit)))
    }
}
