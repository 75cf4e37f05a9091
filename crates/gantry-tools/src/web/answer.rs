//! An answer from the web, as a result of the tool.

use super::fault;
use super::fetch::Format;
use super::markdown;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use gantry_core::Fault;
use gantry_egress::{HttpResponse, Url};
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// Bytes of a body, unpacked.
pub(super) const BODY_BYTES: usize = 5 * 1024 * 1024;

/// Bytes of the headers that are shown.
const HEADER_BYTES: usize = 64 * 1024;

/// How long the next piece of a body may take.
const READ_IDLE: Duration = Duration::from_secs(10);

/// How far into a page its own word about its characters is looked for.
const CHARSET_WITHIN: usize = 1024;

/// An answer that was read.
#[derive(Debug)]
pub(super) struct Page {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    truncated: bool,
    url: Url,
    redirected: bool,
}

/// Reads an answer, up to the limit.
pub(super) async fn read(
    mut response: HttpResponse,
    method: &Method,
    url: Url,
    redirected: bool,
) -> Result<Page, Fault> {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body: Vec<u8> = Vec::new();
    let mut truncated = false;
    loop {
        let chunk = match tokio::time::timeout(READ_IDLE, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| fault::http(method, &url, &error))?,
            Err(_) => return Err(fault::timeout(method, &url, READ_IDLE)),
        };
        let Some(chunk) = chunk else { break };
        let left = BODY_BYTES.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..left).unwrap_or(&chunk));
        if chunk.len() > left {
            truncated = true;
            break;
        }
    }
    Ok(Page { status, headers, body, truncated, url, redirected })
}

impl Page {
    pub(super) fn into_json(self, format: Format) -> Value {
        let mut truncated = self.truncated;
        let kind = self.headers.get(header::CONTENT_TYPE).map(|kind| lossy(kind.as_bytes()));
        let kind = Kind::of(kind.as_deref().unwrap_or_default());
        let mut result = Map::new();
        result.insert("status".into(), self.status.as_u16().into());
        result.insert("headers".into(), self.headers_json(&mut truncated));
        match self.text(&kind) {
            None => {
                result.insert("body".into(), STANDARD.encode(&self.body).into());
                result.insert("encoding".into(), "base64".into());
            }
            Some(text) if format == Format::Markdown && kind.is_html() => {
                let page = markdown::convert(&text, &self.url);
                truncated |= page.truncated;
                result.insert("body".into(), page.text.into());
                result.extend(page.title.map(|title| ("title".to_owned(), title.into())));
            }
            Some(text) => {
                result.insert("body".into(), text.into_owned().into());
            }
        }
        result.insert("url".into(), self.url.as_str().into());
        if !kind.whole.is_empty() {
            result.insert("contentType".into(), kind.whole.into());
        }
        for (name, flag) in [("redirected", self.redirected), ("truncated", truncated)] {
            result.extend(flag.then(|| (name.to_owned(), json!(true))));
        }
        Value::Object(result)
    }

    fn headers_json(&self, truncated: &mut bool) -> Value {
        let mut shown: Map<String, Value> = Map::new();
        let mut bytes = 0;
        for (name, value) in &self.headers {
            // Cookies are of a session that does not go on, and may be secrets.
            if matches!(name.as_str(), "set-cookie" | "set-cookie2") {
                continue;
            }
            let value = lossy(value.as_bytes());
            bytes += name.as_str().len() + value.len();
            if bytes > HEADER_BYTES {
                *truncated = true;
                break;
            }
            match shown.get_mut(name.as_str()) {
                Some(Value::String(earlier)) => {
                    earlier.push_str(", ");
                    earlier.push_str(&value);
                }
                _ => {
                    shown.insert(name.as_str().to_owned(), value.into_owned().into());
                }
            }
        }
        Value::Object(shown)
    }

    /// The body, if it is text.
    fn text(&self, kind: &Kind) -> Option<Cow<'_, str>> {
        let body = if self.truncated { without_torn_end(&self.body) } else { &self.body };
        let is_utf8 = std::str::from_utf8(body).is_ok();
        // What came packed in a way that nobody asked for is no text yet.
        let packed = self.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if packed || (!kind.is_text() && (!is_utf8 || body.contains(&0))) {
            return None;
        }
        let said = kind
            .charset
            .as_deref()
            .map(str::to_owned)
            .or_else(|| kind.is_html().then(|| charset_of(body))?);
        let encoding = said.and_then(|label| Encoding::for_label(label.as_bytes()));
        let encoding = encoding.unwrap_or(if is_utf8 { UTF_8 } else { WINDOWS_1252 });
        Some(encoding.decode(body).0)
    }
}

/// What a server says that a body is.
struct Kind {
    whole: String,
    /// In lower case, without parameters.
    essence: String,
    charset: Option<String>,
}

impl Kind {
    fn of(text: &str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        Self { whole: text.to_owned(), essence, charset }
    }

    fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml")
    }

    fn is_text(&self) -> bool {
        let kind = self.essence.as_str();
        kind.starts_with("text/")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
            || matches!(
                kind,
                "application/json"
                    | "application/xml"
                    | "application/javascript"
                    | "application/x-javascript"
                    | "application/ecmascript"
                    | "application/x-ndjson"
                    | "application/yaml"
                    | "application/x-yaml"
                    | "application/toml"
                    | "application/sql"
                    | "application/graphql"
                    | "application/x-www-form-urlencoded"
            )
    }
}

/// What a page says about its characters: `<meta charset=…>` and its older form.
fn charset_of(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(body.get(..CHARSET_WITHIN).unwrap_or(body)).to_ascii_lowercase();
    let (_, after) = start.split_once("charset=")?;
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    let label = end.and_then(|end| label.get(..end)).unwrap_or(label);
    (!label.is_empty()).then(|| label.to_owned())
}

/// Text that was cut within a character, without its beginning.
fn without_torn_end(body: &[u8]) -> &[u8] {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_none() => body.get(..error.valid_up_to()).unwrap_or(body),
        Ok(_) | Err(_) => body,
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
