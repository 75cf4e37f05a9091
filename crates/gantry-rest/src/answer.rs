//! An answer of a service, as the result of a tool.

use super::fault::{self, ErrorContext};
use super::options::{StreamMode, Streaming};
use super::stream::{self, Form, Limits};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::schema::SchemaText;
use gantry_core::tool::Tool;
use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_egress::{BodyKind as Kind, Followed, HttpResponse, MediaType, display_url};
use gantry_openapi::Method;
use gantry_provider::client::ClientChannel;
use gantry_provider::{Content, RawOutput};
use http::StatusCode;
use http::header::{self, HeaderMap};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Bytes of an answer.
const ANSWER_BYTES: usize = 16 << 20;

/// Bytes that are read of an error beyond those that are shown; no secret is longer.
const MARGIN_BYTES: usize = 8 * 1024;

/// How long a call without a time limit may read; the usual limit is a little longer.
const USUAL_CALL: Duration = Duration::from_secs(50);

/// How long the words about an error are waited for.
const ERROR_READ: Duration = Duration::from_secs(10);

/// What an answer is for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Purpose<'a> {
    /// What the tool has promised to give back.
    pub(super) schema: Option<&'a SchemaText>,
    /// How it is read if it comes in pieces.
    pub(super) streaming: Option<&'a Streaming>,
    /// When the call has to be over.
    pub(super) until: Option<Instant>,
}

impl<'a> Purpose<'a> {
    /// For a call of this tool.
    pub(super) fn of(tool: &'a Tool, streaming: Option<&'a Streaming>) -> Self {
        Self { schema: tool.spec.output_schema.as_ref(), streaming, until: None }
    }

    /// The same within this time from now on, or the usual time.
    pub(super) fn within(self, limit: Option<Duration>) -> Self {
        let limit = limit.map_or(USUAL_CALL, |limit| limit.saturating_sub(lead(limit)));
        Self { until: Instant::now().checked_add(limit), ..self }
    }
}

/// How long before the end of a call the reading ends, so that what came can still be given back.
fn lead(limit: Duration) -> Duration {
    Duration::from_secs(1).min(limit / 4)
}

/// Reads an answer.
pub(super) async fn read(
    reached: Followed,
    context: &ErrorContext<'_>,
    audience: &dyn ClientChannel,
    purpose: Purpose<'_>,
) -> Result<RawOutput, Fault> {
    if !reached.response.status().is_success() {
        return Err(failed(reached, context, purpose.until).await);
    }
    let response = reached.response;
    if context.method == Method::Head {
        return Ok(RawOutput::Json(head(&response)));
    }
    if let Some(packing) = unknown_packing(response.headers()) {
        let message = format!(
            "the answer is packed ({packing}) in a way that was not asked for and cannot be read; leave out Accept-Encoding, or \
             have it name gzip"
        );
        return Err(context.after_sending(ToolError::new(ErrorCode::ExecutionError, message)));
    }
    let media = MediaType::of(response.headers().get(header::CONTENT_TYPE));
    if let Some((form, limits)) = pieces(&media, purpose.streaming) {
        let until = Instant::now() + limits.timeout;
        let until = purpose.until.map_or(until, |end| end.min(until));
        return stream::read(response, &form, (limits.max_bytes, until), (context, audience)).await;
    }
    let status = response.status();
    let body = response.body(ANSWER_BYTES).await.map_err(|error| context.http(&error))?;
    if body.is_empty() {
        return Ok(empty(status, purpose.schema));
    }
    Ok(whole(&media, &body, &context.secrets.mask(display_url(reached.url.as_str()))))
}

/// How an answer is packed, if it still is: what can be unpacked does not say so any more. Services say other things
/// here, too, about what is not packed at all.
fn unknown_packing(headers: &HeaderMap) -> Option<&'static str> {
    let said = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    ["br", "zstd", "compress"].into_iter().find(|packing| said.trim().eq_ignore_ascii_case(packing))
}

/// An answer without a body. What the tool has promised is not there, so nothing is made up unless it may be empty.
fn empty(status: StatusCode, schema: Option<&SchemaText>) -> RawOutput {
    let Some(schema) = schema.map(SchemaText::value) else {
        return RawOutput::Json(json!({ "status": status.as_u16() }).to_string());
    };
    let needs = schema.get("required").and_then(Value::as_array).is_some_and(|needed| !needed.is_empty());
    if is_of_object(&schema) && !needs && schema.get("anyOf").is_none() {
        return RawOutput::Json("{}".to_owned());
    }
    RawOutput::Text(format!("The request succeeded (HTTP {status}). The answer has no body."))
}

fn is_of_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// How an answer is read that comes in pieces, if it does.
fn pieces(media: &MediaType, streaming: Option<&Streaming>) -> Option<(Form, Limits)> {
    let kind = media.kind();
    if let Some(streaming) = streaming {
        let limits = Limits { timeout: streaming.timeout, max_bytes: streaming.max_bytes };
        return match &streaming.mode {
            // Some services answer at once what would come in pieces otherwise.
            StreamMode::Sse if kind == Kind::Json => None,
            StreamMode::Sse => Some((Form::Events, limits)),
            StreamMode::Ndjson => Some((Form::Lines, limits)),
            mode @ StreamMode::Json { .. } => Some((Form::Answer(mode.clone()), limits)),
        };
    }
    let form = match kind {
        Kind::Ndjson => Form::Lines,
        Kind::Events => Form::Events,
        Kind::Json | Kind::Text | Kind::Image | Kind::Audio | Kind::Binary | Kind::Unknown => return None,
    };
    Some((form, Limits::default()))
}

/// An answer that was read whole.
fn whole(media: &MediaType, body: &[u8], address: &str) -> RawOutput {
    let block = |kind: &str| {
        let block = json!({ "type": kind, "mimeType": media.essence(), "data": STANDARD.encode(body) });
        RawOutput::Content(Content::new(&json!({ "content": [block] }).to_string()))
    };
    match media.kind() {
        Kind::Image => block("image"),
        Kind::Audio => block("audio"),
        Kind::Binary => resource(media, body, address),
        Kind::Unknown if !is_text(body) => resource(media, body, address),
        Kind::Json | Kind::Unknown => {
            let text = media.decode(body).into_owned();
            if is_json(&text) { RawOutput::Json(text) } else { RawOutput::Text(text) }
        }
        Kind::Text | Kind::Ndjson | Kind::Events => RawOutput::Text(media.decode(body).into_owned()),
    }
}

fn resource(media: &MediaType, body: &[u8], address: &str) -> RawOutput {
    let kind = if media.essence().is_empty() { "application/octet-stream" } else { media.essence() };
    let resource = json!({ "uri": address, "mimeType": kind, "blob": STANDARD.encode(body) });
    let result = json!({ "content": [{ "type": "resource", "resource": resource }] });
    RawOutput::Content(Content::new(&result.to_string()))
}

fn is_text(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok() && !body.contains(&0)
}

/// Whether a text is JSON. Keys that it has twice are its own matter.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// What an answer without a body says.
fn head(response: &HttpResponse) -> String {
    json!({ "status": response.status().as_u16(), "headers": all(response.headers()) }).to_string()
}

fn all(headers: &HeaderMap) -> Value {
    let mut shown = Map::new();
    // Cookies are of a session that does not go on, and may be secrets.
    for name in headers.keys().filter(|name| !matches!(name.as_str(), "set-cookie" | "set-cookie2")) {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        shown.insert(name.as_str().to_owned(), values.collect::<Vec<_>>().join(", ").into());
    }
    Value::Object(shown)
}

/// An answer that is an error, with as much of its body as is shown.
async fn failed(reached: Followed, context: &ErrorContext<'_>, end: Option<Instant>) -> Fault {
    let Followed { mut response, redirected, .. } = reached;
    let (status, headers) = (response.status(), response.headers().clone());
    let media = MediaType::of(headers.get(header::CONTENT_TYPE));
    let mut body: Vec<u8> = Vec::new();
    let until = Instant::now() + ERROR_READ;
    let until = end.map_or(until, |end| end.min(until));
    // The status is known, also if the body cannot be read.
    while body.len() <= fault::BODY_BYTES + MARGIN_BYTES
        && let Ok(Ok(Some(chunk))) = timeout_at(until, response.chunk()).await
    {
        body.extend_from_slice(&chunk);
    }
    let text = match media.kind() {
        Kind::Image | Kind::Audio | Kind::Binary => String::new(),
        Kind::Unknown if !is_text(&body) => String::new(),
        Kind::Json | Kind::Ndjson | Kind::Events | Kind::Text | Kind::Unknown => {
            media.decode(&body).into_owned()
        }
    };
    let unsure = if body.len() > fault::BODY_BYTES + MARGIN_BYTES { MARGIN_BYTES } else { 0 };
    context.refused((status, redirected), &headers, &fault::Body::new(text, unsure, context.secrets))
}
