//! The HTTP client that all REST services of a project share.

use crate::openapi::Method;
use gantry_egress::address_guard::IpNet;
use gantry_egress::{FollowError, Followed, HOP_BY_HOP, HttpClient, OutboundRequest, Redirect, Url, follow};
use http::Method as Verb;
use http::header::{self, HeaderName, HeaderValue};
use std::time::Duration;

/// Pauses before a request that was not sent is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Sends requests to public addresses, and to the private ranges that the configuration allows.
#[derive(Debug)]
pub struct RestClient {
    pub(super) private: Vec<IpNet>,
    /// Pauses before a request that was not sent is tried again.
    pub(super) pauses: [Duration; 2],
    client: HttpClient,
    public: HttpClient,
}

impl RestClient {
    /// A client for public addresses and these private ranges.
    #[must_use]
    pub fn new(private: Vec<IpNet>) -> Self {
        let (client, public) = (HttpClient::guarded(&private), HttpClient::guarded(&[]));
        Self { private, pauses: PAUSES, client, public }
    }

    /// Sends a request, on request to public addresses only, and returns when the head of the answer is there. An
    /// idempotent request that was not sent is tried again. Redirects of GET and HEAD are followed within the origin; any
    /// other redirect is the answer.
    ///
    /// Cancel-safety: dropping the future closes the connection; what was sent stays sent.
    pub(super) async fn send(
        &self,
        mut request: OutboundRequest,
        public_only: bool,
    ) -> Result<Followed, FollowError> {
        if matches!(request.method, Verb::POST | Verb::PUT | Verb::PATCH) && request.body.is_empty() {
            // Servers that expect a body need to know that there is none.
            request.headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let client = if public_only { &self.public } else { &self.client };
        let pauses: &[_] = if request.method.is_idempotent() { &self.pauses } else { &[] };
        follow(client, request, pauses, target).await
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

pub(super) fn verb(method: Method) -> Result<Verb, String> {
    Verb::from_bytes(method.to_string().as_bytes()).map_err(|error| error.to_string())
}
