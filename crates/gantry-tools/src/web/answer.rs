//! An answer from the web, as a result of the tool.

use super::fault;
use super::fetch::Format;
use super::markdown;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::Fault;
use gantry_egress::{Followed, MediaType, Url};
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
pub(super) async fn read(followed: Followed, method: &Method) -> Result<Page, Fault> {
    let Followed { mut response, url, redirected, .. } = followed;
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
        let content_type = self.headers.get(header::CONTENT_TYPE);
        let kind = MediaType::of(content_type);
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
        if let Some(said) = content_type.filter(|said| !said.is_empty()) {
            result.insert("contentType".into(), lossy(said.as_bytes()).into());
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
    fn text(&self, kind: &MediaType) -> Option<Cow<'_, str>> {
        let body = if self.truncated { without_torn_end(&self.body) } else { &self.body };
        let is_utf8 = std::str::from_utf8(body).is_ok();
        // A body in an encoding that was not asked for is not text yet.
        let packed = self.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if packed || (!kind.is_text() && (!is_utf8 || body.contains(&0))) {
            return None;
        }
        Some(kind.decode(body))
    }
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
