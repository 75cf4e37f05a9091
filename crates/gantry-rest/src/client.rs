//! The HTTP client that all REST services of a project share.

use gantry_egress::address_guard::IpNet;
use gantry_egress::{
    FollowError, Followed, HOP_BY_HOP, HttpError, LazyClient, OutboundRequest, Redirect, Url, follow,
};
use gantry_openapi::Method;
use http::Method as Verb;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::convert::Infallible;
use std::time::Duration;

/// Pauses before a request that was not sent is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Sends requests to public addresses, and to the private ranges that the configuration allows.
#[derive(Debug)]
pub struct RestClient {
    pub(super) private: Vec<IpNet>,
    /// Pauses before a request that was not sent is tried again.
    pub(super) pauses: [Duration; 2],
    client: LazyClient,
    /// A client for public addresses only.
    public: LazyClient,
}

/// A request. Its URL, headers and body may hold secrets, so it has no `Debug`.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// The request goes to public addresses only, also where private ranges are allowed: a document from the web names its
    /// URL.
    pub(super) public_only: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) error: HttpError,
    /// The request was answered by a redirect, and the request to its target failed.
    pub(super) redirected: bool,
}

impl SendError {
    /// Whether the service may have got the request.
    pub(super) fn was_sent(&self) -> bool {
        self.redirected || self.error.was_sent()
    }
}

impl RestClient {
    /// A client for public addresses and these private ranges.
    #[must_use]
    pub fn new(private: Vec<IpNet>) -> Self {
        let (client, public) = (LazyClient::new(private.clone()), LazyClient::new(Vec::new()));
        Self { private, pauses: PAUSES, client, public }
    }

    /// Sends a request and returns when the head of the answer is there. An idempotent request that was not sent is tried
    /// again. Redirects of GET and HEAD are followed within the origin; any other redirect is the answer.
    ///
    /// Cancel-safety: dropping the future closes the connection; what was sent stays sent.
    pub(super) async fn send(&self, request: &Request) -> Result<Followed, SendError> {
        let client = if request.public_only { &self.public } else { &self.client };
        let client = client.get().await.map_err(|error| SendError { error, redirected: false })?;
        let mut headers = request.headers.clone();
        if matches!(request.method, Method::Post | Method::Put | Method::Patch) && request.body.is_empty() {
            // Servers that expect a body need to know that there is none.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let outbound = OutboundRequest {
            method: verb(request.method),
            url: request.url.clone(),
            headers,
            body: request.body.clone().into(),
            connect_retries: if request.method.is_idempotent() { &self.pauses } else { &[] },
        };
        let followed = follow(client, outbound, |redirect| Ok::<_, Infallible>(target(redirect))).await;
        followed.map_err(|FollowError::Http { error, redirected, .. }| SendError { error, redirected })
    }
}

/// The `Accept` header of a request that has no other one.
pub(super) const ACCEPT: &str = "application/json, */*;q=0.5";

/// The name of a header that may be set: it is not about the connection, and does not follow from the body.
pub(super) fn header_name(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::try_from(name).map_err(|_bad| format!("{name:?} is no name of a header"))?;
    if parsed == header::CONTENT_LENGTH || HOP_BY_HOP.contains(&parsed) {
        return Err(format!("the header {name} is not set by hand; leave it out"));
    }
    Ok(parsed)
}

pub(super) fn header_value(name: &str, value: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_bytes(value.as_bytes());
    value.map_err(|_bad| format!("the header {name} cannot have line breaks or control characters"))
}

/// Where a redirect leads if it may be followed: within the origin, to a URL that was not asked yet. Credentials stay with
/// the service they are for, and a service does not choose the user of the next request.
fn target(Redirect { from, location, visited }: Redirect<'_>) -> Option<Url> {
    let mut next = from.join(location).ok()?;
    next.set_fragment(None);
    let same_user = (next.username(), next.password()) == (from.username(), from.password());
    (next.origin() == from.origin() && same_user && !visited.contains(&next)).then_some(next)
}

/// Where the `Location` header of an answer points, relative to the URL of that answer.
pub(super) fn location(from: &Url, headers: &HeaderMap) -> Option<Url> {
    from.join(headers.get(header::LOCATION)?.to_str().ok()?).ok()
}

fn verb(method: Method) -> Verb {
    match method {
        Method::Get => Verb::GET,
        Method::Put => Verb::PUT,
        Method::Post => Verb::POST,
        Method::Delete => Verb::DELETE,
        Method::Options => Verb::OPTIONS,
        Method::Head => Verb::HEAD,
        Method::Patch => Verb::PATCH,
        Method::Trace => Verb::TRACE,
    }
}
