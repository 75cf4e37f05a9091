//! A fetch as an agent asks for it, read and judged.

use super::fault::invalid;
use super::gate::Gate;
use crate::own;
use gantry_core::ToolError;
use gantry_core::policy::OwnVerdict;
use gantry_egress::{HOP_BY_HOP, Url};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a fetch may take unless it says so itself, and then at most.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(300);

/// Request headers of one fetch, and the bytes of all of them.
pub(super) const HEADERS: usize = 50;
const HEADER_BYTES: usize = 32 * 1024;

/// Bytes of what is sent.
pub(super) const BODY_BYTES: usize = 5 * 1024 * 1024;

/// Characters of an address that a question shows.
const SHOWN: usize = 500;

/// The precondition of a fetch that passed because of the allow-list.
const LISTED: &str = "listed";

/// What a client of ours asks for when it wants to read a page.
const READABLE: &str =
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default)]
    method: Verb,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<String>,
    timeout: Option<f64>,
    #[serde(default)]
    format: Format,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Post,
}

/// How a page comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Raw,
    Markdown,
}

/// Why a fetch is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The URL is on the allow-list.
    AllowList,
    /// An approver said yes to it.
    Approval,
}

impl Basis {
    pub(super) fn of(precondition: Option<&str>) -> Self {
        if precondition == Some(LISTED) { Self::AllowList } else { Self::Approval }
    }
}

/// One fetch.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) timeout: Duration,
    pub(super) format: Format,
}

impl Fetch {
    pub(super) fn parse(arguments: &str, gate: &Gate) -> Result<Self, ToolError> {
        let asked: Arguments = own::arguments(arguments)?;
        let url = gate.read(&asked.url)?;
        let method = match asked.method {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
        };
        let body = asked.body.unwrap_or_default();
        if method == Method::GET && !body.is_empty() {
            return Err(invalid("a GET sends no body; use method POST"));
        }
        if body.len() > BODY_BYTES {
            return Err(invalid(format!("the body is longer than {BODY_BYTES} bytes")));
        }
        let mut headers = headers(&asked.headers)?;
        if asked.format == Format::Markdown && !headers.contains_key(header::ACCEPT) {
            headers.insert(header::ACCEPT, HeaderValue::from_static(READABLE));
        }
        let timeout =
            asked.timeout.map_or(Some(TIMEOUT), |seconds| Duration::try_from_secs_f64(seconds).ok());
        let timeout = timeout.filter(|time| !time.is_zero() && *time <= MAX_TIMEOUT);
        let timeout = timeout.ok_or_else(|| {
            invalid(format!("the timeout is a number of seconds up to {}", MAX_TIMEOUT.as_secs()))
        })?;
        Ok(Self { url, method, headers, body, timeout, format: asked.format })
    }

    /// Whether a person has to be asked, and with which words.
    pub(super) fn verdict(&self, gate: &Gate) -> OwnVerdict {
        if gate.lists(&self.url) {
            return OwnVerdict { ask: None, precondition: Some(LISTED.into()) };
        }
        OwnVerdict { ask: Some(self.question()), precondition: None }
    }

    fn question(&self) -> String {
        let Self { method, url, .. } = self;
        let mut shown: String = url.as_str().chars().take(SHOWN).collect();
        if shown.len() < url.as_str().len() {
            shown.push_str(&format!("… ({} characters)", url.as_str().len()));
        }
        let host = url.host_str().unwrap_or_default();
        let mut text = format!("{method} {shown} at {host}, which is not on the allow-list (web.allow)");
        if *method == Method::POST {
            text.push_str(&format!("; it sends a body of {} bytes", self.body.len()));
        }
        let names: Vec<&str> =
            self.headers.keys().filter(|name| *name != header::ACCEPT).map(HeaderName::as_str).collect();
        if !names.is_empty() {
            text.push_str(&format!("; with the headers {}", names.join(", ")));
        }
        text
    }
}

fn headers(given: &Map<String, Value>) -> Result<HeaderMap, ToolError> {
    if given.len() > HEADERS {
        return Err(invalid(format!("there are more than {HEADERS} headers")));
    }
    let mut headers = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in given {
        let value = value.as_str().ok_or_else(|| invalid(format!("the header {name:?} is no text")))?;
        bytes += name.len() + value.len();
        if bytes > HEADER_BYTES {
            return Err(invalid(format!("the headers are longer than {HEADER_BYTES} bytes")));
        }
        let bad = || invalid(format!("the header {name:?} has characters that no header may have"));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_illegal| bad())?;
        let value = HeaderValue::from_str(value).map_err(|_illegal| bad())?;
        if is_ours(&parsed) {
            return Err(invalid(format!("the header {parsed} is set by Gantry; leave it out")));
        }
        if headers.insert(parsed, value).is_some() {
            return Err(invalid(format!("the header {name:?} is there twice")));
        }
    }
    Ok(headers)
}

/// Headers by which a request could be told apart from what was judged, or made into two.
fn is_ours(name: &HeaderName) -> bool {
    let ours = [header::HOST, header::CONTENT_LENGTH, header::ACCEPT_ENCODING];
    ours.contains(name) || HOP_BY_HOP.contains(name) || name.as_str().starts_with("proxy-")
}
