//! Failures of requests: their messages, and whether the effect can have happened.

use super::response::RestCall;
use crate::Object;
use gantry_core::invisible::is_invisible;
use gantry_core::truncate::truncate;
use gantry_core::{CallFailure, ErrorCode, Permit, ToolError};
use gantry_egress::{FollowError, HttpError, display_url};
use gantry_provider::redact::Redactor;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName};
use serde_json::{Value, json};

/// Bytes of an error's body that the details show.
pub(super) const BODY_BYTES: usize = 64 * 1024;

/// Characters of an error's body that the message shows.
const MESSAGE_CHARS: usize = 500;

/// Headers of an error that are shown, and the characters of each.
const SHOWN_HEADERS: usize = 10;
const HEADER_CHARS: usize = 500;

/// The advice after a request whose effect is unknown.
const LOOK_FIRST: &str = "it may have taken effect: look whether it has, and do not just send it again";

/// Headers of an answer that help to find out what went wrong, by how they begin; the first are shown first.
const HEADERS: [&str; 7] =
    ["retry-after", "location", "www-authenticate", "link", "x-request-id", "x-ratelimit-", "ratelimit-"];

pub(super) fn arguments(permit: &Permit) -> Result<Object, CallFailure> {
    serde_json::from_str(permit.arguments())
        .map_err(|error| invalid(format!("the arguments are no object: {error}")))
}

/// Nothing was sent.
pub(super) fn unavailable(message: impl Into<String>) -> CallFailure {
    CallFailure::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message))
}

/// The arguments cannot be sent.
pub(super) fn invalid(message: impl Into<String>) -> CallFailure {
    CallFailure::without_effect(ToolError::new(ErrorCode::InvalidArguments, message))
}

/// What an error of the client says, with advice.
pub(super) fn describe(error: &HttpError) -> String {
    match error {
        HttpError::Connect { .. } | HttpError::Redirect { .. } => format!("{error}. Nothing was sent."),
        HttpError::NotAllowed { .. } => format!(
            "{error}. Nothing was sent. Add it to web.allowPrivate if it is the right one, and set baseUrl if a \
             specification from the web names it."
        ),
        HttpError::TooLarge { .. } => {
            format!("{error}. Ask for less: narrow the request, or ask page by page.")
        }
        HttpError::Request { .. } | HttpError::Broken { .. } => error.to_string(),
    }
}

impl RestCall<'_> {
    /// A fault after the request was on its way.
    pub(super) fn after_sending(&self, error: ToolError) -> CallFailure {
        if self.reads { CallFailure::without_effect(error) } else { CallFailure::with_possible_effect(error) }
    }

    /// The request has no answer. If it was answered by a redirect before, it counts as sent, although the request to the
    /// target was not.
    pub(super) fn unanswered(&self, FollowError { error, redirected, .. }: &FollowError) -> CallFailure {
        if !redirected || error.was_sent() {
            return self.http(error);
        }
        let message = format!("the answer is a redirect that could not be followed ({error})");
        self.lost(self.secrets.mask(message))
    }

    /// The request failed, or the answer is incomplete.
    pub(super) fn http(&self, error: &HttpError) -> CallFailure {
        let text = self.secrets.mask(describe(error));
        match error {
            HttpError::Connect { .. } | HttpError::Redirect { .. } | HttpError::NotAllowed { .. } => {
                unavailable(text)
            }
            HttpError::Request { .. } => invalid(text),
            HttpError::Broken { .. } => self.lost(text),
            HttpError::TooLarge { .. } => self.after_sending(ToolError::new(ErrorCode::ExecutionError, text)),
        }
    }

    /// The request was sent, and its outcome is unknown.
    pub(super) fn lost(&self, message: String) -> CallFailure {
        let (code, message) = match self.reads {
            true => (ErrorCode::ExecutionError, message),
            false => (ErrorCode::OutcomeUnknown, format!("{message}; {LOOK_FIRST}")),
        };
        self.after_sending(ToolError::new(code, message))
    }

    /// The service answers with an error, or with a redirect that is not followed. The last `unsure` bytes of the body
    /// are not shown: they may hold the first half of a secret, which is not recognised without the other half.
    pub(super) fn refused(
        &self,
        (status, redirected): (StatusCode, bool),
        headers: &HeaderMap,
        (body, unsure): (String, usize),
    ) -> CallFailure {
        let is_cut = unsure > 0 || body.len() > BODY_BYTES;
        let masked = self.secrets.mask(body);
        let text = truncate(&masked, masked.len().saturating_sub(unsure).min(BODY_BYTES));
        let json: Option<Value> = serde_json::from_str(text).ok().filter(|_| !is_cut);
        // Masked once more: what misleads may have stood within a secret.
        let line = one_line(&self.secrets.mask(one_line(text, usize::MAX)), MESSAGE_CHARS);
        let method = &self.request.method;
        let url = self.secrets.mask(display_url(self.request.url.as_str()));
        let mut message = format!("HTTP {} from {method} {url}", status_line(status));
        message.extend((!line.is_empty()).then(|| format!(": {line}")));
        message.extend(self.hint(status, headers).map(|hint| format!(" ({hint})")));
        let mut details = json!({
            "status": status.as_u16(), "statusText": status.canonical_reason().unwrap_or_default(),
            "method": method.as_str(), "url": url, "headers": diagnostic_headers(headers, self.secrets),
            "body": json.unwrap_or_else(|| text.into()),
        });
        if is_cut {
            details["truncated"] = true.into();
        }
        // 502 and 504 come from an intermediary: the effect is unknown.
        let between = matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT);
        let code = if between && !self.reads { ErrorCode::OutcomeUnknown } else { ErrorCode::ExecutionError };
        let error = ToolError::new(code, message).with_details(details);
        // Other 4xx mean that it was not executed, except for 408 and for answers after a redirect.
        let refuses = status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT && !redirected;
        if refuses { CallFailure::without_effect(error) } else { self.after_sending(error) }
    }

    /// What to do about a status, in addition to the service's own words.
    fn hint(&self, status: StatusCode, headers: &HeaderMap) -> Option<String> {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.advice.clone(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let after = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
                Some(format!("try again in {} s", after.parse::<u32>().ok()?))
            }
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if !self.reads => {
                Some(LOOK_FIRST.to_owned())
            }
            status if status.is_redirection() => {
                let location = headers.get(header::LOCATION)?.to_str().ok()?;
                let target = self.request.url.join(location).ok()?;
                let target = self.secrets.mask(display_url(target.as_str()));
                let effect = if self.reads { String::new() } else { format!("; {LOOK_FIRST}") };
                Some(format!(
                    "it redirects to {target}, which is not followed: only GET and HEAD are, a few times and to the same \
                     server{effect}"
                ))
            }
            _ => None,
        }
    }
}

/// The number of a status, and its name if it has one.
pub(super) fn status_line(status: StatusCode) -> String {
    format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

/// The beginning of a text without breaks and characters that mislead.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars().filter(|c| !is_invisible(*c));
    let start: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() { start + "…" } else { start }
}

/// The headers of an answer that help to find out what went wrong.
fn diagnostic_headers(headers: &HeaderMap, secrets: &Redactor) -> Object {
    let names =
        HEADERS.iter().flat_map(|start| headers.keys().filter(move |name| name.as_str().starts_with(start)));
    let shown = names.take(SHOWN_HEADERS).map(|name| {
        let value: String = secrets.mask(joined(headers, name)).chars().take(HEADER_CHARS).collect();
        (secrets.mask(name.as_str().to_owned()), value.into())
    });
    shown.collect()
}

/// All values of a header.
pub(super) fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(", ")
}
