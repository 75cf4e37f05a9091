//! What a server answered to `web_fetch`, as the result of the tool.

use super::markdown;
use super::web_fetch::{Format, Output, request_failed, timed_out};
use crate::failure::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_egress::{Followed, MediaType, Url};
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a body, unpacked.
pub(super) const BODY_BYTES: usize = 5 * 1024 * 1024;

/// Bytes of the headers that are returned.
const HEADER_BYTES: usize = 64 * 1024;

/// How long the next piece of a body may take.
const READ_IDLE: Duration = Duration::from_secs(10);

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
pub(super) async fn read(followed: Followed, method: &Method) -> Result<Page> {
    let Followed { mut response, url, redirected, .. } = followed;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body: Vec<u8> = Vec::new();
    let mut truncated = false;
    while !truncated {
        let chunk = tokio::time::timeout(READ_IDLE, response.chunk()).await;
        let chunk = chunk.map_err(|_elapsed| timed_out(method, &url, READ_IDLE))?;
        let Some(chunk) = chunk.map_err(|error| request_failed(method, &url, &error))? else { break };
        let left = BODY_BYTES.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..left).unwrap_or(&chunk));
        truncated = chunk.len() > left;
    }
    Ok(Page { status, headers, body, truncated, url, redirected })
}

impl Page {
    pub(super) fn into_output(self, format: Format) -> Output {
        let content_type = self.headers.get(header::CONTENT_TYPE);
        let kind = MediaType::of(content_type);
        let (headers, headers_cut) = self.headers();
        let mut output = Output {
            status: self.status.as_u16(),
            headers,
            body: String::new(),
            encoding: None,
            url: self.url.as_str().to_owned(),
            redirected: self.redirected,
            content_type: content_type.filter(|value| !value.is_empty()).map(|value| lossy(value.as_bytes())),
            title: None,
            truncated: self.truncated || headers_cut,
        };
        match self.text(&kind) {
            None => {
                output.body = STANDARD.encode(&self.body);
                output.encoding = Some("base64");
            }
            Some(text) if format == Format::Markdown && kind.is_html() => {
                let page = markdown::convert(&text, &self.url);
                output.truncated |= page.truncated;
                output.body = page.text;
                output.title = page.title;
            }
            Some(text) => output.body = text.into_owned(),
        }
        output
    }

    /// The headers by name, and whether there are more.
    fn headers(&self) -> (BTreeMap<String, String>, bool) {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        let mut bytes = 0;
        // Cookies are of a session that does not go on, and may be secrets.
        let is_cookie = |name: &str| matches!(name, "set-cookie" | "set-cookie2");
        for (name, value) in self.headers.iter().filter(|(name, _)| !is_cookie(name.as_str())) {
            let value = lossy(value.as_bytes());
            bytes += name.as_str().len() + value.len();
            if bytes > HEADER_BYTES {
                return (headers, true);
            }
            let earlier = headers.entry(name.as_str().to_owned());
            earlier.and_modify(|earlier| *earlier += &format!(", {value}")).or_insert(value);
        }
        (headers, false)
    }

    /// The body, if it is text.
    fn text(&self, kind: &MediaType) -> Option<Cow<'_, str>> {
        let body = if self.truncated { without_torn_end(&self.body) } else { &self.body };
        let is_utf8 = std::str::from_utf8(body).is_ok();
        // A body in an encoding that was not asked for is not text yet.
        let is_packed = self.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if is_packed || (!kind.is_text() && (!is_utf8 || body.contains(&0))) {
            return None;
        }
        Some(kind.decode(body))
    }
}

/// Text that was cut within a character, without the beginning of that character.
fn without_torn_end(body: &[u8]) -> &[u8] {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_none() => body.get(..error.valid_up_to()).unwrap_or(body),
        Ok(_) | Err(_) => body,
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
