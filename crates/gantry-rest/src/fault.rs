//! What is said when a request comes to nothing, and how far it may have got.

use super::client::{self, NoAnswer};
use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_egress::{HttpError, Url, display_url};
use gantry_openapi::Method;
use gantry_provider::redact::Redactor;
use http::StatusCode;
use http::header::{self, HeaderMap};
use serde_json::{Map, Value};

/// Bytes of the body of an error that are shown.
pub(super) const BODY_BYTES: usize = 64 * 1024;

/// Characters of it that the message has.
const MESSAGE_CHARS: usize = 500;

/// Characters that are shown of one header of an error.
const HEADER_CHARS: usize = 500;

/// Bytes that are shown of all of them.
const HEADERS_BYTES: usize = 4 * 1024;

/// Characters of a date in a header; it always has as many.
const DATE_CHARS: usize = 29;

/// What to do about what may have been done.
const LOOK_FIRST: &str = "it may have taken effect: look whether it has, and do not just send it again";

/// Headers of an answer that help to find out what went wrong.
const HEADERS: [&str; 5] = ["retry-after", "location", "www-authenticate", "link", "x-request-id"];

/// The beginnings of others.
const HEADER_GROUPS: [&str; 2] = ["x-ratelimit-", "ratelimit-"];

/// A request as it is spoken of.
#[derive(Debug)]
pub(super) struct ErrorContext<'a> {
    pub(super) method: Method,
    /// Where it went, whole; only what may be shown of it is.
    pub(super) url: &'a Url,
    /// The tool changes nothing.
    pub(super) reads: bool,
    pub(super) secrets: &'a Redactor,
    /// What could be set up, should the service not know who asks.
    pub(super) advice: Option<String>,
}

/// The arguments cannot be sent.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(ErrorCode::InvalidArguments, message))
}

impl ErrorContext<'_> {
    /// A fault after the request was on its way.
    pub(super) fn after_sending(&self, error: ToolError) -> Fault {
        if self.reads { Fault::without_effect(error) } else { Fault::with_possible_effect(error) }
    }

    /// There is no answer to a request. Once one was answered, a later failure is no reason to take the call
    /// for one that was never sent.
    pub(super) fn unanswered(&self, no_answer: &NoAnswer) -> Fault {
        let NoAnswer { error, redirected } = no_answer;
        if !redirected || error.was_sent() {
            return self.http(error);
        }
        let message = format!("the answer is a redirect that could not be followed ({error})");
        self.lost(self.secrets.mask(message))
    }

    /// There is no answer, or not all of it.
    pub(super) fn http(&self, error: &HttpError) -> Fault {
        let text = self.secrets.mask(error.to_string());
        let unavailable =
            |message| Fault::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message));
        match error {
            HttpError::Setup(_) | HttpError::Connect { .. } | HttpError::Redirect { .. } => {
                unavailable(format!("{text}. Nothing was sent."))
            }
            HttpError::NotAllowed { .. } => unavailable(format!(
                "{text}. Nothing was sent. Add it to web.allowPrivate if it is the right one, and set baseUrl if a \
                 specification from the web names it."
            )),
            HttpError::Request { .. } => invalid(text),
            HttpError::Broken { address, reason } => {
                let message =
                    format!("the connection to {address} broke before the answer was complete ({reason})");
                self.lost(self.secrets.mask(message))
            }
            HttpError::TooLarge { .. } => {
                let message = format!("{text}. Ask for less: narrow the request, or ask page by page.");
                self.after_sending(ToolError::new(ErrorCode::ExecutionError, message))
            }
        }
    }

    /// The request was sent, and its outcome is unknown.
    pub(super) fn lost(&self, message: String) -> Fault {
        let (code, message) = match self.reads {
            true => (ErrorCode::ExecutionError, message),
            false => (ErrorCode::OutcomeUnknown, format!("{message}; {LOOK_FIRST}")),
        };
        self.after_sending(ToolError::new(code, message))
    }

    /// The service answers that it did not do it, or that it did not do what another answer led to.
    pub(super) fn refused(
        &self,
        (status, redirected): (StatusCode, bool),
        headers: &HeaderMap,
        body: &Body,
    ) -> Fault {
        let (method, url) = (self.method, self.secrets.mask(display_url(self.url.as_str())));
        let words = status.canonical_reason().unwrap_or_default();
        let mut message = format!("HTTP {} {words} from {method} {url}", status.as_u16());
        // What has no words of its own has no gap for them either.
        message = message.replace("  ", " ");
        let body_text = one_line(&body.text);
        if !body_text.is_empty() {
            message = format!("{message}: {body_text}");
        }
        message.extend(self.more(status, headers));
        let mut details = Map::new();
        details.insert("status".into(), status.as_u16().into());
        details.insert("statusText".into(), words.into());
        details.insert("method".into(), method.to_string().into());
        details.insert("url".into(), url.into());
        details.insert("headers".into(), telling(headers, self.secrets));
        details.insert("body".into(), body.value());
        if body.truncated {
            details.insert("truncated".into(), true.into());
        }
        // Who only stands between does not know what became of it.
        let between = matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT);
        let code = if between && !self.reads { ErrorCode::OutcomeUnknown } else { ErrorCode::ExecutionError };
        let error = ToolError::new(code, message).with_details(Value::Object(details));
        // Who refuses a request has not done what it asks for; who was tired of waiting for it may have, and so may who
        // answered first and led elsewhere.
        let refuses = status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT && !redirected;
        if refuses { Fault::without_effect(error) } else { self.after_sending(error) }
    }

    fn more(&self, status: StatusCode, headers: &HeaderMap) -> Option<String> {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                self.advice.as_ref().map(|advice| format!(" ({advice})"))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let after = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
                Some(format!(" (try again {})", when(after)?))
            }
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if !self.reads => {
                Some(format!(" ({LOOK_FIRST})"))
            }
            status if status.is_redirection() => self.elsewhere(headers),
            _ => None,
        }
    }

    /// What there is to say about an answer that points elsewhere and was not followed.
    fn elsewhere(&self, headers: &HeaderMap) -> Option<String> {
        let next = client::location(self.url, headers)?;
        let place = self.secrets.mask(display_url(next.as_str()));
        Some(match self.method {
            Method::Get | Method::Head if next.origin() == self.url.origin() => {
                format!(" (it was redirected in a circle or too often, in the end to {place})")
            }
            Method::Get | Method::Head => format!(
                " (it points to {place}, which is not the same server, so nothing was sent there; set that address if \
                 it is the right one)"
            ),
            Method::Put | Method::Post | Method::Delete | Method::Options | Method::Patch | Method::Trace => {
                format!(" (it points to {place}; only GET and HEAD are redirected, and {LOOK_FIRST})")
            }
        })
    }
}

/// When to try again, if it is said as it should be.
fn when(after: &str) -> Option<String> {
    if !after.is_empty() && after.len() < 10 && after.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(format!("in {after} s"));
    }
    let is_date = after.len() == DATE_CHARS && jiff::fmt::rfc2822::parse(after).is_ok();
    is_date.then(|| format!("after {after}"))
}

/// The body of an answer that is an error, as it may be shown.
#[derive(Debug, Default)]
pub(super) struct Body {
    text: String,
    json: Option<Value>,
    truncated: bool,
}

impl Body {
    /// A body, masked. Nothing of its last `unsure` bytes is shown: more followed that was not read, and a secret that
    /// was cut in two is not known as one.
    pub(super) fn new(text: String, unsure: usize, secrets: &Redactor) -> Self {
        let truncated = unsure > 0 || text.len() > BODY_BYTES;
        let parsed: Option<Value> = (!truncated).then(|| serde_json::from_str(&text).ok()).flatten();
        let json = parsed.clone().map(|value| secrets.mask_value(value));
        // Secrets are masked after JSON escapes are decoded.
        let text = match &json {
            Some(json) if Some(json) != parsed.as_ref() => json.to_string(),
            Some(_) | None => text,
        };
        let text = secrets.mask(text);
        let sure = text.len().saturating_sub(unsure).min(BODY_BYTES);
        Self { text: gantry_core::shape::truncated(&text, sure).into_owned(), json, truncated }
    }

    fn value(&self) -> Value {
        self.json.clone().unwrap_or_else(|| self.text.as_str().into())
    }
}

/// The beginning of a text without breaks.
fn one_line(text: &str) -> String {
    let mut line: String = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        if chars > 0 {
            line.push(' ');
            chars += 1;
        }
        for c in word.chars().filter(|c| !c.is_control()) {
            if chars >= MESSAGE_CHARS {
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

fn telling(headers: &HeaderMap, secrets: &Redactor) -> Value {
    let mut shown = Map::new();
    let mut left = HEADERS_BYTES;
    for name in headers.keys().map(|name| name.as_str()) {
        if !HEADERS.contains(&name) && !HEADER_GROUPS.iter().any(|group| name.starts_with(group)) {
            continue;
        }
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let value: String = secrets.mask(values.join(", ")).chars().take(HEADER_CHARS).collect();
        let Some(rest) = left.checked_sub(name.len() + value.len()) else { continue };
        left = rest;
        shown.insert(secrets.mask(name.to_owned()), value.into());
    }
    Value::Object(shown)
}
