//! Requests that follow redirects: one loop for every client that follows any.
//!
//! The caller decides where a redirect may lead. Three rules hold in any case: only `GET` and `HEAD` are
//! redirected, so that nothing is sent twice; another origin gets neither the body nor headers other than
//! [`CROSS_ORIGIN`]; and at most [`REDIRECTS`] are followed.

use crate::{HttpClient, HttpError, HttpResponse, Url};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use std::time::Duration;

/// Redirects of one request that are followed.
pub const REDIRECTS: usize = 5;

/// Headers that another origin may see. Others may hold credentials.
const CROSS_ORIGIN: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// Statuses that point to another URL.
const REDIRECTING: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// A request. URL, headers and body may hold secrets, so only the method is shown.
#[derive(Clone)]
pub struct OutboundRequest {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl std::fmt::Debug for OutboundRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboundRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A redirect that the caller decides on.
#[derive(Debug, Clone, Copy)]
pub struct Redirect<'a> {
    pub from: &'a Url,
    /// The value of the `Location` header.
    pub location: &'a str,
    /// The URLs that were asked so far, `from` among them.
    pub visited: &'a [Url],
}

/// An answer, and where it came from.
#[derive(Debug)]
pub struct Followed {
    pub response: HttpResponse,
    /// The last URL that was asked.
    pub url: Url,
    /// Whether a redirect led there.
    pub redirected: bool,
    /// The answer is one redirect more than are followed.
    pub too_many: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub struct FollowError {
    pub error: HttpError,
    /// The URL that could not be asked.
    pub url: Url,
    /// Whether a redirect led there.
    pub redirected: bool,
}

impl FollowError {
    /// Whether a server may have got the request: the first one has if it redirected.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.redirected || self.error.was_sent()
    }
}

/// Sends a request and follows redirects. A request that could not connect, and so was not sent, is tried again after
/// each of the pauses. `decide` returns the URL to follow, or `None` to take the redirect itself as the answer.
///
/// Cancel-safety: dropping the future closes the connection; what was sent stays sent.
pub async fn follow(
    client: &HttpClient,
    request: OutboundRequest,
    pauses: &[Duration],
    mut decide: impl FnMut(Redirect<'_>) -> Option<Url>,
) -> Result<Followed, FollowError> {
    let OutboundRequest { method, mut url, mut headers, mut body } = request;
    url.set_fragment(None);
    let mut visited: Vec<Url> = Vec::with_capacity(1);
    loop {
        let redirected = !visited.is_empty();
        let mut pauses = pauses.iter();
        let response = loop {
            let body = body.clone().into();
            match client.exchange(method.clone(), url.as_str(), headers.clone(), body).await {
                Ok(response) => break response,
                // Nothing was sent.
                Err(HttpError::Connect { .. }) if let Some(pause) = pauses.next() => {
                    tokio::time::sleep(*pause).await;
                }
                Err(error) => return Err(FollowError { error, url, redirected }),
            }
        };
        visited.push(url.clone());
        let location = location(&method, &response);
        let too_many = location.is_some() && visited.len() > REDIRECTS;
        let next = location
            .filter(|_| !too_many)
            .and_then(|location| decide(Redirect { from: &url, location: &location, visited: &visited }));
        let Some(mut next) = next else { return Ok(Followed { response, url, redirected, too_many }) };
        // A fragment is not sent, so it makes no other URL.
        next.set_fragment(None);
        if next.origin() != url.origin() {
            (headers, body) = (cross_origin_headers(&headers), Bytes::new());
        }
        url = next;
    }
}

fn location(method: &Method, response: &HttpResponse) -> Option<String> {
    if !matches!(*method, Method::GET | Method::HEAD) || !REDIRECTING.contains(&response.status()) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

fn cross_origin_headers(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| CROSS_ORIGIN.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
