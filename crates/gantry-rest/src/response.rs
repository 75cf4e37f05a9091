//! Reads the answer of a service into the output of a tool.

use super::error::{self, joined};
use super::options::{StreamMode, Streaming};
use super::stream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::schema::SchemaText;
use gantry_core::{ErrorCode, ToolError};
use gantry_egress::{
    BodyKind as Kind, FollowError, Followed, HttpResponse, MediaType, OutboundRequest, display_url,
};
use gantry_provider::client::ClientChannel;
use gantry_provider::redact::Redactor;
use gantry_provider::{CallResult, Content, RawOutput};
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const ANSWER_BYTES: usize = 16 << 20;

/// Bytes of an error that are read beyond those that are shown; no secret is longer.
const MARGIN_BYTES: usize = 8 * 1024;

/// How long reading the body of an error may take.
const ERROR_READ: Duration = Duration::from_secs(10);

/// One call: what is sent, how the answer is read, and how failures are described.
#[derive(Debug)]
pub(super) struct RestCall<'a> {
    pub(super) request: &'a OutboundRequest,
    /// The tool changes nothing.
    pub(super) reads: bool,
    /// What messages about the call mask.
    pub(super) secrets: &'a Redactor,
    /// What to configure if the service refuses the credentials.
    pub(super) advice: Option<String>,
    pub(super) schema: Option<&'a SchemaText>,
    /// How an answer is read that comes in pieces.
    pub(super) streaming: Option<&'a Streaming>,
    pub(super) until: Instant,
    /// The client that is told of progress.
    pub(super) client: &'a dyn ClientChannel,
}

/// When reading ends in a call that may take this long: a little earlier, so that what came can still be given back.
pub(super) fn reading_end(limit: Duration) -> Instant {
    Instant::now() + limit.saturating_sub(Duration::from_secs(1).min(limit / 4))
}

/// Reads the answer to a request, if it has one, with the credentials of the request masked.
pub(super) async fn read(sent: Result<Followed, FollowError>, call: &RestCall<'_>) -> CallResult {
    let masked = |text: String| call.secrets.masked_result(&text).unwrap_or(text);
    Ok(match read_unmasked(sent, call).await? {
        RawOutput::Json(text) => RawOutput::Json(masked(text)),
        RawOutput::Text(text) => RawOutput::Text(masked(text)),
        RawOutput::Content(content) => match call.secrets.masked_result(content.result()) {
            Some(result) => RawOutput::Content(Content::new(&result)),
            None => RawOutput::Content(content),
        },
    })
}

async fn read_unmasked(sent: Result<Followed, FollowError>, call: &RestCall<'_>) -> CallResult {
    let Followed { response, url, redirected, .. } = sent.map_err(|error| call.unanswered(&error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let media = MediaType::of(headers.get(header::CONTENT_TYPE));
    if !status.is_success() {
        let body = error_body(response, &media, call.until).await;
        return Err(call.refused((status, redirected), &headers, body));
    }
    if call.request.method == Method::HEAD {
        return Ok(RawOutput::Json(head(status, &headers)));
    }
    if let Some(packing) = unknown_packing(&headers) {
        let message = format!(
            "the answer is packed ({packing}) in a way that was not asked for and cannot be read; leave out Accept-Encoding, or \
             have it name gzip"
        );
        return Err(call.after_sending(ToolError::new(ErrorCode::ExecutionError, message)));
    }
    if let Some(streaming) = streaming(&media, call.streaming) {
        return stream::read(response, &streaming, call).await;
    }
    let body = response.body(ANSWER_BYTES).await.map_err(|error| call.http(&error))?;
    if body.is_empty() {
        return Ok(empty(status, call.schema));
    }
    Ok(output_of(&media, &body, &call.secrets.mask(display_url(url.as_str()))))
}

/// The compression of an answer that the client did not undo. The client removes the header of one that it undid, and some
/// services write other things there.
fn unknown_packing(headers: &HeaderMap) -> Option<&'static str> {
    let said = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    ["br", "zstd", "compress"].into_iter().find(|packing| said.trim().eq_ignore_ascii_case(packing))
}

/// The output for an answer without a body: an empty object if the output schema allows that, else a sentence.
fn empty(status: StatusCode, schema: Option<&SchemaText>) -> RawOutput {
    let Some(schema) = schema.map(SchemaText::value) else {
        return RawOutput::Json(json!({ "status": status.as_u16() }).to_string());
    };
    let needs = schema.get("required").and_then(Value::as_array).is_some_and(|needed| !needed.is_empty());
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if is_object && !needs && schema.get("anyOf").is_none() {
        return RawOutput::Json("{}".to_owned());
    }
    RawOutput::Text(format!("The request succeeded (HTTP {status}). The answer has no body."))
}

/// How an answer is read that comes in pieces, if it does.
fn streaming(media: &MediaType, configured: Option<&Streaming>) -> Option<Streaming> {
    match (configured, media.kind()) {
        // Some services answer at once what would come in pieces otherwise.
        (Some(Streaming { mode: StreamMode::Sse, .. }), Kind::Json) => None,
        (Some(configured), _) => Some(configured.clone()),
        (None, Kind::Ndjson) => Some(Streaming::unconfigured(StreamMode::Ndjson)),
        (None, Kind::Events) => Some(Streaming::unconfigured(StreamMode::Sse)),
        (None, Kind::Json | Kind::Text | Kind::Image | Kind::Audio | Kind::Binary | Kind::Unknown) => None,
    }
}

/// The output for a body that was read whole.
fn output_of(media: &MediaType, body: &[u8], address: &str) -> RawOutput {
    let content = |block: Value| RawOutput::Content(Content::new(&json!({ "content": [block] }).to_string()));
    let shown = |kind: &str| {
        content(json!({ "type": kind, "mimeType": media.essence(), "data": STANDARD.encode(body) }))
    };
    // A text of an unknown type may be JSON.
    let is_open = media.kind() == Kind::Unknown && is_text(body);
    match if is_open { Kind::Json } else { media.kind() } {
        Kind::Image => shown("image"),
        Kind::Audio => shown("audio"),
        Kind::Binary | Kind::Unknown => {
            let kind = Some(media.essence()).filter(|kind| !kind.is_empty());
            let kind = kind.unwrap_or("application/octet-stream");
            let resource = json!({ "uri": address, "mimeType": kind, "blob": STANDARD.encode(body) });
            content(json!({ "type": "resource", "resource": resource }))
        }
        Kind::Json => {
            let text = media.decode(body).into_owned();
            if is_json(&text) { RawOutput::Json(text) } else { RawOutput::Text(text) }
        }
        Kind::Text | Kind::Ndjson | Kind::Events => RawOutput::Text(media.decode(body).into_owned()),
    }
}

fn is_text(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok() && !body.contains(&0)
}

/// Whether a text is JSON; duplicate keys are allowed.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Status and headers, as the output of a HEAD request.
fn head(status: StatusCode, headers: &HeaderMap) -> String {
    // Cookies belong to a session that ends here, and may be secrets.
    let shown = headers.keys().filter(|name| !matches!(name.as_str(), "set-cookie" | "set-cookie2"));
    let shown: Map<_, _> =
        shown.map(|name| (name.as_str().to_owned(), joined(headers, name).into())).collect();
    json!({ "status": status.as_u16(), "headers": shown }).to_string()
}

/// As much of the body of an error as is shown, and how many bytes more, if there are more. The status counts also if the
/// body cannot be read.
async fn error_body(mut response: HttpResponse, media: &MediaType, end: Instant) -> (String, usize) {
    let mut body: Vec<u8> = Vec::new();
    let until = end.min(Instant::now() + ERROR_READ);
    while body.len() <= error::BODY_BYTES + MARGIN_BYTES
        && let Ok(Ok(Some(chunk))) = timeout_at(until, response.chunk()).await
    {
        body.extend_from_slice(&chunk);
    }
    let is_readable = media.is_text() || (media.kind() == Kind::Unknown && is_text(&body));
    let text = if is_readable { media.decode(&body).into_owned() } else { String::new() };
    let unsure = if body.len() > error::BODY_BYTES + MARGIN_BYTES { MARGIN_BYTES } else { 0 };
    (text, unsure)
}
