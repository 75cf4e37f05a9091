//! `web_fetch`: asks a server for a URL and follows the redirects that may be followed.
//!
//! The agent names the hosts, so it could learn from messages which of them exist here. A host that does not answer,
//! one that cannot be trusted and one that Gantry does not connect to get the same words and the same code.

use super::page::{self, Page};
use super::url_policy::{URL_BYTES, UrlPolicy};
use crate::tool::prelude::*;
use crate::tool::{run_blocking, time_limit};
use gantry_core::{EffectState, ErrorCode, ToolError};
use gantry_egress::{HOP_BY_HOP, HttpClient, HttpError, OutboundRequest, REDIRECTS, Redirect, Url, follow};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a fetch may take at most, in seconds.
const MAX_TIMEOUT: u64 = 300;

/// Request headers of one fetch, and the bytes of all of them.
const HEADERS: usize = 50;
const HEADER_BYTES: usize = 32 * 1024;

/// Bytes of what is sent.
const BODY_BYTES: usize = 5 * 1024 * 1024;

/// Characters of a URL that a question shows.
const DISPLAYED_URL_CHARS: usize = 500;

/// The precondition of a fetch that was allowed because of the allow-list.
const LISTED: &str = "listed";

/// What is accepted of a server, unless the call says otherwise, when a page is to become Markdown.
const READABLE: &str =
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5";

#[derive(Debug)]
pub(super) struct WebFetch {
    pub(super) client: HttpClient,
    pub(super) policy: UrlPolicy,
}

/// Fetches a URL over http or https. URLs on the allow-list are fetched at once, others wait for a person's approval;
/// private addresses are refused. A GET follows up to 5 redirects, within the same host or the allow-list. At most 5 MiB
/// of the body are returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The address, with http:// or https://.
    #[schemars(length(min = 1))]
    url: String,
    /// The HTTP method.
    #[serde(default)]
    method: Verb,
    /// Request headers by name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = HEADERS))]
    headers: BTreeMap<String, String>,
    /// What to send, with POST.
    #[serde(default)]
    #[schemars(length(max = BODY_BYTES))]
    body: String,
    /// Seconds until the whole answer must be there; the tool's configured limit holds too.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = MAX_TIMEOUT), extend("exclusiveMinimum" = 0))]
    timeout: f64,
    /// How to return an HTML page: as it is, or as Markdown without scripts and navigation.
    #[serde(default)]
    format: Format,
}

fn default_timeout() -> f64 {
    30.0
}

#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Post,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Raw,
    Markdown,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The HTTP status.
    pub(super) status: u16,
    /// The response headers by name in lower case, without cookies.
    pub(super) headers: BTreeMap<String, String>,
    /// The body: text, or base64 if encoding says so.
    pub(super) body: String,
    /// Present if the body is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["base64"]))]
    pub(super) encoding: Option<&'static str>,
    /// The address that answered.
    pub(super) url: String,
    /// True if that is not the one that was asked for; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) redirected: bool,
    /// What the server says that the body is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    /// The title of the page, with format markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// True if there is more than what is returned; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) truncated: bool,
}

impl Tool for WebFetch {
    const NAME: &'static str = "web_fetch";
    const TITLE: &'static str = "Fetch from the web";
    // A server may do anything when it is asked, so an intent is recorded before.
    const HINTS: Annotations = Annotations { open_world_hint: Some(true), ..CHANGES };
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT));
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<Preflight> {
        let request = Request::parse(args, &self.policy)?;
        if self.policy.lists(&request.outbound.url) {
            return Ok(Preflight { ask: None, precondition: Some(LISTED.into()) });
        }
        Ok(Preflight { ask: Some(request.question()), precondition: None })
    }

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let basis = if call.precondition() == Some(LISTED) { Basis::AllowList } else { Basis::Approval };
        let request = Request::parse(call.args, &self.policy)?;
        let OutboundRequest { method, url, .. } = &request.outbound;
        if basis == Basis::AllowList && !self.policy.lists(url) {
            return Err(failure::outdated(
                "the url is no longer on the allow-list; call again to ask a person",
            ));
        }
        let page = tokio::time::timeout(request.timeout, self.fetch(&request.outbound, basis)).await;
        let page = page.map_err(|_elapsed| timed_out(method, url, request.timeout))??;
        // A large page takes a while to convert.
        run_blocking(effect_of(method), move || page.into_output(request.format)).await
    }
}

/// Why a fetch is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    AllowList,
    /// An approver said yes to it.
    Approval,
}

impl WebFetch {
    async fn fetch(&self, request: &OutboundRequest, basis: Basis) -> Result<Page> {
        let OutboundRequest { method, url, .. } = request;
        let mut refused = None;
        let decide = |redirect: Redirect<'_>| {
            self.judge_redirect(redirect, url, basis).map_err(|fault| refused = Some(fault)).ok()
        };
        match follow(&self.client, request.clone(), &[], decide).await {
            Err(failed) => Err(request_failed(method, &failed.url, &failed.error)),
            Ok(_) if let Some(fault) = refused => Err(fault),
            Ok(followed) if followed.too_many => {
                Err(failure::failed(format!("{url} redirects more than {REDIRECTS} times")))
            }
            Ok(followed) => page::read(followed, method).await,
        }
    }

    /// Where a redirect leads, if it may be followed; `asked` is the URL of the call.
    pub(super) fn judge_redirect(
        &self,
        Redirect { from, location, .. }: Redirect<'_>,
        asked: &Url,
        basis: Basis,
    ) -> Result<Url> {
        if location.len() > URL_BYTES {
            let start: String = location.chars().take(80).collect();
            let why = format!("it is longer than {URL_BYTES} bytes");
            return Err(redirect_refused(from, &format!("{start}…"), &why));
        }
        let next =
            from.join(location).map_err(|_unread| redirect_refused(from, location, "it is no address"))?;
        let next = self.policy.check(next);
        let next = next.map_err(|fault| redirect_refused(from, location, &fault.error.message))?;
        let why = match basis {
            _ if from.scheme() == "https" && next.scheme() == "http" => "it is not encrypted",
            _ if self.policy.lists(&next) => return Ok(next),
            Basis::AllowList => "it is not on the allow-list; fetch that url itself to ask a person",
            Basis::Approval if is_same_host(asked, &next) => return Ok(next),
            Basis::Approval => "the approval is for another host; fetch that url itself to ask for it",
        };
        Err(redirect_refused(from, next.as_str(), why))
    }
}

/// Whether a yes for one URL is a yes for the other: the same host, at the same port or a usual one.
fn is_same_host(asked: &Url, next: &Url) -> bool {
    asked.host_str() == next.host_str() && (next.port().is_none() || next.port() == asked.port())
}

/// One fetch, read and checked.
#[derive(Debug)]
struct Request {
    outbound: OutboundRequest,
    timeout: Duration,
    format: Format,
}

impl Request {
    fn parse(args: Args, policy: &UrlPolicy) -> Result<Self> {
        let url = policy.parse(&args.url)?;
        let method = match args.method {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
        };
        if method == Method::GET && !args.body.is_empty() {
            return Err(failure::invalid("a GET sends no body; use method POST"));
        }
        if args.body.len() > BODY_BYTES {
            return Err(failure::invalid(format!("the body is longer than {BODY_BYTES} bytes")));
        }
        let mut headers = read_headers(&args.headers)?;
        if args.format == Format::Markdown && !headers.contains_key(header::ACCEPT) {
            headers.insert(header::ACCEPT, HeaderValue::from_static(READABLE));
        }
        let timeout = time_limit(args.timeout, MAX_TIMEOUT)?;
        let outbound = OutboundRequest { method, url, headers, body: args.body.into() };
        Ok(Self { outbound, timeout, format: args.format })
    }

    fn question(&self) -> String {
        let OutboundRequest { method, url, headers, body } = &self.outbound;
        let mut displayed: String = url.as_str().chars().take(DISPLAYED_URL_CHARS).collect();
        if displayed.len() < url.as_str().len() {
            displayed.push_str(&format!("… ({} characters)", url.as_str().len()));
        }
        let host = url.host_str().unwrap_or_default();
        let mut text = format!("{method} {displayed} at {host}, which is not on the allow-list (web.allow)");
        if *method == Method::POST {
            text.push_str(&format!("; it sends a body of {} bytes", body.len()));
        }
        let names: Vec<&str> =
            headers.keys().filter(|name| *name != header::ACCEPT).map(HeaderName::as_str).collect();
        if !names.is_empty() {
            text.push_str(&format!("; with the headers {}", names.join(", ")));
        }
        text
    }
}

fn read_headers(given: &BTreeMap<String, String>) -> Result<HeaderMap> {
    if given.len() > HEADERS {
        return Err(failure::invalid(format!("there are more than {HEADERS} headers")));
    }
    if given.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > HEADER_BYTES {
        return Err(failure::invalid(format!("the headers are longer than {HEADER_BYTES} bytes")));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let illegal =
            || failure::invalid(format!("the header {name:?} has characters that no header may have"));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_illegal| illegal())?;
        let value = HeaderValue::from_str(value).map_err(|_illegal| illegal())?;
        if is_set_by_gantry(&parsed) {
            return Err(failure::invalid(format!("the header {parsed} is set by Gantry; leave it out")));
        }
        if headers.insert(parsed, value).is_some() {
            return Err(failure::invalid(format!("the header {name:?} is there twice")));
        }
    }
    Ok(headers)
}

/// Headers that could make a request another one than the one that was judged, or two.
fn is_set_by_gantry(name: &HeaderName) -> bool {
    let fixed = [header::HOST, header::CONTENT_LENGTH, header::ACCEPT_ENCODING];
    fixed.contains(name) || HOP_BY_HOP.contains(name) || name.as_str().starts_with("proxy-")
}

/// What a request that was sent may have done: one that only reads has no effect.
fn effect_of(method: &Method) -> EffectState {
    if *method == Method::GET { EffectState::None } else { EffectState::Possible }
}

/// A request without a complete answer. The reason goes to the log only.
pub(super) fn request_failed(method: &Method, url: &Url, error: &HttpError) -> CallFailure {
    let host = url.host_str().unwrap_or_default();
    tracing::info!(host, %error, "web_fetch got no answer");
    match error {
        HttpError::Connect { .. } | HttpError::NotAllowed { .. } => failure::unavailable(format!(
            "{host} cannot be reached from here. Nothing was sent. Check the url, or use another one."
        )),
        HttpError::Request { .. } => failure::invalid("the request cannot be sent as it is"),
        HttpError::Broken { .. } | HttpError::Redirect { .. } | HttpError::TooLarge { .. } => {
            let message = format!("the connection to {host} broke before the answer was complete");
            CallFailure {
                error: ToolError::new(ErrorCode::ExecutionError, message),
                effect: effect_of(method),
            }
        }
    }
}

pub(super) fn timed_out(method: &Method, url: &Url, limit: Duration) -> CallFailure {
    let host = url.host_str().unwrap_or_default();
    let message = format!("{host} did not answer completely within {} s", limit.as_secs_f64());
    CallFailure { error: ToolError::new(ErrorCode::Timeout, message), effect: effect_of(method) }
}

/// A redirect that is not followed. Only a request by a safe method is ever redirected, so nothing has happened.
fn redirect_refused(from: &Url, to: &str, why: &str) -> CallFailure {
    let fault = failure::denied(format!("{from} redirects to {to}, which was not followed: {why}"));
    failure::with_details(fault, json!({ "url": from.as_str(), "redirect": to }))
}
