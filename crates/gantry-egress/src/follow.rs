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
pub struct OutboundRequest<'a> {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Pauses before a request that could not connect, and so was not sent, is tried again.
    pub connect_retries: &'a [Duration],
}

impl std::fmt::Debug for OutboundRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboundRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A redirect that the caller decides on.
#[derive(Debug, Clone, Copy)]
pub struct Redirect<'a> {
    /// The URL that redirects.
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
pub enum FollowError<E> {
    /// The request to `url` failed.
    Http {
        error: HttpError,
        url: Url,
        /// An earlier answer had led there.
        redirected: bool,
    },
    /// The caller refused a redirect.
    Refused(E),
}

/// Sends a request and follows redirects. `decide` returns the URL to follow, `None` to take the redirect itself as the
/// answer, or an error.
///
/// Cancel-safety: dropping the future closes the connection; what was sent stays sent.
///
/// # Errors
/// A request failed, or `decide` refused a redirect.
pub async fn follow<E>(
    client: &HttpClient,
    request: OutboundRequest<'_>,
    decide: impl Fn(Redirect<'_>) -> Result<Option<Url>, E>,
) -> Result<Followed, FollowError<E>> {
    let OutboundRequest { method, mut url, mut headers, mut body, connect_retries } = request;
    url.set_fragment(None);
    let mut visited: Vec<Url> = Vec::with_capacity(1);
    loop {
        let redirected = !visited.is_empty();
        let attempt = || client.exchange(method.clone(), url.as_str(), headers.clone(), body.clone());
        let response = match retry(connect_retries, attempt).await {
            Ok(response) => response,
            Err(error) => return Err(FollowError::Http { error, url, redirected }),
        };
        visited.push(url.clone());
        let location = location(&method, &response);
        let too_many = location.is_some() && visited.len() > REDIRECTS;
        let next = match location.filter(|_| !too_many) {
            Some(location) => {
                let redirect = Redirect { from: &url, location: &location, visited: &visited };
                decide(redirect).map_err(FollowError::Refused)?
            }
            None => None,
        };
        let Some(mut next) = next else { return Ok(Followed { response, url, redirected, too_many }) };
        // A fragment is not sent, so it makes no other URL.
        next.set_fragment(None);
        if next.origin() != url.origin() {
            (headers, body) = (cross_origin_headers(&headers), Bytes::new());
        }
        url = next;
    }
}

/// Tries again while the connection cannot be made: nothing was sent then.
async fn retry<F>(pauses: &[Duration], attempt: impl Fn() -> F) -> Result<HttpResponse, HttpError>
where
    F: Future<Output = Result<HttpResponse, HttpError>>,
{
    for pause in pauses {
        match attempt().await {
            Err(HttpError::Connect { .. }) => tokio::time::sleep(*pause).await,
            ended => return ended,
        }
    }
    attempt().await
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
